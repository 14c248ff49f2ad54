#include "engine/tokenizer/merging_tokenizer.h"

#include <string>
#include <utility>

#include "engine/tokenizer/piece_merger.h"

namespace octavo::tokenizer {
namespace {

bool is_special_token(TokenKind kind, std::string_view) { return is_special_kind(kind); }
bool is_word(TokenKind kind, std::string_view text) {
  return kind == TokenKind::kUserDefined && !is_marker(text);
}

}  // namespace

Result<MergingTokenizer::MergingParts> MergingTokenizer::find_parts(const Vocabulary& vocabulary) {
  OCTAVO_TRY(MergeTable merges, MergeTable::of_vocabulary(vocabulary));
  OCTAVO_TRY(SpecialTokens specials, SpecialTokens::collect(vocabulary, is_special_token));
  OCTAVO_TRY(SpecialTokens words, SpecialTokens::collect(vocabulary, is_word));
  return MergingParts{std::move(merges), std::move(specials), std::move(words)};
}

MergingTokenizer::MergingTokenizer(const Vocabulary& vocabulary, TokenTexts texts, MergingParts parts)
    : PromptTokenizer(vocabulary, std::move(texts), std::move(parts.specials)),
      words_(std::move(parts.words)),
      merges_(std::move(parts.merges)),
      add_space_prefix_(vocabulary.add_space_prefix) {}

Result<void> MergingTokenizer::encode_around(std::string_view text, std::span<const SettledTokens> settled,
                                             const std::stop_token& stop, std::vector<TokenId>& out) const {
  PieceMerger merger(merges_, stop);
  std::size_t begin = 0;
  for (const SettledTokens& stretch : settled) {
    encode_stretch(text.substr(begin, stretch.begin - begin), merger, out);
    out.insert(out.end(), stretch.token_ids.begin(), stretch.token_ids.end());
    begin = stretch.end;
  }
  encode_stretch(text.substr(begin), merger, out);
  return {};
}

Result<std::size_t> MergingTokenizer::count_bytes_around(std::string_view text,
                                                         std::span<const SettledTokens> settled) const {
  std::size_t bytes = 0, begin = 0;
  for (const SettledTokens& stretch : settled) {
    bytes += count_bytes(text.substr(begin, stretch.begin - begin));
    begin = stretch.end;
  }
  return bytes + count_bytes(text.substr(begin));
}

void MergingTokenizer::encode_stretch(std::string_view text, PieceMerger& merger,
                                      std::vector<TokenId>& out) const {
  if (text.empty()) return;
  std::string with_space;
  if (add_space_prefix_ && text[0] != ' ') {
    with_space.append(" ").append(text);
    text = with_space;
  }
  std::vector<SettledTokens> words;
  words_.find_all(text, 0, text.size(), words);
  std::size_t begin = 0;
  for (const SettledTokens& word : words) {
    encode_between_words(text.substr(begin, word.begin - begin), merger, out);
    out.push_back(word.token_ids.front());
    begin = word.end;
  }
  encode_between_words(text.substr(begin), merger, out);
}

}  // namespace octavo::tokenizer
