// Models that are worth a try, from assets/recommended_models.json, which is compiled in: nothing is
// contacted to show them. Sizes are of the list's date; the hub's own are shown before anything is
// downloaded.
//
// Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"

namespace octavo::hub {

struct RecommendedModel {
  std::string family;
  std::string name;
  std::string repository;
  std::string type;  // which of its files: "Q4_K_M"
  std::int64_t bytes = 0;
  std::int64_t read_bytes = 0;  // for each token: less than `bytes` where experts take turns
  std::string licence;
};

struct RecommendedModels {
  std::string date;                           // "2026-11-27"
  std::vector<RecommendedModel> models = {};  // smallest first
};

Result<RecommendedModels> read_recommended_models(std::string_view json);

// The list of this build.
const RecommendedModels& recommended_models();

// The largest that fits beside what is there already and answers as fast as people read; nullptr: none does.
const RecommendedModel* best_model_for(const RecommendedModels& list, std::int64_t available_bytes,
                                       double read_bytes_per_s);

}  // namespace octavo::hub
