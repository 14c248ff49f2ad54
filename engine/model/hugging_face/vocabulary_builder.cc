#include "engine/model/hugging_face/vocabulary_builder.h"

#include <algorithm>
#include <utility>

#include "engine/base/text.h"
#include "engine/model/limits.h"

namespace octavo::model::vocabulary {
namespace {

using tokenizer::AddedTokenRule;
using tokenizer::TokenKind;
using tokenizer::Vocabulary;

std::string in_quotes(std::string_view text) { return '"' + escape_for_message(text, 60) + '"'; }

}  // namespace

VocabularyBuilder::VocabularyBuilder(Vocabulary vocabulary, std::optional<std::int64_t> model_size)
    : vocabulary_(std::move(vocabulary)), model_size_(model_size) {
  vocabulary_.kinds.resize(vocabulary_.tokens.size(), TokenKind::kNormal);
  is_taken_.assign(vocabulary_.tokens.size(), true);
  for (std::size_t id = 0; id < vocabulary_.tokens.size(); ++id)
    ids_.emplace(vocabulary_.tokens[id], static_cast<TokenId>(id));
}

Result<void> VocabularyBuilder::place(std::int64_t id, std::string text, TokenKind kind,
                                      const std::string& file) {
  if (id < 0 || id >= kMaxVocabularySize) {
    return damaged(file, "has the id " + std::to_string(id) + "; ids are 0 to " +
                             std::to_string(kMaxVocabularySize - 1));
  }
  const auto index = static_cast<std::size_t>(id);
  if (index >= is_taken_.size()) {
    is_taken_.resize(index + 1, false);
    vocabulary_.tokens.resize(index + 1);
    vocabulary_.kinds.resize(index + 1, TokenKind::kUnused);
  }
  if (is_taken_[index]) {
    return damaged(file, "has two texts for the id " + std::to_string(id) + ", " +
                             in_quotes(vocabulary_.tokens[index]) + " and " + in_quotes(text));
  }
  if (!ids_.emplace(text, static_cast<TokenId>(id)).second)
    return damaged(file, "has two ids for the text " + in_quotes(text));
  is_taken_[index] = true;
  vocabulary_.tokens[index] = std::move(text);
  vocabulary_.kinds[index] = kind;
  return {};
}

Result<void> VocabularyBuilder::add_tokens(std::vector<TokenEntry> tokens, const std::string& file) {
  std::int64_t last = -1;
  for (const TokenEntry& token : tokens) last = std::max(last, token.id);
  if (model_size_ && last >= *model_size_) {
    return damaged(file, "has the id " + std::to_string(last) + ", but the model has " +
                             std::to_string(*model_size_) + " tokens");
  }
  ids_.reserve(tokens.size());
  for (TokenEntry& token : tokens)
    OCTAVO_TRY_VOID(place(token.id, std::move(token.text), TokenKind::kNormal, file));
  return {};
}

Result<void> VocabularyBuilder::add(const AddedToken& token, const std::string& file) {
  if (token.text.empty()) return {};
  if (model_size_ && token.id >= *model_size_) return {};
  const TokenKind kind = token.is_special ? TokenKind::kControl : TokenKind::kUserDefined;
  const std::optional<TokenId> known = find(token.text);
  if (!known) {
    OCTAVO_TRY_VOID(place(token.id, token.text, kind, file));
  } else if (*known != token.id) {
    return damaged(file, "has two ids for the text " + in_quotes(token.text));
  } else {
    vocabulary_.kinds[static_cast<std::size_t>(*known)] = kind;
  }
  const AddedTokenRule rule{.token_id = static_cast<TokenId>(token.id),
                            .strips_left = token.strips_left,
                            .strips_right = token.strips_right,
                            .is_whole_word = token.is_whole_word,
                            .in_normalized_text = token.is_normalized && !token.is_special};
  const bool is_plain =
      !rule.strips_left && !rule.strips_right && !rule.is_whole_word && !rule.in_normalized_text;
  if (!is_plain) vocabulary_.added_token_rules.push_back(rule);
  return {};
}

Result<void> VocabularyBuilder::add_missing(const AddedToken& token, const std::string& file) {
  return find(token.text) ? Result<void>() : add(token, file);
}

Result<void> VocabularyBuilder::add_merges(std::span<const std::string> parts, const std::string& file) {
  std::string joined;
  vocabulary_.merged_tokens.reserve(parts.size() / 2);
  for (std::size_t i = 0; i + 1 < parts.size(); i += 2) {
    joined.assign(parts[i]).append(parts[i + 1]);
    const std::optional<TokenId> left = find(parts[i]), right = find(parts[i + 1]), result = find(joined);
    if (!left || !right || !result) {
      return damaged(file, "has the merge of " + in_quotes(parts[i]) + " and " + in_quotes(parts[i + 1]) +
                               ", one of which, or what they become, is not a token");
    }
    vocabulary_.merged_tokens.push_back({*left, *right, *result});
  }
  return {};
}

std::optional<TokenId> VocabularyBuilder::find(std::string_view text) const {
  const auto place = ids_.find(std::string(text));
  return place == ids_.end() ? std::nullopt : std::optional<TokenId>(place->second);
}

Result<Vocabulary> VocabularyBuilder::finish() && {
  if (vocabulary_.tokens.empty()) return damaged("The folder", "has a vocabulary without tokens");
  if (model_size_) {
    const auto size = static_cast<std::size_t>(*model_size_);
    if (vocabulary_.tokens.size() > size) {
      return damaged("The folder", "has " + std::to_string(vocabulary_.tokens.size()) +
                                       " tokens for a model of " + std::to_string(size));
    }
    vocabulary_.tokens.resize(size);
    vocabulary_.kinds.resize(size, TokenKind::kUnused);
  }
  if (!vocabulary_.scores.empty()) vocabulary_.scores.resize(vocabulary_.tokens.size(), 0);
  if (!vocabulary_.log_probabilities.empty())
    vocabulary_.log_probabilities.resize(vocabulary_.tokens.size(), 0);
  return std::move(vocabulary_);
}

}  // namespace octavo::model::vocabulary
