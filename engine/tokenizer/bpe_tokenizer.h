// Byte-level BPE: GPT-2's tokenizer and its descendants (tokenizer.ggml.model "gpt2"). Text is cut by a split
// pattern, each piece becomes one token for each byte, and neighbours are merged by rank. Ids equal those of
// Hugging Face's tokenizers for the same vocabulary; normalisation (NFC in some Qwen models) is not applied,
// as in llama.cpp.
//
// Where files and texts leave room for doubt:
//   * Two tokens with the same text: the higher id is the one that text becomes; both decode.
//   * A byte without a token of its own (SmolLM lacks 21, all of them control characters or not found in
//   UTF-8) leaves no
//     token, as in the model's own tokenizer. unknown_token_id is checked and never produced.
//   * Bytes that are no valid UTF-8 are cut as U+FFFD would be and become the tokens of the bytes themselves.
//   * A normal token with a character that spells no byte stands for its own UTF-8 bytes, and no text becomes
//   it.
//   * add_space_prefix: a stretch between special tokens that does not start with a space gets one.
//   * The whole piece is taken as one token if it is one, before any merging, for "llama-bpe" (ignore_merges
//   there).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tokenizer/chat_template.h"
#include "engine/tokenizer/merge_table.h"
#include "engine/tokenizer/special_tokens.h"
#include "engine/tokenizer/split_pattern.h"
#include "engine/tokenizer/tokenizer.h"

namespace octavo::tokenizer {

class BpeTokenizer final : public Tokenizer {
 public:
  static Result<std::unique_ptr<Tokenizer>> create(Vocabulary vocabulary);

  // Longer prompts are refused; merging needs about 30 bytes of memory for each byte of the longest piece.
  static constexpr std::size_t kMaxTextBytes = std::size_t{256} << 20;

  std::int32_t vocabulary_size() const override { return static_cast<std::int32_t>(kinds_.size()); }
  std::optional<TokenId> bos_token_id() const override { return bos_token_id_; }
  bool is_end_of_sequence(TokenId id) const override;
  bool has_chat_template() const override { return chat_template_.has_value(); }
  Result<std::vector<TokenId>> encode(std::string_view text, bool parse_special, bool add_bos) const override;
  Result<std::vector<TokenId>> encode_spans(std::span<const PromptSpan> spans) const override;
  Result<std::vector<PromptSpan>> apply_chat_template(std::span<const ChatMessage> messages,
                                                      std::int64_t today) const override;
  Result<std::vector<TokenId>> encode_chat(std::span<const ChatMessage> messages,
                                           std::int64_t today) const override;
  std::string_view token_bytes(TokenId id) const override;
  bool is_special(TokenId id) const override;
  bool is_control(TokenId id) const override {
    return kinds_[static_cast<std::size_t>(id)] == TokenKind::kControl;
  }
  std::string decode(std::span<const TokenId> ids, bool skip_special) const override;

 private:
  BpeTokenizer(const Vocabulary& vocabulary, SplitPattern pattern, MergeTable merges, SpecialTokens specials);
  void store_tokens(const Vocabulary& vocabulary);
  void index_token(TokenId id);

  Result<std::vector<TokenId>> encode_prompt(std::span<const PromptSpan> spans,
                                             std::span<const ChatMessage> messages) const;
  // Everything between the settled stretches is cut and merged.
  void encode_around(std::string_view text, std::span<const SettledTokens> settled,
                     std::vector<TokenId>& out) const;
  void encode_stretch(std::string_view text, class PieceMerger& merger, std::vector<TokenId>& out) const;
  void encode_piece(std::string_view piece, class PieceMerger& merger, std::vector<TokenId>& out) const;
  bool stands_for(const ChatMessage& message, std::string_view content) const;

  // Set once.
  SplitPattern pattern_;
  MergeTable merges_;
  SpecialTokens specials_;
  std::vector<TokenKind> kinds_;             // index = id
  std::string bytes_;                        // of all tokens, one after another
  std::vector<std::size_t> byte_offsets_;    // of each token in bytes_, and the end
  std::array<TokenId, 256> byte_token_ids_;  // -1: the vocabulary has none
  TokenIndex whole_words_;  // normal tokens by their bytes; empty unless the pattern is kLlama3
  std::optional<TokenId> bos_token_id_;
  std::vector<TokenId> end_token_ids_;
  bool add_bos_token_ = false;
  bool add_space_prefix_ = false;
  std::optional<Result<ChatTemplate>>
      chat_template_;  // a template that cannot be parsed fails where it is needed
  ChatTemplateConstants template_constants_;
};

}  // namespace octavo::tokenizer
