#include "engine/model/answer_ends.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace octavo::model {
namespace {

using tokenizer::TokenKind;
using tokenizer::Vocabulary;

// Control tokens with these names end an output as the end-of-sequence token does.
constexpr std::string_view kEndsOfTurns[] = {"<|eot_id|>", "<|eom_id|>", "<|eot|>",      "<|eom|>",
                                             "<|im_end|>", "<|end|>",    "<end_of_turn>"};

// Qwen 3.5's texts end with another token than its turns, which alone is named.
bool ends_text(const Vocabulary& vocabulary, std::string_view token) {
  return vocabulary.split_pattern == "qwen35" && token == "<|endoftext|>";
}

// An answer may be messages with headers: in channels (gpt-oss), or for a recipient (Muse). The marks between
// are part of the answer's text (answer_parts.h), though files call them control tokens, and what ends one
// message does not end all of it.
void settle_messages(Vocabulary& vocabulary, std::span<const std::string_view> all_marks,
                     std::span<const std::string_view> all_ends) {
  std::vector<TokenId> ends, marks;
  for (std::size_t id = 0; id < vocabulary.kinds.size(); ++id) {
    const std::string& token = vocabulary.tokens[id];
    if (!token.starts_with("<|")) continue;
    if (std::ranges::find(all_ends, token) != all_ends.end()) ends.push_back(static_cast<TokenId>(id));
    if (std::ranges::find(all_marks, token) != all_marks.end()) marks.push_back(static_cast<TokenId>(id));
  }
  if (marks.size() != all_marks.size() || ends.size() != all_ends.size()) return;
  std::vector<TokenId>& further = vocabulary.further_eos_token_ids;
  for (const TokenId mark : marks) {
    vocabulary.kinds[static_cast<std::size_t>(mark)] = TokenKind::kUserDefined;
    std::erase(further, mark);
  }
  for (const TokenId end : ends) {
    if (end != vocabulary.eos_token_id && std::ranges::find(further, end) == further.end())
      further.push_back(end);
  }
}

}  // namespace

void add_ends_of_turns(Vocabulary& vocabulary) {
  std::vector<TokenId>& further = vocabulary.further_eos_token_ids;
  for (std::size_t id = 0; id < vocabulary.kinds.size(); ++id) {
    const auto token_id = static_cast<TokenId>(id);
    if (vocabulary.kinds[id] != TokenKind::kControl || token_id == vocabulary.eos_token_id) continue;
    const bool ends = std::find(std::begin(kEndsOfTurns), std::end(kEndsOfTurns), vocabulary.tokens[id]) !=
                          std::end(kEndsOfTurns) ||
                      ends_text(vocabulary, vocabulary.tokens[id]);
    if (ends && std::find(further.begin(), further.end(), token_id) == further.end())
      further.push_back(token_id);
  }
}

void settle_messages(Vocabulary& vocabulary) {
  constexpr std::string_view kChannelMarks[] = {"<|start|>", "<|channel|>", "<|message|>", "<|constrain|>",
                                                "<|end|>"};
  constexpr std::string_view kChannelEnds[] = {"<|return|>", "<|call|>"};
  settle_messages(vocabulary, kChannelMarks, kChannelEnds);
  constexpr std::string_view kRecipientMarks[] = {"<|start|>", "<|message|>", "<|eom|>"};
  constexpr std::string_view kRecipientEnds[] = {"<|eot|>"};
  settle_messages(vocabulary, kRecipientMarks, kRecipientEnds);
}

void settle_turns(Vocabulary& vocabulary) {
  constexpr std::string_view kMarks[] = {"<|channel>", "<channel|>"};
  constexpr std::string_view kEnds[] = {"<turn|>", "<|tool_response>", "<eos>"};
  std::vector<TokenId>& further = vocabulary.further_eos_token_ids;
  for (std::size_t id = 0; id < vocabulary.kinds.size(); ++id) {
    TokenKind& kind = vocabulary.kinds[id];
    if (kind != TokenKind::kControl && kind != TokenKind::kUserDefined) continue;
    const auto token_id = static_cast<TokenId>(id);
    if (std::ranges::find(kMarks, vocabulary.tokens[id]) != std::end(kMarks)) kind = TokenKind::kUserDefined;
    const bool ends = std::ranges::find(kEnds, vocabulary.tokens[id]) != std::end(kEnds);
    if (ends && token_id != vocabulary.eos_token_id && std::ranges::find(further, token_id) == further.end())
      further.push_back(token_id);
  }
}

}  // namespace octavo::model
