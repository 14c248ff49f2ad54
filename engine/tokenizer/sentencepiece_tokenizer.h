// Vocabularies of sentencepiece's byte-pair encoding (tokenizer.ggml.model "llama": Llama 1 and 2, Mistral,
// Gemma, Phi-3, TinyLlama, Vicuna). Text is normalised and then merged character by character, the piece
// with the highest score first, by the sentencepiece library; ids equal those of the Python package
// sentencepiece for the same vocabulary.
//
// Where files and texts leave room for doubt:
//   * No text becomes a control token, the unknown token's own text included. User-defined pieces are found
//     in every text, as sentencepiece finds them (runs of spaces or line breaks, words), but for markers
//     such as <start_of_turn> (special_tokens.h), which only template text and `parse_special` can write.
//   * The space that add_space_prefix puts in front of a text stands at its start and after each control
//     token and marker, as in llama.cpp and in the tokenizers that Hugging Face publishes for these models;
//     not after other user-defined pieces nor after an answer whose ids are kept.
//   * In Phi-3's vocabularies white space after a control token or marker is no text, as in the published
//     tokenizer, but after <s>, <unk> and <|endoftext|>.
//   * Characters without a piece become byte tokens, or, in vocabularies without those, one unknown token
//     for each run of them.
//   * A file that says so has its spaces removed or its normalisation rules applied (charsmap.h); rules
//     that lead out of their own table count for nothing.
//   * token_bytes: U+2581 is a space. An output continues its prompt, so the space that begins its first
//     token is part of its text, where the Python package, which knows no prompt, leaves it out. The
//     unknown token is a control token with its name (<unk>) for text, and so is left out of an output's
//     text.
//   * add_eos_token is not followed: a prompt is there to be continued.
//   * Pieces with limits: sentencepiece_pieces.h.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "engine/tokenizer/prompt_tokenizer.h"
#include "engine/tokenizer/sentencepiece_model.h"
#include "engine/tokenizer/sentencepiece_normalizer.h"
#include "engine/tokenizer/sentencepiece_pieces.h"

namespace octavo::tokenizer {

class SentencePieceTokenizer final : public PromptTokenizer {
 public:
  static Result<std::unique_ptr<Tokenizer>> create(Vocabulary vocabulary);

 private:
  struct Parts {
    TokenTexts texts;
    SpecialTokens markers;
    SentencePieceNormalizer normalizer;
    std::unique_ptr<SentencePieceModel> model;
    std::vector<TokenId> byte_tokens;
    TokenId unknown_token_id;  // -1: none, and none is needed
    bool spaces_start_pieces;
  };

  SentencePieceTokenizer(const Vocabulary& vocabulary, Parts parts);

  Result<void> encode_around(std::string_view text, std::span<const SettledTokens> settled,
                             const std::stop_token& stop, std::vector<TokenId>& out) const override;
  // 0 in vocabularies without byte tokens, where a run of characters may become one unknown token.
  Result<std::size_t> count_bytes_around(std::string_view text,
                                         std::span<const SettledTokens> settled) const override;
  // Calls on_text(stretch, add_prefix) and on_settled(token_ids) in the order of the text.
  template <class OnText, class OnSettled>
  Result<void> visit(std::string_view text, std::span<const SettledTokens> settled, OnText on_text,
                     OnSettled on_settled) const;
  Result<void> encode_stretch(std::string_view text, bool add_prefix, const std::stop_token& stop,
                              std::vector<TokenId>& out) const;
  bool is_control_or_marker(std::span<const TokenId> settled) const;
  bool eats_spaces(TokenId id) const;
  // Bytes of the beginning of `normalized` that are encoded on their own.
  std::size_t word_length(std::string_view normalized) const;

  // Set once.
  SentencePieceNormalizer normalizer_;
  std::unique_ptr<SentencePieceModel> model_;
  std::vector<TokenId> byte_tokens_;  // of the 256 bytes, or empty
  TokenId unknown_token_id_;
  bool add_space_prefix_;
  bool control_tokens_eat_spaces_;
  bool spaces_start_pieces_;  // no piece has a space after something else: no merge reaches across the start
                              // of a word
};

}  // namespace octavo::tokenizer
