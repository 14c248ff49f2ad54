#include "engine/model/hugging_face/vocabulary_defaults.h"

#include <cmath>
#include <limits>
#include <optional>

#include "engine/model/hugging_face/vocabulary_json.h"

namespace octavo::model {
namespace {

using vocabulary::Json;

template <class Value>
void take_advice(SamplingAdvice& advice, std::optional<Value> SamplingAdvice::*member,
                 std::optional<Value> value) {
  if (!value) return;
  SamplingAdvice alone;
  alone.*member = value;
  SamplingParams params;
  params.max_tokens = 1;
  if (validate(with_advice(params, alone), std::numeric_limits<std::int32_t>::max()).has_value())
    advice.*member = value;
}

std::optional<double> find_number(const Json& config, const char* key) {
  const Json* const value = vocabulary::find(config, key);
  if (value == nullptr || !value->is_number() || !std::isfinite(value->get<double>())) return std::nullopt;
  return value->get<double>();
}

}  // namespace

Result<SamplingAdvice> read_generation_defaults(const std::filesystem::path& folder) {
  OCTAVO_TRY(const Json config, vocabulary::read_object(folder, "generation_config.json"));
  SamplingAdvice advice;
  take_advice(advice, &SamplingAdvice::temperature, find_number(config, "temperature"));
  take_advice(advice, &SamplingAdvice::top_p, find_number(config, "top_p"));
  take_advice(advice, &SamplingAdvice::min_p, find_number(config, "min_p"));
  take_advice(advice, &SamplingAdvice::repetition_penalty, find_number(config, "repetition_penalty"));
  const std::optional<std::int64_t> top_k = vocabulary::find_whole(config, "top_k");
  if (top_k && *top_k >= 0 && *top_k <= std::numeric_limits<std::int32_t>::max())
    take_advice(advice, &SamplingAdvice::top_k,
                std::optional<std::int32_t>(static_cast<std::int32_t>(*top_k)));
  return advice;
}

}  // namespace octavo::model
