// BPE over characters (tokenizer.ggml.model "gemma4"): as in sentencepiece's vocabularies a space is spelled
// U+2581 and a character without a token becomes the tokens of its bytes, but what merges is a list, best
// first, as in byte-level BPE. Nothing cuts the text into words. Ids equal those of Hugging Face's tokenizers
// for the same vocabulary.
//
// Where files and texts leave room for doubt:
//   * Texts are cut where line breaks begin and end, as in llama.cpp: no merge of the published vocabulary
//     reaches across, and a text of megabytes is not one piece. A run of line breaks that is a token is that
//     token.
//   * U+2581 in a text is a space: both are spelled alike.
//   * Bytes that are no valid UTF-8 become the tokens of the bytes themselves.
//   * User-defined tokens that are no markers (special_tokens.h) are found in every text before anything is
//     merged, as they are written in the file.
//   * A merge that would make a special token is left out: no text becomes one.
//   * Without byte tokens a missing character becomes the unknown token.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "engine/tokenizer/merging_tokenizer.h"

namespace octavo::tokenizer {

class CharacterBpeTokenizer final : public MergingTokenizer {
 public:
  static Result<std::unique_ptr<Tokenizer>> create(Vocabulary vocabulary);

 private:
  CharacterBpeTokenizer(const Vocabulary& vocabulary, TokenTexts texts, MergingParts parts,
                        std::vector<TokenId> byte_tokens);
  void index_tokens();

  void encode_between_words(std::string_view text, PieceMerger& merger,
                            std::vector<TokenId>& out) const override;
  // 0 in vocabularies without byte tokens, where several characters may become one unknown token.
  std::size_t count_bytes(std::string_view stretch) const override;
  void encode_piece(std::string_view piece, PieceMerger& merger, std::vector<TokenId>& out) const;
  void add_bytes(std::string_view character, PieceMerger& merger) const;

  // Set once.
  std::vector<TokenId> byte_tokens_;  // of the 256 bytes, or empty
  TokenId unknown_token_id_;          // -1: none, and none is needed
  // Single characters and runs of line breaks, by what they stand for: views of this object's texts.
  TokenIndex pieces_;
};

}  // namespace octavo::tokenizer
