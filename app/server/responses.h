// OpenAI's responses: /v1/responses. Text, and functions that the client runs itself (function_tools.h): a
// call cannot be forced. Tools of other types and items that say nothing to a model are passed over, as
// agents send many that they can do without.
//
// Nothing is stored: the answer says "store": false, and what refers to an earlier answer is refused. What
// was thought in earlier turns is dropped, always, so that the prompt of the next turn begins as this one.
//
// Thread: pure functions; the answer as call.h says.
#pragma once

#include "app/json/json_text.h"
#include "app/server/call.h"
#include "engine/base/result.h"

namespace octavo::app {

// As ParseCall (call.h): one request of one output. Without max_output_tokens it may go on to the end of the
// context.
Result<Call> parse_response_call(const Json& body, const ServedModel& model, const CallIdentity& identity);

}  // namespace octavo::app
