#include "app/conversation/sampling_json.h"

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/base/text.h"

namespace octavo::app {
namespace {

using nlohmann::json;

Error wrong(const char* key, const char* what) {
  return {.code = ErrorCode::kInvalidArgument,
          .message = std::string("sampling parameter ") + key + " " + what,
          .subject = key};
}

Result<void> read_number(const json& object, const char* key, double low, double high, double& target) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return {};
  if (!found->is_number()) return wrong(key, "is not a number");
  const double value = found->get<double>();
  if (!(value >= low && value <= high)) return wrong(key, "is out of range");
  target = value;
  return {};
}

Result<void> read_count(const json& object, const char* key, std::int32_t low, std::int32_t& target) {
  double value = target;
  OCTAVO_TRY_VOID(read_number(object, key, low, std::numeric_limits<std::int32_t>::max(), value));
  target = static_cast<std::int32_t>(value);
  return {};
}

Result<void> read_seed(const json& object, SamplingParams& params) {
  const auto found = object.find("seed");
  if (found == object.end() || found->is_null()) return {};
  if (!found->is_number_unsigned()) return wrong("seed", "is not a whole number of at least 0");
  params.seed = found->get<std::uint64_t>();
  return {};
}

Result<void> read_stop(const json& object, SamplingParams& params) {
  const auto found = object.find("stop");
  if (found == object.end() || found->is_null()) return {};
  if (!found->is_array()) return wrong("stop", "is not a list");
  for (const json& text : *found) {
    if (!text.is_string()) return wrong("stop", "holds something that is not a string");
    params.stop.push_back(sanitise_utf8(text.get<std::string>()));
  }
  return {};
}

}  // namespace

json sampling_to_json(const SamplingParams& params) {
  json object = {{"temperature", params.temperature},
                 {"top_p", params.top_p},
                 {"top_k", params.top_k},
                 {"min_p", params.min_p},
                 {"presence_penalty", params.presence_penalty},
                 {"frequency_penalty", params.frequency_penalty},
                 {"repetition_penalty", params.repetition_penalty},
                 {"max_tokens", params.max_tokens},
                 {"min_tokens", params.min_tokens},
                 {"ignore_eos", params.ignore_eos},
                 {"stop", params.stop}};
  if (params.seed) object["seed"] = *params.seed;
  return object;
}

Result<SamplingParams> sampling_from_json(const json& object) {
  if (!object.is_object()) return wrong("list", "is not an object");
  SamplingParams params;
  OCTAVO_TRY_VOID(read_number(object, "temperature", 0.0, 100.0, params.temperature));
  OCTAVO_TRY_VOID(read_number(object, "top_p", 0.0, 1.0, params.top_p));
  OCTAVO_TRY_VOID(read_count(object, "top_k", -1, params.top_k));
  OCTAVO_TRY_VOID(read_number(object, "min_p", 0.0, 1.0, params.min_p));
  OCTAVO_TRY_VOID(read_number(object, "presence_penalty", -2.0, 2.0, params.presence_penalty));
  OCTAVO_TRY_VOID(read_number(object, "frequency_penalty", -2.0, 2.0, params.frequency_penalty));
  OCTAVO_TRY_VOID(read_number(object, "repetition_penalty", 0.01, 100.0, params.repetition_penalty));
  OCTAVO_TRY_VOID(read_count(object, "max_tokens", 1, params.max_tokens));
  OCTAVO_TRY_VOID(read_count(object, "min_tokens", 0, params.min_tokens));
  OCTAVO_TRY_VOID(read_seed(object, params));
  OCTAVO_TRY_VOID(read_stop(object, params));
  const auto ignore_eos = object.find("ignore_eos");
  if (ignore_eos != object.end()) {
    if (!ignore_eos->is_boolean()) return wrong("ignore_eos", "is not true or false");
    params.ignore_eos = ignore_eos->get<bool>();
  }
  return params;
}

}  // namespace octavo::app
