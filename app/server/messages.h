// Anthropic's messages: /v1/messages, what /v1/messages/count_tokens counts, and errors as its clients read
// them. Text, and tools that the client runs itself (function_tools.h): its own tools of a server, forced
// calls, images and documents are refused with the place where they stand.
//
// The order that a client gave is kept: a message of the role system stays where it stands,
// since moving it to the front would change everything behind it in the next turn. cache_control changes
// nothing: every prefix is kept.
//
// Thread: pure functions; the answer as call.h says.
#pragma once

#include <string_view>

#include "app/json/json_text.h"
#include "app/server/api_error.h"
#include "app/server/call.h"
#include "engine/api/request.h"
#include "engine/base/result.h"

namespace octavo::app {

// As ParseCall (call.h): one request of one output. Without `thinking` the model does as it usually does. An
// assistant message at the end is the beginning of the answer.
Result<Call> parse_message_call(const Json& body, const ServedModel& model, const CallIdentity& identity);

// What count_tokens counts: the prompt that parse_message_call would ask for. It needs no max_tokens.
Result<ChatPrompt> parse_counted_messages(const Json& body, const ServedModel& model);

// Claude Code puts a line with this beginning, and with a checksum that is another in every request, in front
// of its system prompt. Nothing behind it would ever be found in the cache again, so it is left out.
inline constexpr std::string_view kBillingHeader = "x-anthropic-billing-header:";

// System text without such lines at its beginning.
std::string_view without_billing_lines(std::string_view text);
// Whether something was left out of the system text of this body, so that what is kept of the request can say
// so.
bool has_billing_line(const Json& body);

// {"type": "error", "error": {"type", "message"}, "request_id"}; without the last when it is empty. A prompt
// that is too long is "prompt is too long: N tokens > M maximum": agents look for it to shorten their
// history.
Json anthropic_error(const ApiError& error, std::string_view request_id);

}  // namespace octavo::app
