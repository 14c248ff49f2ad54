#include "app/files/whole_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <string>
#include <system_error>

#include "app/files/file_descriptor.h"

namespace octavo::app {
namespace {

int write_and_sync(const std::filesystem::path& path, std::string_view bytes) {
  const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file.ok()) return errno;
  if (const int reason = write_all(file.get(), bytes); reason != 0) return reason;
  return ::fsync(file.get()) == 0 ? 0 : errno;
}

}  // namespace

int read_all(int descriptor, std::string& bytes) {
  struct stat status = {};
  if (::fstat(descriptor, &status) != 0) return errno;
  constexpr std::size_t kPiece = std::size_t{1} << 16;
  std::size_t size = 0;
  bytes.resize(static_cast<std::size_t>(status.st_size) + kPiece);
  while (true) {
    const ssize_t count = ::read(descriptor, bytes.data() + size, bytes.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    size += static_cast<std::size_t>(count);
    if (count == 0) break;
    if (size == bytes.size()) bytes.resize(2 * size);  // a file that grew, or no file
  }
  bytes.resize(size);
  return 0;
}

int read_whole_file(const std::filesystem::path& path, std::string& bytes) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return file.ok() ? read_all(file.get(), bytes) : errno;
}

int write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written < 0 ? errno : EIO;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

int write_whole_file(const std::filesystem::path& path, std::string_view bytes) {
  std::error_code error;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), error);
  if (error) return error.value();
  // Two that write the same file at once, threads or processes, must not share what they write it from.
  const std::filesystem::path staged = path.string() + "." + std::to_string(::gettid()) + ".part";
  int reason = write_and_sync(staged, bytes);
  if (reason == 0 && std::rename(staged.c_str(), path.c_str()) != 0) reason = errno;
  if (reason != 0) std::filesystem::remove(staged, error);
  return reason;
}

}  // namespace octavo::app
