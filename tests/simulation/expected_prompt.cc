#include "tests/simulation/expected_prompt.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "tests/simulation/toy_tokenizer.h"

namespace octavo::simulation {
namespace {

constexpr TokenId kBegin = ToyTokenizer::kSpecial, kEnd = ToyTokenizer::kFurtherEos;
constexpr TokenId kSystem = 4, kUser = 5, kAssistant = 6;  // "a", "b", "c"

using Kind = ScriptedMessage::Kind;

TokenId role_letter(const ScriptedMessage& message) {
  if (message.kind == Kind::kSystem) return kSystem;
  return message.kind == Kind::kUser ? kUser : kAssistant;
}

bool is_answer(const ScriptedMessage& message) { return role_letter(message) == kAssistant; }

bool is_text(TokenId token) { return token >= ToyTokenizer::kNumSpecial; }

// The tokens of one byte are 4 to 8 and 14 to 22; what is none of them is an unknown byte.
TokenId letter_of(char byte) {
  constexpr std::string_view kFirst = "abcde", kSecond = " \xc3\xa9\xf0\x9f\x98\x80\xff\xe2";
  if (const std::size_t at = kFirst.find(byte); at != kFirst.npos) return 4 + static_cast<TokenId>(at);
  if (const std::size_t at = kSecond.find(byte); at != kSecond.npos) return 14 + static_cast<TokenId>(at);
  return 21;
}

// An answer's own tokens, as long as all are text; everything else byte by byte.
std::vector<TokenId> tokens_of_content(const ScriptedMessage& message) {
  if (message.kind == Kind::kAnswer && std::ranges::all_of(message.tokens, is_text)) return message.tokens;
  std::vector<TokenId> tokens;
  for (const char byte : content_of(message)) tokens.push_back(letter_of(byte));
  return tokens;
}

void append(std::vector<TokenId>& tokens, const std::vector<TokenId>& more) {
  tokens.insert(tokens.end(), more.begin(), more.end());
}

bool has_unknown_tokens(const ScriptedMessage& message) {
  return is_answer(message) && message.kind != Kind::kEditedAnswer &&
         std::ranges::any_of(message.tokens,
                             [](TokenId token) { return token >= ToyTokenizer::kVocabularySize; });
}

}  // namespace

std::vector<TokenId> expected_prompt(const ScriptedRequest& asked) {
  const std::vector<ScriptedMessage>& chat = asked.chat;
  if (chat.empty()) return asked.prompt;
  const bool can_continue = chat.size() > 1 && is_answer(chat.back());
  const bool is_refused = asked.continue_answer && !can_continue;
  if (is_refused || std::ranges::any_of(chat, has_unknown_tokens)) return {};
  std::vector<TokenId> tokens = {ToyTokenizer::kBos};
  for (std::size_t index = 0; index < chat.size(); ++index) {
    append(tokens, {kBegin, role_letter(chat[index])});
    append(tokens, tokens_of_content(chat[index]));
    if (asked.continue_answer && index + 1 == chat.size()) return tokens;
    tokens.push_back(kEnd);
  }
  append(tokens, {kBegin, kAssistant});
  return tokens;
}

// The beginning of the next message is the same whoever writes it, but for the role; of a system message
// alone that is an answer.
std::int32_t expected_system_tokens(const ScriptedRequest& asked) {
  const std::vector<ScriptedMessage>& chat = asked.chat;
  if (chat.size() < 2 || chat.front().kind != Kind::kSystem) return 0;
  std::vector<TokenId> tokens = {ToyTokenizer::kBos, kBegin, kSystem};
  append(tokens, tokens_of_content(chat.front()));
  append(tokens, {kEnd, kBegin});
  return static_cast<std::int32_t>(tokens.size()) + (is_answer(chat[1]) ? 1 : 0);
}

RetentionClass expected_retention(const ScriptedRequest& asked) {
  if (asked.retention) return *asked.retention;
  return asked.chat.empty() ? RetentionClass::kScratch : RetentionClass::kChat;
}

Script with_expected_prompts(Script script) {
  for (Operation& operation : script.operations) operation.asked.prompt = expected_prompt(operation.asked);
  return script;
}

}  // namespace octavo::simulation
