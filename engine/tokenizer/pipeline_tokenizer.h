// Vocabularies of a tokenizer.json: text between special tokens is normalised, cut into pieces and turned
// into tokens by BPE or by the unigram model, as its pipeline says (text_pipeline.h). Ids equal those of
// Hugging Face's tokenizers without what its post-processor adds, special tokens in the text included.
//
// Where ours differ, on purpose:
//   * No text of a message becomes a control token or a marker (special_tokens.h): merges and pieces that
//   would
//     form one are left out, and the file's own flag `normalized` counts for other words only.
//   * Bytes that are no valid UTF-8 are U+FFFD, one for each maximal subpart; the library takes none.
//   * Byte tokens such as <0x0A> stand for bytes that have no other token. Their own texts are not they.
//   * What a decoder strips from the start of an output stays: an output continues its prompt.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/tokenizer/merge_table.h"
#include "engine/tokenizer/pipeline_normalizer.h"
#include "engine/tokenizer/pipeline_splitter.h"
#include "engine/tokenizer/prompt_tokenizer.h"
#include "engine/tokenizer/unigram_model.h"

namespace octavo::tokenizer {

class PieceMerger;

// Merging needs about 30 bytes of memory for each byte of the longest piece.
class PipelineTokenizer final : public PromptTokenizer {
 public:
  // REQUIRES: vocabulary.pipeline
  static Result<std::unique_ptr<Tokenizer>> create(Vocabulary vocabulary);

 private:
  struct Parts {
    TokenTexts texts;
    SpecialTokens specials;          // found in template text
    SpecialTokens raw_words;         // found in every text, before normalizers
    SpecialTokens normalized_words;  // and after them
    PipelineNormalizer normalizer;
    PipelineSplitter splitter;
    MergeTable merges;
    std::optional<UnigramModel> unigram;
  };

  static Result<Parts> make_parts(const Vocabulary& vocabulary);
  PipelineTokenizer(Vocabulary vocabulary, Parts parts);
  void index_token(TokenId id);

  Result<void> encode_around(std::string_view text, std::span<const SettledTokens> settled,
                             const std::stop_token& stop, std::vector<TokenId>& out) const override;
  // 0 where characters may leave no trace: without all byte tokens, or where text is removed.
  Result<std::size_t> count_bytes_around(std::string_view text,
                                         std::span<const SettledTokens> settled) const override;

  // Calls on_text(normalized, starts_prompt) and on_word(token_id) in the order of the text.
  template <class OnText, class OnWord>
  Result<void> visit(std::string_view stretch, bool starts_prompt, OnText on_text, OnWord on_word) const;
  // Calls on_word(token_id) and on_between(text, starts_text) likewise.
  template <class OnWord, class OnBetween>
  Result<void> visit_between(const SpecialTokens& words, std::string_view text, OnWord on_word,
                             OnBetween on_between) const;
  void encode_piece(std::string_view piece, PieceMerger& merger, const std::stop_token& stop,
                    std::vector<TokenId>& out) const;
  void add_bytes(std::string_view piece, PieceMerger& merger) const;
  void add_characters(std::string_view piece, PieceMerger& merger) const;
  void encode_unigram(std::string_view piece, const std::stop_token& stop, std::vector<TokenId>& out) const;
  bool has_all_bytes(std::string_view text) const;

  // Set once.
  Parts parts_;  // without texts and specials, which the base class has
  bool makes_bytes_, byte_fallback_, fuses_unknown_, ignores_merges_;
  std::vector<std::pair<std::string, std::string>> decoded_texts_;
  TokenId unknown_token_id_;                   // -1: none
  std::array<TokenId, 256> byte_token_ids_{};  // -1: the vocabulary has none
  std::vector<std::string> tokens_;            // as the file writes them
  TokenIndex characters_;                      // of one character: views of tokens_
  // Views of tokens_ or of the tokens' bytes; empty unless a whole piece may be a token.
  TokenIndex whole_words_;
};

}  // namespace octavo::tokenizer
