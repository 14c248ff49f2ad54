#include "engine/tokenizer/pipeline_tokenizer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/base/text.h"
#include "engine/tokenizer/byte_level.h"
#include "engine/tokenizer/byte_tokens.h"
#include "engine/tokenizer/piece_merger.h"
#include "engine/tokenizer/sentencepiece_pieces.h"
#include "engine/tokenizer/vocabulary_check.h"

namespace octavo::tokenizer {
namespace {

bool is_for_templates(TokenKind kind, std::string_view text) {
  return kind == TokenKind::kControl || (kind == TokenKind::kUserDefined && is_marker(text));
}

std::string with_texts_replaced(std::string_view text,
                                const std::vector<std::pair<std::string, std::string>>& replacements) {
  std::string out(text);
  for (const auto& [from, to] : replacements) {
    for (std::size_t at = out.find(from); at != std::string::npos; at = out.find(from, at + to.size()))
      out.replace(at, from.size(), to);
  }
  return out;
}

// What each token is when it is read. Added tokens of byte-level vocabularies are spelled as they are.
Result<TokenTexts> read_texts(const Vocabulary& vocabulary) {
  const TextPipeline& pipeline = *vocabulary.pipeline;
  TokenTexts texts;
  for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const std::string& token = vocabulary.tokens[id];
    const TokenKind kind = vocabulary.kinds[id];
    if (kind == TokenKind::kByte) {
      OCTAVO_TRY(const char byte, byte_of_token(vocabulary, id));
      texts.add({&byte, 1});
    } else if (kind == TokenKind::kControl) {
      texts.add(token);
    } else if (!pipeline.decodes_bytes) {
      texts.add(with_texts_replaced(token, pipeline.decoded_texts));
    } else {
      const auto bytes = kind == TokenKind::kUserDefined ? std::nullopt : spelled_bytes(token);
      texts.add(bytes ? *bytes : token);
    }
  }
  return texts;
}

Error beyond_vocabulary(const std::string& what, TokenId id, std::size_t num_tokens) {
  return {ErrorCode::kDamagedFile, "tokenizer.json: " + what + " names token " + std::to_string(id) + " of " +
                                       std::to_string(num_tokens) + ": download the file again"};
}

Result<void> check_numbers(const Vocabulary& vocabulary) {
  const std::size_t size = vocabulary.tokens.size();
  const auto is_token = [&](TokenId id) { return id >= 0 && static_cast<std::size_t>(id) < size; };
  for (const MergedTokens& merge : vocabulary.merged_tokens) {
    for (const TokenId id : {merge.left, merge.right, merge.result})
      if (!is_token(id)) return beyond_vocabulary("a merge", id, size);
  }
  for (const AddedTokenRule& rule : vocabulary.added_token_rules)
    if (!is_token(rule.token_id)) return beyond_vocabulary("a rule", rule.token_id, size);
  const bool is_unigram = vocabulary.model == "Unigram";
  const bool has_scores =
      vocabulary.log_probabilities.size() == size &&
      std::ranges::all_of(vocabulary.log_probabilities, [](double score) { return std::isfinite(score); });
  if (is_unigram && !has_scores) {
    return Error{ErrorCode::kDamagedFile,
                 "tokenizer.json does not have a finite score for each token: download the file again"};
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> PipelineTokenizer::create(Vocabulary vocabulary) {
  OCTAVO_TRY_VOID(validate(vocabulary));
  OCTAVO_TRY_VOID(check_numbers(vocabulary));
  settle_kinds(vocabulary);
  settle_unknown(vocabulary);
  OCTAVO_TRY(Parts parts, make_parts(vocabulary));
  return std::unique_ptr<Tokenizer>(new PipelineTokenizer(std::move(vocabulary), std::move(parts)));
}

Result<PipelineTokenizer::Parts> PipelineTokenizer::make_parts(const Vocabulary& vocabulary) {
  const AddedTokenRules rules(vocabulary.added_token_rules);
  OCTAVO_TRY(TokenTexts texts, read_texts(vocabulary));
  OCTAVO_TRY(PipelineNormalizer normalizer, PipelineNormalizer::create(vocabulary.pipeline->normalizers));
  OCTAVO_TRY(PipelineSplitter splitter, PipelineSplitter::create(vocabulary.pipeline->pre_tokenizers));
  struct Words {
    std::vector<std::string> texts;
    std::vector<TokenId> token_ids;
    void add(std::string text, std::size_t id) {
      texts.push_back(std::move(text));
      token_ids.push_back(static_cast<TokenId>(id));
    }
    Result<SpecialTokens> find() { return SpecialTokens::create(std::move(texts), std::move(token_ids)); }
  } specials, raw, normalized;
  for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const TokenKind kind = vocabulary.kinds[id];
    const std::string& text = vocabulary.tokens[id];
    if (!is_special_kind(kind)) continue;
    if (is_for_templates(kind, text)) {
      specials.add(text, id);
    } else if (rules.is_in_normalized_text(static_cast<TokenId>(id))) {
      OCTAVO_TRY(PipelineNormalizer::Normalized as_found, normalizer.normalize(text));
      normalized.add(std::move(as_found.text), id);
    } else {
      specials.add(text, id);
      raw.add(text, id);
    }
  }
  OCTAVO_TRY(SpecialTokens found_specials, specials.find());
  OCTAVO_TRY(SpecialTokens found_raw, raw.find());
  OCTAVO_TRY(SpecialTokens found_normalized, normalized.find());
  const auto may_become = [&](TokenId id) {
    const auto index = static_cast<std::size_t>(id);
    return !is_for_templates(vocabulary.kinds[index], vocabulary.tokens[index]);
  };
  std::optional<UnigramModel> unigram;
  if (vocabulary.model == "Unigram") {
    std::vector<UnigramModel::Token> tokens;
    for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) {
      const TokenKind kind = vocabulary.kinds[id];
      const bool is_text = kind == TokenKind::kNormal || kind == TokenKind::kUserDefined;
      if (is_text && !vocabulary.tokens[id].empty() && may_become(static_cast<TokenId>(id)))
        tokens.push_back({vocabulary.tokens[id], static_cast<TokenId>(id), vocabulary.log_probabilities[id]});
    }
    const double lowest = *std::ranges::min_element(vocabulary.log_probabilities);
    OCTAVO_TRY(unigram, UnigramModel::create(tokens, lowest));
  }
  return Parts{std::move(texts),
               std::move(found_specials),
               std::move(found_raw),
               std::move(found_normalized),
               std::move(normalizer),
               std::move(splitter),
               MergeTable::of_tokens(vocabulary.merged_tokens, may_become),
               std::move(unigram)};
}

PipelineTokenizer::PipelineTokenizer(Vocabulary vocabulary, Parts parts)
    : PromptTokenizer(vocabulary, std::move(parts.texts), std::move(parts.specials)),
      parts_(std::move(parts)),
      makes_bytes_(parts_.splitter.makes_bytes()),
      byte_fallback_(vocabulary.pipeline->byte_fallback),
      fuses_unknown_(vocabulary.pipeline->fuses_unknown || parts_.unigram.has_value()),
      ignores_merges_(vocabulary.pipeline->ignores_merges),
      decoded_texts_(vocabulary.pipeline->decoded_texts),
      unknown_token_id_(vocabulary.unknown_token_id.value_or(-1)),
      tokens_(std::move(vocabulary.tokens)) {
  byte_token_ids_.fill(-1);
  for (TokenId id = 0; id < vocabulary_size(); ++id) index_token(id);
}

void PipelineTokenizer::index_token(TokenId id) {
  const std::string_view token = tokens_[static_cast<std::size_t>(id)];
  const std::string_view bytes = token_bytes(id);
  if (kind(id) == TokenKind::kByte && !makes_bytes_)
    byte_token_ids_[static_cast<unsigned char>(bytes[0])] = id;
  const bool is_text = kind(id) == TokenKind::kNormal || kind(id) == TokenKind::kUserDefined;
  if (!is_text || token.empty() || is_for_templates(kind(id), token)) return;
  if (!makes_bytes_) {
    const CodePoint first = decode_utf8(token, 0);
    if (first.valid && first.length == token.size()) characters_[token] = id;
    if (ignores_merges_) whole_words_[token] = id;
    return;
  }
  const std::optional<std::string> spelled = spelled_bytes(token);
  if (!spelled) return;
  if (spelled->size() == 1) byte_token_ids_[static_cast<unsigned char>((*spelled)[0])] = id;
  if (ignores_merges_ && *spelled == bytes) whole_words_[bytes] = id;
}

Result<void> PipelineTokenizer::encode_around(std::string_view text, std::span<const SettledTokens> settled,
                                              const std::stop_token& stop, std::vector<TokenId>& out) const {
  PieceMerger merger(parts_.merges, stop);
  const auto on_text = [&](std::string_view normalized, bool starts_prompt) -> Result<void> {
    OCTAVO_TRY(const Pieces pieces, parts_.splitter.split(normalized, starts_prompt, stop));
    for (const Pieces::Piece& piece : pieces.pieces) {
      if (stop.stop_requested()) break;
      encode_piece(piece.text, merger, stop, out);
    }
    return {};
  };
  const auto on_word = [&](TokenId id) { out.push_back(id); };
  std::size_t begin = 0;
  for (const SettledTokens& stretch : settled) {
    OCTAVO_TRY_VOID(visit(text.substr(begin, stretch.begin - begin), begin == 0, on_text, on_word));
    out.insert(out.end(), stretch.token_ids.begin(), stretch.token_ids.end());
    begin = stretch.end;
  }
  return visit(text.substr(begin), begin == 0, on_text, on_word);
}

Result<std::size_t> PipelineTokenizer::count_bytes_around(std::string_view text,
                                                          std::span<const SettledTokens> settled) const {
  const bool is_whole = std::ranges::find(byte_token_ids_, -1) == byte_token_ids_.end();
  if (parts_.splitter.removes_text() || (!makes_bytes_ && !(byte_fallback_ && is_whole)))
    return std::size_t{0};
  std::size_t bytes = 0, begin = 0;
  const auto on_text = [&](std::string_view normalized, bool) -> Result<void> {
    if (!makes_bytes_) {
      bytes += with_texts_replaced(normalized, decoded_texts_).size();
      return {};
    }
    bytes += static_cast<std::size_t>(std::ranges::count_if(
        normalized, [&](char byte) { return byte_token_ids_[static_cast<unsigned char>(byte)] >= 0; }));
    return {};
  };
  const auto on_word = [&](TokenId id) { bytes += token_bytes(id).size(); };
  for (const SettledTokens& stretch : settled) {
    OCTAVO_TRY_VOID(visit(text.substr(begin, stretch.begin - begin), begin == 0, on_text, on_word));
    begin = stretch.end;
  }
  OCTAVO_TRY_VOID(visit(text.substr(begin), begin == 0, on_text, on_word));
  return bytes;
}

template <class OnText, class OnWord>
Result<void> PipelineTokenizer::visit(std::string_view stretch, bool starts_prompt, OnText on_text,
                                      OnWord on_word) const {
  if (stretch.empty()) return {};
  const std::string clean = sanitise_utf8(stretch);
  return visit_between(
      parts_.raw_words, clean, on_word, [&](std::string_view part, bool starts_stretch) -> Result<void> {
        OCTAVO_TRY(const PipelineNormalizer::Normalized normalized, parts_.normalizer.normalize(part));
        const bool may_start = starts_prompt && starts_stretch && normalized.keeps_start;
        return visit_between(parts_.normalized_words, normalized.text, on_word,
                             [&](std::string_view text, bool starts_part) -> Result<void> {
                               return on_text(text, may_start && starts_part);
                             });
      });
}

template <class OnWord, class OnBetween>
Result<void> PipelineTokenizer::visit_between(const SpecialTokens& words, std::string_view text,
                                              OnWord on_word, OnBetween on_between) const {
  std::vector<SettledTokens> found;
  words.find_all(text, 0, text.size(), found);
  added_token_rules().apply(text, found);
  std::size_t begin = 0;
  for (const SettledTokens& word : found) {
    if (begin < word.begin) OCTAVO_TRY_VOID(on_between(text.substr(begin, word.begin - begin), begin == 0));
    on_word(word.token_ids.front());
    begin = word.end;
  }
  return begin < text.size() ? on_between(text.substr(begin), begin == 0) : Result<void>();
}

void PipelineTokenizer::encode_piece(std::string_view piece, PieceMerger& merger, const std::stop_token& stop,
                                     std::vector<TokenId>& out) const {
  if (parts_.unigram) return encode_unigram(piece, stop, out);
  if (!whole_words_.empty()) {
    if (const auto word = whole_words_.find(piece); word != whole_words_.end()) {
      out.push_back(word->second);
      return;
    }
  }
  if (makes_bytes_) {
    add_bytes(piece, merger);
  } else {
    add_characters(piece, merger);
  }
  merger.finish(out);
}

void PipelineTokenizer::add_bytes(std::string_view piece, PieceMerger& merger) const {
  bool after_unknown = false;
  for (const char byte : piece) {
    const TokenId id = byte_token_ids_[static_cast<unsigned char>(byte)];
    const bool is_unknown = id < 0;
    if (!is_unknown) {
      merger.add(id);
    } else if (unknown_token_id_ >= 0 && !(after_unknown && fuses_unknown_)) {
      merger.add(unknown_token_id_);
    }
    after_unknown = is_unknown;
  }
}

void PipelineTokenizer::add_characters(std::string_view piece, PieceMerger& merger) const {
  bool after_unknown = false;
  for (std::size_t i = 0; i < piece.size();) {
    const std::string_view character = piece.substr(i, decode_utf8(piece, i).length);
    i += character.size();
    const auto token = characters_.find(character);
    const bool is_token = token != characters_.end();
    const bool is_bytes = !is_token && has_all_bytes(character);
    if (is_token) {
      merger.add(token->second);
    } else if (is_bytes) {
      for (const char byte : character) merger.add(byte_token_ids_[static_cast<unsigned char>(byte)]);
    } else if (unknown_token_id_ >= 0 && !(after_unknown && fuses_unknown_)) {
      merger.add(unknown_token_id_);
    }
    after_unknown = !is_token && !is_bytes;
  }
}

void PipelineTokenizer::encode_unigram(std::string_view piece, const std::stop_token& stop,
                                       std::vector<TokenId>& out) const {
  const std::vector<UnigramModel::Found> found = parts_.unigram->encode(piece, stop);
  for (std::size_t i = 0; i < found.size();) {
    if (found[i].token_id >= 0) {
      out.push_back(found[i++].token_id);
      continue;
    }
    const char* const begin = found[i].text.data();
    std::size_t length = 0;
    while (i < found.size() && found[i].token_id < 0) length += found[i++].text.size();
    const std::string_view unknown(begin, length);
    if (has_all_bytes(unknown)) {
      for (const char byte : unknown) out.push_back(byte_token_ids_[static_cast<unsigned char>(byte)]);
    } else if (unknown_token_id_ >= 0) {
      out.push_back(unknown_token_id_);
    }
  }
}

bool PipelineTokenizer::has_all_bytes(std::string_view text) const {
  return byte_fallback_ && std::ranges::all_of(text, [&](char byte) {
           return byte_token_ids_[static_cast<unsigned char>(byte)] >= 0;
         });
}

}  // namespace octavo::tokenizer
