#include "tests/simulation/campaign_state.h"

#include <array>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string_view>
#include <system_error>

#include "engine/base/hash.h"

namespace octavo::simulation {

std::int64_t program_fingerprint() {
  std::ifstream program("/proc/self/exe", std::ios::binary);
  std::uint64_t hash = 0;
  std::array<char, 1 << 16> bytes{};
  while (program.read(bytes.data(), bytes.size()) || program.gcount() > 0) {
    const auto size = static_cast<std::size_t>(program.gcount());
    for (std::size_t index = 0; index + 8 <= size; index += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes.data() + index, 8);
      hash = mix64(hash ^ word);
    }
  }
  return static_cast<std::int64_t>(hash);
}

Result<CampaignState> read_campaign_state(const std::string& path, std::uint64_t first_seed) {
  CampaignState state{.program = program_fingerprint(), .next_seed = first_seed, .counts = {}};
  std::ifstream file(path);
  if (!file) return state;
  std::map<std::string, std::int64_t> values;
  std::string name;
  for (std::int64_t value = 0; file >> name >> value;) values[name] = value;
  if (!values.contains("next_seed")) {
    return Error{ErrorCode::kDamagedFile,
                 path + ": holds no state of a simulation: remove it to begin again"};
  }
  if (values["program"] != state.program) {
    std::fprintf(stderr, "%s: of another build; beginning again\n", path.c_str());
    return state;
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
    file << "program " << state.program << "\n";
    file << "next_seed " << state.next_seed << "\n";
    visit_counts(state.counts, [&](std::string_view counter, std::int64_t value) {
      file << counter << " " << value << "\n";
    });
    if (!file.flush()) return Error{ErrorCode::kIo, beside + ": cannot be written"};
  }
  std::error_code failed;
  std::filesystem::rename(beside, path, failed);
  if (failed) return Error{ErrorCode::kIo, path + ": cannot be replaced: " + failed.message()};
  return {};
}

}  // namespace octavo::simulation
