#include "engine/tokenizer/special_tokens.h"

#include <algorithm>
#include <numeric>

#include "engine/base/text.h"
#include "engine/tokenizer/sentencepiece_space.h"

namespace octavo::tokenizer {
namespace {

Error too_long(TokenId token_id, std::string_view text) {
  return {ErrorCode::kUnsupported,
          "tokenizer.ggml.tokens[" + std::to_string(token_id) + "] \"" + escape_for_message(text, 40) +
              "\" is a special token of " + std::to_string(text.size()) + " bytes; at most " +
              std::to_string(SpecialTokens::kMaxBytes) + " are supported: choose another model",
          "tokenizer.ggml.tokens"};
}

unsigned char byte_at(const std::string& text, std::size_t i) { return static_cast<unsigned char>(text[i]); }

// Without the spaces around it, which sentencepiece spells U+2581.
std::string_view trim_spaces(std::string_view text) {
  constexpr std::string_view kSpellings[] = {" ", kSpelledSpace};
  for (const std::string_view space : kSpellings) {
    while (text.starts_with(space)) text.remove_prefix(space.size());
    while (text.ends_with(space)) text.remove_suffix(space.size());
  }
  return text;
}

}  // namespace

bool is_marker(std::string_view text) {
  text = trim_spaces(text);
  if (text.size() < 3) return false;
  return (text.front() == '<' && text.back() == '>') || (text.front() == '[' && text.back() == ']');
}

Result<SpecialTokens> SpecialTokens::collect(const Vocabulary& vocabulary,
                                             bool (*is_special)(TokenKind kind, std::string_view text)) {
  std::vector<std::string> texts;
  std::vector<TokenId> token_ids;
  for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    if (!is_special(vocabulary.kinds[id], vocabulary.tokens[id])) continue;
    texts.push_back(vocabulary.tokens[id]);
    token_ids.push_back(static_cast<TokenId>(id));
  }
  return create(std::move(texts), std::move(token_ids));
}

Result<SpecialTokens> SpecialTokens::create(std::vector<std::string> texts, std::vector<TokenId> token_ids) {
  std::vector<std::size_t> order(texts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const int compared = texts[a].compare(texts[b]);
    return compared != 0 ? compared < 0 : token_ids[a] > token_ids[b];
  });

  SpecialTokens tokens;
  for (const std::size_t i : order) {
    if (texts[i].size() > kMaxBytes) return too_long(token_ids[i], texts[i]);
    if (texts[i].empty() || (!tokens.texts_.empty() && tokens.texts_.back() == texts[i])) continue;
    tokens.texts_.push_back(std::move(texts[i]));
    tokens.token_ids_.push_back(token_ids[i]);
  }
  for (std::size_t i = tokens.texts_.size(); i-- > 0;) {
    Range& range = tokens.by_first_byte_[byte_at(tokens.texts_[i], 0)];
    range = {i, range.last == 0 ? i + 1 : range.last};
  }
  return tokens;
}

void SpecialTokens::find_all(std::string_view text, std::size_t begin, std::size_t end,
                             std::vector<SettledTokens>& found) const {
  for (std::size_t i = begin; i < end;) {
    const std::ptrdiff_t match = longest_match(text.substr(i, end - i));
    if (match < 0) {
      ++i;
      continue;
    }
    const auto index = static_cast<std::size_t>(match);
    found.push_back({i, i + texts_[index].size(), std::span(token_ids_).subspan(index, 1)});
    i = found.back().end;
  }
}

std::size_t SpecialTokens::longest_at_start(std::string_view text) const {
  const std::ptrdiff_t match = text.empty() ? -1 : longest_match(text);
  return match < 0 ? 0 : texts_[static_cast<std::size_t>(match)].size();
}

std::ptrdiff_t SpecialTokens::longest_match(std::string_view text) const {
  std::ptrdiff_t longest = -1;
  Range range = by_first_byte_[static_cast<unsigned char>(text[0])];
  for (std::size_t depth = 1; range.first < range.last; ++depth) {
    // Of texts that share `depth` bytes the shortest sorts first.
    if (texts_[range.first].size() == depth) longest = static_cast<std::ptrdiff_t>(range.first++);
    if (depth == text.size()) break;
    range = narrow(range, depth, static_cast<unsigned char>(text[depth]));
  }
  return longest;
}

SpecialTokens::Range SpecialTokens::narrow(Range range, std::size_t depth, unsigned char byte) const {
  const auto begin = texts_.begin() + static_cast<std::ptrdiff_t>(range.first);
  const auto end = texts_.begin() + static_cast<std::ptrdiff_t>(range.last);
  const auto below = [&](const std::string& text, unsigned char b) { return byte_at(text, depth) < b; };
  const auto above = [&](unsigned char b, const std::string& text) { return b < byte_at(text, depth); };
  const auto first = std::lower_bound(begin, end, byte, below);
  const auto last = std::upper_bound(first, end, byte, above);
  return {static_cast<std::size_t>(first - texts_.begin()), static_cast<std::size_t>(last - texts_.begin())};
}

}  // namespace octavo::tokenizer
