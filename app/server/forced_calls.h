// Grammars for the calls of functions in an answer: in the marks of the model's family (tool_calls.h), with
// arguments by the function's schema, so that what the reader of calls finds is a call that can be made.
//
// Thread: values; one thread at a time.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/json/json_text.h"
#include "app/server/function_tools.h"

namespace octavo::app {

// Nothing but calls, from the first token: at least one, of the function that is named or of any.
// The error is one sentence, with subject "tools": a schema of a strict function that cannot be kept.
// `notes`: of functions that are not strict, whose schema cannot be kept, so that their arguments are any
// JSON object.
Result<Json> forced_calls_format(const std::vector<FunctionTool>& tools, const ToolChoice& choice,
                                 const ServedModel& model, std::vector<std::string>& notes);

// Text with calls in it, of which those of strict functions have arguments by their schema. nullopt: no
// function is strict, or the family's calls are not told from text by a mark.
Result<std::optional<Json>> strict_calls_format(const std::vector<FunctionTool>& tools,
                                                const ToolChoice& choice, const ServedModel& model);

}  // namespace octavo::app
