// Sampling parameters as JSON: keys are the option names of the command line with underscores. Used where a person's
// choice is kept (conversations, settings), so it holds what a person can choose there and no token ids.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "engine/api/sampling_params.h"
#include "engine/base/result.h"

namespace octavo::app {

nlohmann::json sampling_to_json(const SamplingParams& params);

// Absent keys have their defaults, unknown ones are passed over. Refuses wrong types and values out of range.
Result<SamplingParams> sampling_from_json(const nlohmann::json& object);

}  // namespace octavo::app
