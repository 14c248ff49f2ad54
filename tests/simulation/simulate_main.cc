// octavo_simulate: lives of the engine core from successive seeds, until told to stop or until one goes
// wrong.

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <limits>

#include <CLI/CLI.hpp>

#include "tests/simulation/simulation.h"

int main(int argc, char** argv) {
  std::uint64_t seed = 1;
  std::uint64_t num_seeds = std::numeric_limits<std::uint64_t>::max();
  double seconds = std::numeric_limits<double>::infinity();
  CLI::App app("Simulates the engine core; prints the seed of the first life that goes wrong");
  app.add_option("--seed", seed, "First seed");
  app.add_option("--seeds", num_seeds, "Number of seeds");
  app.add_option("--seconds", seconds, "Stop after so long");
  CLI11_PARSE(app, argc, argv);

  const auto begin = std::chrono::steady_clock::now();
  const auto elapsed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  std::int64_t num_steps = 0;
  std::uint64_t num_lives = 0;
  for (; num_lives < num_seeds && elapsed() < seconds; ++num_lives) {
    const auto report = octavo::simulation::simulate(seed + num_lives);
    num_steps += report.num_steps;
    if (!report.problem) continue;
    std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed + num_lives),
                report.problem->c_str());
    return 1;
  }
  std::printf("%llu lives, %lld steps, %.0f steps a minute, no problem\n",
              static_cast<unsigned long long>(num_lives), static_cast<long long>(num_steps),
              static_cast<double>(num_steps) / elapsed() * 60.0);
  return 0;
}
