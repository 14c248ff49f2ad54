// Anonymous memory straight from the system: zero bytes that are committed when first touched, on 2 MiB pages
// where the system has them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/base/result.h"

namespace octavo::kernels::cpu {

class MappedMemory {
 public:
  static constexpr std::int64_t kLargePage = std::int64_t{2} << 20;

  // Aligned to kLargePage if that large, else to a page. Error kOutOfMemory, with `purpose` ("the KV pool")
  // and both numbers, when the machine has less memory than that or the system refuses.
  static Result<MappedMemory> create(std::int64_t num_bytes, const char* purpose);

  MappedMemory(MappedMemory&& other) noexcept;
  MappedMemory& operator=(MappedMemory&&) = delete;
  ~MappedMemory();

  std::byte* data() const { return data_; }

 private:
  MappedMemory(std::byte* mapping, std::size_t mapping_bytes, std::byte* data)
      : mapping_(mapping), mapping_bytes_(mapping_bytes), data_(data) {}

  std::byte* mapping_;
  std::size_t mapping_bytes_;
  std::byte* data_;  // first aligned byte of the mapping
};

}  // namespace octavo::kernels::cpu
