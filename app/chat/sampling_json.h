// Sampling parameters as JSON: keys are the option names of the command line with underscores. The one
// reading of them, for requests of programs and for what a person's choice is kept in (chats,
// settings).
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/api/sampling_params.h"
#include "engine/base/ids.h"
#include "engine/base/result.h"

namespace octavo::app {

enum class OptionAssignment { kAssigned, kUnknown, kWrongType };

// Sets the option called `key`. Types only: ranges are validate()'s.
OptionAssignment assign_sampling_option(const std::string& key, const nlohmann::json& value,
                                        SamplingParams& params);

// A list of whole numbers. False, and `token_ids` unchanged, when it is anything else.
bool read_token_ids(const nlohmann::json& value, std::vector<TokenId>& token_ids);

// What a person can choose: no token ids.
nlohmann::json sampling_to_json(const SamplingParams& params);

// Absent keys have their defaults, unknown ones are passed over, null means absent. Refuses wrong types and
// values out of range.
Result<SamplingParams> sampling_from_json(const nlohmann::json& object);

}  // namespace octavo::app
