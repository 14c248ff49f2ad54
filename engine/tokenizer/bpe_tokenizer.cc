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

TokenTexts texts_of(const Vocabulary& vocabulary) {
  TokenTexts texts;
  for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const std::string& token = vocabulary.tokens[id];
    const auto spelled = is_special_kind(vocabulary.kinds[id]) ? std::nullopt : spelled_bytes(token);
    texts.add(spelled ? *spelled : token);
  }
  return texts;
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> BpeTokenizer::create(Vocabulary vocabulary) {
  OCTAVO_TRY_VOID(validate(vocabulary));
  settle_kinds(vocabulary);
  OCTAVO_TRY(const SplitRule split, find_split_rule(vocabulary.split_pattern));
  OCTAVO_TRY(MergingParts parts, find_parts(vocabulary));
  return std::unique_ptr<Tokenizer>(new BpeTokenizer(vocabulary, std::move(parts), split));
}

BpeTokenizer::BpeTokenizer(const Vocabulary& vocabulary, MergingParts parts, const SplitRule& split)
    : MergingTokenizer(vocabulary, texts_of(vocabulary), std::move(parts)), split_(split) {
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

std::size_t BpeTokenizer::count_bytes(std::string_view stretch) const {
  return static_cast<std::size_t>(std::ranges::count_if(
      stretch, [&](char byte) { return byte_token_ids_[static_cast<unsigned char>(byte)] >= 0; }));
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
