// Lives from successive seeds, in several processes, until a number of seeds, a time or a life that goes
// wrong ends it. What was done can be kept in a file, and a later campaign goes on from there.
#pragma once

#include <csignal>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "tests/simulation/counts.h"
#include "tests/simulation/mutation.h"

namespace octavo::simulation {

struct CampaignOptions {
  std::uint64_t first_seed = 1;
  std::uint64_t num_seeds = std::numeric_limits<std::uint64_t>::max();
  // No new seeds after so many steps, those of earlier campaigns with the same file included.
  std::int64_t num_steps = std::numeric_limits<std::int64_t>::max();
  double seconds = std::numeric_limits<double>::infinity();
  double longest_life = 60.0;  // seconds; one that takes longer counts as one that never ends
  int jobs = 1;
  std::string state_file = {};  // empty: nothing is kept
  bool shows_progress = false;  // a line on standard error, now and then
  Mutation mutation = Mutation::kNone;
};

struct Failure {
  std::uint64_t seed = 0;
  std::int64_t step = 0;
  std::string problem;
};

struct CampaignReport {
  Counts counts;  // of all seeds up to next_seed, earlier campaigns with the same file included
  std::uint64_t next_seed = 0;
  double seconds = 0.0;            // of this campaign
  double processor_seconds = 0.0;  // of its workers: what the steps cost when the machine has other work, too
  std::int64_t num_steps = 0;      // of this campaign
  std::optional<Failure> failure;  // of the lowest seed that goes wrong
  std::string error;               // the state file cannot be used
};

// Stops early, with what was done until then, when `stop` becomes other than 0.
CampaignReport run_campaign(const CampaignOptions& options, const volatile std::sig_atomic_t* stop = nullptr);

}  // namespace octavo::simulation
