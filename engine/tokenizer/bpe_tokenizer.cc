#include "engine/tokenizer/bpe_tokenizer.h"

#include <algorithm>
#include <utility>

#include "engine/base/text.h"
#include "engine/tokenizer/byte_level.h"
#include "engine/tokenizer/piece_merger.h"
#include "engine/tokenizer/vocabulary_check.h"

namespace octavo::tokenizer {
namespace {

bool is_special_kind(TokenKind kind) {
  return kind == TokenKind::kControl || kind == TokenKind::kUserDefined;
}

TokenKind kind_of(const Vocabulary& vocabulary, std::size_t id) {
  return vocabulary.kinds.empty() ? TokenKind::kNormal : vocabulary.kinds[id];
}

TokenIndex index_tokens(const std::vector<std::string>& tokens) {
  TokenIndex index;
  index.reserve(tokens.size());
  for (std::size_t id = 0; id < tokens.size(); ++id) index[tokens[id]] = static_cast<TokenId>(id);
  return index;
}

Result<SpecialTokens> collect_specials(const Vocabulary& vocabulary) {
  std::vector<std::string> texts;
  std::vector<TokenId> token_ids;
  for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    if (!is_special_kind(kind_of(vocabulary, id))) continue;
    texts.push_back(vocabulary.tokens[id]);
    token_ids.push_back(static_cast<TokenId>(id));
  }
  return SpecialTokens::create(std::move(texts), std::move(token_ids));
}

std::string text_of(const Vocabulary& vocabulary, std::optional<TokenId> id) {
  return id ? vocabulary.tokens[static_cast<std::size_t>(*id)] : std::string();
}

Result<void> check_length(std::size_t bytes) {
  if (bytes <= BpeTokenizer::kMaxTextBytes) return {};
  return Error{ErrorCode::kTooLong, "the prompt has " + std::to_string(bytes) +
                                        " bytes, the tokenizer takes at most " +
                                        std::to_string(BpeTokenizer::kMaxTextBytes) + ": shorten it"};
}

std::size_t total_bytes(std::span<const PromptSpan> spans) {
  std::size_t bytes = 0;
  for (const PromptSpan& span : spans) bytes += span.text.size();
  return bytes;
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> BpeTokenizer::create(Vocabulary vocabulary) {
  OCTAVO_TRY_VOID(validate(vocabulary));
  OCTAVO_TRY(const SplitPattern pattern, find_split_pattern(vocabulary.split_pattern));
  OCTAVO_TRY(MergeTable merges, MergeTable::create(vocabulary.merges, index_tokens(vocabulary.tokens)));
  OCTAVO_TRY(SpecialTokens specials, collect_specials(vocabulary));
  return std::unique_ptr<Tokenizer>(
      new BpeTokenizer(vocabulary, pattern, std::move(merges), std::move(specials)));
}

BpeTokenizer::BpeTokenizer(const Vocabulary& vocabulary, SplitPattern pattern, MergeTable merges,
                           SpecialTokens specials)
    : pattern_(pattern),
      merges_(std::move(merges)),
      specials_(std::move(specials)),
      bos_token_id_(vocabulary.bos_token_id),
      end_token_ids_(vocabulary.further_eos_token_ids),
      add_bos_token_(vocabulary.add_bos_token),
      add_space_prefix_(vocabulary.add_space_prefix) {
  if (vocabulary.eos_token_id) end_token_ids_.push_back(*vocabulary.eos_token_id);
  store_tokens(vocabulary);
  template_constants_ = {text_of(vocabulary, vocabulary.bos_token_id),
                         text_of(vocabulary, vocabulary.eos_token_id)};
  if (!vocabulary.chat_template.empty()) chat_template_ = ChatTemplate::parse(vocabulary.chat_template);
}

void BpeTokenizer::store_tokens(const Vocabulary& vocabulary) {
  const std::size_t size = vocabulary.tokens.size();
  kinds_.reserve(size);
  byte_offsets_.reserve(size + 1);
  std::vector<TokenId> spelled_ids;
  for (std::size_t id = 0; id < size; ++id) {
    const std::string& text = vocabulary.tokens[id];
    kinds_.push_back(kind_of(vocabulary, id));
    const std::optional<std::string> spelled =
        is_special_kind(kinds_.back()) ? std::nullopt : spelled_bytes(text);
    byte_offsets_.push_back(bytes_.size());
    bytes_ += spelled ? *spelled : text;
    if (spelled) spelled_ids.push_back(static_cast<TokenId>(id));
  }
  byte_offsets_.push_back(bytes_.size());
  byte_token_ids_.fill(-1);
  for (const TokenId id : spelled_ids) index_token(id);
}

// Higher ids overwrite lower ones, as in index_tokens.
void BpeTokenizer::index_token(TokenId id) {
  const std::string_view bytes = token_bytes(id);
  if (bytes.size() == 1) byte_token_ids_[static_cast<unsigned char>(bytes[0])] = id;
  if (pattern_ == SplitPattern::kLlama3) whole_words_[bytes] = id;
}

bool BpeTokenizer::is_end_of_sequence(TokenId id) const {
  return std::find(end_token_ids_.begin(), end_token_ids_.end(), id) != end_token_ids_.end();
}

Result<std::vector<TokenId>> BpeTokenizer::encode(std::string_view text, bool parse_special,
                                                  bool add_bos) const {
  OCTAVO_TRY_VOID(check_length(text.size()));
  std::vector<TokenId> token_ids;
  if (add_bos && add_bos_token_ && bos_token_id_) token_ids.push_back(*bos_token_id_);
  std::vector<SettledTokens> specials;
  if (parse_special) specials_.find_all(text, 0, text.size(), specials);
  encode_around(text, specials, token_ids);
  return token_ids;
}

Result<std::vector<TokenId>> BpeTokenizer::encode_spans(std::span<const PromptSpan> spans) const {
  return encode_prompt(spans, {});
}

Result<std::vector<PromptSpan>> BpeTokenizer::apply_chat_template(std::span<const ChatMessage> messages,
                                                                  std::int64_t today) const {
  if (!chat_template_) return plain_completion(messages);
  if (!chat_template_->has_value()) return chat_template_->error();
  return chat_template_->value().render(messages, template_constants_, today);
}

Result<std::vector<TokenId>> BpeTokenizer::encode_chat(std::span<const ChatMessage> messages,
                                                       std::int64_t today) const {
  OCTAVO_TRY(const std::vector<PromptSpan> spans, apply_chat_template(messages, today));
  OCTAVO_TRY(std::vector<TokenId> token_ids, encode_prompt(spans, messages));
  // A template writes BOS itself where the model wants it.
  const bool needs_bos = !chat_template_ && add_bos_token_ && bos_token_id_;
  if (needs_bos) token_ids.insert(token_ids.begin(), *bos_token_id_);
  return token_ids;
}

Result<std::vector<TokenId>> BpeTokenizer::encode_prompt(std::span<const PromptSpan> spans,
                                                         std::span<const ChatMessage> messages) const {
  OCTAVO_TRY_VOID(check_length(total_bytes(spans)));
  std::string text;
  std::vector<SettledTokens> settled;
  std::size_t template_begin = 0;  // of the stretch of template text that reaches the end of `text`
  for (const PromptSpan& span : spans) {
    const std::size_t begin = text.size();
    text += span.text;
    if (!span.is_input) continue;
    specials_.find_all(text, template_begin, begin, settled);
    template_begin = text.size();
    const auto index = static_cast<std::size_t>(span.message_index);
    const bool is_message = span.message_index >= 0 && index < messages.size();
    if (is_message && stands_for(messages[index], span.text)) {
      settled.push_back({begin, text.size(), messages[index].token_ids});
    }
  }
  specials_.find_all(text, template_begin, text.size(), settled);
  std::vector<TokenId> token_ids;
  encode_around(text, settled, token_ids);
  return token_ids;
}

// Control tokens are no part of an answer's text: ids that contain one were not generated for this content
// alone.
bool BpeTokenizer::stands_for(const ChatMessage& message, std::string_view content) const {
  if (message.role != Role::kAssistant || message.token_ids.empty()) return false;
  for (const TokenId id : message.token_ids) {
    if (id < 0 || id >= vocabulary_size() || is_control(id)) return false;
  }
  return decode(message.token_ids, /*skip_special=*/true) == content;
}

void BpeTokenizer::encode_around(std::string_view text, std::span<const SettledTokens> settled,
                                 std::vector<TokenId>& out) const {
  PieceMerger merger(merges_);
  std::size_t begin = 0;
  for (const SettledTokens& stretch : settled) {
    encode_stretch(text.substr(begin, stretch.begin - begin), merger, out);
    out.insert(out.end(), stretch.token_ids.begin(), stretch.token_ids.end());
    begin = stretch.end;
  }
  encode_stretch(text.substr(begin), merger, out);
}

void BpeTokenizer::encode_stretch(std::string_view text, PieceMerger& merger,
                                  std::vector<TokenId>& out) const {
  if (text.empty()) return;
  std::string with_space;
  if (add_space_prefix_ && text[0] != ' ') {
    with_space.append(" ").append(text);
    text = with_space;
  }
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t length = piece_length(pattern_, text, begin);
    encode_piece(text.substr(begin, length), merger, out);
    begin += length;
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

std::string_view BpeTokenizer::token_bytes(TokenId id) const {
  const auto index = static_cast<std::size_t>(id);
  return std::string_view(bytes_).substr(byte_offsets_[index],
                                         byte_offsets_[index + 1] - byte_offsets_[index]);
}

bool BpeTokenizer::is_special(TokenId id) const {
  return is_special_kind(kinds_[static_cast<std::size_t>(id)]);
}

std::string BpeTokenizer::decode(std::span<const TokenId> ids, bool skip_special) const {
  std::string bytes;
  for (const TokenId id : ids) {
    if (!skip_special || !is_control(id)) bytes += token_bytes(id);
  }
  return sanitise_utf8(bytes);
}

}  // namespace octavo::tokenizer
