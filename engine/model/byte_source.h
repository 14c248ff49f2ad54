// Bytes at offsets: a file, or memory in tests and fuzzers. What reads a header reads through this.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/base/result.h"

namespace octavo::model {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual std::uint64_t size() const = 0;

  // Copies out.size() bytes from `offset` on. An error when they cannot be had (any more).
  // REQUIRES: offset + out.size() <= size()
  virtual Result<void> read(std::uint64_t offset, std::span<std::byte> out) const = 0;
};

class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::uint64_t size() const override { return bytes_.size(); }
  Result<void> read(std::uint64_t offset, std::span<std::byte> out) const override {
    const auto source = bytes_.subspan(static_cast<std::size_t>(offset), out.size());
    std::copy(source.begin(), source.end(), out.begin());
    return {};
  }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace octavo::model
