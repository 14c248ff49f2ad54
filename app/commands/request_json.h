// Requests and answers as JSON: what programs outside send and read. The shapes are those of the product
// contract (README.md, "octavo generate --json").
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/json/json_text.h"
#include "engine/api/metrics.h"
#include "engine/api/model_description.h"
#include "engine/api/request.h"
#include "engine/base/result.h"

namespace octavo::app {

// [{"role": "...", "content": "..."}, ...]
Result<std::vector<ChatMessage>> messages_from_json(const Json& json, std::string_view what);

// {"prompt": ...} or {"messages": ...} or {"prompt_token_ids": [...]}, with optional "sampling".
Result<GenerationRequest> request_from_json(const Json& json, const SamplingParams& defaults,
                                            bool parse_special, std::string_view what);

Json to_json(const RequestOutput& output, const SamplingParams& sampling);
Json to_json(const StateTotals& states);
Json to_json(const KvTotals& totals);
Json to_json(const Error& error);

// dump() for standard output: on a terminal everything but ASCII is escaped, as
// control characters always are.
std::string dump_for_output(const Json& json);

}  // namespace octavo::app
