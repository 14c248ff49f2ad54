// What a chat template writes and a tokenizer reads: text that knows where it came from. A value.
#pragma once

#include <cstdint>
#include <string>

namespace octavo::tokenizer {

// A stretch of prompt text, and whether it came from a message (input) or from the template.
struct PromptSpan {
  std::string text;
  bool is_input = false;
  std::int32_t message_index = -1;  // of an input span that is exactly one message's content, else -1
};

}  // namespace octavo::tokenizer
