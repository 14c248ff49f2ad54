#include "tests/simulation/isolated.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/simulation/pipe.h"

namespace octavo::simulation {
namespace {

// A number that two processes see.
class SharedNumber {
 public:
  SharedNumber()
      : number_(static_cast<volatile std::int64_t*>(::mmap(
            nullptr, sizeof(std::int64_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  ~SharedNumber() { ::munmap(const_cast<std::int64_t*>(number_), sizeof(std::int64_t)); }
  SharedNumber(const SharedNumber&) = delete;
  SharedNumber& operator=(const SharedNumber&) = delete;

  volatile std::int64_t* get() const { return number_; }

 private:
  volatile std::int64_t* number_;
};

void send(const FileDescriptor& to, const Report& report) {
  const std::string problem = report.problem.value_or("");
  to.send(report.step);
  to.send(report.counts);
  to.send(report.problem.has_value());
  to.send(problem.size());
  to.write_all(problem.data(), problem.size());
}

bool receive(const FileDescriptor& from, Report& report) {
  bool has_problem = false;
  std::size_t size = 0;
  if (!from.receive(report.step) || !from.receive(report.counts) || !from.receive(has_problem) ||
      !from.receive(size)) {
    return false;
  }
  std::string problem(size, '\0');
  if (!from.read_all(problem.data(), size)) return false;
  if (has_problem) report.problem = std::move(problem);
  return true;
}

std::string read_all_text(const FileDescriptor& from) {
  std::string text;
  for (char byte = 0; from.receive(byte);) text += byte;
  return text;
}

// What a process that died said last, and how it died.
std::string last_words(std::string text, int status) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  text = text.substr(text.rfind('\n') + 1);
  const std::size_t folder = text.find("engine/");
  if (folder != std::string::npos) text = text.substr(folder);
  std::string how = "stopped";
  if (WIFSIGNALED(status)) how = std::string("the process died: ") + ::strsignal(WTERMSIG(status));
  return text.empty() ? how : how + ": " + text;
}

bool answers_in_time(const FileDescriptor& answer, pid_t process, double most_seconds) {
  constexpr int kLookAgainMs = 100;
  pollfd waiting{answer.number(), POLLIN, 0};
  while (::poll(&waiting, 1, kLookAgainMs) <= 0) {
    if (processor_seconds_of(process) > most_seconds) return false;
  }
  return true;
}

}  // namespace

Report live_isolated(const Script& script, Mutation mutation, double most_seconds) {
  const SharedNumber progress;
  Pipe answer = Pipe::make(), errors = Pipe::make();
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(errors.write_end.number(), STDERR_FILENO);
    send(answer.write_end, live(script, mutation, progress.get()));
    ::_exit(0);
  }
  answer.write_end.close();
  errors.write_end.close();
  const bool in_time = answers_in_time(answer.read_end, child, most_seconds);
  if (!in_time) ::kill(child, SIGKILL);
  Report report;
  const bool has_report = in_time && receive(answer.read_end, report);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (has_report) return report;
  report.step = *progress.get();
  report.problem = in_time ? last_words(read_all_text(errors.read_end), status) : "a step that does not end";
  return report;
}

}  // namespace octavo::simulation
