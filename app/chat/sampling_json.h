// Sampling parameters as JSON: keys are the option names of the command line with underscores. The one
// reading of them, for requests of programs and for what a person's choice is kept in (chats,
// settings).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "engine/api/sampling_params.h"
#include "engine/base/ids.h"
#include "engine/base/result.h"

namespace octavo::app {

// A list of whole numbers. False, and `token_ids` unchanged, when it is anything else.
bool read_token_ids(const nlohmann::json& value, std::vector<TokenId>& token_ids);

// What a person can choose: no token ids.
nlohmann::json sampling_to_json(const SamplingParams& params);

// What becomes of a key that is no option, and of null. A program's typing mistake is refused; in what a
// person's choice is kept in, a later version's option is passed over and null means absent.
enum class UnknownOptions { kRefuse, kIgnore };

// `defaults` with the options of the object. `what` names the source in the sentence of a failure. Types
// only: ranges are validate()'s.
Result<SamplingParams> sampling_from_json(const nlohmann::json& object, SamplingParams defaults,
                                          UnknownOptions unknown, std::string_view what);

// What sampling_to_json() wrote, or a person edited: ranges are checked too.
Result<SamplingParams> stored_sampling(const nlohmann::json& object);

}  // namespace octavo::app
