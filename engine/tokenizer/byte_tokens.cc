#include "engine/tokenizer/byte_tokens.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/text.h"
#include "engine/tokenizer/vocabulary_error.h"

namespace octavo::tokenizer {
namespace {

constexpr std::string_view kTokensKey = "tokenizer.ggml.tokens";

std::optional<int> upper_hex(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

// The N of <0xN>, two upper-case digits.
std::optional<int> named_byte(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return std::nullopt;
  const auto high = upper_hex(text[3]), low = upper_hex(text[4]);
  if (!high || !low) return std::nullopt;
  return *high * 16 + *low;
}

}  // namespace

Result<char> byte_of_token(const Vocabulary& vocabulary, std::size_t id) {
  const std::string& text = vocabulary.tokens[id];
  if (const std::optional<int> byte = named_byte(text))
    return static_cast<char>(static_cast<unsigned char>(*byte));
  return damaged_vocabulary(kTokensKey, "[" + std::to_string(id) + "] \"" + escape_for_message(text, 40) +
                                            "\" is typed as a byte but is not written like <0x0A>");
}

Result<std::vector<TokenId>> find_byte_tokens(const Vocabulary& vocabulary) {
  std::vector<TokenId> byte_tokens(256, -1);
  for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    if (vocabulary.kinds[id] != TokenKind::kByte) continue;
    OCTAVO_TRY(const char byte, byte_of_token(vocabulary, id));
    byte_tokens[static_cast<unsigned char>(byte)] = static_cast<TokenId>(id);
  }
  const auto missing = std::ranges::count(byte_tokens, -1);
  if (missing == 0) return byte_tokens;
  if (missing == 256) return std::vector<TokenId>();
  return damaged_vocabulary(kTokensKey, "lacks " + std::to_string(missing) + " of the 256 byte tokens");
}

}  // namespace octavo::tokenizer
