// How long the model of an answer under way thinks: from the token that brought the thinking to the one that
// ended it.
//
// A value type. Time is given with what comes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "app/chat/chat.h"
#include "engine/chat_template/answer_parts.h"

namespace octavo::app {

class ThinkingTime {
 public:
  explicit ThinkingTime(AnswerBeginning beginning) : reader_(beginning) {}

  // The answer as it is now, with more at its end than at the last call. Brings the durations up to date:
  // thinking that goes on in an answer that is continued has the time of both. True when some has ended.
  bool take(std::string_view text, std::int64_t now_us, AnswerThinking& thinking);

  // Of the text as it was then.
  const std::vector<AnswerPart>& parts() const { return parts_; }

 private:
  struct Open {
    std::size_t index = 0;  // among the pieces of thinking
    std::int64_t since_us = 0;
    std::int64_t before_us = 0;  // in the answer that is continued
  };

  AnswerReader reader_;
  std::vector<AnswerPart> parts_;
  std::optional<Open> open_;
};

inline AnswerBeginning beginning_of(const Message& message) {
  return message.thinking.begun_by_prompt ? AnswerBeginning::kThinking : AnswerBeginning::kUnknown;
}

}  // namespace octavo::app
