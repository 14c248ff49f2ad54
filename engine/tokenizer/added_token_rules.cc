#include "engine/tokenizer/added_token_rules.h"

#include <algorithm>

#include "engine/base/text.h"
#include "engine/base/unicode_classes.h"

namespace octavo::tokenizer {
namespace {

std::size_t start_of_last_character(std::string_view text) {
  std::size_t start = text.size() - 1;
  while (start > 0 && continues_utf8(text[start])) --start;
  return start;
}

// \w, but for a few letters that Unicode counts as symbols.
bool is_in_word(std::string_view text, std::size_t offset) {
  const CodePoint c = decode_utf8(text, offset);
  const CharacterClass kind = classify(c.value);
  return kind == CharacterClass::kLetter || kind == CharacterClass::kNumber || c.value == '_' ||
         categorise(c.value) == Category::kM;
}

bool stands_alone(std::string_view text, const SettledTokens& found) {
  const bool continues_left =
      found.begin > 0 && is_in_word(text, start_of_last_character(text.substr(0, found.begin)));
  const bool continues_right = found.end < text.size() && is_in_word(text, found.end);
  return !continues_left && !continues_right;
}

std::size_t spaces_before(std::string_view text, std::size_t end, std::size_t limit) {
  while (end > limit) {
    const std::size_t start = start_of_last_character(text.substr(0, end));
    if (start < limit || read_character(text, start).kind != CharacterClass::kSpace) break;
    end = start;
  }
  return end;
}

std::size_t spaces_after(std::string_view text, std::size_t begin, std::size_t limit) {
  while (begin < limit) {
    const Character c = read_character(text, begin);
    if (c.kind != CharacterClass::kSpace || begin + c.length > limit) break;
    begin += c.length;
  }
  return begin;
}

}  // namespace

AddedTokenRules::AddedTokenRules(std::span<const AddedTokenRule> rules) : rules_(rules.begin(), rules.end()) {
  std::ranges::sort(rules_, {}, &AddedTokenRule::token_id);
}

const AddedTokenRule* AddedTokenRules::find(TokenId id) const {
  const auto rule = std::ranges::lower_bound(rules_, id, {}, &AddedTokenRule::token_id);
  return rule != rules_.end() && rule->token_id == id ? &*rule : nullptr;
}

bool AddedTokenRules::is_in_normalized_text(TokenId id) const {
  const AddedTokenRule* const rule = find(id);
  return rule != nullptr && rule->in_normalized_text;
}

void AddedTokenRules::apply(std::string_view text, std::vector<SettledTokens>& found) const {
  if (rules_.empty() || found.empty()) return;
  const auto rule_of = [&](const SettledTokens& tokens) {
    return tokens.token_ids.size() == 1 ? find(tokens.token_ids[0]) : nullptr;
  };
  std::erase_if(found, [&](const SettledTokens& tokens) {
    const AddedTokenRule* const rule = rule_of(tokens);
    return rule != nullptr && rule->is_whole_word && !stands_alone(text, tokens);
  });
  for (std::size_t i = 0; i < found.size(); ++i) {
    const AddedTokenRule* const rule = rule_of(found[i]);
    if (rule == nullptr) continue;
    const std::size_t first = i == 0 ? 0 : found[i - 1].end;
    const std::size_t last = i + 1 == found.size() ? text.size() : found[i + 1].begin;
    if (rule->strips_left) found[i].begin = spaces_before(text, found[i].begin, first);
    if (rule->strips_right) found[i].end = spaces_after(text, found[i].end, last);
  }
}

}  // namespace octavo::tokenizer
