// Which messages of a chat its next request holds, when all together would be too long.
//
// The turns are walked from the oldest to the newest. Whenever a prompt would leave too little room for its
// answer, whole turns leave at the front until about half of what may be used is in use. So
//   - the same path always has the same cuts, and nothing about them is stored: branches need no care,
//   - between two cuts a prompt begins with the one before it, and finds that one's blocks in the prefix
//   cache,
//   - after a cut only what stayed is computed again.
// (Leaving one turn at a time would compute everything again in every turn.)
//
// A pure function; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/api/request.h"

namespace octavo::app {

// A message with the tokens that it adds to a prompt, what the template writes around it among them.
struct ContextMessage {
  Role role = Role::kUser;
  std::int32_t num_tokens = 0;
};

// In tokens.
struct ContextRoom {
  std::int32_t context_len = 0;  // prompt and answer together
  std::int32_t answer = 0;       // kept free for the answer
  std::int32_t fixed = 0;        // that every prompt has beside its messages: the system prompt
  std::int32_t summary = 0;      // that a prompt has further once messages have left

  std::int32_t most_prompt_tokens() const { return context_len - answer; }
};

struct ContextWindow {
  std::size_t begin = 0;        // the first message that is sent; what stands before it has left
  std::int32_t num_tokens = 0;  // of the whole prompt
  bool fits = true;             // false: not even the newest turn does alone
};

// The newest turn, from the last message of the user on, always stays whole.
ContextWindow context_window(std::span<const ContextMessage> path, const ContextRoom& room);

// What is kept free for an answer of at most `max_tokens`: no more than a quarter of the context.
std::int32_t room_for_answer(std::int32_t max_tokens, std::int32_t context_len);

}  // namespace octavo::app
