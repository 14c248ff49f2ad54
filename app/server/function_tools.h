// What a client says of functions that the model may call, for every protocol: read, bounded, and as the
// model's template and the answer's reader need it.
//
// Thread: as request_fields.h.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/json/json_text.h"
#include "app/server/answer_calls.h"
#include "app/server/call.h"
#include "app/server/request_fields.h"

namespace octavo::app {

// OpenAI's limit; agents that speak other protocols send more.
inline constexpr std::size_t kMaxTools = 128, kMaxAgentTools = 1024;

struct FunctionTool {
  std::string name;
  std::optional<std::string> description = {};
  Json parameters;  // a schema; an object without properties when the client gives none
};

// name, description and the schema under `schema_name`. `strict` is not read: it asks for structured output,
// which clients do unasked, and calls are valid JSON in any case.
FunctionTool read_function_tool(FieldReader& function, std::string_view schema_name);

// ChatPrompt::tools; empty for none.
std::string tools_text(const std::vector<FunctionTool>& tools);

// nullopt without tools: then an answer is text alone.
std::optional<CallReading> call_reading(const std::string& tools, bool only_first, const ServedModel& model);

// What a client offers, as far as a call needs it.
struct OfferedTools {
  std::string text = {};                  // for the prompt: tools_text()
  std::optional<CallReading> calls = {};  // for the answer
};

// `"auto"` and `"none"`; anything else forces a call, which is refused. Whether the answer may call. With
// "none" the prompt keeps its tools, so that it is found in the cache, and what the model writes is text.
bool read_tool_choice(FieldReader& fields);
// The refusal, for `tool_choice` in another form.
void refuse_forced_call(FieldReader& fields, std::string_view name);

// A text that must be one JSON object, kept as it is.
std::string read_call_arguments(FieldReader& fields, std::string_view name);
// A text that must be there, and not empty.
std::string read_required_text(FieldReader& fields, std::string_view name);

}  // namespace octavo::app
