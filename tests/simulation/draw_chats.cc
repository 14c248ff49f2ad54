#include "tests/simulation/draw_chats.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "tests/simulation/expected_output.h"
#include "tests/simulation/expected_prompt.h"
#include "tests/simulation/toy_tokenizer.h"

namespace octavo::simulation {
namespace {

using Kind = ScriptedMessage::Kind;

constexpr std::size_t kMostChats = 4;

}  // namespace

ChatDrawer::ChatDrawer(std::uint64_t seed, const Script& script, std::int32_t longest_message)
    : random_(seed),
      script_(script),
      longest_message_(longest_message),
      rate_(random_.chance(0.5) ? 1.0 : 0.5) {
  // More than the intake remembers, now and then.
  const std::int32_t num_system_messages = random_.chance(0.1) ? 12 : random_.between(1, 3);
  for (std::int32_t index = 0; index < num_system_messages; ++index) {
    system_messages_.push_back({Kind::kSystem, draw_tokens(ToyTokenizer::kNumSpecial, 2 * longest_message_)});
  }
}

void ChatDrawer::draw(ScriptedRequest& asked) {
  if (!random_.chance(rate_)) return;
  Chat& chat = pick(asked.salt);
  const std::vector<ScriptedMessage> before = chat.messages;
  ask(chat, asked);
  asked.prompt.clear();
  asked.salt = chat.salt;
  if (random_.chance(0.01)) damage(asked);
  ScriptedRequest known = asked;
  known.prompt = expected_prompt(asked);
  // The seed of one that brings none is drawn by the engine, and a beam search has many answers.
  const bool is_known = !known.prompt.empty() && !asked.is_beam_search() && (asked.greedy || asked.seed);
  if (is_long(known)) {
    chats_.erase(chats_.begin() + (&chat - chats_.data()));
  } else if (is_known) {
    add_answer(chat, known);
  } else {
    chat.messages = before;
  }
}

// One that goes on, a copy of one that goes its own way from here, or a new one.
ChatDrawer::Chat& ChatDrawer::pick(std::int32_t salt) {
  const bool has_room = chats_.size() < kMostChats;
  if (chats_.empty() || (has_room && random_.chance(0.2))) return chats_.emplace_back(begin(salt));
  const auto index = static_cast<std::size_t>(random_.between(0, static_cast<int>(chats_.size()) - 1));
  if (!has_room || !random_.chance(0.2)) return chats_[index];
  return chats_.emplace_back(Chat(chats_[index]));
}

ChatDrawer::Chat ChatDrawer::begin(std::int32_t salt) {
  Chat chat{.messages = {}, .salt = salt};
  if (random_.chance(0.8)) {
    const auto last = static_cast<std::int32_t>(system_messages_.size()) - 1;
    chat.messages.push_back(system_messages_[static_cast<std::size_t>(random_.between(0, last))]);
  }
  return chat;
}

void ChatDrawer::ask(Chat& chat, ScriptedRequest& asked) {
  const bool has_answer = !chat.messages.empty() && chat.messages.back().kind != Kind::kSystem;
  if (has_answer && random_.chance(0.4)) {
    ask_again(chat, asked);
  } else {
    add_question(chat);
  }
  asked.chat = chat.messages;
}

// REQUIRES: the chat ends with an answer
void ChatDrawer::ask_again(Chat& chat, ScriptedRequest& asked) {
  std::vector<TokenId>& answer = chat.messages.back().tokens;
  switch (random_.between(0, 3)) {
    case 0:  // the same question
      chat.messages.pop_back();
      return;
    case 1:  // another question instead
      chat.messages.resize(chat.messages.size() - 2);
      return add_question(chat);
    case 2:  // the answer goes on, be it from its middle
      if (random_.chance(0.5)) answer.resize(answer.size() / 2);
      asked.continue_answer = true;
      return;
    default:
      edit_answer(chat);
      if (random_.chance(0.5)) return add_question(chat);
      asked.continue_answer = true;
  }
}

void ChatDrawer::edit_answer(Chat& chat) {
  ScriptedMessage& answer = chat.messages.back();
  answer.kind = random_.chance(0.5) ? Kind::kEditedAnswer : Kind::kStaleAnswer;
  if (!answer.tokens.empty()) answer.tokens.back() = draw_tokens(ToyTokenizer::kNumSpecial, 1).front();
}

// Into one that is refused.
void ChatDrawer::damage(ScriptedRequest& asked) {
  if (random_.chance(0.5)) {
    asked.continue_answer = asked.chat.back().kind == Kind::kUser;
  } else {
    asked.chat.push_back({Kind::kAnswer, {ToyTokenizer::kVocabularySize}});
  }
}

// Some write the text of special tokens.
void ChatDrawer::add_question(Chat& chat) {
  const TokenId first = random_.chance(0.2) ? 0 : ToyTokenizer::kNumSpecial;
  chat.messages.push_back({Kind::kUser, draw_tokens(first, longest_message_)});
}

void ChatDrawer::add_answer(Chat& chat, const ScriptedRequest& asked) {
  const RequestAlone alone = RequestAlone::of(asked, script_.options.max_model_len);
  ExpectedOutput expected(script_.model, alone, 0);
  expected.extend_to(static_cast<std::size_t>(asked.max_tokens));
  std::vector<TokenId> tokens = expected.token_ids();
  if (!tokens.empty() && ToyTokenizer().is_end_of_sequence(tokens.back())) tokens.pop_back();
  if (!asked.continue_answer) {
    chat.messages.push_back({Kind::kAnswer, std::move(tokens)});
    return;
  }
  // Be it one that was edited: with the tokens that its script has for it.
  ScriptedMessage& answer = chat.messages.back();
  answer.kind = Kind::kAnswer;
  answer.tokens.insert(answer.tokens.end(), tokens.begin(), tokens.end());
}

// So long that little else fits beside the next turn.
bool ChatDrawer::is_long(const ScriptedRequest& asked) const {
  const auto& options = script_.options;
  const std::int32_t most = std::min(options.max_model_len, options.num_blocks * options.block_size);
  return static_cast<std::int32_t>(asked.prompt.size()) + asked.max_tokens > 2 * most / 3;
}

std::vector<TokenId> ChatDrawer::draw_tokens(TokenId first, std::int32_t most) {
  std::vector<TokenId> tokens(static_cast<std::size_t>(random_.between(1, std::max(1, most))));
  for (TokenId& token : tokens) token = random_.between(first, ToyTokenizer::kVocabularySize - 1);
  return tokens;
}

}  // namespace octavo::simulation
