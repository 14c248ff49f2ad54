// Just enough of JSON to find values in text that a model writes, and to write values for it: where a value
// ends, the members of an object, texts with and without quotes. What is accepted is what JsonScanner
// accepts.
//
// Pure; any thread. Views look at the text that was given.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/chat_template/json_scanner.h"

namespace octavo {

// Past the value that begins at `at`, with no blank space before it; nullopt: there is none, or not all of
// it.
std::optional<std::size_t> json_value_end(std::string_view text, std::size_t at);

// One whole value, blank space around it allowed; and that it is an object.
bool is_json(std::string_view text);
bool is_json_object(std::string_view text);

// Of an object and of a list, in their order; values as they are written. Empty for anything else.
using JsonMember = std::pair<std::string, std::string_view>;
std::vector<JsonMember> json_members(std::string_view object);
std::vector<std::string_view> json_elements(std::string_view list);
// The last of this name; empty: none.
std::string_view json_member(std::string_view object, std::string_view name);

// A text without its quotes; nullopt: the value is none.
std::optional<std::string> json_text(std::string_view value);
std::string quoted_json(std::string_view text);

// Where an object or a list that comes piece by piece may end: by its brackets outside of texts.
class BracketCounter {
 public:
  // The number of bytes of `text` up to the bracket that closes the first; nullopt: not yet.
  std::optional<std::size_t> add(std::string_view text);

 private:
  std::size_t depth_ = 0;
  bool in_text_ = false, is_escaped_ = false;
};

}  // namespace octavo
