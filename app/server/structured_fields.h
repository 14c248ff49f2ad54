// The form that a client wants its answer to have, in the fields of every protocol, and as a structural tag
// where it goes together with thinking and calls.
//
// Thread: as request_fields.h.
#pragma once

#include <optional>
#include <string_view>

#include "app/json/json_text.h"
#include "app/server/request_fields.h"
#include "engine/api/request.h"
#include "engine/api/structured_output.h"

namespace octavo::app {

// OpenAI's response_format, vLLM's structured_outputs and its older guided_json, guided_regex, guided_choice
// and guided_grammar, llama.cpp's json_schema and grammar: one of them at most.
std::optional<StructuredOutput> read_structured_output(FieldReader& fields);

// {"type": "text" or "json_object" or "json_schema", "schema"}: what responses and messages call a format.
std::optional<StructuredOutput> read_output_format(FieldReader& fields, std::string_view name);

// As a format of a structural tag.
Json format_of(const StructuredOutput& wanted);
StructuredOutput structure_of(Json format);

// The format behind what the model thinks first, where its template has thinking that this prompt does not
// rule out: otherwise the thinking would have to be of that form.
//   now_s  seconds since 1970, for a template that prints a date
Json behind_thinking(Json format, const ChatPrompt& prompt, const ServedModel& model, std::int64_t now_s);

}  // namespace octavo::app
