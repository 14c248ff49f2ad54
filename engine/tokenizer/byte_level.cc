#include "engine/tokenizer/byte_level.h"

#include <array>

#include "engine/base/text.h"

namespace octavo::tokenizer {
namespace {

constexpr char32_t kSpellingEnd = 0x144;  // one past the highest spelling

constexpr bool stands_for_itself(char32_t byte) {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || (byte >= 0xae && byte <= 0xff);
}

struct Spellings {
  std::array<char32_t, 256> character{};
  std::array<std::int16_t, kSpellingEnd> byte{};  // -1: spells none
};

constexpr Spellings make_spellings() {
  Spellings spellings;
  spellings.byte.fill(-1);
  char32_t next = 0x100;
  for (char32_t byte = 0; byte < 256; ++byte) {
    const char32_t character = stands_for_itself(byte) ? byte : next++;
    spellings.character[byte] = character;
    spellings.byte[character] = static_cast<std::int16_t>(byte);
  }
  return spellings;
}

constexpr Spellings kSpellings = make_spellings();

}  // namespace

char32_t byte_spelling(std::uint8_t byte) { return kSpellings.character[byte]; }

std::optional<std::string> spelled_bytes(std::string_view spelling) {
  std::string bytes;
  for (std::size_t i = 0; i < spelling.size();) {
    const CodePoint c = decode_utf8(spelling, i);
    if (!c.valid || c.value >= kSpellingEnd || kSpellings.byte[c.value] < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(static_cast<unsigned char>(kSpellings.byte[c.value])));
    i += c.length;
  }
  return bytes;
}

}  // namespace octavo::tokenizer
