#include "engine/tokenizer/character_bpe_tokenizer.h"

#include <algorithm>
#include <string>
#include <utility>

#include "engine/base/text.h"
#include "engine/tokenizer/byte_tokens.h"
#include "engine/tokenizer/piece_merger.h"
#include "engine/tokenizer/sentencepiece_pieces.h"
#include "engine/tokenizer/sentencepiece_space.h"
#include "engine/tokenizer/vocabulary_check.h"
#include "engine/tokenizer/vocabulary_error.h"

namespace octavo::tokenizer {
namespace {

// Control tokens keep their names as they are.
Result<TokenTexts> checked_texts_of(const Vocabulary& vocabulary) {
  TokenTexts texts;
  for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    if (vocabulary.kinds[id] == TokenKind::kByte) {
      OCTAVO_TRY(const char byte, byte_of_token(vocabulary, id));
      texts.add({&byte, 1});
    } else if (vocabulary.kinds[id] == TokenKind::kControl) {
      texts.add(vocabulary.tokens[id]);
    } else {
      texts.add(with_spaces(vocabulary.tokens[id]));
    }
  }
  return texts;
}

bool are_line_breaks(std::string_view text) {
  return !text.empty() && text.find_first_not_of('\n') == std::string_view::npos;
}

bool is_one_character(std::string_view text) {
  if (text.empty()) return false;
  const CodePoint c = decode_utf8(text, 0);
  return c.valid && c.length == text.size();
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> CharacterBpeTokenizer::create(Vocabulary vocabulary) {
  OCTAVO_TRY_VOID(validate(vocabulary));
  settle_kinds(vocabulary);
  settle_unknown(vocabulary);
  OCTAVO_TRY(TokenTexts texts, checked_texts_of(vocabulary));
  OCTAVO_TRY(std::vector<TokenId> byte_tokens, find_byte_tokens(vocabulary));
  if (byte_tokens.empty() && !vocabulary.unknown_token_id) {
    return unsupported_vocabulary("tokenizer.ggml.tokens",
                                  "has neither byte tokens nor an unknown token for missing characters");
  }
  OCTAVO_TRY(MergingParts parts, find_parts(vocabulary));
  return std::unique_ptr<Tokenizer>(
      new CharacterBpeTokenizer(vocabulary, std::move(texts), std::move(parts), std::move(byte_tokens)));
}

CharacterBpeTokenizer::CharacterBpeTokenizer(const Vocabulary& vocabulary, TokenTexts texts,
                                             MergingParts parts, std::vector<TokenId> byte_tokens)
    : MergingTokenizer(vocabulary, std::move(texts), std::move(parts)),
      byte_tokens_(std::move(byte_tokens)),
      unknown_token_id_(vocabulary.unknown_token_id.value_or(-1)) {
  index_tokens();
}

void CharacterBpeTokenizer::index_tokens() {
  for (TokenId id = 0; id < vocabulary_size(); ++id) {
    const std::string_view text = token_bytes(id);
    if (kind(id) == TokenKind::kNormal && (is_one_character(text) || are_line_breaks(text)))
      pieces_[text] = id;
  }
}

// A character is spelled by as many bytes as it has, but U+2581, which is a space.
std::size_t CharacterBpeTokenizer::count_bytes(std::string_view stretch) const {
  return byte_tokens_.empty() ? 0 : with_spaces(stretch).size();
}

void CharacterBpeTokenizer::encode_between_words(std::string_view text, PieceMerger& merger,
                                                 std::vector<TokenId>& out) const {
  while (!text.empty() && !merger.is_stopped()) {
    const std::size_t end = text[0] == '\n' ? text.find_first_not_of('\n') : text.find('\n');
    const std::string_view piece = text.substr(0, end);
    encode_piece(piece, merger, out);
    text.remove_prefix(piece.size());
  }
}

void CharacterBpeTokenizer::encode_piece(std::string_view piece, PieceMerger& merger,
                                         std::vector<TokenId>& out) const {
  if (are_line_breaks(piece)) {
    if (const auto run = pieces_.find(piece); run != pieces_.end()) {
      out.push_back(run->second);
      return;
    }
  }
  for (std::size_t i = 0; i < piece.size();) {
    const CodePoint c = decode_utf8(piece, i);
    const std::string_view character = piece.substr(i, c.length);
    const auto token = pieces_.find(character == kSpelledSpace ? std::string_view(" ") : character);
    if (c.valid && token != pieces_.end()) {
      merger.add(token->second);
    } else {
      add_bytes(character, merger);
    }
    i += c.length;
  }
  merger.finish(out);
}

void CharacterBpeTokenizer::add_bytes(std::string_view character, PieceMerger& merger) const {
  if (byte_tokens_.empty()) {
    merger.add(unknown_token_id_);
    return;
  }
  for (const char byte : character) merger.add(byte_tokens_[static_cast<unsigned char>(byte)]);
}

}  // namespace octavo::tokenizer
