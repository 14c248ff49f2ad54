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

// `params` with what the advice says; the rest stays.
inline SamplingParams with_advice(SamplingParams params, const SamplingAdvice& advice) {
  params.temperature = advice.temperature.value_or(params.temperature);
  params.top_p = advice.top_p.value_or(params.top_p);
  params.top_k = advice.top_k.value_or(params.top_k);
  params.min_p = advice.min_p.value_or(params.min_p);
  params.presence_penalty = advice.presence_penalty.value_or(params.presence_penalty);
  params.repetition_penalty = advice.repetition_penalty.value_or(params.repetition_penalty);
  return params;
}

}  // namespace octavo
