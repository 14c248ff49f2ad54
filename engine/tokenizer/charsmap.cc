#include "engine/tokenizer/charsmap.h"

#include <algorithm>

#include "engine/base/text.h"
#include "engine/tokenizer/vocabulary_error.h"

namespace octavo::tokenizer {
namespace {

constexpr std::string_view kKey = "tokenizer.ggml.precompiled_charsmap";

std::uint32_t read_u32(std::string_view bytes, std::size_t offset) {
  std::uint32_t value = 0;
  for (std::size_t i = 4; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[offset + i]);
  return value;
}

// Fields of a unit, as in Darts-clone. A unit that holds a value has the highest bit set, and so the label of
// no byte.
bool has_leaf(std::uint32_t unit) { return (unit >> 8 & 1u) != 0; }
std::uint32_t value_of(std::uint32_t unit) { return unit & 0x7fffffffu; }
std::uint32_t label_of(std::uint32_t unit) { return unit & 0x800000ffu; }
std::size_t offset_of(std::uint32_t unit) {
  return static_cast<std::size_t>(unit >> 10) << ((unit & 0x200u) >> 6);
}

}  // namespace

Result<Charsmap> Charsmap::parse(std::string_view bytes) {
  if (bytes.size() > kMaxBytes) {
    return unsupported_vocabulary(kKey, "has " + std::to_string(bytes.size()) + " bytes; at most " +
                                            std::to_string(kMaxBytes) + " are supported");
  }
  if (bytes.size() < 4) return damaged_vocabulary(kKey, "is too short");
  const std::size_t trie_bytes = read_u32(bytes, 0);
  const std::string_view rest = bytes.substr(4);
  if (trie_bytes == 0 || trie_bytes % 1024 != 0 || trie_bytes >= rest.size())
    return damaged_vocabulary(kKey, "does not hold the whole trie");
  Charsmap charsmap;
  charsmap.replacements_ = std::string(rest.substr(trie_bytes));
  if (charsmap.replacements_.back() != '\0') return damaged_vocabulary(kKey, "ends inside its last rule");
  if (sanitise_utf8(charsmap.replacements_) != charsmap.replacements_)
    return damaged_vocabulary(kKey, "has rules that are not valid UTF-8");
  charsmap.units_.resize(trie_bytes / 4);
  for (std::size_t i = 0; i < charsmap.units_.size(); ++i) charsmap.units_[i] = read_u32(rest, 4 * i);
  return charsmap;
}

std::optional<Charsmap::Match> Charsmap::longest(std::string_view text) const {
  return find(text, Wanted::kLongest);
}

std::optional<Charsmap::Match> Charsmap::shortest(std::string_view text) const {
  return find(text, Wanted::kShortest);
}

std::optional<Charsmap::Match> Charsmap::find(std::string_view text, Wanted wanted) const {
  if (units_.empty()) return std::nullopt;
  std::optional<Match> best;
  std::size_t position = offset_of(units_[0]);
  for (std::size_t i = 0; i < std::min(text.size(), kMaxRuleBytes); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    position ^= byte;
    if (position >= units_.size() || label_of(units_[position]) != byte) break;
    const std::uint32_t unit = units_[position];
    position ^= offset_of(unit);
    if (!has_leaf(unit)) continue;
    if (const auto replacement = replacement_at(position)) best = Match{i + 1, *replacement};
    if (best && wanted == Wanted::kShortest) break;
  }
  return best;
}

std::optional<std::string_view> Charsmap::replacement_at(std::size_t unit) const {
  if (unit >= units_.size()) return std::nullopt;
  const std::size_t begin = value_of(units_[unit]);
  if (begin >= replacements_.size()) return std::nullopt;
  const bool inside_character = continues_utf8(replacements_[begin]);
  const std::string_view candidate = std::string_view(replacements_).substr(begin, kMaxReplacementBytes + 1);
  const std::size_t length = candidate.find('\0');
  if (inside_character || length == std::string_view::npos) return std::nullopt;
  return candidate.substr(0, length);
}

}  // namespace octavo::tokenizer
