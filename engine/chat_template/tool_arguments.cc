#include "engine/chat_template/tool_arguments.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "engine/base/ascii.h"
#include "engine/chat_template/json_outline.h"

namespace octavo {
namespace {

constexpr std::size_t kLongestToolName = 64;
constexpr int kMostSchemaAlternatives = 3;  // one in another

std::uint8_t value_type_of(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, ValueTypes>, 7> kTypes = {{{"string", kTextValue},
                                                                              {"number", kNumberValue},
                                                                              {"integer", kNumberValue},
                                                                              {"boolean", kBooleanValue},
                                                                              {"object", kObjectValue},
                                                                              {"array", kListValue},
                                                                              {"null", kNullValue}}};
  const auto found = std::ranges::find(kTypes, name, &std::pair<std::string_view, ValueTypes>::first);
  return found == kTypes.end() ? std::uint8_t{kNoValueType} : std::uint8_t{found->second};
}

std::uint8_t types_of_schema(std::string_view schema, int depth) {
  std::uint8_t types = kNoValueType;
  for (const auto& [name, value] : json_members(schema)) {
    if (name == "type") {
      types |= value_type_of(json_text(value).value_or(std::string()));
      for (const std::string_view type : json_elements(value))
        types |= value_type_of(json_text(type).value_or(std::string()));
    } else if ((name == "anyOf" || name == "oneOf") && depth < kMostSchemaAlternatives) {
      for (const std::string_view alternative : json_elements(value))
        types |= types_of_schema(alternative, depth + 1);
    }
  }
  return types;
}

// true, false and null, as JSON and as Python write them.
std::string_view json_word(std::string_view word) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kWords = {{{"true", "true"},
                                                                                    {"false", "false"},
                                                                                    {"null", "null"},
                                                                                    {"True", "true"},
                                                                                    {"False", "false"},
                                                                                    {"None", "null"}}};
  for (const auto& [written, meaning] : kWords) {
    if (written == word) return meaning;
  }
  return {};
}

// Writes an object member by member.
class ObjectText {
 public:
  void add(std::string_view key, std::string_view value) {
    if (text_.size() > 1) text_ += ", ";
    text_ += quoted_json(key) + ": ";
    text_ += value;
  }
  std::string take() { return std::move(text_) + '}'; }

 private:
  std::string text_ = "{";
};

// Goes through a text from its beginning.
class TextCursor {
 public:
  explicit TextCursor(std::string_view text) : rest_(text) {}

  bool take(std::string_view mark) {
    if (!rest_.starts_with(mark)) return false;
    rest_.remove_prefix(mark.size());
    return true;
  }
  // What stands before the mark, which is passed.
  std::optional<std::string_view> take_until(std::string_view mark) {
    const std::size_t end = rest_.find(mark);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view before = rest_.substr(0, end);
    rest_.remove_prefix(end + mark.size());
    return before;
  }
  std::string_view take_bytes(std::size_t num_bytes) {
    const std::string_view taken = rest_.substr(0, num_bytes);
    rest_.remove_prefix(taken.size());
    return taken;
  }
  std::string_view take_while_not(std::string_view characters) {
    return take_bytes(std::min(rest_.find_first_of(characters), rest_.size()));
  }
  void skip_blanks() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size())); }
  bool take_behind_blanks(std::string_view mark) {
    skip_blanks();
    return take(mark);
  }
  bool at_end() const { return rest_.empty(); }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

// A value ends with the tag that another tag of the call follows, so that it may speak of tags itself.
std::optional<std::string_view> take_tagged_value(TextCursor& cursor) {
  constexpr std::string_view kEnd = "</parameter>";
  const std::string_view text = cursor.rest();
  for (std::size_t end = text.find(kEnd); end != std::string_view::npos; end = text.find(kEnd, end + 1)) {
    TextCursor behind(text.substr(end + kEnd.size()));
    behind.skip_blanks();
    if (!behind.rest().starts_with("<parameter=") && !behind.rest().starts_with("</function>")) continue;
    cursor.take_bytes(end + kEnd.size());
    std::string_view value = text.substr(0, end);
    if (value.starts_with('\n')) value.remove_prefix(1);
    if (value.ends_with('\n')) value.remove_suffix(1);
    return value;
  }
  return std::nullopt;
}

