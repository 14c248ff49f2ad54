#include "engine/tokenizer/sentencepiece_pieces.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "engine/base/text.h"
#include "engine/tokenizer/byte_tokens.h"
#include "engine/tokenizer/sentencepiece_space.h"
#include "engine/tokenizer/special_tokens.h"
#include "engine/tokenizer/vocabulary_error.h"

namespace octavo::tokenizer {
namespace {

constexpr std::string_view kTokensKey = "tokenizer.ggml.tokens";

std::string quoted(std::size_t id, const std::string& text) {
  std::string message = "[";
  return message.append(std::to_string(id)).append("] \"").append(escape_for_message(text, 40)) + "\"";
}

bool is_text(std::string_view text) {
  if (text.empty()) return false;
  for (std::size_t i = 0; i < text.size();) {
    const CodePoint c = decode_utf8(text, i);
    if (!c.valid) return false;
    i += c.length;
  }
  return true;
}

Result<Piece> make_piece(const Vocabulary& vocabulary, std::size_t id) {
  const std::string& text = vocabulary.tokens[id];
  const TokenKind kind = vocabulary.kinds[id];
  if (kind == TokenKind::kByte) {
    OCTAVO_TRY(const char byte, byte_of_token(vocabulary, id));
    return Piece{std::string(1, byte), PieceRole::kByte};
  }
  if (kind == TokenKind::kControl || !is_text(text)) return Piece{};
  if (text.size() > kMaxPieceBytes) {
    return unsupported_vocabulary(kTokensKey, quoted(id, text) + " has " + std::to_string(text.size()) +
                                                  " bytes; at most " + std::to_string(kMaxPieceBytes) +
                                                  " are supported");
  }
  if (kind == TokenKind::kUnused) return Piece{text, PieceRole::kUnused};
  if (kind == TokenKind::kNormal) return Piece{text, PieceRole::kText};
  // The library's index of user-defined pieces holds no zero bytes.
  if (is_marker(text) || text.find('\0') != std::string::npos) return Piece{};
  // Converters write the spaces of user-defined tokens as spaces.
  Piece piece{.text = {}, .role = PieceRole::kUserDefined};
  append_spelled(piece.text, text);
  return piece;
}

bool comes_from_text(PieceRole role) { return role != PieceRole::kByte && role != PieceRole::kNever; }

void keep_last_of_equals(std::vector<Piece>& pieces) {
  std::unordered_map<std::string_view, std::size_t> last;
  last.reserve(pieces.size());
  for (std::size_t id = 0; id < pieces.size(); ++id) {
    if (comes_from_text(pieces[id].role)) last[pieces[id].text] = id;
  }
  for (std::size_t id = 0; id < pieces.size(); ++id) {
    // The text stays until all are through: `last` looks at it.
    if (comes_from_text(pieces[id].role) && last.at(pieces[id].text) != id)
      pieces[id].role = PieceRole::kNever;
  }
}

Result<void> check_user_defined(const std::vector<Piece>& pieces) {
  std::vector<std::string_view> texts;
  for (const Piece& piece : pieces) {
    if (piece.role == PieceRole::kUserDefined) texts.push_back(piece.text);
  }
  if (texts.size() > kMaxUserDefinedPieces) {
    return unsupported_vocabulary(kTokensKey, "holds " + std::to_string(texts.size()) +
                                                  " user-defined tokens; at most " +
                                                  std::to_string(kMaxUserDefinedPieces) + " are supported");
  }
  std::ranges::sort(texts);
  std::vector<std::string_view> prefixes;  // of the text at hand, each of the next
  for (const std::string_view text : texts) {
    while (!prefixes.empty() && !text.starts_with(prefixes.back())) prefixes.pop_back();
    prefixes.push_back(text);
    if (prefixes.size() > kMaxNestedPieces) {
      return unsupported_vocabulary(kTokensKey, "holds more than " + std::to_string(kMaxNestedPieces) +
                                                    " user-defined tokens, each a prefix of the next");
    }
  }
  return {};
}

}  // namespace

void settle_unknown(Vocabulary& vocabulary) {
  for (std::size_t id = 0; id < vocabulary.kinds.size(); ++id) {
    if (vocabulary.kinds[id] != TokenKind::kUnknown) continue;
    if (!vocabulary.unknown_token_id) vocabulary.unknown_token_id = static_cast<TokenId>(id);
    vocabulary.kinds[id] = TokenKind::kControl;
  }
  if (vocabulary.unknown_token_id) {
    vocabulary.kinds[static_cast<std::size_t>(*vocabulary.unknown_token_id)] = TokenKind::kControl;
  }
}

Result<CheckedPieces> check_pieces(const Vocabulary& vocabulary) {
  CheckedPieces checked;
  checked.pieces.reserve(vocabulary.tokens.size());
  for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    OCTAVO_TRY(Piece piece, make_piece(vocabulary, id));
    checked.pieces.push_back(std::move(piece));
  }
  keep_last_of_equals(checked.pieces);
  OCTAVO_TRY_VOID(check_user_defined(checked.pieces));
  OCTAVO_TRY(checked.byte_tokens, find_byte_tokens(vocabulary));
  if (checked.byte_tokens.empty() && !vocabulary.unknown_token_id) {
    return unsupported_vocabulary(kTokensKey,
                                  "has neither byte tokens nor an unknown token for missing characters");
  }
  return checked;
}

}  // namespace octavo::tokenizer
