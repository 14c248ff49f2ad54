// What every kind of vocabulary has in common: prompts out of raw text, spans and messages, special tokens
// in template text, answers whose ids are kept, and decoding. What stands between special tokens is left to
// the vocabulary itself: byte-level BPE (bpe_tokenizer.h) or sentencepiece (sentencepiece_tokenizer.h).
//
// Which token is special is decided here, once for all kinds (`settle_kinds`): what begins or ends a
// sequence is a control token whatever the file calls it, so that no text becomes one.
//
// Immutable after construction; any thread.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/chat_template/chat_template.h"
#include "engine/tokenizer/added_token_rules.h"
#include "engine/tokenizer/special_tokens.h"
#include "engine/tokenizer/token_texts.h"
#include "engine/tokenizer/tokenizer.h"

namespace octavo::tokenizer {

// One kind for each token; those that begin or end a sequence become control tokens.
// REQUIRES: validate(vocabulary) succeeded
void settle_kinds(Vocabulary& vocabulary);

class PromptTokenizer : public Tokenizer {
 public:
  // Longer prompts are refused, so that tokenising ends within seconds whatever it is given: the worst texts
  // take 0.4 s for a megabyte. A context of a million tokens holds about five.
  static constexpr std::size_t kMaxTextBytes = std::size_t{32} << 20;

  std::int32_t vocabulary_size() const final { return static_cast<std::int32_t>(kinds_.size()); }
  std::optional<TokenId> bos_token_id() const final { return bos_token_id_; }
  std::optional<TokenId> eos_token_id() const final { return eos_token_id_; }
  bool is_end_of_sequence(TokenId id) const final;
  bool has_chat_template() const final { return chat_template_.has_value(); }
  std::vector<TemplateSwitch> template_switches() const final;
  Result<std::vector<TokenId>> encode(std::string_view text, bool parse_special, bool add_bos,
                                      const EncodeLimits& limits = {}) const final;
  Result<std::vector<TokenId>> encode_spans(std::span<const PromptSpan> spans) const final;
  Result<std::vector<PromptSpan>> apply_chat_template(std::span<const ChatMessage> messages,
                                                      const TemplateInputs& inputs) const final;
  Result<std::vector<TokenId>> encode_chat(std::span<const ChatMessage> messages,
                                           const TemplateInputs& inputs,
                                           const EncodeLimits& limits = {}) const final;
  std::string_view token_bytes(TokenId id) const final { return texts_.at(id); }
  bool is_special(TokenId id) const final;
  bool is_control(TokenId id) const final { return kind(id) == TokenKind::kControl; }
  std::string decode(std::span<const TokenId> ids, bool skip_special) const final;
  std::string_view chat_template_source() const final;
  bool knows_tools() const final;

 protected:
  // `texts`: the bytes that each token stands for. `specials`: what is found in template text.
  PromptTokenizer(const Vocabulary& vocabulary, TokenTexts texts, SpecialTokens specials);

  TokenKind kind(TokenId id) const { return kinds_[static_cast<std::size_t>(id)]; }
  const AddedTokenRules& added_token_rules() const { return added_token_rules_; }

 private:
  // Appends the ids of `text`: those of the settled stretches, ascending, and of what lies around them.
  // Looks at `stop` often enough to end within milliseconds.
  virtual Result<void> encode_around(std::string_view text, std::span<const SettledTokens> settled,
                                     const std::stop_token& stop, std::vector<TokenId>& out) const = 0;
  // Bytes that the tokens of what lies around the settled stretches stand for together, by token_bytes(): no
  // more than encode_around() would make of it, and fewer only where bytes leave no trace in the tokens.
  virtual Result<std::size_t> count_bytes_around(std::string_view text,
                                                 std::span<const SettledTokens> settled) const = 0;

  Result<std::vector<TokenId>> encode_prompt(std::span<const PromptSpan> spans,
                                             std::span<const ChatMessage> messages,
                                             const EncodeLimits& limits) const;
  Result<void> encode_text(std::string_view text, std::span<const SettledTokens> settled,
                           const EncodeLimits& limits, std::vector<TokenId>& out) const;
  Result<void> check_can_fit(std::string_view text, std::span<const SettledTokens> settled,
                             std::size_t max_tokens) const;
  Result<void> check_can_be_rendered(std::span<const ChatMessage> messages, const TemplateInputs& inputs,
                                     std::size_t max_tokens) const;
  std::size_t most_bytes_of(std::size_t num_tokens) const;
  bool stands_for(const ChatMessage& message, std::string_view content) const;

  // Set once.
  std::vector<TokenKind> kinds_;  // index = id
  TokenTexts texts_;
  std::size_t longest_bytes_ = 1;  // of a token that text can become
  SpecialTokens specials_;
  AddedTokenRules added_token_rules_;
  std::optional<TokenId> bos_token_id_, eos_token_id_;
  std::vector<TokenId> end_token_ids_;
  bool add_bos_token_ = false;
  // A template that cannot be parsed fails where it is needed.
  std::optional<Result<ChatTemplate>> chat_template_;
  ChatTemplateConstants template_constants_;
};

}  // namespace octavo::tokenizer
