// What the makers of a model in a Hugging Face folder advise for sampling: temperature, top_p, top_k, min_p
// and repetition_penalty of generation_config.json. Tokens that end an answer are the vocabulary's affair
// (vocabulary_files.h).
#pragma once

#include <filesystem>

#include "engine/api/sampling_advice.h"
#include "engine/base/result.h"

namespace octavo::model {

// Empty where there is no such file. A value of the wrong type or out of the option's range is no advice: it
// could not be followed. `do_sample` is not followed: it is the library's switch, and files leave it out.
Result<SamplingAdvice> read_generation_defaults(const std::filesystem::path& folder);

}  // namespace octavo::model
