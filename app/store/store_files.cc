#include "app/store/store_files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <tuple>
#include <utility>

#include "app/files/file_descriptor.h"
#include "app/files/whole_file.h"
#include "engine/base/home_folder.h"
#include "engine/base/text.h"

namespace octavo::app {
namespace {

namespace fs = std::filesystem;

constexpr int kCopyAttempts = 20;

Error failed(const fs::path& path, const char* doing, int reason) {
  return {
      .code = ErrorCode::kIo,
      .message = escape_for_message(path.string()) + " cannot be " + doing + ": " + std::strerror(reason)};
}

FileDescriptor open_private(const fs::path& path, int flags) {
  return FileDescriptor(::open(path.c_str(), flags | O_CLOEXEC, 0600));
}

// 0 or the reason.
int copy_bytes(int from, int to) {
  std::array<char, 1 << 16> buffer;
  while (true) {
    const ssize_t count = ::read(from, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    if (count == 0) return 0;
    const int reason = write_all(to, {buffer.data(), static_cast<std::size_t>(count)});
    if (reason != 0) return reason;
  }
}

// What changes when a database is written other than by appending to its log: pages are folded in, or the log
// begins anew with other salts.
struct FileVersion {
  std::tuple<std::int64_t, std::int64_t, std::int64_t> main;  // size, seconds, nanoseconds
  std::array<char, 32> wal_header;

  bool operator==(const FileVersion&) const = default;
};

FileVersion version_of(const fs::path& database) {
  FileVersion version{{-1, 0, 0}, {}};
  struct stat status {};
  if (::stat(database.c_str(), &status) == 0)
    version.main = {status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
  const FileDescriptor wal = open_private(wal_of(database), O_RDONLY);
  if (wal.ok() && ::pread(wal.get(), version.wal_header.data(), version.wal_header.size(), 0) <= 0)
    version.wal_header.fill(0);
  return version;
}

Result<void> copy_if_there(const fs::path& from, const fs::path& to) {
  std::error_code ignored;
  if (fs::exists(from, ignored)) return copy_file_durably(from, to);
  fs::remove(to, ignored);
  return {};
}

}  // namespace

fs::path StorePaths::beside(const std::string& extension) const {
  return folder() / (database.stem().string() + extension);
}

fs::path StorePaths::unused_damaged_name() const {
  for (int number = 1;; ++number) {
    fs::path name = beside(".damaged-" + std::to_string(number) + ".db");
    std::error_code ignored;
    if (!fs::exists(name, ignored)) return name;
  }
}

fs::path StorePaths::backup(std::int64_t unix_ms) const {
  return backups() / (database.stem().string() + "-" + std::to_string(unix_ms) + ".db");
}

std::vector<std::pair<std::int64_t, fs::path>> StorePaths::existing_backups() const {
  std::vector<std::pair<std::int64_t, fs::path>> found;
  const std::string begin = database.stem().string() + "-";
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(backups(), error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(begin) || !name.ends_with(".db")) continue;
    std::int64_t time = 0;
    const char* last = name.data() + name.size() - 3;
    const auto [end, failure] = std::from_chars(name.data() + begin.size(), last, time);
    if (failure == std::errc() && end == last) found.emplace_back(time, entry.path());
  }
  std::sort(found.rbegin(), found.rend());
  return found;
}

fs::path wal_of(const fs::path& database) { return database.string() + "-wal"; }

fs::path default_chats_path() { return data_folder() / "octavo/chats.db"; }

LockOutcome FileLock::take(const fs::path& path) {
  release();
  descriptor_ = open_private(path, O_RDWR | O_CREAT);
  if (!descriptor_.ok())
    return errno == EACCES || errno == EROFS || errno == EPERM ? LockOutcome::kNotPermitted
                                                               : LockOutcome::kFailed;
  if (::flock(descriptor_.get(), LOCK_EX | LOCK_NB) == 0) return LockOutcome::kLocked;
  const bool held = errno == EWOULDBLOCK;
  release();
  return held ? LockOutcome::kHeldByAnother : LockOutcome::kFailed;
}

Result<void> make_private_folder(const fs::path& folder) {
  std::error_code error;
  if (fs::create_directories(folder, error); error) return failed(folder, "made", error.value());
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0) return failed(folder, "read", errno);
  const mode_t mode = status.st_mode & 0777;
  // A folder of somebody else's stays as it is.
  if ((mode & 0077) != 0 && status.st_uid == ::geteuid()) ::chmod(folder.c_str(), mode & 0700);
  return {};
}

bool may_write_to(const fs::path& folder) {
  return ::faccessat(AT_FDCWD, folder.c_str(), W_OK, AT_EACCESS) == 0;
}

Result<void> make_private_file(const fs::path& path) {
  const FileDescriptor file = open_private(path, O_RDWR | O_CREAT);
  if (!file.ok()) return failed(path, "opened", errno);
  ::fchmod(file.get(), 0600);
  return {};
}

Result<void> copy_file_durably(const fs::path& from, const fs::path& to) {
  const FileDescriptor source = open_private(from, O_RDONLY);
  if (!source.ok()) return failed(from, "read", errno);
  const FileDescriptor target = open_private(to, O_WRONLY | O_CREAT | O_TRUNC);
  if (!target.ok()) return failed(to, "written", errno);
  if (const int reason = copy_bytes(source.get(), target.get()); reason != 0)
    return failed(to, "written", reason);
  if (::fsync(target.get()) != 0) return failed(to, "written", errno);
  return {};
}

Result<void> write_file_durably(const fs::path& path, const std::string& text) {
  const FileDescriptor file = open_private(path, O_WRONLY | O_CREAT | O_TRUNC);
  if (!file.ok()) return failed(path, "written", errno);
  if (const int reason = write_all(file.get(), text); reason != 0) return failed(path, "written", reason);
  if (::fsync(file.get()) != 0) return failed(path, "written", errno);
  return {};
}

Result<void> sync_file(const fs::path& path) {
  const FileDescriptor file = open_private(path, O_RDONLY);
  if (!file.ok() || ::fsync(file.get()) != 0) return failed(path, "written", errno);
  return {};
}

Result<void> sync_folder(const fs::path& folder) { return sync_file(folder); }

Result<void> rename_durably(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) return failed(to, "written", errno);
  return sync_folder(to.parent_path());
}

Result<void> copy_live_database(const fs::path& from, const fs::path& to) {
  for (int attempt = 0; attempt < kCopyAttempts; ++attempt) {
    const FileVersion before = version_of(from);
    OCTAVO_TRY_VOID(copy_file_durably(from, to));
    OCTAVO_TRY_VOID(copy_if_there(wal_of(from), wal_of(to)));
    // A log that grew meanwhile ends in the copy at some commit; SQLite drops what comes after that.
    if (version_of(from) == before) return {};
  }
  return failed(from, "copied while it is being written", EBUSY);
}

}  // namespace octavo::app
