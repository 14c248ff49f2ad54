#include "engine/model/hugging_face/vocabulary_sentencepiece.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "engine/model/hugging_face/vocabulary_json.h"
#include "engine/model/limits.h"

namespace octavo::model::vocabulary {
namespace {

using tokenizer::TokenKind;
using tokenizer::Vocabulary;

const std::string kPiecesFile = "tokenizer.model";

Error malformed() { return damaged(kPiecesFile, "is not a sentencepiece model"); }

// One field of a message.
struct Field {
  std::uint64_t number = 0;
  std::uint64_t value = 0;  // of numbers; floats as their bits
  std::string_view bytes;   // of texts and messages
};

// A message, field after field.
class Message {
 public:
  explicit Message(std::string_view bytes) : rest_(bytes) {}

  bool done() const { return rest_.empty(); }

  Result<Field> next() {
    OCTAVO_TRY(const std::uint64_t key, number());
    Field field;
    field.number = key >> 3;
    switch (key & 7u) {
      case 0: {
        OCTAVO_TRY(field.value, number());
        return field;
      }
      case 1: return fixed(field, 8);
      case 2: {
        OCTAVO_TRY(const std::uint64_t length, number());
        if (length > rest_.size()) return malformed();
        field.bytes = rest_.substr(0, static_cast<std::size_t>(length));
        rest_.remove_prefix(static_cast<std::size_t>(length));
        return field;
      }
      case 5: return fixed(field, 4);
      default: return malformed();
    }
  }

 private:
  Result<std::uint64_t> number() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= static_cast<std::uint64_t>(byte & 0x7fu) << shift;
      if (byte < 0x80u) return value;
    }
    return malformed();
  }

  Result<Field> fixed(Field field, std::size_t num_bytes) {
    if (rest_.size() < num_bytes) return malformed();
    for (std::size_t i = num_bytes; i-- > 0;)
      field.value = field.value << 8 | static_cast<unsigned char>(rest_[i]);
    rest_.remove_prefix(num_bytes);
    return field;
  }

  std::string_view rest_;
};

struct Settings {
  std::uint64_t model_type = 1;  // 1 Unigram, 2 BPE, 3 words, 4 characters
  bool byte_fallback = false, spaces_at_the_end = false;
  std::int32_t bos_id = 1, eos_id = 2, unknown_id = 0;
  std::string rules;
  bool add_dummy_prefix = true, remove_extra_whitespaces = true, escape_whitespaces = true;
};

Result<void> read_piece(std::string_view bytes, Vocabulary& vocabulary) {
  if (vocabulary.tokens.size() >= static_cast<std::size_t>(kMaxVocabularySize))
    return damaged(kPiecesFile, "has more than " + std::to_string(kMaxVocabularySize) + " pieces");
  std::string text;
  float score = 0;
  std::uint64_t kind = 1;
  for (Message message(bytes); !message.done();) {
    OCTAVO_TRY(const Field field, message.next());
    if (field.number == 1) text = std::string(field.bytes);
    if (field.number == 2) score = std::bit_cast<float>(static_cast<std::uint32_t>(field.value));
    if (field.number == 3) kind = field.value;
  }
  if (kind < 1 || kind > 6 || !std::isfinite(score))
    return damaged(kPiecesFile, "has a piece with an unknown type or a score that is not finite");
  vocabulary.tokens.push_back(std::move(text));
  vocabulary.scores.push_back(score);
  vocabulary.kinds.push_back(static_cast<TokenKind>(kind));
  return {};
}

Result<void> read_trainer(std::string_view bytes, Settings& settings) {
  const auto id = [](std::uint64_t value) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(value));
  };
  for (Message message(bytes); !message.done();) {
    OCTAVO_TRY(const Field field, message.next());
    if (field.number == 3) settings.model_type = field.value;
    if (field.number == 24) settings.spaces_at_the_end = field.value != 0;
    if (field.number == 35) settings.byte_fallback = field.value != 0;
    if (field.number == 40) settings.unknown_id = id(field.value);
    if (field.number == 41) settings.bos_id = id(field.value);
    if (field.number == 42) settings.eos_id = id(field.value);
  }
  return {};
}

