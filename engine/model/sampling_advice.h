// What a model's makers advise for sampling. Its file comes first: the keys general.sampling.temp, top_p,
// top_k, min_p and penalty_repeat, which converters copy from the makers' generation_config.json. Files from
// before 2026 have none; then what the makers' model cards say holds, found by the model's name.
#pragma once

#include <string_view>

#include "engine/api/sampling_advice.h"
#include "engine/model/metadata.h"

namespace octavo::model {

// Empty where the file has no such key. A value of the wrong type or out of the option's range is no advice.
SamplingAdvice read_sampling_advice(const Metadata& header);

// What of `advice` is in its option's range: the rest could not be followed.
SamplingAdvice valid_part(const SamplingAdvice& advice);

// `name` as in general.name: "Qwen3-30B-A3B-Instruct-2507". Only models under their makers' own name are
// known: one trained further has a name of its own, and other advice. Empty: nothing is known.
SamplingAdvice published_advice(std::string_view name);

}  // namespace octavo::model
