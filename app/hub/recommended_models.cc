#include "app/hub/recommended_models.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/hub/hub_values.h"
#include "app/hub/model_look.h"
#include "app/hub/recommended_models_json.h"  // made by CMake
#include "app/json/json_text.h"
#include "engine/base/check.h"

namespace octavo::hub {

Result<RecommendedModels> read_recommended_models(std::string_view text) {
  OCTAVO_TRY(const app::Json json, app::parse_json(text, "the list of recommended models"));
  RecommendedModels list;
  try {
    list.date = json.at("date").get<std::string>();
    for (const app::Json& entry : json.at("models")) {
      RecommendedModel model{.family = entry.at("family").get<std::string>(),
                             .name = entry.at("name").get<std::string>(),
                             .repository = entry.at("repository").get<std::string>(),
                             .type = entry.at("type").get<std::string>(),
                             .bytes = entry.at("bytes").get<std::int64_t>(),
                             .licence = entry.at("licence").get<std::string>()};
      model.read_bytes = entry.value("read_bytes", model.bytes);
      if (!is_repository_name(model.repository) || model.bytes <= 0)
        return Error{ErrorCode::kDamagedFile,
                     "the list of recommended models has an entry that names no model"};
      list.models.push_back(std::move(model));
    }
  } catch (const nlohmann::json::exception& exception) {
    return Error{ErrorCode::kDamagedFile, std::string("the list of recommended models: ") + exception.what()};
  }
  std::ranges::stable_sort(list.models, {}, &RecommendedModel::bytes);
  return list;
}

const RecommendedModels& recommended_models() {
  static const RecommendedModels list = [] {
    auto read = read_recommended_models(kRecommendedModelsJson);
    OCTAVO_CHECK(read.has_value(), "%s", read ? "" : read.error().message.c_str());
    return *std::move(read);
  }();
  return list;
}

const RecommendedModel* best_model_for(const RecommendedModels& list, std::int64_t available_bytes,
                                       double read_bytes_per_s) {
  const RecommendedModel* best = nullptr;
  for (const RecommendedModel& model : list.models) {
    const ModelNeed need = estimate_need(model.bytes, model.read_bytes, available_bytes, read_bytes_per_s);
    if (need.fit == ModelFit::kFits) best = &model;
  }
  return best;
}

}  // namespace octavo::hub
