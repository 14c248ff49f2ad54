#include "engine/chat_template/chat_turns.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>

#include "engine/base/hash.h"
#include "engine/chat_template/jinja_json.h"

namespace octavo::tokenizer {
namespace {

bool continues(const Turn& before, const Turn& turn) {
  return before.role == turn.role && before.call_id.empty() && turn.call_id.empty();
}

constexpr std::string_view kShortIdLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
constexpr std::size_t kShortIdLength = 9;

MarkedText short_id(const MarkedText& id) {
  const std::string& text = id.text();
  const bool is_short =
      text.size() == kShortIdLength && text.find_first_not_of(kShortIdLetters) == std::string::npos;
  if (is_short || text.empty()) return id;
  std::uint64_t hash = text.size();
  for (const char c : text) hash = hash_combine(hash, static_cast<unsigned char>(c));
  std::string letters;
  while (letters.size() < kShortIdLength) {
    letters += kShortIdLetters[hash % kShortIdLetters.size()];
    hash /= kShortIdLetters.size();
  }
  return MarkedText::computed_from(id, std::move(letters));
}

// The JSON of a call, whose arguments stay as they were written: so they were generated, and so their blocks
// are found again.
Result<MarkedText> call_as_text(const CallInTurn& call, jinja::Budget& budget) {
  MarkedText text("{\"name\": ");
  OCTAVO_TRY(const jinja::Text name, jinja::to_json(jinja::Value(call.name), {}, budget));
  text.append(*name);
  text.append(MarkedText(", \"arguments\": "));
  const jinja::Outcome read = jinja::read_json_of(call.arguments, budget);
  if (read) {
    text.append(call.arguments);
  } else {
    OCTAVO_TRY(const jinja::Text quoted, jinja::to_json(jinja::Value(call.arguments), {}, budget));
    text.append(*quoted);
  }
  text.append(MarkedText("}"));
  return text;
}

// Texts in the quotation marks of JSON, as models write them. What is no object of arguments is JSON.
Result<MarkedText> call_as_python(const CallInTurn& call, jinja::Budget& budget) {
  const jinja::Outcome read = jinja::read_json_of(call.arguments, budget);
  if (!read || !read->is_dict()) return call_as_text(call, budget);
  MarkedText text = call.name;
  std::string_view before = "(";
  for (const auto& [key, value] : read->dict().entries) {
    text.append(MarkedText(std::exchange(before, ", ")));
    text.append(*key.text());
    text.append(MarkedText("="));
    OCTAVO_TRY(const jinja::Text written,
               value.is_text() ? jinja::to_json(value, {}, budget) : jinja::to_repr(value, budget));
    text.append(*written);
  }
  text.append(MarkedText(read->dict().entries.empty() ? "()" : ")"));
  return text;
}

}  // namespace

void append_content(MarkedText& content, const MarkedText& more) {
  if (!content.empty() && !more.empty()) content.append(MarkedText("\n\n"));
  content.append(more);
}

Turns alternating(const Turns& turns) {
  Turns result;
  for (const Turn& turn : turns) {
    const bool is_unasked =
        turn.role == Role::kAssistant && (result.empty() || result.back().role == Role::kSystem);
    if (is_unasked) result.push_back({.role = Role::kUser});
    if (!result.empty() && continues(result.back(), turn)) {
      Turn& last = result.back();
      append_content(last.content, turn.content);
      append_content(last.thinking, turn.thinking);
      last.calls.insert(last.calls.end(), turn.calls.begin(), turn.calls.end());
    } else {
      result.push_back(turn);
    }
  }
  return result;
}

Turns without_system_role(Turns turns) {
  for (Turn& turn : turns) {
    if (turn.role == Role::kSystem) turn.role = Role::kUser;
  }
  return turns;
}

Turns with_short_call_ids(Turns turns) {
  for (Turn& turn : turns) {
    turn.call_id = short_id(turn.call_id);
    for (CallInTurn& call : turn.calls) call.id = short_id(call.id);
  }
  return turns;
}

Turns with_single_calls(const Turns& turns) {
  Turns result;
  for (std::size_t i = 0; i < turns.size();) {
    const Turn& answer = turns[i++];
    if (answer.calls.size() < 2) {
      result.push_back(answer);
      continue;
    }
    Turns results;
    for (; i < turns.size() && turns[i].role == Role::kTool; ++i) results.push_back(turns[i]);
    for (std::size_t c = 0; c < answer.calls.size(); ++c) {
      Turn single{.role = answer.role, .calls = {answer.calls[c]}};
      if (c == 0) {
        single.content = answer.content;
        single.thinking = answer.thinking;
      }
      result.push_back(std::move(single));
      const auto found = std::ranges::find_if(
          results, [&](const Turn& turn) { return turn.call_id.text() == answer.calls[c].id.text(); });
      if (found == results.end()) continue;
      result.push_back(*found);
      results.erase(found);
    }
    result.insert(result.end(), std::make_move_iterator(results.begin()),
                  std::make_move_iterator(results.end()));
  }
  return result;
}

Turns with_calls_apart(const Turns& turns) {
  Turns result;
  for (const Turn& turn : turns) {
    Turn calls = turn;
    if (!turn.calls.empty() && !turn.content.empty()) {
      result.push_back({.role = turn.role, .content = turn.content, .thinking = turn.thinking});
      calls.content = {};
      calls.thinking = {};
    }
    result.push_back(std::move(calls));
  }
  return result;
}

Result<Turns> with_tools_told(Turns turns, const jinja::Value& tools, jinja::Budget& budget) {
  if (tools.is_none()) return turns;
  MarkedText told(
      "# Tools\n\nYou may call one or more functions to help with what is asked. They are described by the "
      "JSON objects within <tools></tools>:\n<tools>\n");
  for (const jinja::Value& tool : tools.items()) {
    OCTAVO_TRY(const jinja::Text json, jinja::to_json(tool, {}, budget));
    told.append(*json);
    told.append(MarkedText("\n"));
  }
  told.append(
      MarkedText("</tools>\n\nFor each call return a JSON object with the name of the function and its "
                 "arguments within <tool_call></tool_call>:\n<tool_call>\n{\"name\": <function-name>, "
                 "\"arguments\": <arguments-object>}\n</tool_call>"));
  if (turns.empty() || turns.front().role != Role::kSystem) {
    turns.insert(turns.begin(), {.role = Role::kSystem});
  }
  append_content(turns.front().content, told);
  return turns;
}

Result<Turns> with_calls_as_text(Turns turns, const CallMarks& marks, jinja::Budget& budget) {
  for (Turn& turn : turns) {
    if (turn.calls.empty()) continue;
    MarkedText& content = turn.content;
    if (!content.empty()) content.append(MarkedText("\n"));
    std::string_view mark = marks.begin;
    for (const CallInTurn& call : turn.calls) {
      content.append(MarkedText(mark));
      OCTAVO_TRY(const MarkedText text,
                 marks.as_python ? call_as_python(call, budget) : call_as_text(call, budget));
      content.append(text);
      mark = marks.between;
    }
    content.append(MarkedText(marks.end));
    turn.calls.clear();
  }
  return turns;
}

Turns with_results_as_text(const Turns& turns) {
  Turns result;
  bool is_behind_result = false;
  for (const Turn& turn : turns) {
    const bool is_result = turn.role == Role::kTool;
    if (!is_result) {
      result.push_back(turn);
    } else {
      if (!is_behind_result) result.push_back({.role = Role::kUser});
      MarkedText& content = result.back().content;
      content.append(MarkedText(is_behind_result ? "\n<tool_response>\n" : "<tool_response>\n"));
      content.append(turn.content);
      content.append(MarkedText("\n</tool_response>"));
    }
    is_behind_result = is_result;
  }
  return result;
}

}  // namespace octavo::tokenizer
