// Calls that are written between tags (tool_calls.h), told while they are written: the name once the first
// argument or the end follows it, then the arguments as JSON, member by member. A value that can only be a
// text is told as it comes; of any other it is known what it is when its last tag has come.
//
// What is told is always the beginning of an object, and of a call that is whole it adds up to what
// tool_arguments.h reads.
//
// Thread: a value; one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/chat_template/call_stream.h"
#include "engine/chat_template/tool_arguments.h"

namespace octavo {

// How a family writes calls. `begin` and `end` stand around all of them; both empty: there is one, alone.
struct CallTags {
  std::string begin = {}, end = {};
  std::string call_begin = {};  // empty: the name stands there
  std::string name_end = {};    // empty: it ends where a tag begins
  std::string key_begin = {}, key_end = {};
  std::string value_begin = {};  // empty: the value follows the key's end
  std::string value_end = {};
  std::string call_end = {};          // empty: `end` is
  bool may_be_many = false;           // calls between begin and end
  bool have_attributes = false;       // name_end and key_end are in tags, which end with '>'
  bool values_have_lines = false;     // of their own: one line break at each end is not the value's
  bool values_speak_of_tags = false;  // the tag that ends a value is followed by another of the call
};

class TagStream {
 public:
  enum class State : std::uint8_t {
    kGoesOn,
    kEnded,  // all calls are whole
    kWrong,  // what comes is none; a call that was told ends here
  };

  // `tools` may be nullptr: then none are known.
  TagStream(CallTags tags, std::shared_ptr<const CallableTools> tools);

  // `text` is all that came of the calls, from `begin` on: that of the last call with more behind it. Pieces
  // are appended. Not to be called again when the state was another than kGoesOn.
  State read(std::string_view text, bool is_final, std::vector<ToolCallPiece>& pieces);

  bool has_told() const { return has_told_; }
  // Of the text: what is behind belongs to no call that was told.
  std::size_t num_read() const { return at_; }

 private:
  enum class Place : std::uint8_t {
    kBegin,
    kName,
    kNameEnd,
    kNextKey,
    kKey,
    kSaid,
    kValueBegin,
    kValue,
    kEnd
  };
  enum class Step : std::uint8_t { kDone, kWaits, kEnded, kWrong };
  enum class Found : std::uint8_t { kNo, kMaybe, kYes };

  Step step(std::string_view text, std::vector<ToolCallPiece>& pieces);
  Step begin_call(std::string_view text);
  Step read_name(std::string_view text);
  Step find_key(std::string_view text, std::vector<ToolCallPiece>& pieces);
  Step read_key(std::string_view text, std::vector<ToolCallPiece>& pieces);
  Step read_what_is_said(std::string_view text);
  Step read_value(std::string_view text, std::vector<ToolCallPiece>& pieces);
  Step follow_call(std::string_view text);
  Step pass(std::string_view text, std::string_view tag, Place next);
  State end(std::string_view text, std::vector<ToolCallPiece>& pieces);

  // Passes the tag where it stands behind blank space, which is passed in any case.
  Found take(std::string_view text, std::string_view tag);
  // Where the mark stands; nullopt: nowhere yet, and what was searched is not searched again.
  std::optional<std::size_t> find(std::string_view text, std::string_view mark);
  // Past the tag that ends the value; nullopt: not yet. What comes before value_end_ is the value's in
  // both cases.
  std::optional<std::size_t> find_value_end(std::string_view text);
  Found is_followed_by_tag(std::string_view text, std::size_t at) const;

  void begin_telling(std::vector<ToolCallPiece>& pieces);
  void end_telling(std::vector<ToolCallPiece>& pieces);
  bool is_surely_text(std::string_view value) const;
  std::string json_of(std::string_view value) const;
  std::uint8_t types() const;

  CallTags tags_;
  std::shared_ptr<const CallableTools> tools_;
  Place place_ = Place::kBegin;
  std::size_t at_ = 0;  // everything before is read
  std::size_t searched_ = 0;
  bool has_told_ = false;
  int num_calls_ = 0;  // that are whole

  // Of the call that is read.
  std::string name_;
  bool is_told_ = false;
  std::size_t num_keys_ = 0;
  std::string key_, said_;     // of the argument
  std::size_t value_end_ = 0;  // what comes before is of its value
  std::size_t value_told_ = 0;
  bool is_text_begun_ = false;  // in what was told
};

}  // namespace octavo
