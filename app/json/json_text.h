// Text to JSON and back without exceptions: what programs outside send and read.
//
// Pure; any thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "engine/base/result.h"

namespace octavo::app {

// Members stay in the order in which they were written.
using Json = nlohmann::ordered_json;

// Nested at most 64 deep, and objects of at most 4,096 members. `what` names the source in the sentence of a
// failure ("messages.json", "line 3 of requests.jsonl", "the body").
Result<Json> parse_json(std::string_view text, std::string_view what);

// null for an empty text.
Json text_or_null(const std::string& text);

// One line unless `indent` is at least 0; invalid UTF-8 replaced, what is not finite as null.
std::string dump(const Json& json, int indent = -1);

}  // namespace octavo::app
