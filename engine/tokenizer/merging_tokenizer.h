// What the kinds of BPE have in common (bpe_tokenizer.h, character_bpe_tokenizer.h): user-defined tokens that
// are no markers are words, found in every stretch of text before anything is merged, and what stands between
// them is merged by a list. How a text is cut and what it begins as is left to the kind.
//
// Immutable after construction; any thread.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "engine/tokenizer/merge_table.h"
#include "engine/tokenizer/prompt_tokenizer.h"

namespace octavo::tokenizer {

class PieceMerger;

class MergingTokenizer : public PromptTokenizer {
 protected:
  struct MergingParts {
    MergeTable merges;
    SpecialTokens specials, words;
  };
  // REQUIRES: validate(vocabulary), settle_kinds(vocabulary)
  static Result<MergingParts> find_parts(const Vocabulary& vocabulary);

  MergingTokenizer(const Vocabulary& vocabulary, TokenTexts texts, MergingParts parts);

 private:
  Result<void> encode_around(std::string_view text, std::span<const SettledTokens> settled,
                             const std::stop_token& stop, std::vector<TokenId>& out) const final;
  Result<std::size_t> count_bytes_around(std::string_view text,
                                         std::span<const SettledTokens> settled) const final;
  void encode_stretch(std::string_view text, PieceMerger& merger, std::vector<TokenId>& out) const;

  // Appends the ids of a text without words; ends early once the merger is stopped.
  virtual void encode_between_words(std::string_view text, PieceMerger& merger,
                                    std::vector<TokenId>& out) const = 0;
  // As count_bytes_around(), of one stretch.
  virtual std::size_t count_bytes(std::string_view stretch) const = 0;

  // Set once.
  SpecialTokens words_;
  MergeTable merges_;
  bool add_space_prefix_;
};

}  // namespace octavo::tokenizer
