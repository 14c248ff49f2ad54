#include "engine/model/vocabulary_reader.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/ascii.h"
#include "engine/model/answer_ends.h"
#include "engine/model/limits.h"

namespace octavo::model {
namespace {

using tokenizer::TokenKind;
using tokenizer::Vocabulary;

constexpr std::string_view kTokensKey = "tokenizer.ggml.tokens";
constexpr std::string_view kKindsKey = "tokenizer.ggml.token_type";
constexpr std::string_view kScoresKey = "tokenizer.ggml.scores";
constexpr std::string_view kMergesKey = "tokenizer.ggml.merges";

// These end an output as the end-of-sequence token does.
constexpr std::string_view kFurtherEndKeys[] = {"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"};
std::vector<std::string> copies(const std::vector<std::string_view>& views) {
  return {views.begin(), views.end()};
}

Result<void> read_tokens(const Metadata& header, Vocabulary& vocabulary) {
  OCTAVO_TRY(const auto tokens, header.get<std::vector<std::string_view>>(kTokensKey));
  if (tokens.empty() || tokens.size() > static_cast<std::size_t>(kMaxVocabularySize)) {
    return header.error_about(kTokensKey, ErrorCode::kDamagedFile,
                              "holds " + std::to_string(tokens.size()) + " tokens; 1 to " +
                                  std::to_string(kMaxVocabularySize) +
                                  " are allowed: download the file again");
  }
  vocabulary.tokens = copies(tokens);
  return {};
}

// Before it is read, so that a wrong length costs nothing. Arrays that nobody here reads are held to it, too.
Result<void> check_length(const Metadata& header, std::string_view key, std::string_view what,
                          std::size_t num_tokens) {
  OCTAVO_TRY(const auto length, header.find_array_length(key));
  if (!length || *length == num_tokens) return {};
  return header.error_about(key, ErrorCode::kDamagedFile,
                            "holds " + std::to_string(*length) + " " + std::string(what) + " for " +
                                std::to_string(num_tokens) + " tokens; download the file again");
}

Result<void> read_kinds(const Metadata& header, Vocabulary& vocabulary) {
  OCTAVO_TRY_VOID(check_length(header, kKindsKey, "types", vocabulary.tokens.size()));
  OCTAVO_TRY(const auto kinds, header.find<std::vector<std::int32_t>>(kKindsKey));
  if (!kinds) return {};
  vocabulary.kinds.reserve(kinds->size());
  for (const std::int32_t kind : *kinds) {
    if (kind < static_cast<std::int32_t>(TokenKind::kNormal) ||
        kind > static_cast<std::int32_t>(TokenKind::kByte)) {
      return header.error_about(
          kKindsKey, ErrorCode::kDamagedFile,
          "holds " + std::to_string(kind) + ", which is not a token type; download the file again");
    }
    vocabulary.kinds.push_back(static_cast<TokenKind>(kind));
  }
  return {};
}

// A token can be merged out of several pairs: Llama 3 has 2.2 merges for each.
Result<void> read_merges(const Metadata& header, Vocabulary& vocabulary) {
  constexpr std::size_t kMostPerToken = 16;
  OCTAVO_TRY(const auto length, header.find_array_length(kMergesKey));
  if (length && *length > kMostPerToken * vocabulary.tokens.size()) {
    return header.error_about(kMergesKey, ErrorCode::kDamagedFile,
                              "holds " + std::to_string(*length) + " merges for " +
                                  std::to_string(vocabulary.tokens.size()) +
                                  " tokens; download the file again");
  }
  OCTAVO_TRY(const auto merges, header.find<std::vector<std::string_view>>(kMergesKey));
  if (merges) vocabulary.merges = copies(*merges);
  return {};
}

Result<void> read_scores(const Metadata& header, Vocabulary& vocabulary) {
  OCTAVO_TRY_VOID(check_length(header, kScoresKey, "scores", vocabulary.tokens.size()));
  OCTAVO_TRY(auto scores, header.find<std::vector<float>>(kScoresKey));
  if (scores) vocabulary.scores = std::move(*scores);
  return {};
}

Result<std::optional<TokenId>> find_id(const Metadata& header, std::string_view key,
                                       std::size_t vocabulary_size) {
  OCTAVO_TRY(const auto id, header.find<std::uint32_t>(key));
  if (!id) return std::optional<TokenId>();
  if (*id < vocabulary_size) return std::optional<TokenId>(static_cast<TokenId>(*id));
  return header.error_about(key, ErrorCode::kDamagedFile,
                            "is " + std::to_string(*id) + ", outside the vocabulary of " +
                                std::to_string(vocabulary_size) + " tokens; download the file again");
}

bool names_token_id(std::string_view key) {
  return key.starts_with("tokenizer.ggml.") && key.ends_with("_token_id");
}

// All of them, also those that nothing here uses: a file that names a token which does not exist contradicts
// itself. Converters leave a key out when there is no such token (gguf-py skips ids beyond the vocabulary,
// llama.cpp's saver ids of -1), so that 4294967295 is a lie like any other.
Result<void> check_special_ids(const Metadata& header, std::size_t vocabulary_size) {
  for (std::size_t i = 0; i < header.num_keys(); ++i) {
    if (!names_token_id(header.key_at(i))) continue;
    OCTAVO_TRY([[maybe_unused]] const auto id, find_id(header, header.key_at(i), vocabulary_size));
  }
  return {};
}

Result<void> read_special_ids(const Metadata& header, Vocabulary& vocabulary) {
  const std::size_t size = vocabulary.tokens.size();
  OCTAVO_TRY_VOID(check_special_ids(header, size));
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

// Sentencepiece files that leave keys out mean Llama's own ids, where those are control tokens.
void default_special_ids(Vocabulary& vocabulary) {
  constexpr TokenId kLlamaBos = 1, kLlamaEos = 2;
  const auto is_control = [&](TokenId id) {
    const auto index = static_cast<std::size_t>(id);
    return index < vocabulary.kinds.size() && vocabulary.kinds[index] == TokenKind::kControl;
  };
  if (!vocabulary.bos_token_id && is_control(kLlamaBos)) vocabulary.bos_token_id = kLlamaBos;
  if (!vocabulary.eos_token_id && is_control(kLlamaEos)) vocabulary.eos_token_id = kLlamaEos;
}

// Sentencepiece vocabularies, and byte-level ones of these names, start every text with BOS unless their file
// says otherwise, as in llama.cpp.
bool adds_bos_by_default(const Vocabulary& vocabulary) {
  constexpr std::string_view kPatterns[] = {"llama-bpe", "llama3",  "llama-v3", "falcon3",
                                            "falcon-h1", "pixtral", "lfm2",     "tekken"};
  return vocabulary.model == "llama" || std::find(std::begin(kPatterns), std::end(kPatterns),
                                                  vocabulary.split_pattern) != std::end(kPatterns);
}

// Texts that begin without it get nonsense from gemma4's models. Some files say that it is not added.
Result<void> require_bos(const Metadata& header, Vocabulary& vocabulary) {
  vocabulary.add_bos_token = true;
  if (vocabulary.bos_token_id) return {};
  return header.error_about("tokenizer.ggml.bos_token_id", ErrorCode::kDamagedFile,
                            "is missing; convert the model again");
}

Result<void> read_string(const Metadata& header, std::string_view key, std::string& field) {
  OCTAVO_TRY(const auto text, header.find<std::string_view>(key));
  if (text) field = std::string(*text);
  return {};
}

Result<void> read_flag(const Metadata& header, std::string_view key, bool& field) {
  OCTAVO_TRY(const auto flag, header.find<bool>(key));
  if (flag) field = *flag;
  return {};
}

// Nothing in the file says so but the model's name, as in llama.cpp.
Result<void> read_space_eating(const Metadata& header, Vocabulary& vocabulary) {
  std::string name;
  OCTAVO_TRY_VOID(read_string(header, "general.name", name));
  name = ascii_lower_case(name);
  vocabulary.control_tokens_eat_spaces =
      name.find("phi-3") != std::string::npos || name.find("phi3") != std::string::npos;
  return {};
}

// Bytes that converters write as an array of small numbers.
Result<void> read_bytes(const Metadata& header, std::string_view key, std::string& field) {
  OCTAVO_TRY(const auto numbers, header.find<std::vector<std::int32_t>>(key));
  if (!numbers) return {};
  for (const std::int32_t number : *numbers) {
    if (number < -128 || number > 255) {
      return header.error_about(key, ErrorCode::kDamagedFile,
                                "holds numbers that are not bytes; download the file again");
    }
    field.push_back(static_cast<char>(static_cast<unsigned char>(number & 0xff)));
  }
  return {};
}

}  // namespace

Result<Vocabulary> read_vocabulary(const Metadata& header) {
  Vocabulary vocabulary;
  OCTAVO_TRY(const auto kind, header.get<std::string_view>("tokenizer.ggml.model"));
  vocabulary.model = std::string(kind);
  OCTAVO_TRY_VOID(read_string(header, "tokenizer.ggml.pre", vocabulary.split_pattern));
  OCTAVO_TRY_VOID(read_tokens(header, vocabulary));
  OCTAVO_TRY_VOID(read_kinds(header, vocabulary));
  OCTAVO_TRY_VOID(read_scores(header, vocabulary));
  OCTAVO_TRY_VOID(read_merges(header, vocabulary));
  OCTAVO_TRY_VOID(read_special_ids(header, vocabulary));
  const bool is_sentencepiece = vocabulary.model == "llama";
  if (is_sentencepiece) {
    default_special_ids(vocabulary);
    OCTAVO_TRY_VOID(read_space_eating(header, vocabulary));
  }
  const bool is_gemma4 = vocabulary.model == "gemma4";
  if (is_gemma4) settle_turns(vocabulary);
  settle_messages(vocabulary);
  add_ends_of_turns(vocabulary);
  vocabulary.add_bos_token = adds_bos_by_default(vocabulary);
  vocabulary.add_space_prefix = is_sentencepiece;
  OCTAVO_TRY_VOID(read_flag(header, "tokenizer.ggml.add_bos_token", vocabulary.add_bos_token));
  if (is_gemma4) OCTAVO_TRY_VOID(require_bos(header, vocabulary));
  OCTAVO_TRY_VOID(read_flag(header, "tokenizer.ggml.add_space_prefix", vocabulary.add_space_prefix));
  OCTAVO_TRY_VOID(
      read_flag(header, "tokenizer.ggml.remove_extra_whitespaces", vocabulary.remove_extra_whitespaces));
  OCTAVO_TRY_VOID(read_bytes(header, "tokenizer.ggml.precompiled_charsmap", vocabulary.precompiled_charsmap));
  OCTAVO_TRY_VOID(read_string(header, "tokenizer.chat_template", vocabulary.chat_template));
  return vocabulary;
}

}  // namespace octavo::model
