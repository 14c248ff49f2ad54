// octavo_simulate: lives of the engine core from successive seeds, until told to stop or until one goes
// wrong, which is then made short and printed. Or one life, from a script.

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include <CLI/CLI.hpp>

#include "tests/simulation/campaign.h"
#include "tests/simulation/draw_script.h"
#include "tests/simulation/isolated.h"
#include "tests/simulation/shrink.h"

namespace octavo::simulation {
namespace {

constexpr int kStopped = 130;  // exit status after Ctrl+C

volatile std::sig_atomic_t stop_requested = 0;
void request_stop(int) { stop_requested = 1; }

void print(const Counts& counts) {
  visit_counts(counts, [](std::string_view name, std::int64_t value) {
    std::printf("%-24.*s %lld\n", static_cast<int>(name.size()), name.data(), static_cast<long long>(value));
  });
}

void print_shrunk(const Script& script) {
  const Shrunk shrunk =
      shrink(script, [](const Script& shorter) { return live_isolated(shorter, Mutation::kNone, 5.0); });
  std::printf("# after %d tries: step %lld: %s\n%s", shrunk.num_tries,
              static_cast<long long>(shrunk.report.step), shrunk.report.problem.value_or("nothing").c_str(),
              to_text(shrunk.script).c_str());
}

int run_script(const std::string& path, bool shrinks) {
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const auto script = parse_script(text);
  if (!file || !script) {
    std::fprintf(stderr, "%s: %s\n", path.c_str(), file ? script.error().message.c_str() : "cannot be read");
    return 2;
  }
  const Report report = live_isolated(*script);
  print(report.counts);
  if (!report.problem) return 0;
  std::printf("step %lld: %s\n", static_cast<long long>(report.step), report.problem->c_str());
  if (shrinks) print_shrunk(*script);
  return 1;
}

int run_seeds(const CampaignOptions& options, bool shrinks) {
  const CampaignReport report = run_campaign(options, &stop_requested);
  if (!report.error.empty()) {
    std::fprintf(stderr, "octavo_simulate: %s\n", report.error.c_str());
    return 2;
  }
  if (report.failure) {
    std::printf("seed %llu, step %lld: %s\n", static_cast<unsigned long long>(report.failure->seed),
                static_cast<long long>(report.failure->step), report.failure->problem.c_str());
    std::fflush(stdout);
    if (shrinks) print_shrunk(draw_script(report.failure->seed));
    return 1;
  }
  print(report.counts);
  const auto a_minute = [&](double seconds) {
    return static_cast<double>(report.num_steps) / seconds * 60.0;
  };
  std::printf("%lld steps in %.1f s: %.0f steps a minute, %.0f a minute of one core's time\n",
              static_cast<long long>(report.num_steps), report.seconds, a_minute(report.seconds),
              a_minute(report.processor_seconds));
  std::printf("next seed %llu; no problem\n", static_cast<unsigned long long>(report.next_seed));
  return stop_requested != 0 ? kStopped : 0;
}

}  // namespace
}  // namespace octavo::simulation

int main(int argc, char** argv) {
  using namespace octavo::simulation;  // NOLINT: this file's own program
  CampaignOptions options;
  options.shows_progress = true;
  std::string script_file;
  bool keeps_long = false, shows_script = false;
  CLI::App app("Lives of the engine core over a simulated runner, from successive seeds");
  app.add_option("--seed", options.first_seed, "First seed");
  app.add_option("--seeds", options.num_seeds, "Number of seeds");
  app.add_option("--steps", options.num_steps, "Begin no further life after so many steps");
  app.add_option("--seconds", options.seconds, "Begin no further life after so long");
  app.add_option("--longest-life", options.longest_life, "Seconds after which a life counts as never ending");
  app.add_option("--jobs", options.jobs, "Processes")->check(CLI::Range(1, 256));
  app.add_option("--state", options.state_file, "Keep here what was done, and go on from there");
  app.add_option("--script", script_file, "Live out this script instead");
  app.add_flag("--show", shows_script, "Print the script of --seed instead");
  app.add_flag("--no-shrink", keeps_long, "Do not make a script that goes wrong short");
  CLI11_PARSE(app, argc, argv);
  if (shows_script) {
    std::fputs(to_text(draw_script(options.first_seed)).c_str(), stdout);
    return 0;
  }
  if (!script_file.empty()) return run_script(script_file, !keeps_long);
  std::signal(SIGINT, &request_stop);
  std::signal(SIGTERM, &request_stop);
  return run_seeds(options, !keeps_long);
}
