#include "engine/grammar/confined_work.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <new>

namespace octavo {
namespace {

constexpr int kDoneStatus = 0, kMemoryStatus = 3, kFailedStatus = 4;
constexpr std::chrono::milliseconds kPollInterval{10};
constexpr int kNicer = 5;  // somebody waits for it; others wait for the tokens that are computed meanwhile

std::int64_t address_space_bytes() {
  std::FILE* const file = std::fopen("/proc/self/statm", "re");
  if (file == nullptr) return 0;
  long long num_pages = 0;
  const int num_read = std::fscanf(file, "%lld", &num_pages);
  std::fclose(file);
  return num_read == 1 ? num_pages * sysconf(_SC_PAGESIZE) : 0;
}

void limit(int resource, std::int64_t most) {
  const rlimit value{.rlim_cur = static_cast<rlim_t>(most), .rlim_max = static_cast<rlim_t>(most)};
  setrlimit(static_cast<__rlimit_resource>(resource), &value);
}

// `known_bytes`: of the process before the fork; 0: not known.
void confine(int pipe, const WorkLimits& limits, std::int64_t known_bytes) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_DUMPABLE, 0);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) std::signal(signal, SIG_IGN);
  dup2(pipe, 0);  // so that one range is left to close
  close_range(1, ~0u, 0);
  setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + kNicer);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_CPU, limits.processor_time.count());
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which take what addresses they like
  if (known_bytes > 0) limit(RLIMIT_AS, known_bytes + limits.memory_bytes);
#else
  (void)known_bytes;
#endif
}

bool write_all(int file, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t count = write(file, text.data() + done, text.size() - done);
    if (count < 0 && errno != EINTR) return false;
    if (count > 0) done += static_cast<std::size_t>(count);
  }
  return true;
}

[[noreturn]] void run_child(const std::function<std::string()>& work) {
  int status = kFailedStatus;
  try {
    if (write_all(0, work())) status = kDoneStatus;
  } catch (const std::bad_alloc&) {
    status = kMemoryStatus;
  } catch (...) {
    status = kFailedStatus;
  }
  _exit(status);
}

int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

WorkEnd end_of(int status) {
  if (WIFEXITED(status)) {
    if (WEXITSTATUS(status) == kDoneStatus) return WorkEnd::kDone;
    return WEXITSTATUS(status) == kMemoryStatus ? WorkEnd::kMemoryLimit : WorkEnd::kCrashed;
  }
  const bool ran_out_of_time =
      WIFSIGNALED(status) && (WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL);
  return ran_out_of_time ? WorkEnd::kTimeLimit : WorkEnd::kCrashed;
}

// What ended the reading before the child's end did; kDone: that did.
WorkEnd read_all(int pipe, const WorkLimits& limits, const std::stop_token& stop, std::string& text) {
  const auto deadline = std::chrono::steady_clock::now() + limits.time;
  std::string buffer(std::size_t{1} << 16u, '\0');
  while (true) {
    if (stop.stop_requested()) return WorkEnd::kStopped;
    if (std::chrono::steady_clock::now() >= deadline) return WorkEnd::kTimeLimit;
    pollfd waited{.fd = pipe, .events = POLLIN, .revents = 0};
    if (poll(&waited, 1, static_cast<int>(kPollInterval.count())) <= 0) continue;
    const ssize_t count = read(pipe, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return WorkEnd::kDone;
    text.append(buffer, 0, static_cast<std::size_t>(count));
    if (text.size() > limits.result_bytes) return WorkEnd::kMemoryLimit;
  }
}

}  // namespace

WorkResult run_confined(const std::function<std::string()>& work, const WorkLimits& limits,
                        std::stop_token stop) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return {.end = WorkEnd::kCrashed};
  const std::int64_t known_bytes = address_space_bytes();
  const pid_t child = fork();
  if (child == 0) {
    confine(ends[1], limits, known_bytes);
    run_child(work);
  }
  close(ends[1]);
  WorkResult result;
  if (child < 0) {
    close(ends[0]);
    return {.end = WorkEnd::kMemoryLimit};
  }
  const WorkEnd read_end = read_all(ends[0], limits, stop, result.text);
  close(ends[0]);
  if (read_end != WorkEnd::kDone) kill(child, SIGKILL);
  const int status = wait_for(child);
  result.end = read_end == WorkEnd::kDone ? end_of(status) : read_end;
  if (result.end != WorkEnd::kDone) result.text.clear();
  return result;
}

}  // namespace octavo
