// The four classes of characters that split patterns know, and Python's idea of white space and case for
// templates. Categories come from utf8proc. What Unicode added after utf8proc 2.8 (Unicode 15.0), up to 16.0,
// is listed here, so that an older system library splits as a newer one and as Hugging Face's tokenizers do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace octavo {

// Disjoint: \p{L}, \p{N}, \s and everything else. What is not valid UTF-8 counts as one U+FFFD, which is
// kOther.
enum class CharacterClass : std::uint8_t { kLetter, kNumber, kSpace, kOther };

CharacterClass classify(char32_t c);

// What the newer patterns tell apart beside: general categories of Unicode, by their first letter or both.
enum class Category : std::uint8_t { kLu, kLl, kLt, kLm, kLo, kM, kN, kP, kS, kOther };

Category categorise(char32_t c);

struct Character {
  char32_t value;
  std::size_t length;  // bytes
  CharacterClass kind;
};

// REQUIRES: offset < text.size()
Character read_character(std::string_view text, std::size_t offset);

// str.isspace() of Python: \s above, and the four separators U+001C..001F.
bool is_python_space(char32_t c);

// Simple case mappings: one character to one character.
char32_t to_upper(char32_t c);
char32_t to_lower(char32_t c);
char32_t to_title(char32_t c);

bool is_upper(char32_t c);  // a capital letter
bool is_lower(char32_t c);

}  // namespace octavo