Result<void> read_normalizer(std::string_view bytes, Settings& settings) {
  for (Message message(bytes); !message.done();) {
    OCTAVO_TRY(const Field field, message.next());
    if (field.number == 2) settings.rules = std::string(field.bytes);
    if (field.number == 3) settings.add_dummy_prefix = field.value != 0;
    if (field.number == 4) settings.remove_extra_whitespaces = field.value != 0;
    if (field.number == 5) settings.escape_whitespaces = field.value != 0;
  }
  return {};
}

std::optional<TokenId> id_within(std::int32_t id, const Vocabulary& vocabulary) {
  const bool exists = id >= 0 && static_cast<std::size_t>(id) < vocabulary.tokens.size();
  return exists ? std::optional<TokenId>(id) : std::nullopt;
}

// As the library normalises, in steps of a tokenizer.json.
void make_unigram(const Settings& settings, Vocabulary& vocabulary) {
  using tokenizer::TextPattern;
  tokenizer::TextPipeline pipeline;
  if (!settings.rules.empty()) pipeline.normalizers.emplace_back(tokenizer::CharsmapRules{settings.rules});
  if (settings.remove_extra_whitespaces) {
    pipeline.normalizers.emplace_back(tokenizer::StripSpaces{});
    pipeline.normalizers.emplace_back(tokenizer::Replace{{TextPattern::Kind::kExpression, " {2,}"}, " "});
  }
  using Prefix = tokenizer::Metaspace::Prefix;
  pipeline.pre_tokenizers.emplace_back(tokenizer::Metaspace{
      "\u2581", settings.add_dummy_prefix ? Prefix::kAlways : Prefix::kNever, /*splits=*/true});
  pipeline.decoded_texts.emplace_back("\u2581", " ");
  pipeline.byte_fallback = settings.byte_fallback;
  vocabulary.model = "Unigram";
  vocabulary.log_probabilities.assign(vocabulary.scores.begin(), vocabulary.scores.end());
  vocabulary.scores.clear();
  vocabulary.pipeline = std::move(pipeline);
}

}  // namespace

Result<Vocabulary> read_sentencepiece(std::string_view bytes) {
  constexpr std::uint64_t kUnigram = 1, kBpe = 2;
  Vocabulary vocabulary;
  Settings settings;
  for (Message message(bytes); !message.done();) {
    OCTAVO_TRY(const Field field, message.next());
    if (field.number == 1) OCTAVO_TRY_VOID(read_piece(field.bytes, vocabulary));
    if (field.number == 2) OCTAVO_TRY_VOID(read_trainer(field.bytes, settings));
    if (field.number == 3) OCTAVO_TRY_VOID(read_normalizer(field.bytes, settings));
  }
  if (vocabulary.tokens.empty()) return malformed();
  if (settings.model_type != kUnigram && settings.model_type != kBpe)
    return unsupported(kPiecesFile, "splits texts into words or characters, which is not supported");
  if (settings.spaces_at_the_end || !settings.escape_whitespaces)
    return unsupported(kPiecesFile, "treats spaces in a way that is not supported");
  vocabulary.bos_token_id = id_within(settings.bos_id, vocabulary);
  vocabulary.eos_token_id = id_within(settings.eos_id, vocabulary);
  vocabulary.unknown_token_id = id_within(settings.unknown_id, vocabulary);
  if (settings.model_type == kUnigram) {
    make_unigram(settings, vocabulary);
    return vocabulary;
  }
  vocabulary.model = "llama";
  vocabulary.add_space_prefix = settings.add_dummy_prefix;
  vocabulary.remove_extra_whitespaces = settings.remove_extra_whitespaces;
  vocabulary.precompiled_charsmap = std::move(settings.rules);
  return vocabulary;
}

}  // namespace octavo::model::vocabulary
