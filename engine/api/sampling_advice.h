// How a model's makers advise to sample from it, as its file or their model card says: some of it, or
// nothing.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/api/sampling_params.h"

namespace octavo {

// In the ranges of SamplingParams.
struct SamplingAdvice {
  std::optional<double> temperature = {};
  std::optional<double> top_p = {};
  std::optional<std::int32_t> top_k = {};
  std::optional<double> min_p = {};
  std::optional<double> presence_penalty = {};
  std::optional<double> repetition_penalty = {};
  bool empty() const { return *this == SamplingAdvice{}; }
  bool operator==(const SamplingAdvice&) const = default;
};

// Calls visit(name, advice's member, option's member) for each that can be advised: the one list of them.
template <class Visit>
constexpr void for_each_advised(const Visit& visit) {
  visit("temperature", &SamplingAdvice::temperature, &SamplingParams::temperature);
  visit("top_p", &SamplingAdvice::top_p, &SamplingParams::top_p);
  visit("top_k", &SamplingAdvice::top_k, &SamplingParams::top_k);
  visit("min_p", &SamplingAdvice::min_p, &SamplingParams::min_p);
  visit("presence_penalty", &SamplingAdvice::presence_penalty, &SamplingParams::presence_penalty);
  visit("repetition_penalty", &SamplingAdvice::repetition_penalty, &SamplingParams::repetition_penalty);
}

// `params` with what the advice says; the rest stays.
inline SamplingParams with_advice(SamplingParams params, const SamplingAdvice& advice) {
  for_each_advised([&](const char*, auto advised, auto option) {
    params.*option = (advice.*advised).value_or(params.*option);
  });
  return params;
}

// Whether `params` are as advised, wherever something is advised.
inline bool follows(const SamplingParams& params, const SamplingAdvice& advice) {
  bool result = true;
  for_each_advised([&](const char*, auto advised, auto option) {
    result = result && (advice.*advised).value_or(params.*option) == params.*option;
  });
  return result;
}

}  // namespace octavo
