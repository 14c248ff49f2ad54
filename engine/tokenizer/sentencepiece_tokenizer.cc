#include "engine/tokenizer/sentencepiece_tokenizer.h"

#include <algorithm>
#include <string>
#include <utility>

#include "engine/tokenizer/sentencepiece_space.h"
#include "engine/tokenizer/vocabulary_check.h"

namespace octavo::tokenizer {
namespace {

// Whether the space at `position`, where one is, follows something else.
bool starts_word(std::string_view text, std::size_t position) {
  return position > 0 && !text.substr(0, position).ends_with(kSpelledSpace);
}

bool do_spaces_start_pieces(std::span<const Piece> pieces) {
  for (const Piece& piece : pieces) {
    const std::string_view text = piece.text;
    for (auto at = text.find(kSpelledSpace); at != std::string_view::npos;
         at = text.find(kSpelledSpace, at + kSpelledSpace.size())) {
      if (starts_word(text, at)) return false;
    }
  }
  return true;
}

// Control tokens keep their names as they are.
TokenTexts texts_of(const Vocabulary& vocabulary, const CheckedPieces& checked) {
  TokenTexts texts;
  for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    if (checked.pieces[id].role == PieceRole::kByte) {
      texts.add(checked.pieces[id].text);
    } else if (vocabulary.kinds[id] == TokenKind::kControl) {
      texts.add(vocabulary.tokens[id]);
    } else {
      texts.add(with_spaces(vocabulary.tokens[id]));
    }
  }
  return texts;
}

bool is_ascii_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

Result<SpecialTokens> collect_user_defined(std::span<const Piece> pieces) {
  std::vector<std::string> texts;
  std::vector<TokenId> token_ids;
  for (std::size_t id = 0; id < pieces.size(); ++id) {
    if (pieces[id].role != PieceRole::kUserDefined) continue;
    texts.push_back(pieces[id].text);
    token_ids.push_back(static_cast<TokenId>(id));
  }
  return SpecialTokens::create(std::move(texts), std::move(token_ids));
}

bool is_control_or_marker_text(TokenKind kind, std::string_view text) {
  return kind == TokenKind::kControl || (kind == TokenKind::kUserDefined && is_marker(text));
}

Result<Charsmap> parse_rules(std::string_view bytes) {
  return bytes.empty() ? Result<Charsmap>(Charsmap()) : Charsmap::parse(bytes);
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> SentencePieceTokenizer::create(Vocabulary vocabulary) {
  OCTAVO_TRY_VOID(validate(vocabulary));
  settle_kinds(vocabulary);
  settle_unknown(vocabulary);
  OCTAVO_TRY(CheckedPieces checked, check_pieces(vocabulary));
  OCTAVO_TRY(Charsmap rules, parse_rules(vocabulary.precompiled_charsmap));
  OCTAVO_TRY(SpecialTokens user_defined, collect_user_defined(checked.pieces));
  OCTAVO_TRY(SpecialTokens markers, SpecialTokens::collect(vocabulary, is_control_or_marker_text));
  OCTAVO_TRY(auto model, SentencePieceModel::create(checked.pieces, vocabulary.scores));
  Parts parts{.texts = texts_of(vocabulary, checked),
              .markers = std::move(markers),
              .normalizer = SentencePieceNormalizer(std::move(rules), std::move(user_defined),
                                                    vocabulary.remove_extra_whitespaces),
              .model = std::move(model),
              .byte_tokens = std::move(checked.byte_tokens),
              .unknown_token_id = vocabulary.unknown_token_id.value_or(-1),
              .spaces_start_pieces = do_spaces_start_pieces(checked.pieces)};
  return std::unique_ptr<Tokenizer>(new SentencePieceTokenizer(vocabulary, std::move(parts)));
}

SentencePieceTokenizer::SentencePieceTokenizer(const Vocabulary& vocabulary, Parts parts)
    : PromptTokenizer(vocabulary, std::move(parts.texts), std::move(parts.markers)),
      normalizer_(std::move(parts.normalizer)),
      model_(std::move(parts.model)),
      byte_tokens_(std::move(parts.byte_tokens)),
      unknown_token_id_(parts.unknown_token_id),
      add_space_prefix_(vocabulary.add_space_prefix),
      control_tokens_eat_spaces_(vocabulary.control_tokens_eat_spaces),
      spaces_start_pieces_(parts.spaces_start_pieces) {}

Result<void> SentencePieceTokenizer::encode_around(std::string_view text,
                                                   std::span<const SettledTokens> settled,
                                                   const std::stop_token& stop,
                                                   std::vector<TokenId>& out) const {
  return visit(
      text, settled,
      [&](std::string_view stretch, bool add_prefix) {
        return encode_stretch(stretch, add_prefix, stop, out);
      },
      [&](std::span<const TokenId> token_ids) { out.insert(out.end(), token_ids.begin(), token_ids.end()); });
}

Result<std::size_t> SentencePieceTokenizer::count_bytes_around(std::string_view text,
                                                               std::span<const SettledTokens> settled) const {
  std::size_t bytes = 0;
  if (byte_tokens_.empty()) return bytes;
  const auto add = [&](std::string_view stretch, bool add_prefix) -> Result<void> {
    OCTAVO_TRY(const std::string normalized, normalizer_.normalize(stretch, add_prefix));
    bytes += with_spaces(normalized).size();
    return {};
  };
  OCTAVO_TRY_VOID(visit(text, settled, add, [](std::span<const TokenId>) {}));
  return bytes;
}

template <class OnText, class OnSettled>
Result<void> SentencePieceTokenizer::visit(std::string_view text, std::span<const SettledTokens> settled,
                                           OnText on_text, OnSettled on_settled) const {
  std::size_t begin = 0;
  bool starts = true;  // the text, or after a control token or marker
  for (const SettledTokens& stretch : settled) {
    if (begin < stretch.begin) {
      OCTAVO_TRY_VOID(on_text(text.substr(begin, stretch.begin - begin), starts && add_space_prefix_));
    }
    on_settled(stretch.token_ids);
    starts = is_control_or_marker(stretch.token_ids);
    begin = stretch.end;
    while (eats_spaces(stretch.token_ids.back()) && begin < text.size() && is_ascii_space(text[begin]))
      ++begin;
  }
  return on_text(text.substr(begin), starts && add_space_prefix_);
}

// Answers whose ids are kept hold no control tokens.
bool SentencePieceTokenizer::is_control_or_marker(std::span<const TokenId> settled) const {
  return settled.size() == 1 && is_control_or_marker_text(kind(settled[0]), token_bytes(settled[0]));
}

bool SentencePieceTokenizer::eats_spaces(TokenId id) const {
  const std::string_view name = token_bytes(id);
  if (!control_tokens_eat_spaces_ || !is_control_or_marker_text(kind(id), name)) return false;
  return name != "<s>" && name != "<unk>" && name != "<|endoftext|>";
}

// Word by word where that changes nothing: the library's time and memory grow faster than its text.
Result<void> SentencePieceTokenizer::encode_stretch(std::string_view text, bool add_prefix,
                                                    const std::stop_token& stop,
                                                    std::vector<TokenId>& out) const {
  if (text.empty()) return {};
  OCTAVO_TRY(const std::string normalized, normalizer_.normalize(text, add_prefix));
  bool after_unknown = false;
  for (std::string_view rest = normalized; !rest.empty() && !stop.stop_requested();) {
    const std::size_t length = word_length(rest);
    for (const SentencePieceModel::Found& found : model_->encode(rest.substr(0, length), stop)) {
      const bool is_unknown = found.token_id < 0;
      if (!is_unknown) {
        out.push_back(found.token_id);
      } else if (!byte_tokens_.empty()) {
        for (const char byte : found.text) out.push_back(byte_tokens_[static_cast<unsigned char>(byte)]);
      } else if (!after_unknown) {
        out.push_back(unknown_token_id_);
      }
      after_unknown = is_unknown;
    }
    rest.remove_prefix(length);
  }
  return {};
}

std::size_t SentencePieceTokenizer::word_length(std::string_view normalized) const {
  if (!spaces_start_pieces_) return normalized.size();
  std::size_t space = normalized.find(kSpelledSpace);
  while (space != std::string_view::npos && !starts_word(normalized, space)) {
    space = normalized.find(kSpelledSpace, space + kSpelledSpace.size());
  }
  return std::min(space, normalized.size());
}

}  // namespace octavo::tokenizer
