// What a chat template writes and a tokenizer reads: text that knows where it came from. A value.
#pragma once

#include <cstdint>
#include <string>

namespace octavo::tokenizer {

// Whose text it is, as far as that can be followed.
struct PromptOrigin {
  enum class Kind : std::uint8_t { kTemplate, kMessage, kCall, kTool, kOther };
  Kind kind = Kind::kTemplate;
  std::int32_t index = -1;  // of the tool or the message, of a call too
  std::int32_t call = -1;   // kCall: which of the message's
  std::int32_t offset =
      -1;  // kMessage: the byte of its content that the span begins with; -1: it was changed
  bool operator==(const PromptOrigin&) const = default;
};

// A stretch of prompt text, and whether it came from a message (input) or from the template.
struct PromptSpan {
  std::string text;
  bool is_input = false;
  std::int32_t message_index = -1;  // of an input span that is exactly one message's content, else -1
  PromptOrigin origin = {};
};

}  // namespace octavo::tokenizer
