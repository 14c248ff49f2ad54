#include "app/chat/context_window.h"

#include <algorithm>

namespace octavo::app {
namespace {

// The beginning of the turn after the one that begins at `begin`, at most `last`.
std::size_t next_turn(std::span<const ContextMessage> path, std::size_t begin, std::size_t last) {
  do ++begin;
  while (begin < last && path[begin].role != Role::kUser);
  return begin;
}

}  // namespace

ContextWindow context_window(std::span<const ContextMessage> path, const ContextRoom& room) {
  const std::int64_t most = room.most_prompt_tokens();
  std::size_t begin = 0, turn = 0;  // the newest turn
  std::int64_t sum = room.fixed;
  const auto leave_until = [&](std::int64_t enough) {
    while (begin < turn && sum > enough) {
      if (begin == 0) sum += room.summary;
      const std::size_t next = next_turn(path, begin, turn);
      for (; begin < next; ++begin) sum -= path[begin].num_tokens;
    }
  };
  for (std::size_t i = 0; i < path.size(); ++i) {
    sum += path[i].num_tokens;
    const bool is_question = path[i].role == Role::kUser;
    if (is_question) turn = i;
    // Only what ends a prompt is looked at: an answer is not sent before the next question.
    if ((is_question || i + 1 == path.size()) && sum > most)
      leave_until(room.fixed + (most - room.fixed) / 2);
  }
  return {begin, static_cast<std::int32_t>(std::min<std::int64_t>(sum, INT32_MAX)), sum <= most};
}

std::int32_t room_for_answer(std::int32_t max_tokens, std::int32_t context_len) {
  return std::max(1, std::min(max_tokens, context_len / 4));
}

}  // namespace octavo::app
