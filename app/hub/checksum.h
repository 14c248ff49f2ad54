// The checksums by which a hub names contents: SHA-256, and git's SHA-1 of small files.
//
// A value that owns its state; one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "engine/base/result.h"

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

// SHA-256 of a whole file. Errors: kIo; kCancelled once `is_stopped` says so.
Result<std::string> sha256_of_file(const std::filesystem::path& path,
                                   const std::function<bool()>& is_stopped);

}  // namespace octavo::hub
