// OpenAI's /v1/completions, with vLLM's further fields: one or many prompts as text or token ids, continued
// or, with echo and log-probabilities, scored.
//
// Text never becomes special tokens: programs put prompts together of what others wrote, who could speak as
// the model's template does otherwise. A program that means a special token sends ids, or says so
// (`parse_special`, true for the whole prompt).
//
// What the text does not depend on is ignored when it is not known; what it does depend on and nothing here
// can do is refused (kUnsupported), as are prompt log-probabilities and best_of in streams.
//
// Pure; any thread.
#pragma once

#include "app/json/json_text.h"
#include "app/server/call.h"
#include "engine/base/result.h"

namespace octavo::app {

// The tokenizer of `model` outlives the call.
Result<Call> parse_completion(const Json& body, const ServedModel& model, const CallIdentity& identity);

}  // namespace octavo::app
