// What a campaign has done so far, in a small text file that is replaced as a whole.
#pragma once

#include <cstdint>
#include <string>

#include "engine/base/result.h"
#include "tests/simulation/counts.h"

namespace octavo::simulation {

// What was lived out by another build says nothing about this one: `program` tells them apart.
struct CampaignState {
  std::int64_t program = 0;
  std::uint64_t next_seed = 1;  // every seed below it was lived out
  Counts counts;
};

// Of the running program's own file.
std::int64_t program_fingerprint();

// No file, or one of another build: a campaign that has not begun, with `first_seed` to come.
Result<CampaignState> read_campaign_state(const std::string& path, std::uint64_t first_seed);
Result<void> write_campaign_state(const std::string& path, const CampaignState& state);

}  // namespace octavo::simulation
