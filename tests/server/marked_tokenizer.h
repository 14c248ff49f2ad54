// A vocabulary as spelling_tokenizer.h's in which some texts are control tokens, with a template to tell the
// form of calls by.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/tokenizer/tokenizer.h"
#include "tests/support/spelling_tokenizer.h"

namespace octavo::app {

class MarkedTokenizer final : public tokenizer::Tokenizer {
 public:
  explicit MarkedTokenizer(std::string chat_template, std::vector<std::string> control = {})
      : chat_template_(std::move(chat_template)), control_(std::move(control)) {}

  TokenId token(const std::string& bytes) { return spelling_.token(bytes); }

  std::int32_t vocabulary_size() const override { return spelling_.vocabulary_size(); }
  std::optional<TokenId> bos_token_id() const override { return spelling_.bos_token_id(); }
  bool is_end_of_sequence(TokenId id) const override { return spelling_.is_end_of_sequence(id); }
  bool has_chat_template() const override { return true; }
  Result<std::vector<TokenId>> encode(std::string_view text, bool parse_special, bool add_bos,
                                      const tokenizer::EncodeLimits& limits) const override {
    return spelling_.encode(text, parse_special, add_bos, limits);
  }
  Result<std::vector<TokenId>> encode_spans(std::span<const tokenizer::PromptSpan> spans) const override {
    return spelling_.encode_spans(spans);
  }
  Result<std::vector<tokenizer::PromptSpan>> apply_chat_template(
      std::span<const ChatMessage> messages, const TemplateInputs& inputs) const override {
    return spelling_.apply_chat_template(messages, inputs);
  }
  Result<std::vector<TokenId>> encode_chat(std::span<const ChatMessage> messages,
                                           const TemplateInputs& inputs,
                                           const tokenizer::EncodeLimits& limits) const override {
    return spelling_.encode_chat(messages, inputs, limits);
  }
  std::string_view token_bytes(TokenId id) const override { return spelling_.token_bytes(id); }
  bool is_special(TokenId id) const override {
    return spelling_.is_special(id) || std::ranges::find(control_, token_bytes(id)) != control_.end();
  }
  std::string decode(std::span<const TokenId> ids, bool skip_special) const override {
    std::string text;
    for (const TokenId id : ids) {
      if (!skip_special || !is_control(id)) text += token_bytes(id);
    }
    return text;
  }
  std::string_view chat_template_source() const override { return chat_template_; }
  bool knows_tools() const override { return true; }

 private:
  testing::SpellingTokenizer spelling_;
  std::string chat_template_;
  std::vector<std::string> control_;
};

}  // namespace octavo::app
