// Which answers took long: what a person is told of who looked elsewhere meanwhile.
//
// Plain arithmetic on times and states that are given. UI thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ui/chat_state.h"

namespace octavo::app {

inline constexpr std::int64_t kLongAnswerUs = 10'000'000;

struct LongAnswer {
  ChatId chat_id;
  std::string title;    // of the chat
  bool failed = false;  // it ended with an error
};

class AnswerWatch {
 public:
  // After everything that may have changed what a chat does.
  void update(const std::vector<ui::ChatState>& chats, std::int64_t now_us);
  // Since the last call. What was deleted meanwhile is none.
  std::vector<LongAnswer> take_ended() { return std::exchange(ended_, {}); }

 private:
  std::map<ChatId, std::int64_t> begun_us_;  // of chats that are busy
  std::vector<LongAnswer> ended_;
};

}  // namespace octavo::app
