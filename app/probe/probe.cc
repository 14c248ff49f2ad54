#include "app/probe/probe.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "app/files/file_descriptor.h"
#include "engine/base/text.h"

extern char** environ;

namespace octavo::app {
namespace {

using Clock = std::chrono::steady_clock;

std::string shown(const std::string& path) { return escape_for_message(path, 1000); }

Error not_started(const std::string& path, int number) {
  return {.code = ErrorCode::kIo,
          .message = shown(path) +
                     " was not opened: the process that checks model files could not be started: " +
                     std::strerror(number)};
}

Error not_opened(const std::string& path, const std::string& what) {
  return {.code = ErrorCode::kDamagedFile,
          .message = shown(path) + ": the file " + what +
                     ", so it was not opened; download it again or choose another file"};
}

// Owns what posix_spawn is told.
class SpawnActions {
 public:
  SpawnActions() {
    posix_spawn_file_actions_init(&files_);
    posix_spawnattr_init(&attributes_);
  }
  ~SpawnActions() {
    posix_spawn_file_actions_destroy(&files_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;

  // Standard output to `output`, nothing else open; signals as in a new program, and none from our terminal.
  bool prepare(int output) {
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    return posix_spawn_file_actions_adddup2(&files_, output, STDOUT_FILENO) ==
               0 &&  // first: it may be 0 or 2
           posix_spawn_file_actions_addopen(&files_, STDIN_FILENO, "/dev/null", O_RDONLY, 0) == 0 &&
           posix_spawn_file_actions_addopen(&files_, STDERR_FILENO, "/dev/null", O_WRONLY, 0) == 0 &&
           posix_spawn_file_actions_addclosefrom_np(&files_, STDERR_FILENO + 1) == 0 &&
           posix_spawnattr_setsigmask(&attributes_, &none) == 0 &&
           posix_spawnattr_setsigdefault(&attributes_, &all) == 0 &&
           posix_spawnattr_setpgroup(&attributes_, 0) == 0 &&
           posix_spawnattr_setflags(
               &attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP) == 0;
  }
  const posix_spawn_file_actions_t* files() const { return &files_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t files_;
  posix_spawnattr_t attributes_;
};

// A running child. Ends it when it goes.
class Child {
 public:
  static Result<Child> start(const std::string& path, const ProbeOptions& options) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return not_started(path, errno);
    const FileDescriptor write_end(ends[1]);
    Child child{FileDescriptor(ends[0])};
    SpawnActions actions;
    if (!actions.prepare(write_end.get())) return not_started(path, ENOMEM);
    std::array<std::string, 4> words = {"octavo", kProbeFlag, probe_depth_name(options.depth), path};
    std::array<char*, 5> arguments = {words[0].data(), words[1].data(), words[2].data(), words[3].data(),
                                      nullptr};
    const int failed = posix_spawn(&child.id_, options.program.c_str(), actions.files(), actions.attributes(),
                                   arguments.data(), environ);
    if (failed != 0) {
      child.id_ = -1;
      return not_started(path, failed);
    }
    return child;
  }
  Child(Child&& other) noexcept : output_(std::move(other.output_)), id_(std::exchange(other.id_, -1)) {}
  Child& operator=(Child&&) = delete;
  ~Child() {
    if (id_ < 0) return;
    kill(id_, SIGKILL);
    wait();
  }

  enum class Reading { kEnded, kTooLong, kTooMuch, kCancelled };

  Reading read_output(const ProbeOptions& options, std::string& text) const {
    const Clock::time_point deadline = Clock::now() + options.timeout;
    while (Clock::now() < deadline) {
      if (options.cancelled && options.cancelled()) return Reading::kCancelled;
      pollfd readable = {output_.get(), POLLIN, 0};
      if (poll(&readable, 1, 50) <= 0) continue;
      std::array<char, 4096> buffer;
      const ssize_t count = read(output_.get(), buffer.data(), buffer.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return Reading::kEnded;
      text.append(buffer.data(), static_cast<std::size_t>(count));
      if (text.size() > kMaxProbeReportBytes) return Reading::kTooMuch;
    }
    return Reading::kTooLong;
  }

  // As waitpid gives it. A child that closed its output but does not end is not waited for.
  int wait_or_kill(Clock::time_point deadline) {
    int status = 0;
    for (;;) {
      const pid_t ended = waitpid(id_, &status, WNOHANG);
      if (ended == id_) break;
      if (ended < 0 && errno != EINTR) return -1;
      if (Clock::now() >= deadline) kill(id_, SIGKILL);
      poll(nullptr, 0, 1);
    }
    id_ = -1;
    return status;
  }

 private:
  explicit Child(FileDescriptor output) : output_(std::move(output)) {}
  void wait() {
    int status = 0;
    while (waitpid(id_, &status, 0) < 0 && errno == EINTR) {
    }
    id_ = -1;
  }

  FileDescriptor output_;
  pid_t id_ = -1;
};

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

}  // namespace

Result<ProbeReport> probe_model(const std::string& path, const ProbeOptions& options) {
  const Clock::time_point deadline = Clock::now() + options.timeout;
  OCTAVO_TRY(Child child, Child::start(path, options));
  std::string text;
  switch (child.read_output(options, text)) {
    case Child::Reading::kEnded: break;
    case Child::Reading::kCancelled:
      return Error{.code = ErrorCode::kCancelled, .message = "loading was cancelled"};
    case Child::Reading::kTooMuch: return not_opened(path, "made the check print too much");
    case Child::Reading::kTooLong:
      return not_opened(
          path, "made the check take longer than " + std::to_string(options.timeout.count() / 1000) + " s");
  }
  const int status = child.wait_or_kill(deadline);
  if (WIFSIGNALED(status)) {
    if (WTERMSIG(status) == SIGXCPU) return not_opened(path, "made the check use too much processor time");
    return not_opened(path, "made the check crash (" + std::string(strsignal(WTERMSIG(status))) + ")");
  }
  const auto report = read_probe_report(text);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || !report)
    return not_opened(path, "made the check give no readable result");
  if (report->refusal) return *report->refusal;
  return *report;
}

std::string confinement_text(const Confinement& confinement) {
  if (confinement.missing.empty()) return "in a confined process";
  return "in a separate process, but without what this machine does not support: " +
         joined(confinement.missing);
}

}  // namespace octavo::app
