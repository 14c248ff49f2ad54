#include "engine/model/hugging_face/vocabulary_defaults.h"

#include <cmath>
#include <limits>
#include <optional>

#include "engine/model/hugging_face/vocabulary_json.h"
#include "engine/model/sampling_advice.h"

namespace octavo::model {
namespace {

using vocabulary::Json;

std::optional<double> find_number(const Json& config, const char* key) {
  const Json* const value = vocabulary::find(config, key);
  if (value == nullptr || !value->is_number() || !std::isfinite(value->get<double>())) return std::nullopt;
  return value->get<double>();
}

}  // namespace

Result<SamplingAdvice> read_generation_defaults(const std::filesystem::path& folder) {
  OCTAVO_TRY(const Json config, vocabulary::read_object(folder, "generation_config.json"));
  SamplingAdvice advice{.temperature = find_number(config, "temperature"),
                        .top_p = find_number(config, "top_p"),
                        .min_p = find_number(config, "min_p"),
                        .repetition_penalty = find_number(config, "repetition_penalty")};
  const std::optional<std::int64_t> top_k = vocabulary::find_whole(config, "top_k");
  if (top_k && *top_k >= 0 && *top_k <= std::numeric_limits<std::int32_t>::max())
    advice.top_k = static_cast<std::int32_t>(*top_k);
  return valid_part(advice);
}

}  // namespace octavo::model
