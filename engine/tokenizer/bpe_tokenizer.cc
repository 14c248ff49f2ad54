#include "engine/tokenizer/bpe_tokenizer.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "engine/tokenizer/byte_level.h"
#include "engine/tokenizer/piece_merger.h"
#include "engine/tokenizer/vocabulary_check.h"

namespace octavo::tokenizer {
namespace {

bool is_special_kind(TokenKind kind) {
  return kind == TokenKind::kControl || kind == TokenKind::kUserDefined;
}

TokenTexts texts_of(const Vocabulary& vocabulary) {
  TokenTexts texts;
  for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const std::string& token = vocabulary.tokens[id];
    const auto spelled = is_special_kind(vocabulary.kinds[id]) ? std::nullopt : spelled_bytes(token);
    texts.add(spelled ? *spelled : token);
  }
  return texts;
}

bool is_special_token(TokenKind kind, std::string_view) { return is_special_kind(kind); }
bool is_word(TokenKind kind, std::string_view text) {
  return kind == TokenKind::kUserDefined && !is_marker(text);
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> BpeTokenizer::create(Vocabulary vocabulary) {
  OCTAVO_TRY_VOID(validate(vocabulary));
  settle_kinds(vocabulary);
  OCTAVO_TRY(const SplitRule split, find_split_rule(vocabulary.split_pattern));
  OCTAVO_TRY(MergeTable merges, MergeTable::of_vocabulary(vocabulary));
  OCTAVO_TRY(SpecialTokens specials, SpecialTokens::collect(vocabulary, is_special_token));
  OCTAVO_TRY(SpecialTokens words, SpecialTokens::collect(vocabulary, is_word));
  Parts parts{texts_of(vocabulary), std::move(specials), std::move(words), split, std::move(merges)};
  return std::unique_ptr<Tokenizer>(new BpeTokenizer(vocabulary, std::move(parts)));
}

BpeTokenizer::BpeTokenizer(const Vocabulary& vocabulary, Parts parts)
    : PromptTokenizer(vocabulary, std::move(parts.texts), std::move(parts.specials)),
      words_(std::move(parts.words)),
      split_(parts.split),
      merges_(std::move(parts.merges)),
      add_space_prefix_(vocabulary.add_space_prefix) {
  byte_token_ids_.fill(-1);
  index_tokens(vocabulary);
}

void BpeTokenizer::index_tokens(const Vocabulary& vocabulary) {
  for (TokenId id = 0; id < vocabulary_size(); ++id) {
    if (is_special_kind(kind(id)) || !spelled_bytes(vocabulary.tokens[static_cast<std::size_t>(id)]))
      continue;
    const std::string_view bytes = token_bytes(id);
    if (bytes.size() == 1) byte_token_ids_[static_cast<unsigned char>(bytes[0])] = id;
    if (split_.whole_words) whole_words_[bytes] = id;
  }
}

Result<void> BpeTokenizer::encode_around(std::string_view text, std::span<const SettledTokens> settled,
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

Result<std::size_t> BpeTokenizer::count_bytes_around(std::string_view text,
                                                     std::span<const SettledTokens> settled) const {
  const auto count = [&](std::string_view stretch) {
    return static_cast<std::size_t>(std::ranges::count_if(
        stretch, [&](char byte) { return byte_token_ids_[static_cast<unsigned char>(byte)] >= 0; }));
  };
  std::size_t bytes = 0, begin = 0;
  for (const SettledTokens& stretch : settled) {
    bytes += count(text.substr(begin, stretch.begin - begin));
    begin = stretch.end;
  }
  return bytes + count(text.substr(begin));
}

void BpeTokenizer::encode_stretch(std::string_view text, PieceMerger& merger,
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

void BpeTokenizer::encode_between_words(std::string_view text, PieceMerger& merger,
                                        std::vector<TokenId>& out) const {
  PieceCutter cutter(split_.pattern, text);
  for (std::string_view piece = cutter.next(); !piece.empty() && !merger.is_stopped();
       piece = cutter.next()) {
    encode_piece(piece, merger, out);
  }
}

void BpeTokenizer::encode_piece(std::string_view piece, PieceMerger& merger,
                                std::vector<TokenId>& out) const {
  if (!whole_words_.empty()) {
    if (const auto word = whole_words_.find(piece); word != whole_words_.end()) {
      out.push_back(word->second);
      return;
    }
  }
  for (const char byte : piece) {
    const TokenId id = byte_token_ids_[static_cast<unsigned char>(byte)];
    if (id >= 0) merger.add(id);
  }
  merger.finish(out);
}

}  // namespace octavo::tokenizer