// `{key:<|"|>text<|"|>,other:[1,{...}]}`
class GemmaValues {
 public:
  explicit GemmaValues(std::string_view text) : cursor_(text) {}

  std::optional<std::string> read_all() {
    auto value = read_object(0);
    cursor_.skip_blanks();
    return value && cursor_.at_end() ? std::move(value) : std::nullopt;
  }

 private:
  static constexpr std::string_view kQuote = "<|\"|>";

  std::optional<std::string> read_value(int depth) {
    cursor_.skip_blanks();
    if (depth > kMaxJsonDepth) return std::nullopt;
    if (cursor_.take(kQuote)) {
      const auto text = cursor_.take_until(kQuote);
      return text ? std::optional(quoted_json(*text)) : std::nullopt;
    }
    if (cursor_.rest().starts_with('{')) return read_object(depth);
    if (cursor_.rest().starts_with('[')) return read_list(depth);
    if (cursor_.rest().starts_with('"')) {
      const auto end = json_value_end(cursor_.rest(), 0);
      return end ? std::optional(std::string(cursor_.take_bytes(*end))) : std::nullopt;
    }
    const std::string_view plain = without_blanks(cursor_.take_while_not(",}]"));
    if (const std::string_view word = json_word(plain); !word.empty()) return std::string(word);
    return is_json(plain) ? std::optional(std::string(plain)) : std::nullopt;
  }

  std::optional<std::string> read_object(int depth) {
    if (!cursor_.take_behind_blanks("{")) return std::nullopt;
    ObjectText object;
    if (cursor_.take_behind_blanks("}")) return object.take();
    do {
      cursor_.skip_blanks();
      const bool is_quoted = cursor_.take(kQuote);
      const auto key = cursor_.take_until(is_quoted ? kQuote : ":");
      if (!key || (is_quoted && !cursor_.take_behind_blanks(":"))) return std::nullopt;
      const auto value = read_value(depth + 1);
      if (!value) return std::nullopt;
      const std::string_view name = is_quoted ? *key : without_blanks(*key);
      object.add(json_text(name).value_or(std::string(name)), *value);
    } while (cursor_.take_behind_blanks(","));
    return cursor_.take_behind_blanks("}") ? std::optional(object.take()) : std::nullopt;
  }

  std::optional<std::string> read_list(int depth) {
    if (!cursor_.take_behind_blanks("[")) return std::nullopt;
    std::string list = "[";
    if (cursor_.take_behind_blanks("]")) return list + ']';
    do {
      const auto value = read_value(depth + 1);
      if (!value) return std::nullopt;
      list += (list.size() > 1 ? ", " : "") + *value;
    } while (cursor_.take_behind_blanks(","));
    return cursor_.take_behind_blanks("]") ? std::optional(list + ']') : std::nullopt;
  }

  TextCursor cursor_;
};

// `[f(a="b", n=[1, None]), g()]`
class PythonCalls {
 public:
  explicit PythonCalls(std::string_view text) : cursor_(text) {}

  std::optional<std::vector<NamedArguments>> read_all() {
    if (!cursor_.take_behind_blanks("[")) return std::nullopt;
    std::vector<NamedArguments> calls;
    do {
      auto call = read_call();
      if (!call) return std::nullopt;
      calls.push_back(*std::move(call));
    } while (cursor_.take_behind_blanks(","));
    if (!cursor_.take_behind_blanks("]")) return std::nullopt;
    cursor_.skip_blanks();
    return cursor_.at_end() ? std::optional(std::move(calls)) : std::nullopt;
  }

  // One on each line.
  std::optional<std::vector<NamedArguments>> read_statements() {
    std::vector<NamedArguments> calls;
    for (cursor_.skip_blanks(); !cursor_.at_end(); cursor_.skip_blanks()) {
      auto call = read_statement();
      if (!call) return std::nullopt;
      calls.push_back(*std::move(call));
    }
    return calls.empty() ? std::nullopt : std::optional(std::move(calls));
  }

