#include "engine/model/vocabulary_reader.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/model/limits.h"

namespace octavo::model {
namespace {

using tokenizer::TokenKind;
using tokenizer::Vocabulary;

constexpr std::string_view kTokensKey = "tokenizer.ggml.tokens";
constexpr std::string_view kKindsKey = "tokenizer.ggml.token_type";

// These end an output as the end-of-sequence token does.
constexpr std::string_view kFurtherEndKeys[] = {"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"};

std::vector<std::string> copies(const std::vector<std::string_view>& views) {
  return {views.begin(), views.end()};
}

Result<void> read_tokens(const GgufHeader& header, Vocabulary& vocabulary) {
  OCTAVO_TRY(const auto tokens, header.get<std::vector<std::string_view>>(kTokensKey));
  if (tokens.empty() || tokens.size() > static_cast<std::size_t>(kMaxVocabularySize)) {
    return header.error_about(kTokensKey, ErrorCode::kDamagedFile,
                              "holds " + std::to_string(tokens.size()) + " tokens; 1 to " +
                                  std::to_string(kMaxVocabularySize) + " are possible: get the file again");
  }
  vocabulary.tokens = copies(tokens);
  return {};
}

Result<void> read_kinds(const GgufHeader& header, Vocabulary& vocabulary) {
  OCTAVO_TRY(const auto kinds, header.find<std::vector<std::int32_t>>(kKindsKey));
  if (!kinds) return {};
  if (kinds->size() != vocabulary.tokens.size()) {
    return header.error_about(kKindsKey, ErrorCode::kDamagedFile,
                              "holds " + std::to_string(kinds->size()) + " types for " +
                                  std::to_string(vocabulary.tokens.size()) + " tokens; get the file again");
  }
  vocabulary.kinds.reserve(kinds->size());
  for (const std::int32_t kind : *kinds) {
    if (kind < static_cast<std::int32_t>(TokenKind::kNormal) ||
        kind > static_cast<std::int32_t>(TokenKind::kByte)) {
      return header.error_about(
          kKindsKey, ErrorCode::kDamagedFile,
          "holds " + std::to_string(kind) + ", which is no type of token; get the file again");
    }
    vocabulary.kinds.push_back(static_cast<TokenKind>(kind));
  }
  return {};
}

Result<std::optional<TokenId>> find_id(const GgufHeader& header, std::string_view key,
                                       std::size_t vocabulary_size) {
  OCTAVO_TRY(const auto id, header.find<std::uint32_t>(key));
  if (!id) return std::optional<TokenId>();
  // Converters write the largest number for "none".
  if (*id == 0xffffffffu) return std::optional<TokenId>();
  if (*id < vocabulary_size) return std::optional<TokenId>(static_cast<TokenId>(*id));
  return header.error_about(key, ErrorCode::kDamagedFile,
                            "is " + std::to_string(*id) + ", outside the vocabulary of " +
                                std::to_string(vocabulary_size) + " tokens; get the file again");
}

Result<void> read_special_ids(const GgufHeader& header, Vocabulary& vocabulary) {
  const std::size_t size = vocabulary.tokens.size();
  OCTAVO_TRY(vocabulary.bos_token_id, find_id(header, "tokenizer.ggml.bos_token_id", size));
  OCTAVO_TRY(vocabulary.eos_token_id, find_id(header, "tokenizer.ggml.eos_token_id", size));
  OCTAVO_TRY(vocabulary.unknown_token_id, find_id(header, "tokenizer.ggml.unknown_token_id", size));
  std::vector<TokenId>& further = vocabulary.further_eos_token_ids;
  for (const std::string_view key : kFurtherEndKeys) {
    OCTAVO_TRY(const auto id, find_id(header, key, size));
    if (id && id != vocabulary.eos_token_id &&
        std::find(further.begin(), further.end(), *id) == further.end()) {
      further.push_back(*id);
    }
  }
  return {};
}

// Vocabularies of the Llama 3 family start every text with BOS unless their file says otherwise.
bool adds_bos_by_default(std::string_view split_pattern) {
  return split_pattern == "llama-bpe" || split_pattern == "llama3" || split_pattern == "llama-v3";
}

Result<void> read_string(const GgufHeader& header, std::string_view key, std::string& field) {
  OCTAVO_TRY(const auto text, header.find<std::string_view>(key));
  if (text) field = std::string(*text);
  return {};
}

Result<void> read_flag(const GgufHeader& header, std::string_view key, bool& field) {
  OCTAVO_TRY(const auto flag, header.find<bool>(key));
  if (flag) field = *flag;
  return {};
}

}  // namespace

Result<Vocabulary> read_vocabulary(const GgufHeader& header) {
  Vocabulary vocabulary;
  OCTAVO_TRY(const auto kind, header.get<std::string_view>("tokenizer.ggml.model"));
  vocabulary.model = std::string(kind);
  OCTAVO_TRY_VOID(read_string(header, "tokenizer.ggml.pre", vocabulary.split_pattern));
  OCTAVO_TRY_VOID(read_tokens(header, vocabulary));
  OCTAVO_TRY_VOID(read_kinds(header, vocabulary));
  OCTAVO_TRY(const auto merges, header.find<std::vector<std::string_view>>("tokenizer.ggml.merges"));
  if (merges) vocabulary.merges = copies(*merges);
  OCTAVO_TRY_VOID(read_special_ids(header, vocabulary));
  vocabulary.add_bos_token = adds_bos_by_default(vocabulary.split_pattern);
  OCTAVO_TRY_VOID(read_flag(header, "tokenizer.ggml.add_bos_token", vocabulary.add_bos_token));
  OCTAVO_TRY_VOID(read_flag(header, "tokenizer.ggml.add_space_prefix", vocabulary.add_space_prefix));
  OCTAVO_TRY_VOID(read_string(header, "tokenizer.chat_template", vocabulary.chat_template));
  return vocabulary;
}

}  // namespace octavo::model
