// What a campaign has done so far, in a small text file that is replaced as a whole.
#pragma once

#include <cstdint>
#include <string>

#include "engine/base/result.h"
#include "tests/simulation/counts.h"

namespace octavo::simulation {

struct CampaignState {
  std::uint64_t next_seed = 1;  // every seed below it was lived out
  Counts counts;
};

// No file: a campaign that has not begun, with `first_seed` to come.
Result<CampaignState> read_campaign_state(const std::string& path, std::uint64_t first_seed);
Result<void> write_campaign_state(const std::string& path, const CampaignState& state);

}  // namespace octavo::simulation