 private:
  // `f(...)`, `x = f(...)`, `print(f(...))`
  std::optional<NamedArguments> read_statement() {
    const std::string_view line = cursor_.rest().substr(0, cursor_.rest().find_first_of("(\n"));
    if (const std::size_t equals = line.find('='); equals != std::string_view::npos) {
      if (!is_tool_name(without_blanks(line.substr(0, equals)))) return std::nullopt;
      cursor_.take_bytes(equals + 1);
      cursor_.skip_blanks();
    }
    const bool is_printed = cursor_.take("print(");
    auto call = read_call();
    if (is_printed && !cursor_.take_behind_blanks(")")) return std::nullopt;
    const std::string_view behind = cursor_.rest().substr(0, cursor_.rest().find_first_not_of(" \t\r;"));
    cursor_.take_bytes(behind.size());
    const bool is_over = cursor_.at_end() || cursor_.rest().starts_with('\n') || !behind.empty();
    return is_over ? std::move(call) : std::nullopt;
  }

  std::optional<NamedArguments> read_call() {
    cursor_.skip_blanks();
    const std::string_view name = without_blanks(cursor_.take_while_not("([{\"'=,"));
    if (!is_tool_name(name) || !cursor_.take("(")) return std::nullopt;
    ObjectText object;
    if (cursor_.take_behind_blanks(")")) return NamedArguments{std::string(name), object.take()};
    do {
      cursor_.skip_blanks();
      const std::string_view key = without_blanks(cursor_.take_while_not("=(,)[]{}\"'"));
      if (key.empty() || !cursor_.take("=")) return std::nullopt;
      const auto value = read_value(1);
      if (!value) return std::nullopt;
      object.add(key, *value);
    } while (cursor_.take_behind_blanks(","));
    if (!cursor_.take_behind_blanks(")")) return std::nullopt;
    return NamedArguments{std::string(name), object.take()};
  }

  std::optional<std::string> read_value(int depth) {
    cursor_.skip_blanks();
    if (depth > kMaxJsonDepth || cursor_.at_end()) return std::nullopt;
    switch (cursor_.rest().front()) {
      case '"':
      case '\'': return read_text();
      case '[': return read_list(depth, "[", "]");
      case '(': return read_list(depth, "(", ")");
      case '{': return read_object(depth);
      default: break;
    }
    const std::string_view plain = without_blanks(cursor_.take_while_not(",)]}"));
    if (const std::string_view word = json_word(plain); !word.empty()) return std::string(word);
    return is_json(plain) ? std::optional(std::string(plain)) : std::nullopt;
  }

  std::optional<std::string> read_text() {
    const char quote = cursor_.take_bytes(1).front();
    std::string text;
    while (!cursor_.at_end()) {
      const char c = cursor_.take_bytes(1).front();
      if (c == quote) return quoted_json(text);
      if (c != '\\') {
        text += c;
      } else if (!read_escape(text)) {
        return std::nullopt;
      }
    }
    return std::nullopt;
  }

  bool read_escape(std::string& text) {
    constexpr std::string_view kNames = "nrtbf0\\'\"", kMeanings{"\n\r\t\b\f\0\\'\"", 9};
    if (cursor_.at_end()) return false;
    const char c = cursor_.take_bytes(1).front();
    if (const std::size_t name = kNames.find(c); name != std::string_view::npos) {
      text += kMeanings[name];
    } else if (c == 'u') {
      const auto decoded = json_text("\"\\u" + std::string(cursor_.take_bytes(4)) + '"');
      if (!decoded) return false;
      text += *decoded;
    } else if (c != '\n') {  // which it would hide
      text += {'\\', c};
    }
    return true;
  }

  std::optional<std::string> read_list(int depth, std::string_view opener, std::string_view closer) {
    cursor_.take(opener);
    std::string list = "[";
    if (cursor_.take_behind_blanks(closer)) return list + ']';
    do {
      const auto value = read_value(depth + 1);
      if (!value) return std::nullopt;
      list += (list.size() > 1 ? ", " : "") + *value;
    } while (cursor_.take_behind_blanks(","));
    return cursor_.take_behind_blanks(closer) ? std::optional(list + ']') : std::nullopt;
  }

