// Requests and answers as JSON: what programs outside send and read. The shapes are those of the product
// contract (README.md, "octavo generate --json").
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "engine/api/metrics.h"
#include "engine/api/model_description.h"
#include "engine/api/request.h"
#include "engine/base/result.h"

namespace octavo::app {

using Json = nlohmann::ordered_json;

// Text to JSON without exceptions; `what` names the source in the sentence of a failure
// ("messages.json", "line 3 of requests.jsonl").
Result<Json> parse_json(std::string_view text, std::string_view what);

// [{"role": "...", "content": "..."}, ...]
Result<std::vector<ChatMessage>> messages_from_json(const Json& json, std::string_view what);

// {"prompt": ...} or {"messages": ...} or {"prompt_token_ids": [...]}, with optional "sampling".
Result<GenerationRequest> request_from_json(const Json& json, const SamplingParams& defaults,
                                            bool parse_special, std::string_view what);

Json to_json(const RequestOutput& output, const SamplingParams& sampling);
Json to_json(const StateTotals& states);
Json to_json(const KvTotals& totals);
Json to_json(const Error& error);

// One line, invalid UTF-8 replaced, minus infinity as null.
std::string dump(const Json& json, int indent = -1);
// The same for standard output: on a terminal everything but ASCII is escaped, as
// control characters always are.
std::string dump_for_output(const Json& json);

}  // namespace octavo::app
