// The messages of a chat as a template sees them, and what can be changed about them without losing a word:
// for templates that refuse what a chat holds. Plain values; any thread.
#pragma once

#include <string_view>
#include <vector>

#include "engine/api/request.h"
#include "engine/base/result.h"
#include "engine/chat_template/jinja_value.h"
#include "engine/chat_template/marked_text.h"

namespace octavo::tokenizer {

// All of it is input.
struct CallInTurn {
  MarkedText id, name, arguments;
};

struct Turn {
  Role role = Role::kUser;
  MarkedText content = {};
  MarkedText thinking = {};            // of an answer, where the template wants it apart
  std::vector<CallInTurn> calls = {};  // of an answer
  MarkedText call_id = {};             // of a result
  MarkedText function = {};            // of a result: whose it is, where an earlier answer says that
};
using Turns = std::vector<Turn>;

// With an empty line between.
void append_content(MarkedText& content, const MarkedText& more);

// No two turns of one role in a row, and the user's before the first answer. Results of calls stay apart.
Turns alternating(const Turns& turns);

// System text becomes the user's.
Turns without_system_role(Turns turns);

// Mistral's templates want names of calls that are nine letters and digits. One that is something else
// becomes nine of them that depend on it alone, so that a chat that grows keeps its beginning.
Turns with_short_call_ids(Turns turns);

// An answer with several calls becomes several answers, each with the result behind it that names its call.
Turns with_single_calls(const Turns& turns);

// What an answer says beside its calls becomes an answer of its own in front of them.
Turns with_calls_apart(const Turns& turns);

// How calls are written as text: {"name": ..., "arguments": ...} between these, or name(argument=value) as in
// Python.
struct CallMarks {
  std::string_view begin = "<tool_call>\n", between = "\n</tool_call>\n<tool_call>\n", end = "\n</tool_call>";
  bool as_python = false;
};

// The form of tools that most small models know (Hermes, Nous Research 2024), for templates that have none:
//   tools    in the system message, a JSON object in each line between <tools> and </tools>
//   calls    <tool_call>\n{"name": ..., "arguments": ...}\n</tool_call>, behind what the answer says
//   results  <tool_response>\n...\n</tool_response>, in one turn of the user for all that stand together
// The marks are the template's words, which may become special tokens; what stands between them is input.
// Calls may have other marks, where a template that prints no calls leaves no doubt which its model writes.
Result<Turns> with_tools_told(Turns turns, const jinja::Value& tools, jinja::Budget& budget);
Result<Turns> with_calls_as_text(Turns turns, const CallMarks& marks, jinja::Budget& budget);
Turns with_results_as_text(const Turns& turns);

}  // namespace octavo::tokenizer
