#include "engine/model/file_mapping.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "engine/base/text.h"
#include "engine/model/mapping_guard.h"

namespace octavo::model {
namespace {

Error system_error(const std::filesystem::path& path, std::string_view what, int number) {
  const ErrorCode code = number == ENOENT || number == ENOTDIR ? ErrorCode::kNotFound : ErrorCode::kIo;
  return {code, path_for_message(path) + ": " + std::string(what) + ": " + std::strerror(number)};
}

std::string_view kind_of_file(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  return "not a regular file";
}

}  // namespace

Result<std::unique_ptr<FileMapping>> FileMapping::open(const std::filesystem::path& path) {
  // Opening a pipe that nobody writes to would wait forever without O_NONBLOCK; on regular files it changes
  // nothing.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) return system_error(path, "cannot be opened", errno);
  struct stat status {};
  const bool known = fstat(descriptor, &status) == 0;
  const int status_errno = errno;
  std::unique_ptr<FileMapping> file(
      new FileMapping(path, descriptor, status));  // closes the descriptor from now on
  if (!known) return system_error(path, "cannot be inspected", status_errno);
  if (!S_ISREG(status.st_mode)) {
    return Error{ErrorCode::kIo, path_for_message(path) + " is " + std::string(kind_of_file(status.st_mode)) +
                                     "; give the path of a .gguf file"};
  }
  OCTAVO_TRY_VOID(file->map());
  return file;
}

Result<void> FileMapping::map() {
  if (size() == 0) return {};
  void* address = mmap(nullptr, static_cast<std::size_t>(size()), PROT_READ, MAP_PRIVATE, descriptor_, 0);
  if (address == MAP_FAILED) return system_error(path_, "cannot be mapped", errno);
  bytes_ = {static_cast<const std::byte*>(address), static_cast<std::size_t>(size())};
  guard_ = guard_mapping(bytes_);
  return {};
}

FileMapping::~FileMapping() {
  unguard_mapping(guard_);
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  close(descriptor_);
}

Result<void> FileMapping::read(std::uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t count = pread(descriptor_, out.data(), out.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_error(path_, "cannot be read", errno);
    if (count == 0)
      return Error{ErrorCode::kIo,
                   path_for_message(path_) + " shrank while it was being read; load it again"};
    offset += static_cast<std::uint64_t>(count);
    out = out.subspan(static_cast<std::size_t>(count));
  }
  return {};
}

void release_pages(std::span<const std::byte> bytes) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<std::uintptr_t>(bytes.data()) + page - 1) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(bytes.data() + bytes.size()) / page * page;
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

bool FileMapping::is_damaged() const { return guarded_mapping_is_damaged(guard_); }

Result<void> FileMapping::verify_unchanged() const {
  struct stat now {};
  if (fstat(descriptor_, &now) != 0) return system_error(path_, "cannot be inspected", errno);
  const bool same = now.st_size == status_.st_size && now.st_mtim.tv_sec == status_.st_mtim.tv_sec &&
                    now.st_mtim.tv_nsec == status_.st_mtim.tv_nsec;
  if (same && !is_damaged()) return {};
  return Error{ErrorCode::kIo, path_for_message(path_) + " changed while it was in use; load it again"};
}

}  // namespace octavo::model
