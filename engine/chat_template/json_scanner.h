// JSON byte by byte, as it comes: whether what has come may still become an object or a list, and where in it
// it is. What is accepted here, every JSON parser accepts: nested at most kMaxJsonDepth deep, objects of at
// most kMaxJsonMembers, finite numbers, whole characters in escapes.
//
// Thread: a value; one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace octavo {

inline constexpr int kMaxJsonDepth = 60;
inline constexpr std::size_t kMaxJsonMembers = 4096;  // of one object

bool is_json_blank(char c);
// A number, true, false or null, and nothing else.
bool is_json_scalar(std::string_view text);

// What stands behind a backslash in a text.
struct JsonEscape {
  std::uint32_t code_point = 0;
  std::size_t end = 0;  // behind it
};
std::optional<JsonEscape> read_json_escape(std::string_view text, std::size_t at);

class JsonScanner {
 public:
  enum class Step : std::uint8_t {
    kGoesOn,
    kEnded,  // with this byte, the value is whole
    kWrong,  // for good
  };

  // The first byte that is no blank space must begin an object, a list or a text.
  Step add(char c);

  std::size_t depth() const { return levels_.size(); }
  bool is_in_text() const { return state_ == State::kText || state_ == State::kEscape; }
  bool is_in_name() const { return is_in_text() && is_name_; }
  bool awaits_name() const { return state_ == State::kName || state_ == State::kNameOrEnd; }
  bool awaits_colon() const { return state_ == State::kColon; }
  bool awaits_value() const { return state_ == State::kValue || state_ == State::kValueOrEnd; }
  // Whether what has come is the beginning of some value: not so while a number, a word or an escape has only
  // begun, which may turn out to be none.
  bool is_safe() const { return state_ != State::kScalar && state_ != State::kEscape; }

 private:
  enum class State : std::uint8_t {
    kValue,
    kValueOrEnd,
    kName,
    kNameOrEnd,
    kColon,
    kCommaOrEnd,
    kText,
    kEscape,
    kScalar,
    kDone,
  };
  struct Level {
    bool is_object = false;
    std::size_t num_members = 0;
  };

  Step add_between(char c);
  Step add_to_text(char c);
  Step add_to_escape(char c);
  Step add_to_scalar(char c);
  Step open(bool is_object);
  Step close(bool is_object);
  Step end_value();
  Step wrong();

  State state_ = State::kValue;
  bool is_name_ = false;  // the text that has begun
  std::vector<Level> levels_;
  std::string begun_;  // of an escape or a scalar
};

}  // namespace octavo
