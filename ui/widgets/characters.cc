#include "ui/widgets/characters.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <iterator>

#include "engine/base/text.h"

namespace octavo::ui {
namespace {

struct CharacterRange {
  char32_t first, last;
};

// Ascending.
constexpr CharacterRange kMarked[] = {{0x00, 0x08},      {0x0b, 0x1f},     {0x7f, 0x9f},     {0xad, 0xad},
                                      {0x34f, 0x34f},    {0x61c, 0x61c},   {0x115f, 0x1160}, {0x17b4, 0x17b5},
                                      {0x180e, 0x180e},  {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f},
                                      {0x3164, 0x3164},  {0xfeff, 0xfeff}, {0xffa0, 0xffa0}, {0xfff0, 0xfffb},
                                      {0xe0000, 0xe0fff}};

constexpr CharacterRange kIdeographic[] = {{0x1100, 0x115e}, {0x2e80, 0x303e}, {0x3041, 0x33ff},
                                           {0x3400, 0x4dbf}, {0x4e00, 0x9fff}, {0xa000, 0xa4cf},
                                           {0xac00, 0xd7a3}, {0xf900, 0xfaff}, {0xfe30, 0xfe4f},
                                           {0xff00, 0xff60}, {0xffe0, 0xffe6}, {0x20000, 0x3fffd}};

constexpr CharacterRange kEmoji[] = {{0x2600, 0x27bf},   {0x2b00, 0x2bff},   {0x1f000, 0x1f0ff},
                                     {0x1f100, 0x1f1ff}, {0x1f200, 0x1f2ff}, {0x1f300, 0x1f6ff},
                                     {0x1f700, 0x1faff}};

constexpr CharacterRange kCombining[] = {
    {0x300, 0x36f},   {0x483, 0x489},   {0x591, 0x5bd},   {0x610, 0x61a},   {0x64b, 0x65f},
    {0x900, 0x903},   {0x93a, 0x94f},   {0xe31, 0xe31},   {0xe34, 0xe3a},   {0xe47, 0xe4e},
    {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff}, {0x20d0, 0x20ff}, {0xfe20, 0xfe2f}, {0x1f3fb, 0x1f3ff}};

template <std::size_t kCount>
bool contains(const CharacterRange (&ranges)[kCount], char32_t character) {
  const auto* found =
      std::lower_bound(std::begin(ranges), std::end(ranges), character,
                       [](const CharacterRange& range, char32_t c) { return range.last < c; });
  return found != std::end(ranges) && found->first <= character;
}

constexpr std::array<const char*, 32> kControlNames = {"NUL", "SOH", "STX", "ETX", "EOT", "ENQ", "ACK", "BEL",
                                                       "BS",  "HT",  "LF",  "VT",  "FF",  "CR",  "SO",  "SI",
                                                       "DLE", "DC1", "DC2", "DC3", "DC4", "NAK", "SYN", "ETB",
                                                       "CAN", "EM",  "SUB", "ESC", "FS",  "GS",  "RS",  "US"};

struct NamedMark {
  char32_t character;
  const char* name;
};
constexpr NamedMark kNamedMarks[] = {
    {0x7f, "DEL"},   {0xad, "SHY"},   {0x61c, "ALM"},   {0x200b, "ZWSP"}, {0x200c, "ZWNJ"}, {0x200d, "ZWJ"},
    {0x200e, "LRM"}, {0x200f, "RLM"}, {0x2028, "LSEP"}, {0x2029, "PSEP"}, {0x202a, "LRE"},  {0x202b, "RLE"},
    {0x202c, "PDF"}, {0x202d, "LRO"}, {0x202e, "RLO"},  {0x2060, "WJ"},   {0x2066, "LRI"},  {0x2067, "RLI"},
    {0x2068, "FSI"}, {0x2069, "PDI"}, {0xfeff, "BOM"}};

}  // namespace

bool has_mark(char32_t character) { return contains(kMarked, character); }

std::string mark_of(char32_t character) {
  if (!has_mark(character)) return {};
  if (character < kControlNames.size()) return kControlNames[character];
  for (const NamedMark& mark : kNamedMarks) {
    if (mark.character == character) return mark.name;
  }
  char name[16];
  std::snprintf(name, sizeof name, "U+%04X", static_cast<unsigned int>(character));
  return name;
}

std::string visible_text(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = decode_utf8(text, at);
    at += point.length;
    if (point.value == '\t' || point.value == '\n') {
      result += ' ';
    } else if (has_mark(point.value)) {
      result.append("[").append(mark_of(point.value)).append("]");
    } else {
      append_utf8(result, point.value);
    }
  }
  return result;
}

bool is_ideographic(char32_t character) { return character >= 0x1100 && contains(kIdeographic, character); }

bool is_closing_punctuation(char32_t character) {
  constexpr std::u32string_view kClosing = U"、。，．：；？！）」』】〕〉》〗｝］・ー々…";
  return kClosing.find(character) != std::u32string_view::npos;
}

bool is_emoji(char32_t character) { return character >= 0x2600 && contains(kEmoji, character); }

bool is_variation_selector(char32_t character) { return character >= 0xfe00 && character <= 0xfe0f; }

bool is_combining(char32_t character) { return character >= 0x300 && contains(kCombining, character); }

bool is_word(char32_t character) {
  if (character < 0x80) {
    return (character >= '0' && character <= '9') || (character >= 'a' && character <= 'z') ||
           (character >= 'A' && character <= 'Z') || character == '_';
  }
  const utf8proc_category_t category = utf8proc_category(static_cast<utf8proc_int32_t>(character));
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_NO;
}

// Through the capital and back, so that the two small sigmas meet.
char32_t fold_case(char32_t character) {
  if (character < 0x80) return character >= 'A' && character <= 'Z' ? character + 32 : character;
  return static_cast<char32_t>(utf8proc_tolower(utf8proc_toupper(static_cast<utf8proc_int32_t>(character))));
}

}  // namespace octavo::ui
