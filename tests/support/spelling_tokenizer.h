// A vocabulary that grows as tests speak: every string is one token, numbered when it is first seen.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tokenizer/tokenizer.h"

namespace octavo::testing {

// Token 2 ends a text.
class SpellingTokenizer final : public tokenizer::Tokenizer {
 public:
  static constexpr TokenId kEnd = 2;

  TokenId token(const std::string& bytes) {
    const auto [found, added] = ids_.try_emplace(bytes, static_cast<TokenId>(spellings_.size()));
    if (added) spellings_.push_back(bytes);
    return found->second;
  }

  std::int32_t vocabulary_size() const override { return 1 << 20; }
  std::optional<TokenId> bos_token_id() const override { return 1; }
  bool is_end_of_sequence(TokenId id) const override { return id == kEnd; }
  bool has_chat_template() const override { return true; }
  // Four bytes are one token, whichever they are.
  Result<std::vector<TokenId>> encode(std::string_view text, bool, bool,
                                      const tokenizer::EncodeLimits&) const override {
    return std::vector<TokenId>(text.size() / 4 + 1, 0);
  }
  Result<std::vector<TokenId>> encode_spans(std::span<const tokenizer::PromptSpan>) const override {
    return std::vector<TokenId>{0};
  }
  Result<std::vector<tokenizer::PromptSpan>> apply_chat_template(std::span<const ChatMessage> messages,
                                                                 const TemplateInputs&) const override {
    std::vector<tokenizer::PromptSpan> spans;
    for (const ChatMessage& message : messages) spans.push_back({message.content, true, -1});
    return spans;
  }
  // A token for each message, and one for all tools.
  Result<std::vector<TokenId>> encode_chat(std::span<const ChatMessage> messages,
                                           const TemplateInputs& inputs,
                                           const tokenizer::EncodeLimits&) const override {
    return std::vector<TokenId>(messages.size() + (inputs.tools.empty() ? 0 : 1), 0);
  }
  std::string_view token_bytes(TokenId id) const override {
    const auto index = static_cast<std::size_t>(id);
    return index < spellings_.size() ? std::string_view(spellings_[index]) : std::string_view();
  }
  bool is_special(TokenId id) const override { return id == kEnd; }
  std::string decode(std::span<const TokenId> ids, bool) const override {
    std::string text;
    for (const TokenId id : ids) text += token_bytes(id);
    return text;
  }

 private:
  std::deque<std::string> spellings_ = {"<unk>", "<s>", "</s>"};
  std::map<std::string, TokenId> ids_;
};

}  // namespace octavo::testing
