// A vocabulary out of tokens that come in any order, from several files: each at its id, once.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/base/result.h"
#include "engine/model/hugging_face/vocabulary_json.h"
#include "engine/tokenizer/tokenizer.h"

namespace octavo::model::vocabulary {

struct AddedToken {
  std::int64_t id = -1;
  std::string text;
  bool is_special = false;
  bool strips_left = false, strips_right = false, is_whole_word = false, is_normalized = false;
};

class VocabularyBuilder {
 public:
  // `vocabulary` may hold tokens, as a tokenizer.model gives them.
  VocabularyBuilder(tokenizer::Vocabulary vocabulary, std::optional<std::int64_t> model_size);

  // Of the model itself. Error: an id that is taken, a text that has an id, an id beyond the model's size.
  Result<void> add_tokens(std::vector<TokenEntry> tokens, const std::string& file);
  // Beside the model, or what a token of it is. One beyond the model's size is left out. Error: an id whose
  // token has another text.
  Result<void> add(const AddedToken& token, const std::string& file);
  // Unless it is there already.
  Result<void> add_missing(const AddedToken& token, const std::string& file);
  // Two parts each; every part and every result must be a token.
  Result<void> add_merges(std::span<const std::string> parts, const std::string& file);

  std::optional<TokenId> find(std::string_view text) const;
  tokenizer::Vocabulary& vocabulary() { return vocabulary_; }

  // Ids without a text become unused tokens, up to the model's size.
  Result<tokenizer::Vocabulary> finish() &&;

 private:
  Result<void> place(std::int64_t id, std::string text, tokenizer::TokenKind kind, const std::string& file);

  tokenizer::Vocabulary vocabulary_;
  std::optional<std::int64_t> model_size_;
  std::vector<bool> is_taken_;                    // by id
  std::unordered_map<std::string, TokenId> ids_;  // by text
};

}  // namespace octavo::model::vocabulary
