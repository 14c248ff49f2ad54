// Chats from a random seed: turn after turn, with forks where somebody asks again, rewrites a question or an
// answer, or lets an answer go on. What the engine will have answered is known beforehand: expected_output.h.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/ids.h"
#include "tests/simulation/random.h"
#include "tests/simulation/script.h"

namespace octavo::simulation {

class ChatDrawer {
 public:
  // The script outlives this object. Of its operations nothing is read.
  ChatDrawer(std::uint64_t seed, const Script& script, std::int32_t longest_message);

  // Makes the request the next one of some chat, now and then.
  void draw(ScriptedRequest& asked);

 private:
  struct Chat {
    std::vector<ScriptedMessage> messages;  // ends with an answer, unless it has just begun
    std::int32_t salt = 0;
  };

  Chat& pick(std::int32_t salt);
  Chat begin(std::int32_t salt);
  void ask(Chat& chat, ScriptedRequest& asked);
  void ask_again(Chat& chat, ScriptedRequest& asked);
  void edit_answer(Chat& chat);
  void damage(ScriptedRequest& asked);
  void add_question(Chat& chat);
  void add_answer(Chat& chat, const ScriptedRequest& asked);
  bool is_long(const ScriptedRequest& asked) const;
  std::vector<TokenId> draw_tokens(TokenId first, std::int32_t most);

  Random random_;
  const Script& script_;
  const std::int32_t longest_message_;
  const double rate_;  // of requests that belong to a chat
  std::vector<ScriptedMessage> system_messages_;
  std::vector<Chat> chats_;
};

}  // namespace octavo::simulation
