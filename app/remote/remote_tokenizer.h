// Tokens of a model that runs elsewhere: numbers for the pieces of text in which its answers come, so that
// whoever knows answers as tokens (comparisons, colours, log-probabilities) reads these, too. Numbers are
// given out as pieces come and mean nothing to any other model, nor after the next start.
//
// What a text would be in tokens is not known: encoding is refused, and nobody counts.
// Immutable but for what `token` adds; any thread may call it.
#pragma once

#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "engine/tokenizer/tokenizer.h"

namespace octavo::app {

class RemoteTokenizer final : public tokenizer::Tokenizer {
 public:
  // The number of this piece, the same for the same bytes.
  TokenId token(std::string_view bytes);

  std::int32_t vocabulary_size() const override;
  std::optional<TokenId> bos_token_id() const override { return std::nullopt; }
  bool is_end_of_sequence(TokenId) const override { return false; }
  bool has_chat_template() const override { return true; }  // there
  Result<std::vector<TokenId>> encode(std::string_view text, bool parse_special, bool add_bos,
                                      const tokenizer::EncodeLimits& limits = {}) const override;
  Result<std::vector<TokenId>> encode_spans(std::span<const tokenizer::PromptSpan> spans) const override;
  Result<std::vector<tokenizer::PromptSpan>> apply_chat_template(std::span<const ChatMessage> messages,
                                                                 const TemplateInputs& inputs) const override;
  Result<std::vector<TokenId>> encode_chat(std::span<const ChatMessage> messages,
                                           const TemplateInputs& inputs,
                                           const tokenizer::EncodeLimits& limits = {}) const override;
  // Nothing for a number that was not given out. The bytes stay where they are.
  std::string_view token_bytes(TokenId id) const override;
  bool is_special(TokenId) const override { return false; }
  std::string decode(std::span<const TokenId> ids, bool skip_special) const override;

 private:
  mutable std::mutex mutex_;
  std::deque<std::string> pieces_;  // guarded by mutex_, as the next; never moved
  std::unordered_map<std::string_view, TokenId> tokens_;
};

}  // namespace octavo::app
