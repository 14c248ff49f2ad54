#include "app/commands/command.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string>

#include "engine/base/text.h"

namespace octavo::app {
namespace {

volatile std::sig_atomic_t interrupt_flag = 0;
struct sigaction previous_interrupt, previous_terminate;

void on_interrupt(int) {
  if (interrupt_flag != 0) _exit(kExitInterrupted);
  interrupt_flag = 1;
}

bool is_option_name(std::string_view name) {
  return name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == std::string_view::npos;
}

std::string as_flag(std::string_view name) {
  std::string flag = "--" + std::string(name);
  for (char& c : flag) {
    if (c == '_') c = '-';
  }
  return flag;
}

}  // namespace

int report_failure(std::string_view sentence, int status) {
  const std::string line = "octavo: " + escape_for_message(sentence, 2000) + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
  return status;
}

int report_error(const Error& error) {
  std::string sentence = error.message;
  // The engine calls an option top_p; here it was typed as --top-p.
  if (!error.subject.empty() && sentence.rfind(error.subject, 0) == 0 && is_option_name(error.subject)) {
    sentence.replace(0, error.subject.size(), as_flag(error.subject));
  }
  return report_failure(sentence, error.code == ErrorCode::kInvalidArgument ? kExitUsage : kExitFailed);
}

std::optional<std::size_t> terminal_columns(int descriptor) {
  winsize size = {};
  if (isatty(descriptor) == 0 || ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
    return std::nullopt;
  return size.ws_col;
}

Progress::Progress(bool verbose)
    : enabled_(verbose || isatty(STDERR_FILENO) != 0), terminal_(isatty(STDERR_FILENO) != 0) {}

void Progress::say(std::string_view sentence) const {
  if (!enabled_) return;
  const std::string line = escape_for_message(sentence, 2000) + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

void Progress::show_fraction(std::string_view what, double fraction) {
  const int percent = static_cast<int>(fraction * 100.0);
  if (!terminal_ || percent == last_percent_) return;
  last_percent_ = percent;
  std::fprintf(stderr, "\r%.*s %d %%", static_cast<int>(what.size()), what.data(), percent);
  std::fflush(stderr);
}

void Progress::clear() {
  if (!terminal_ || last_percent_ < 0) return;
  last_percent_ = -1;
  std::fputs("\r\x1b[K", stderr);
}

InterruptGuard::InterruptGuard(StopSignals signals) : signals_(signals) {
  interrupt_flag = 0;
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &previous_interrupt);  // no SA_RESTART: a read from the terminal returns
  if (signals_ == StopSignals::kAndTerminate) sigaction(SIGTERM, &action, &previous_terminate);
}

InterruptGuard::~InterruptGuard() {
  sigaction(SIGINT, &previous_interrupt, nullptr);
  if (signals_ == StopSignals::kAndTerminate) sigaction(SIGTERM, &previous_terminate, nullptr);
}

bool InterruptGuard::interrupted() { return interrupt_flag != 0; }

void InterruptGuard::reset() { interrupt_flag = 0; }

}  // namespace octavo::app
