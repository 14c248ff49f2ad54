#include "engine/model/sampling_advice.h"

#include <cmath>
#include <limits>
#include <string_view>

namespace octavo::model {
namespace {

// As its maker wrote it: 0.6, not 0.600000024.
std::optional<double> find_number(const Metadata& header, std::string_view key) {
  const auto value = header.find<float>(key);
  if (!value || !*value || !std::isfinite(**value)) return std::nullopt;
  return std::round(static_cast<double>(**value) * 1e6) / 1e6;
}

bool can_be_followed(const SamplingAdvice& advice) {
  SamplingParams params;
  params.max_tokens = 1;
  return validate(with_advice(params, advice), std::numeric_limits<std::int32_t>::max()).has_value();
}

template <class Value>
void take(SamplingAdvice& advice, std::optional<Value> SamplingAdvice::*member, std::optional<Value> value) {
  SamplingAdvice alone;
  alone.*member = value;
  if (value && can_be_followed(alone)) advice.*member = value;
}

}  // namespace

SamplingAdvice read_sampling_advice(const Metadata& header) {
  SamplingAdvice advice;
  take(advice, &SamplingAdvice::temperature, find_number(header, "general.sampling.temp"));
  take(advice, &SamplingAdvice::top_p, find_number(header, "general.sampling.top_p"));
  take(advice, &SamplingAdvice::min_p, find_number(header, "general.sampling.min_p"));
  take(advice, &SamplingAdvice::repetition_penalty, find_number(header, "general.sampling.penalty_repeat"));
  if (const auto top_k = header.find<std::int32_t>("general.sampling.top_k"); top_k)
    take(advice, &SamplingAdvice::top_k, *top_k);
  return advice;
}

}  // namespace octavo::model
