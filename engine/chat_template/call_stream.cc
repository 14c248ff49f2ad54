#include "engine/chat_template/call_stream.h"

#include <utility>

#include "engine/chat_template/json_outline.h"
#include "engine/chat_template/tool_arguments.h"

namespace octavo {

CallStream::State CallStream::add(char c, std::vector<ToolCallPiece>& pieces) {
  const Before before{.depth = scanner_.depth(),
                      .awaits_name = scanner_.awaits_name(),
                      .awaits_value = scanner_.awaits_value(),
                      .is_in_text = scanner_.is_in_text(),
                      .is_in_name = scanner_.is_in_name()};
  const JsonScanner::Step step = scanner_.add(c);
  if (step == JsonScanner::Step::kWrong || !follow(c, before, pieces)) {
    end_call(pieces);
    return State::kWrong;
  }
  return step == JsonScanner::Step::kEnded ? State::kEnded : State::kGoesOn;
}

void CallStream::end(std::vector<ToolCallPiece>& pieces) {
  give_held(pieces);
  end_call(pieces);
}

// Whether it may still be a call.
bool CallStream::follow(char c, const Before& before, std::vector<ToolCallPiece>& pieces) {
  const std::size_t depth = scanner_.depth();
  if (object_depth_ > 0) object_ += c;
  if (arguments_depth_ > 0) {
    held_ += c;
    if (scanner_.is_safe()) give_held(pieces);
    if (depth < arguments_depth_) end_call(pieces);
    return true;
  }
  if (object_depth_ > 0) return follow_object(c, before, pieces);
  if (is_json_blank(c)) return true;
  if (c == '{' && is_named_) {
    begin_arguments(pieces);
    return true;
  }
  if (c == '{') {
    object_depth_ = depth;
    object_ = c;
    name_.clear();
    key_.clear();
    has_arguments_ = false;
    return true;
  }
  return !is_named_ && depth <= 1 && !scanner_.is_in_text();  // between the objects of a list
}

bool CallStream::follow_object(char c, const Before& before, std::vector<ToolCallPiece>& pieces) {
  const std::size_t depth = scanner_.depth();
  if (depth < object_depth_) return end_object(pieces);
  if (before.depth > object_depth_) return true;
  if (before.is_in_text) {
    text_ += c;
    if (scanner_.is_in_text()) return true;
    const std::string text = json_text(text_).value_or(std::string());
    if (before.is_in_name) {
      key_ = text;
    } else if (key_ == "name" && name_.empty()) {
      name_ = text;
      return is_tool_name(name_);
    }
    return true;
  }
  if ((before.awaits_name || before.awaits_value) && c == '"') text_ = c;
  const bool is_of_arguments = key_ == "arguments" || key_ == "parameters";
  if (before.awaits_value && c == '{' && is_of_arguments && !has_arguments_ && !name_.empty()) {
    has_arguments_ = true;
    begin_arguments(pieces);
  }
  return true;
}

bool CallStream::end_object(std::vector<ToolCallPiece>& pieces) {
  object_depth_ = 0;
  if (has_arguments_) return true;
  auto calls = read_json_calls(object_);
  if (!calls) return false;
  for (NamedArguments& call : *calls) {
    pieces.push_back({ToolCallPiece::Kind::kCallBegun, std::move(call.name)});
    pieces.push_back({ToolCallPiece::Kind::kArguments, std::move(call.arguments)});
    pieces.push_back({ToolCallPiece::Kind::kCallEnded, {}});
  }
  has_told_ = true;
  return true;
}

void CallStream::begin_arguments(std::vector<ToolCallPiece>& pieces) {
  arguments_depth_ = scanner_.depth();
  has_told_ = true;
  pieces.push_back({ToolCallPiece::Kind::kCallBegun, name_});
  pieces.push_back({ToolCallPiece::Kind::kArguments, "{"});
}

void append_arguments(std::vector<ToolCallPiece>& pieces, std::string_view json) {
  if (json.empty()) return;
  if (!pieces.empty() && pieces.back().kind == ToolCallPiece::Kind::kArguments) {
    pieces.back().text += json;
  } else {
    pieces.push_back({ToolCallPiece::Kind::kArguments, std::string(json)});
  }
}

void CallStream::give_held(std::vector<ToolCallPiece>& pieces) {
  append_arguments(pieces, std::exchange(held_, {}));
}

void CallStream::end_call(std::vector<ToolCallPiece>& pieces) {
  if (std::exchange(arguments_depth_, 0) == 0) return;
  pieces.push_back({ToolCallPiece::Kind::kCallEnded, {}});
}

}  // namespace octavo
