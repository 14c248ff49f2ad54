#include "engine/metrics/recording_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <system_error>
#include <utility>

#include "engine/base/text.h"
#include "engine/metrics/recording_format.h"

namespace octavo::metrics {
namespace {

std::string reason_of(int error_number) { return std::generic_category().message(error_number); }

Error cannot_record(const std::filesystem::path& path, const std::string& why) {
  return {.code = ErrorCode::kIo,
          .message = "cannot record to " + escape_for_message(path.string()) + ": " + why,
          .subject = "record"};
}

// A pipe without a reader would hang, so nothing waits here.
constexpr int kOpenFlags = O_WRONLY | O_CREAT | O_NONBLOCK | O_CLOEXEC;

}  // namespace

Result<std::unique_ptr<RecordingFile>> RecordingFile::open(const std::filesystem::path& path) {
  int descriptor = ::open(path.c_str(), kOpenFlags | O_EXCL, 0666);
  const bool is_new = descriptor >= 0;
  if (!is_new && errno == EEXIST) descriptor = ::open(path.c_str(), kOpenFlags, 0666);
  if (descriptor < 0) return cannot_record(path, reason_of(errno) + "; choose a file that is writable");
  std::unique_ptr<RecordingFile> file(new RecordingFile(path, descriptor, is_new));
  struct stat status = {};
  if (fstat(descriptor, &status) != 0) return cannot_record(path, reason_of(errno));
  if (S_ISCHR(status.st_mode)) return file;  // such as /dev/null
  if (!S_ISREG(status.st_mode)) return cannot_record(path, "it is not a regular file");
  if (status.st_size > 0 && !is_recording(path)) {
    return cannot_record(path, "the file exists and is not a recording; choose another name or delete it");
  }
  return file;
}

RecordingFile::~RecordingFile() {
  ::close(descriptor_);
  if (is_new_ && !has_begun_) ::unlink(path_.c_str());
}

std::string RecordingFile::name() const { return escape_for_message(path_.string()); }

Result<void> RecordingFile::write(std::span<const std::byte> bytes) {
  if (!std::exchange(has_begun_, true) && ::ftruncate(descriptor_, 0) != 0 && errno != EINVAL) {
    return Error{ErrorCode::kIo, reason_of(errno)};
  }
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Error{ErrorCode::kIo, reason_of(errno)};
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return {};
}

bool is_recording(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;  // opening a pipe may wait for ever
  std::ifstream file(path, std::ios::binary);
  std::array<char, kRecordingMagic.size()> begin = {};
  return file.read(begin.data(), begin.size()) && begin == kRecordingMagic;
}

}  // namespace octavo::metrics