  std::optional<std::string> read_object(int depth) {
    cursor_.take("{");
    ObjectText object;
    if (cursor_.take_behind_blanks("}")) return object.take();
    do {
      cursor_.skip_blanks();
      if (cursor_.at_end() || (cursor_.rest().front() != '"' && cursor_.rest().front() != '\''))
        return std::nullopt;
      const auto quoted_key = read_text();
      const auto key = quoted_key ? json_text(*quoted_key) : std::nullopt;
      if (!key || !cursor_.take_behind_blanks(":")) return std::nullopt;
      const auto value = read_value(depth + 1);
      if (!value) return std::nullopt;
      object.add(*key, *value);
    } while (cursor_.take_behind_blanks(","));
    return cursor_.take_behind_blanks("}") ? std::optional(object.take()) : std::nullopt;
  }

  TextCursor cursor_;
};

std::optional<NamedArguments> read_json_call(std::string_view text, int depth) {
  std::string_view named, arguments, function;
  for (const auto& [name, value] : json_members(text)) {
    // Of two of a name the first, which a stream has told before the other comes.
    if (name == "name" && named.empty()) named = value;
    if ((name == "arguments" || name == "parameters") && arguments.empty()) arguments = value;
    if (name == "function" && function.empty()) function = value;
  }
  if (named.empty() && function.starts_with('{') && depth == 0) return read_json_call(function, 1);
  const auto name = json_text(named);
  if (!name || !is_tool_name(*name)) return std::nullopt;
  if (arguments.empty()) return NamedArguments{*name, "{}"};
  if (is_json_object(arguments)) return NamedArguments{*name, std::string(arguments)};
  auto quoted = json_text(arguments);  // an object once more in quotes
  if (!quoted || !is_json_object(*quoted)) return std::nullopt;
  return NamedArguments{*name, *std::move(quoted)};
}

std::optional<NamedArguments> checked_call(std::string_view name, std::string arguments) {
  if (!is_tool_name(name) || !is_json_object(arguments)) return std::nullopt;
  return NamedArguments{std::string(name), std::move(arguments)};
}

}  // namespace

CallableTools::CallableTools(std::string_view tools) {
  for (const std::string_view tool : json_elements(tools)) {
    const std::string_view function = json_member(tool, "function");
    const auto name = json_text(json_member(function, "name"));
    if (!name) continue;
    auto& types = types_[*name];
    for (const auto& [parameter, schema] :
         json_members(json_member(json_member(function, "parameters"), "properties")))
      types[parameter] = types_of_schema(schema, 0);
  }
}

std::uint8_t CallableTools::types_of(std::string_view tool, std::string_view parameter) const {
  const auto found = types_.find(tool);
  if (found == types_.end()) return kNoValueType;
  const auto types = found->second.find(parameter);
  return types == found->second.end() ? std::uint8_t{kNoValueType} : types->second;
}

bool is_tool_name(std::string_view name) {
  return !name.empty() && name.size() <= kLongestToolName && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
  });
}

std::string typed_json(std::string_view value, std::uint8_t types) {
  const std::string_view plain = without_blanks(value);
  const std::string_view word = json_word(plain);
  if ((types & kNullValue) != 0 && word == "null") return "null";
  if ((types & kTextValue) != 0) return quoted_json(value);
  if ((types & kBooleanValue) != 0 && !word.empty() && word != "null") return std::string(word);
  const bool is_number = !plain.empty() && std::string_view("-0123456789").find(plain.front()) != plain.npos;
  const bool may_be = (is_number && (types & kNumberValue) != 0) ||
                      (plain.starts_with('{') && (types & kObjectValue) != 0) ||
                      (plain.starts_with('[') && (types & kListValue) != 0);
  return may_be && is_json(plain) ? std::string(plain) : quoted_json(value);
}

std::optional<NamedArguments> read_function_tags(std::string_view text, const CallableTools& tools) {
  TextCursor cursor(text);
  if (!cursor.take_behind_blanks("<function=")) return std::nullopt;
  const auto name = cursor.take_until(">");
  if (!name) return std::nullopt;
  ObjectText object;
  while (cursor.take_behind_blanks("<parameter=")) {
    const auto key = cursor.take_until(">");
    const auto value = key ? take_tagged_value(cursor) : std::nullopt;
    if (!value) return std::nullopt;
    object.add(*key, typed_json(*value, tools.types_of(*name, *key)));
  }
  if (!cursor.take("</function>")) return std::nullopt;
  cursor.skip_blanks();
  return cursor.at_end() ? checked_call(*name, object.take()) : std::nullopt;
}

