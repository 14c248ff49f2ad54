// The checksums by which a hub names contents: SHA-256, and git's SHA-1 of small files.
//
// A value that owns its state; one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace octavo::hub {

enum class ChecksumKind { kSha256, kGitBlob };

class Checksum {
 public:
  //   bytes  of the whole content, which git's begins with
  Checksum(ChecksumKind kind, std::int64_t bytes);
  ~Checksum();
  Checksum(Checksum&&) noexcept;
  Checksum& operator=(Checksum&&) noexcept;

  void add(std::span<const std::byte> bytes);
  // Lower-case hexadecimal digits. Once, last.
  std::string finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace octavo::hub
