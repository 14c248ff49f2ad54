// Byte-level BPE: GPT-2's tokenizer and its descendants (tokenizer.ggml.model "gpt2"). Text is cut by a
// split pattern, each piece becomes one token for each byte, and neighbours are merged by rank. Ids equal
// those of Hugging Face's tokenizers for the same vocabulary; normalisation (NFC in some Qwen models) is
// not applied, as in llama.cpp.
//
// Where files and texts leave room for doubt:
//   * Two tokens with the same text: the higher id is the one that text becomes; both decode.
//   * A byte without a token of its own (SmolLM lacks 21, all of them control characters or not found in
//     UTF-8) leaves no token, as in the model's own tokenizer. unknown_token_id is checked and never
//     produced.
//   * Bytes that are no valid UTF-8 are cut as U+FFFD would be and become the tokens of the bytes
//     themselves.
//   * A normal token with a character that spells no byte stands for its own UTF-8 bytes, and no text
//     becomes it.
//   * User-defined tokens that are no markers (special_tokens.h), such as the runs of spaces of MPT and
//     OLMo, are found in every text before it is cut, as in tokenizers.
//   * A merge that would make a special token is left out: no text becomes one.
//   * add_space_prefix: a stretch between special tokens that does not start with a space gets one.
//   * The whole piece is taken as one token if it is one, before any merging, where the split rule says so
//     (ignore_merges in the published files).
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "engine/tokenizer/merge_table.h"
#include "engine/tokenizer/prompt_tokenizer.h"
#include "engine/tokenizer/split_pattern.h"

namespace octavo::tokenizer {

class PieceMerger;

// Merging needs about 30 bytes of memory for each byte of the longest piece.
class BpeTokenizer final : public PromptTokenizer {
 public:
  static Result<std::unique_ptr<Tokenizer>> create(Vocabulary vocabulary);

 private:
  struct Parts {
    TokenTexts texts;
    SpecialTokens specials, words;
    SplitRule split;
    MergeTable merges;
  };

  BpeTokenizer(const Vocabulary& vocabulary, Parts parts);
  // Tokens that text can become, by the bytes that they stand for.
  void index_tokens(const Vocabulary& vocabulary);

  Result<void> encode_around(std::string_view text, std::span<const SettledTokens> settled,
                             const std::stop_token& stop, std::vector<TokenId>& out) const override;
  Result<std::size_t> count_bytes_around(std::string_view text,
                                         std::span<const SettledTokens> settled) const override;
  void encode_stretch(std::string_view text, PieceMerger& merger, std::vector<TokenId>& out) const;
  void encode_between_words(std::string_view text, PieceMerger& merger, std::vector<TokenId>& out) const;
  void encode_piece(std::string_view piece, PieceMerger& merger, std::vector<TokenId>& out) const;

  // Set once.
  SpecialTokens words_;  // user-defined tokens that are no markers
  SplitRule split_;
  MergeTable merges_;
  std::array<TokenId, 256> byte_token_ids_;  // -1: the vocabulary has none
  TokenIndex whole_words_;  // views of this object's texts; empty unless the split rule has whole words
  bool add_space_prefix_;
};

}  // namespace octavo::tokenizer
