// OpenAI's /v1/chat/completions, with vLLM's further fields. What a model thinks is told apart from what it
// says, as `reasoning_content`, in messages and in deltas, and is accepted back in the history, where the
// model's own template decides what of it is shown again. Functions that are offered may be called
// (function_tools.h); a call cannot be forced.
//
// What the text does not depend on is ignored when it is not known; what it does depend on and nothing here
// can do (schemas, images, ...) is refused with the field's name.
//
// Pure; any thread.
#pragma once

#include "app/json/json_text.h"
#include "app/server/call.h"
#include "engine/base/result.h"

namespace octavo::app {

// The tokenizer of `model` outlives the call. kUnsupported for a model without a chat template.
Result<Call> parse_chat_completion(const Json& body, const ServedModel& model, const CallIdentity& identity);

}  // namespace octavo::app
