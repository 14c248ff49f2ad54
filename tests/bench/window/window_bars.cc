// The bars of the window's design, each with its figure beside it:
//   octavo_window_bars [NAME...]      all without one; all_bars() below has the names
// Every bar is measured in a process of its own. Method: tests/bench/README.md. Needs a display;
// `tests/bench/window_bars` brings one.

#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "tests/bench/window/bars.h"

extern char** environ;

namespace octavo::bench {
namespace {

struct Bar {
  const char* name;
  std::function<Rows(std::int64_t started_ns)> measure;
};

const std::array<Bar, 8>& all_bars() {
  static const std::array<Bar, 8> kBars = {{
      {"cold-start", measure_cold_start},
      {"idle", [](std::int64_t) { return measure_idle(); }},
      {"long-chat", [](std::int64_t) { return measure_long_chat(); }},
      {"block-map", [](std::int64_t) { return measure_block_map(); }},
      {"chat-switch", [](std::int64_t) { return measure_chat_switch(); }},
      {"download", [](std::int64_t) { return measure_download(); }},
      {"samples", [](std::int64_t) { return measure_samples(); }},
      {"streams", [](std::int64_t) { return measure_streams(); }},
  }};
  return kBars;
}

std::int64_t monotonic_ns() {
  timespec time = {};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// The child's side.
int measure_one(std::string_view name, std::int64_t started_ns) {
  const auto bar =
      std::find_if(all_bars().begin(), all_bars().end(), [&](const Bar& b) { return b.name == name; });
  if (bar == all_bars().end()) return 2;
  const Rows rows = bar->measure(started_ns);
  if (!rows) {
    std::fprintf(stderr, "%s: %s\n", bar->name, rows.error().message.c_str());
    return 1;
  }
  for (const BarRow& row : *rows)
    std::printf("| %s | %s | %s | %s |\n", row.what.c_str(), row.measured.c_str(), row.bar.c_str(),
                row.met ? "met" : "not met");
  std::fflush(stdout);
  return 0;
}

bool run_child(const char* program, const char* name) {
  const std::string started = std::to_string(monotonic_ns());
  std::array<const char*, 5> arguments = {program, "--measure", name, started.c_str(), nullptr};
  pid_t child = 0;
  if (posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, const_cast<char**>(arguments.data()),
                  environ) != 0)
    return false;
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

std::string number(double value, int decimals) {
  char text[48];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

int run(int argc, char** argv) {
  if (argc == 4 && std::string_view(argv[1]) == "--measure") return measure_one(argv[2], std::atoll(argv[3]));
  std::printf("| what | measured | bar | |\n| --- | --- | --- | --- |\n");
  std::fflush(stdout);
  bool all_ran = true;
  for (const Bar& bar : all_bars()) {
    const bool is_wanted = argc < 2 || std::any_of(argv + 1, argv + argc, [&](const char* name) {
                             return std::string_view(name) == bar.name;
                           });
    if (is_wanted) all_ran &= run_child(argv[0], bar.name);
  }
  return all_ran ? 0 : 1;
}

}  // namespace octavo::bench

int main(int argc, char** argv) { return octavo::bench::run(argc, argv); }
