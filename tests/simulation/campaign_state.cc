#include "tests/simulation/campaign_state.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <string_view>
#include <system_error>

namespace octavo::simulation {

Result<CampaignState> read_campaign_state(const std::string& path, std::uint64_t first_seed) {
  CampaignState state{.next_seed = first_seed, .counts = {}};
  std::ifstream file(path);
  if (!file) return state;
  std::map<std::string, std::int64_t> values;
  std::string name;
  for (std::int64_t value = 0; file >> name >> value;) values[name] = value;
  if (!values.contains("next_seed")) {
    return Error{ErrorCode::kDamagedFile, path + ": holds no state of a simulation: remove it to begin again"};
  }
  state.next_seed = static_cast<std::uint64_t>(values["next_seed"]);
  visit_counts(state.counts, [&](std::string_view counter, std::int64_t& value) {
    const auto found = values.find(std::string(counter));
    if (found != values.end()) value = found->second;
  });
  return state;
}

Result<void> write_campaign_state(const std::string& path, const CampaignState& state) {
  const std::string beside = path + ".new";
  {
    std::ofstream file(beside, std::ios::trunc);
    file << "next_seed " << state.next_seed << "\n";
    visit_counts(state.counts,
                 [&](std::string_view counter, std::int64_t value) { file << counter << " " << value << "\n"; });
    if (!file.flush()) return Error{ErrorCode::kIo, beside + ": cannot be written"};
  }
  std::error_code failed;
  std::filesystem::rename(beside, path, failed);
  if (failed) return Error{ErrorCode::kIo, path + ": cannot be replaced: " + failed.message()};
  return {};
}

}  // namespace octavo::simulation
