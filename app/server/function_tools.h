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
#include "app/server/structured_fields.h"

namespace octavo::app {

// OpenAI's limit; agents that speak other protocols send more.
inline constexpr std::size_t kMaxTools = 128, kMaxAgentTools = 1024;

struct FunctionTool {
  std::string name;
  std::optional<std::string> description = {};
  Json parameters;      // a schema; an object without properties when the client gives none
  bool strict = false;  // its arguments have to fit the schema
};

// name, description, strict and the schema under `schema_name`.
FunctionTool read_function_tool(FieldReader& function, std::string_view schema_name);

// ChatPrompt::tools; empty for none.
std::string tools_text(const std::vector<FunctionTool>& tools);

// nullopt without tools: then an answer is text alone.
std::optional<CallReading> call_reading(const std::string& tools, bool only_first, const ServedModel& model);

// Whether the answer may, or must, call. With "none" the prompt keeps its tools, so that it is found in the
// cache, and what the model writes is text.
struct ToolChoice {
  bool may_call = true;
  bool must_call = false;
  std::optional<std::string> name = {};  // that it must call
  bool only_first = false;               // one call at most
};

// What a client offers, as far as a call needs it.
struct OfferedTools {
  std::string text = {};                  // for the prompt: tools_text()
  std::optional<CallReading> calls = {};  // for the answer
  std::vector<FunctionTool> tools = {};
  ToolChoice choice = {};
};

// OpenAI's `tool_choice`: "auto", "none", "required", or an object that names a function, as chat and as
// responses write it; and `parallel_tool_calls`.
ToolChoice read_tool_choice(FieldReader& fields);

// What `tools` and what was chosen mean for prompt and answer. A choice of what is not there is the error.
OfferedTools offered_tools(FieldReader& fields, std::vector<FunctionTool> tools, ToolChoice choice,
                           const ServedModel& model);

// Holds the answer to what `offered` demands and to the form that is wanted: calls alone where one must be
// made; else text of that form, or calls where they may be.
void demand_form(FieldReader& fields, std::optional<StructuredOutput> wanted, const OfferedTools& offered,
                 const ChatPrompt& prompt, const ServedModel& model, const CallIdentity& identity,
                 SamplingParams& sampling, std::vector<std::string>& notes);

// A text that must be one JSON object, kept as it is.
std::string read_call_arguments(FieldReader& fields, std::string_view name);
// A text that must be there, and not empty.
std::string read_required_text(FieldReader& fields, std::string_view name);

}  // namespace octavo::app
