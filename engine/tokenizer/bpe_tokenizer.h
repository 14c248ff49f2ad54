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
#include <string_view>
#include <vector>

#include "engine/tokenizer/merging_tokenizer.h"
#include "engine/tokenizer/split_pattern.h"

namespace octavo::tokenizer {

// Merging needs about 30 bytes of memory for each byte of the longest piece.
class BpeTokenizer final : public MergingTokenizer {
 public:
  static Result<std::unique_ptr<Tokenizer>> create(Vocabulary vocabulary);

 private:
  BpeTokenizer(const Vocabulary& vocabulary, MergingParts parts, const SplitRule& split);
  // Tokens that text can become, by the bytes that they stand for.
  void index_tokens(const Vocabulary& vocabulary);

  void encode_between_words(std::string_view text, PieceMerger& merger,
                            std::vector<TokenId>& out) const override;
  std::size_t count_bytes(std::string_view stretch) const override;
  void encode_piece(std::string_view piece, PieceMerger& merger, std::vector<TokenId>& out) const;

  // Set once.
  SplitRule split_;
  std::array<TokenId, 256> byte_token_ids_;  // -1: the vocabulary has none
  TokenIndex whole_words_;  // views of this object's texts; empty unless the split rule has whole words
};

}  // namespace octavo::tokenizer
