#include "engine/base/unicode_classes.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "engine/base/text.h"

namespace octavo {
namespace {

// White_Space of Unicode: what \s means to the regular expressions of Hugging Face's tokenizers.
bool is_white_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0d) || c == 0x20 || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

utf8proc_category_t category(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }

struct CategorisedRange {
  char32_t first, last;
  Category category;
};

// Added by Unicode 15.1 and 16.0.
constexpr CategorisedRange kNewCategories[] = {
    {0x897, 0x897, Category::kM},      {0x1b4e, 0x1b4f, Category::kP},    {0x1b7f, 0x1b7f, Category::kP},
    {0x1c89, 0x1c89, Category::kLu},   {0x1c8a, 0x1c8a, Category::kLl},   {0x2427, 0x2429, Category::kS},
    {0x2ffc, 0x2fff, Category::kS},    {0x31e4, 0x31e5, Category::kS},    {0x31ef, 0x31ef, Category::kS},
    {0xa7cb, 0xa7cc, Category::kLu},   {0xa7cd, 0xa7cd, Category::kLl},   {0xa7da, 0xa7da, Category::kLu},
    {0xa7db, 0xa7db, Category::kLl},   {0xa7dc, 0xa7dc, Category::kLu},   {0x105c0, 0x105f3, Category::kLo},
    {0x10d40, 0x10d49, Category::kN},  {0x10d4a, 0x10d4d, Category::kLo}, {0x10d4e, 0x10d4e, Category::kLm},
    {0x10d4f, 0x10d4f, Category::kLo}, {0x10d50, 0x10d65, Category::kLu}, {0x10d69, 0x10d6d, Category::kM},
    {0x10d6e, 0x10d6e, Category::kP},  {0x10d6f, 0x10d6f, Category::kLm}, {0x10d70, 0x10d85, Category::kLl},
    {0x10d8e, 0x10d8f, Category::kS},  {0x10ec2, 0x10ec4, Category::kLo}, {0x10efc, 0x10efc, Category::kM},
    {0x11380, 0x11389, Category::kLo}, {0x1138b, 0x1138b, Category::kLo}, {0x1138e, 0x1138e, Category::kLo},
    {0x11390, 0x113b5, Category::kLo}, {0x113b7, 0x113b7, Category::kLo}, {0x113b8, 0x113c0, Category::kM},
    {0x113c2, 0x113c2, Category::kM},  {0x113c5, 0x113c5, Category::kM},  {0x113c7, 0x113ca, Category::kM},
    {0x113cc, 0x113d0, Category::kM},  {0x113d1, 0x113d1, Category::kLo}, {0x113d2, 0x113d2, Category::kM},
    {0x113d3, 0x113d3, Category::kLo}, {0x113d4, 0x113d5, Category::kP},  {0x113d7, 0x113d8, Category::kP},
    {0x113e1, 0x113e2, Category::kM},  {0x116d0, 0x116e3, Category::kN},  {0x11bc0, 0x11be0, Category::kLo},
    {0x11be1, 0x11be1, Category::kP},  {0x11bf0, 0x11bf9, Category::kN},  {0x11f5a, 0x11f5a, Category::kM},
    {0x13460, 0x143fa, Category::kLo}, {0x16100, 0x1611d, Category::kLo}, {0x1611e, 0x1612f, Category::kM},
    {0x16130, 0x16139, Category::kN},  {0x16d40, 0x16d42, Category::kLm}, {0x16d43, 0x16d6a, Category::kLo},
    {0x16d6b, 0x16d6c, Category::kLm}, {0x16d6d, 0x16d6f, Category::kP},  {0x16d70, 0x16d79, Category::kN},
    {0x18cff, 0x18cff, Category::kLo}, {0x1cc00, 0x1ccef, Category::kS},  {0x1ccf0, 0x1ccf9, Category::kN},
    {0x1cd00, 0x1ceb3, Category::kS},  {0x1e5d0, 0x1e5ed, Category::kLo}, {0x1e5ee, 0x1e5ef, Category::kM},
    {0x1e5f0, 0x1e5f0, Category::kLo}, {0x1e5f1, 0x1e5fa, Category::kN},  {0x1e5ff, 0x1e5ff, Category::kP},
    {0x1f8b2, 0x1f8bb, Category::kS},  {0x1f8c0, 0x1f8c1, Category::kS},  {0x1fa89, 0x1fa89, Category::kS},
    {0x1fa8f, 0x1fa8f, Category::kS},  {0x1fabe, 0x1fabe, Category::kS},  {0x1fac6, 0x1fac6, Category::kS},
    {0x1fadc, 0x1fadc, Category::kS},  {0x1fadf, 0x1fadf, Category::kS},  {0x1fae9, 0x1fae9, Category::kS},
    {0x1fbcb, 0x1fbef, Category::kS},  {0x2ebf0, 0x2ee5d, Category::kLo},
};

Category categorise_new(char32_t c) {
  const auto* const range =
      std::lower_bound(std::begin(kNewCategories), std::end(kNewCategories), c,
                       [](const CategorisedRange& r, char32_t value) { return r.last < value; });
  return range != std::end(kNewCategories) && c >= range->first ? range->category : Category::kOther;
}

Category categorise_any(char32_t c) {
  switch (category(c)) {
    case UTF8PROC_CATEGORY_LU: return Category::kLu;
    case UTF8PROC_CATEGORY_LL: return Category::kLl;
    case UTF8PROC_CATEGORY_LT: return Category::kLt;
    case UTF8PROC_CATEGORY_LM: return Category::kLm;
    case UTF8PROC_CATEGORY_LO: return Category::kLo;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME: return Category::kM;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO: return Category::kN;
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO: return Category::kP;
    case UTF8PROC_CATEGORY_SM:
    case UTF8PROC_CATEGORY_SC:
    case UTF8PROC_CATEGORY_SK:
    case UTF8PROC_CATEGORY_SO: return Category::kS;
    case UTF8PROC_CATEGORY_CN: return categorise_new(c);
    default: return Category::kOther;
  }
}

CharacterClass classify_by_category(char32_t c) {
  switch (categorise_any(c)) {
    case Category::kLu:
    case Category::kLl:
    case Category::kLt:
    case Category::kLm:
    case Category::kLo: return CharacterClass::kLetter;
    case Category::kN: return CharacterClass::kNumber;
    default: return is_white_space(c) ? CharacterClass::kSpace : CharacterClass::kOther;
  }
}

// Most text is ASCII.
const std::array<Category, 128>& ascii_categories() {
  static const std::array<Category, 128> categories = [] {
    std::array<Category, 128> table{};
    for (char32_t c = 0; c < 128; ++c) table[c] = categorise_any(c);
    return table;
  }();
  return categories;
}

const std::array<CharacterClass, 128>& ascii_classes() {
  static const std::array<CharacterClass, 128> classes = [] {
    std::array<CharacterClass, 128> table{};
    for (char32_t c = 0; c < 128; ++c) table[c] = classify_by_category(c);
    return table;
  }();
  return classes;
}

}  // namespace

Category categorise(char32_t c) { return c < 128 ? ascii_categories()[c] : categorise_any(c); }

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

}  // namespace octavo
