// What the commands of `octavo` have in common: exit statuses, and how a failure is told.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/result.h"

namespace octavo::app {

inline constexpr int kExitOk = 0;
// The work failed: a model that does not load, a request that cannot be met
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;          // an option or argument is wrong
inline constexpr int kExitInterrupted = 130;  // Ctrl+C, as shells count it

// "octavo: <sentence>" on standard error, on one line whatever the sentence holds; returns `status`.
int report_failure(std::string_view sentence, int status = kExitFailed);

// An Error of kInvalidArgument that comes from options is a usage error;
// everything else failed while working.
int report_error(const Error& error);

// How many characters a line of the terminal behind this descriptor holds; nullopt: it is none, or does not
// say.
std::optional<std::size_t> terminal_columns(int descriptor);

// What is said on the way (loading, sizing): standard error, only on a terminal or with --verbose.
class Progress {
 public:
  explicit Progress(bool verbose);
  bool enabled() const { return enabled_; }
  void say(std::string_view sentence) const;
  // One line that overwrites itself on a terminal; finished by `say` or `clear`.
  void show_fraction(std::string_view what, double fraction);
  void clear();

 private:
  bool enabled_;
  bool terminal_;
  int last_percent_ = -1;
};

// Which signals ask a program to end.
enum class StopSignals {
  kInterrupt,     // Ctrl+C
  kAndTerminate,  // and what systems send to services
};

// A signal while an object of this class lives sets a flag instead of ending the process; the second one ends
// it.
class InterruptGuard {
 public:
  explicit InterruptGuard(StopSignals signals = StopSignals::kInterrupt);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  static bool interrupted();
  static void reset();

 private:
  const StopSignals signals_;
};

}  // namespace octavo::app
