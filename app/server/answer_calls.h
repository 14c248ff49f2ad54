// The calls of functions in an answer (tool_calls.h), read as its events come: control tokens that begin or
// end a call are put back into its text, and each part of it is read on its own.
//
// Thread: values; one thread at a time.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/api/event.h"
#include "engine/chat_template/tool_arguments.h"
#include "engine/chat_template/tool_calls.h"
#include "engine/tokenizer/detokenizer.h"
#include "engine/tokenizer/tokenizer.h"

namespace octavo::app {

// How to find calls in the answers of a request.
struct CallReading {
  ToolCallFormat format = ToolCallFormat::kHermes;
  std::shared_ptr<const CallableTools> tools = {};
  bool only_first = false;  // any other is left out
  CallsAreTold told = CallsAreTold::kWhole;
};

// The text of an output with the marks of calls that are control tokens, which the engine leaves out. A mark
// stands behind as many bytes as the tokens before it decode to; it waits while a stop string holds them
// back.
class TextWithCallMarks {
 public:
  // The tokenizer outlives this.
  TextWithCallMarks(ToolCallFormat format, const tokenizer::Tokenizer* tokenizer);

  // What the event adds to the text.
  std::string add(const TokensGenerated& event);

 private:
  bool is_mark(TokenId id) const;

  ToolCallFormat format_;
  const tokenizer::Tokenizer* tokenizer_;
  tokenizer::Detokenizer detokenizer_;
  std::size_t num_decoded_ = 0, num_given_ = 0;            // bytes without marks
  std::deque<std::pair<std::size_t, std::string>> marks_;  // that are not given yet, with their places
};

// Goes through the parts of an answer that are no thinking, one after the other.
class AnswerCalls {
 public:
  explicit AnswerCalls(CallReading reading);

  // A part begins at `begin` of the answer's text; the one before is ended.
  std::vector<ToolCallPiece> begin_part(std::string_view answer, std::size_t begin);
  std::vector<ToolCallPiece> add(std::string_view text);
  std::vector<ToolCallPiece> end_part();

 private:
  std::vector<ToolCallPiece> told(std::vector<ToolCallPiece> pieces);

  CallReading reading_;
  ToolCallReader reader_;
  std::size_t num_calls_ = 0;
};

// The id of a call: the prefix ("call_") and 24 digits of base 16, of which most are the call of HTTP's own.
//   choice, index  the answer that it is in, and its place among the calls of that
std::string call_id(std::string_view prefix, std::string_view hex, std::size_t choice, std::size_t index);

}  // namespace octavo::app
