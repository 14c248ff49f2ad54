#include "engine/tokenizer/unicode_classes.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "engine/base/text.h"

namespace octavo::tokenizer {
namespace {

struct Range {
  char32_t first, last;
};

// Added by Unicode 15.1 and 16.0.
constexpr Range kNewLetters[] = {
    {0x1c89, 0x1c8a},   {0xa7cb, 0xa7cd},   {0xa7da, 0xa7dc},   {0x105c0, 0x105f3}, {0x10d4a, 0x10d65},
    {0x10d6f, 0x10d85}, {0x10ec2, 0x10ec4}, {0x11380, 0x11389}, {0x1138b, 0x1138b}, {0x1138e, 0x1138e},
    {0x11390, 0x113b5}, {0x113b7, 0x113b7}, {0x113d1, 0x113d1}, {0x113d3, 0x113d3}, {0x11bc0, 0x11be0},
    {0x13460, 0x143fa}, {0x16100, 0x1611d}, {0x16d40, 0x16d6c}, {0x18cff, 0x18cff}, {0x1e5d0, 0x1e5ed},
    {0x1e5f0, 0x1e5f0}, {0x2ebf0, 0x2ee5d},
};
constexpr Range kNewNumbers[] = {
    {0x10d40, 0x10d49}, {0x116d0, 0x116e3}, {0x11bf0, 0x11bf9}, {0x16130, 0x16139},
    {0x16d70, 0x16d79}, {0x1ccf0, 0x1ccf9}, {0x1e5f1, 0x1e5fa},
};

template <std::size_t kSize>
bool contains(const Range (&ranges)[kSize], char32_t c) {
  const Range* range = std::lower_bound(std::begin(ranges), std::end(ranges), c,
                                        [](const Range& r, char32_t value) { return r.last < value; });
  return range != std::end(ranges) && c >= range->first;
}

// White_Space of Unicode: what \s means to the regular expressions of Hugging Face's tokenizers.
bool is_white_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0d) || c == 0x20 || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

utf8proc_category_t category(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }

CharacterClass classify_by_category(char32_t c) {
  switch (category(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO: return CharacterClass::kLetter;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO: return CharacterClass::kNumber;
    case UTF8PROC_CATEGORY_CN:
      if (contains(kNewLetters, c)) return CharacterClass::kLetter;
      return contains(kNewNumbers, c) ? CharacterClass::kNumber : CharacterClass::kOther;
    default: return is_white_space(c) ? CharacterClass::kSpace : CharacterClass::kOther;
  }
}

// Most text is ASCII.
const std::array<CharacterClass, 128>& ascii_classes() {
  static const std::array<CharacterClass, 128> classes = [] {
    std::array<CharacterClass, 128> table{};
    for (char32_t c = 0; c < 128; ++c) table[c] = classify_by_category(c);
    return table;
  }();
  return classes;
}

}  // namespace

CharacterClass classify(char32_t c) { return c < 128 ? ascii_classes()[c] : classify_by_category(c); }

Character read_character(std::string_view text, std::size_t offset) {
  const auto byte = static_cast<unsigned char>(text[offset]);
  if (byte < 128) return {byte, 1, ascii_classes()[byte]};
  const CodePoint c = decode_utf8(text, offset);
  return {c.value, c.length, classify_by_category(c.value)};
}

bool is_python_space(char32_t c) { return is_white_space(c) || (c >= 0x1c && c <= 0x1f); }

char32_t to_upper(char32_t c) {
  return static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c)));
}
char32_t to_lower(char32_t c) {
  return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
}
char32_t to_title(char32_t c) {
  return static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c)));
}

bool is_upper(char32_t c) { return category(c) == UTF8PROC_CATEGORY_LU; }
bool is_lower(char32_t c) { return category(c) == UTF8PROC_CATEGORY_LL; }

}  // namespace octavo::tokenizer
