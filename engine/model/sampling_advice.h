// What a model file advises for sampling: the keys general.sampling.temp, top_p, top_k, min_p and
// penalty_repeat, which converters copy from the makers' generation_config.json.
#pragma once

#include "engine/api/sampling_advice.h"
#include "engine/model/metadata.h"

namespace octavo::model {

// A value of the wrong type or out of the option's range is no advice: it could not be followed.
SamplingAdvice read_sampling_advice(const Metadata& header);

}  // namespace octavo::model
