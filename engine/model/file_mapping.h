// A regular file, open for reading and mapped. One descriptor from the first check to the last read.
//
// Others can change or cut a file while it is mapped. Reading a page that is gone raises SIGBUS, which would
// end the program and every chat in it. So mapping installs a process-wide SIGBUS handler, once: a fault
// inside one of our mappings gets a page of zeros and marks that mapping as damaged; any other fault goes to
// the handler that was there before.
//
// Ownership: the object owns descriptor and mapping. Immutable; any thread.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "engine/base/result.h"
#include "engine/model/byte_source.h"

namespace octavo::model {

class FileMapping final : public ByteSource {
 public:
  // Errors: kNotFound; kIo, also for what is no regular file (a directory, a pipe, a device).
  static Result<std::unique_ptr<FileMapping>> open(const std::filesystem::path& path);
  ~FileMapping() override;
  FileMapping(const FileMapping&) = delete;
  FileMapping& operator=(const FileMapping&) = delete;

  std::uint64_t size() const override { return static_cast<std::uint64_t>(status_.st_size); }
  // With pread, so that the bytes are ours afterwards.
  Result<void> read(std::uint64_t offset, std::span<std::byte> out) const override;

  // The whole file.
  std::span<const std::byte> bytes() const { return bytes_; }

  // Whether a page was missing when it was read: what was read since is not to be trusted.
  bool is_damaged() const;

  // An error when size or time of the last change are not those at opening, or when it is damaged.
  Result<void> verify_unchanged() const;

 private:
  FileMapping(std::filesystem::path path, int descriptor, const struct stat& status)
      : path_(std::move(path)), descriptor_(descriptor), status_(status) {}
  Result<void> map();

  std::filesystem::path path_;
  int descriptor_;
  struct stat status_;  // at opening
  std::span<const std::byte> bytes_;
  int guard_ = -1;  // this mapping's entry in the handler's table; -1: none
};

// Whole pages of a mapping that nobody reads soon: packed weights are read from their own memory, and mapped
// pages would only compete with them. They come back from the file should anybody look again.
void release_pages(std::span<const std::byte> bytes);

}  // namespace octavo::model
