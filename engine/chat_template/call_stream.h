// Calls that are written as JSON, told while they are written: the name as soon as the arguments begin, then
// the arguments as they come. What is told is always the beginning of an object: a number, a word or an
// escape that may turn out to be none waits until it is whole.
//
// What has its arguments in front of its name, or in quotation marks, is told when all of it has come.
//
// Thread: a value; one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/chat_template/json_scanner.h"

namespace octavo {

struct ToolCallPiece {
  enum class Kind : std::uint8_t { kText, kCallBegun, kArguments, kCallEnded };
  Kind kind = Kind::kText;
  std::string text = {};  // kCallBegun: the function's name; kText and kArguments: at least a byte
  bool operator==(const ToolCallPiece&) const = default;
};

// What comes next of the arguments of the call that was told last; pieces of them that follow each other are
// one.
void append_arguments(std::vector<ToolCallPiece>& pieces, std::string_view json);

class CallStream {
 public:
  enum class State : std::uint8_t {
    kGoesOn,
    kEnded,  // all calls are whole
    kWrong,  // what comes is none; a call that was told ends here
  };

  // `name`: whose arguments the JSON is. Empty: it is {"name": ..., "arguments": {...}}, or a list of these.
  explicit CallStream(std::string name = {}) : name_(std::move(name)), is_named_(!name_.empty()) {}

  // Takes the next byte, if the state is kGoesOn; pieces are appended.
  State add(char c, std::vector<ToolCallPiece>& pieces);
  // What was held back, when nothing more comes: a call that is not whole ends as it is.
  void end(std::vector<ToolCallPiece>& pieces);

  bool has_told() const { return has_told_; }
  // Bytes at the end of what came that are held back, or, when it is wrong, that were.
  std::size_t num_held() const { return held_.size(); }

 private:
  struct Before {  // of the byte that came
    std::size_t depth = 0;
    bool awaits_name = false, awaits_value = false, is_in_text = false, is_in_name = false;
  };
  bool follow(char c, const Before& before, std::vector<ToolCallPiece>& pieces);
  bool follow_object(char c, const Before& before, std::vector<ToolCallPiece>& pieces);
  bool end_object(std::vector<ToolCallPiece>& pieces);
  void begin_arguments(std::vector<ToolCallPiece>& pieces);
  void give_held(std::vector<ToolCallPiece>& pieces);
  void end_call(std::vector<ToolCallPiece>& pieces);

  std::string name_;
  bool is_named_;
  JsonScanner scanner_;
  bool has_told_ = false;
  std::size_t arguments_depth_ = 0;  // of the object that is told now; 0: none is
  std::string held_;                 // of it

  // Of a call's own object, where it has one.
  std::size_t object_depth_ = 0;  // 0: none is open
  std::string object_;            // as far as it has come
  std::string text_;              // of its members: a name, or a value that is a text, in quotes
  std::string key_;
  bool has_arguments_ = false;  // that were told
};

}  // namespace octavo