std::optional<NamedArguments> read_argument_tags(std::string_view text, const CallableTools& tools) {
  TextCursor cursor(text);
  const std::string_view name = without_blanks(cursor.take_while_not("<"));
  ObjectText object;
  while (cursor.take_behind_blanks("<arg_key>")) {
    const auto tagged_key = cursor.take_until("</arg_key>");
    if (!tagged_key || !cursor.take_behind_blanks("<arg_value>")) return std::nullopt;
    const auto value = cursor.take_until("</arg_value>");
    if (!value) return std::nullopt;
    const std::string_view key = without_blanks(*tagged_key);
    object.add(key, typed_json(*value, tools.types_of(name, key)));
  }
  cursor.skip_blanks();
  return cursor.at_end() ? checked_call(name, object.take()) : std::nullopt;
}

std::optional<NamedArguments> read_gemma_call(std::string_view text) {
  TextCursor cursor(text);
  if (!cursor.take_behind_blanks("call:")) return std::nullopt;
  const std::string_view name = without_blanks(cursor.take_while_not("{"));
  auto arguments = GemmaValues(cursor.rest()).read_all();
  return arguments ? checked_call(name, *std::move(arguments)) : std::nullopt;
}

std::optional<std::vector<NamedArguments>> read_python_calls(std::string_view text) {
  auto calls = PythonCalls(text).read_all();
  if (!calls) return std::nullopt;
  const bool are_right =
      std::ranges::all_of(*calls, [](const NamedArguments& call) { return is_json_object(call.arguments); });
  return are_right ? std::move(calls) : std::nullopt;
}

std::optional<std::vector<NamedArguments>> read_python_code(std::string_view text,
                                                            const CallableTools& tools) {
  auto calls = PythonCalls(text).read_statements();
  if (!calls) return std::nullopt;
  const bool are_right = std::ranges::all_of(*calls, [&](const NamedArguments& call) {
    return tools.has(call.name) && is_json_object(call.arguments);
  });
  return are_right ? std::move(calls) : std::nullopt;
}

std::optional<std::vector<NamedArguments>> read_invoke_tags(std::string_view text, std::string_view prefix,
                                                            const CallableTools& tools) {
  const auto tag = [&](std::string_view begin, std::string_view end) {
    return std::string(begin).append(prefix).append(end);
  };
  const std::string invoke = tag("<", "invoke name=\""), invoke_end = tag("</", "invoke>");
  const std::string parameter = tag("<", "parameter name=\""), parameter_end = tag("</", "parameter>");
  std::vector<NamedArguments> calls;
  TextCursor cursor(text);
  while (cursor.take_behind_blanks(invoke)) {
    const auto name = cursor.take_until("\"");
    if (!name || !cursor.take_behind_blanks(">")) return std::nullopt;
    ObjectText object;
    while (cursor.take_behind_blanks(parameter)) {
      const auto key = cursor.take_until("\"");
      const auto said = cursor.take_until(">");
      const auto value = said ? cursor.take_until(parameter_end) : std::nullopt;
      if (!key || !value) return std::nullopt;
      const std::string_view kind = without_blanks(*said);
      const bool is_json_value = kind == "string=\"false\"" && is_json(*value);
      object.add(*key, is_json_value               ? std::string(without_blanks(*value))
                       : kind == "string=\"true\"" ? quoted_json(*value)
                                                   : typed_json(*value, tools.types_of(*name, *key)));
    }
    if (!cursor.take_behind_blanks(invoke_end)) return std::nullopt;
    auto call = checked_call(*name, object.take());
    if (!call) return std::nullopt;
    calls.push_back(*std::move(call));
  }
  cursor.skip_blanks();
  return cursor.at_end() && !calls.empty() ? std::optional(std::move(calls)) : std::nullopt;
}

std::optional<std::vector<NamedArguments>> read_json_calls(std::string_view text) {
  std::vector<std::string_view> written = json_elements(text);
  if (without_blanks(text).starts_with('{')) written = {text};
  std::vector<NamedArguments> calls;
  for (const std::string_view one : written) {
    auto call = read_json_call(one, 0);
    if (!call) return std::nullopt;
    calls.push_back(*std::move(call));
  }
  return calls.empty() ? std::nullopt : std::optional(std::move(calls));
}

}  // namespace octavo
