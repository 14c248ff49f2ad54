// OpenAI's /v1/completions, with vLLM's further fields: one or many prompts as text or token ids, continued
// or, with echo and log-probabilities, scored.
//
// The text of special tokens becomes these tokens, as in vLLM: programs write the marks of templates and of
// gaps to be filled themselves. One that puts a prompt together of what others wrote says
// `"parse_special": false`.
//
// What the text does not depend on is ignored when it is not known; what it does depend on and nothing here
// can do is refused (kUnsupported), as are prompt log-probabilities and best_of in streams.
//
// Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "app/json/json_text.h"
#include "app/server/call.h"
#include "app/server/request_fields.h"
#include "engine/api/request.h"
#include "engine/base/result.h"

namespace octavo::app {

// The field of this name: a text, texts, token ids, or lists of ids, at most so many. What is wrong, the
// reader keeps. `name` is a text of the program.
std::vector<Prompt> read_prompts(FieldReader& fields, std::string_view name, std::int32_t vocabulary_size,
                                 std::size_t most);

// The tokenizer of `model` outlives the call.
Result<Call> parse_completion(const Json& body, const ServedModel& model, const CallIdentity& identity);

}  // namespace octavo::app
