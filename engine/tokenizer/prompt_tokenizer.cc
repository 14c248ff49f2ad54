#include "engine/tokenizer/prompt_tokenizer.h"

#include <algorithm>
#include <utility>

#include "engine/base/text.h"

namespace octavo::tokenizer {
namespace {

std::string text_of(const Vocabulary& vocabulary, std::optional<TokenId> id) {
  return id ? vocabulary.tokens[static_cast<std::size_t>(*id)] : std::string();
}

Result<void> check_length(std::size_t bytes) {
  if (bytes <= PromptTokenizer::kMaxTextBytes) return {};
  return Error{ErrorCode::kTooLong, "the prompt has " + std::to_string(bytes) +
                                        " bytes; the tokenizer accepts at most " +
                                        std::to_string(PromptTokenizer::kMaxTextBytes) + ": shorten it"};
}

std::size_t total_bytes(std::span<const PromptSpan> spans) {
  std::size_t bytes = 0;
  for (const PromptSpan& span : spans) bytes += span.text.size();
  return bytes;
}

}  // namespace

void settle_kinds(Vocabulary& vocabulary) {
  vocabulary.kinds.resize(vocabulary.tokens.size(), TokenKind::kNormal);
  const auto make_control = [&](TokenId id) {
    vocabulary.kinds[static_cast<std::size_t>(id)] = TokenKind::kControl;
  };
  if (vocabulary.bos_token_id) make_control(*vocabulary.bos_token_id);
  if (vocabulary.eos_token_id) make_control(*vocabulary.eos_token_id);
  std::ranges::for_each(vocabulary.further_eos_token_ids, make_control);
}

PromptTokenizer::PromptTokenizer(const Vocabulary& vocabulary, TokenTexts texts, SpecialTokens specials)
    : kinds_(vocabulary.kinds),
      texts_(std::move(texts)),
      specials_(std::move(specials)),
      bos_token_id_(vocabulary.bos_token_id),
      end_token_ids_(vocabulary.further_eos_token_ids),
      add_bos_token_(vocabulary.add_bos_token),
      template_constants_{text_of(vocabulary, vocabulary.bos_token_id),
                          text_of(vocabulary, vocabulary.eos_token_id)} {
  if (vocabulary.eos_token_id) end_token_ids_.push_back(*vocabulary.eos_token_id);
  if (!vocabulary.chat_template.empty()) chat_template_ = ChatTemplate::parse(vocabulary.chat_template);
}

bool PromptTokenizer::is_end_of_sequence(TokenId id) const {
  return std::find(end_token_ids_.begin(), end_token_ids_.end(), id) != end_token_ids_.end();
}

bool PromptTokenizer::is_special(TokenId id) const {
  return kind(id) == TokenKind::kControl || kind(id) == TokenKind::kUserDefined;
}

Result<std::vector<TokenId>> PromptTokenizer::encode(std::string_view text, bool parse_special,
                                                     bool add_bos) const {
  OCTAVO_TRY_VOID(check_length(text.size()));
  std::vector<TokenId> token_ids;
  if (add_bos && add_bos_token_ && bos_token_id_) token_ids.push_back(*bos_token_id_);
  std::vector<SettledTokens> specials;
  if (parse_special) specials_.find_all(text, 0, text.size(), specials);
  OCTAVO_TRY_VOID(encode_around(text, specials, token_ids));
  return token_ids;
}

Result<std::vector<TokenId>> PromptTokenizer::encode_spans(std::span<const PromptSpan> spans) const {
  return encode_prompt(spans, {});
}

Result<std::vector<PromptSpan>> PromptTokenizer::apply_chat_template(std::span<const ChatMessage> messages,
                                                                     std::int64_t today) const {
  if (!chat_template_) return plain_completion(messages);
  if (!chat_template_->has_value()) return chat_template_->error();
  return chat_template_->value().render_any(messages, template_constants_, today);
}

Result<std::vector<TokenId>> PromptTokenizer::encode_chat(std::span<const ChatMessage> messages,
                                                          std::int64_t today) const {
  OCTAVO_TRY(const std::vector<PromptSpan> spans, apply_chat_template(messages, today));
  OCTAVO_TRY(std::vector<TokenId> token_ids, encode_prompt(spans, messages));
  const bool template_writes_it = chat_template_ && chat_template_->value().writes_bos();
  const bool needs_bos = !template_writes_it && add_bos_token_ && bos_token_id_;
  if (needs_bos) token_ids.insert(token_ids.begin(), *bos_token_id_);
  return token_ids;
}

Result<std::vector<TokenId>> PromptTokenizer::encode_prompt(std::span<const PromptSpan> spans,
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
  OCTAVO_TRY_VOID(encode_around(text, settled, token_ids));
  return token_ids;
}

// Control tokens are no part of an answer's text: ids that contain one were not generated for this content
// alone.
bool PromptTokenizer::stands_for(const ChatMessage& message, std::string_view content) const {
  if (message.role != Role::kAssistant || message.token_ids.empty()) return false;
  for (const TokenId id : message.token_ids) {
    if (id < 0 || id >= vocabulary_size() || is_control(id)) return false;
  }
  return decode(message.token_ids, /*skip_special=*/true) == content;
}

std::string PromptTokenizer::decode(std::span<const TokenId> ids, bool skip_special) const {
  std::string bytes;
  for (const TokenId id : ids) {
    if (!skip_special || !is_control(id)) bytes += token_bytes(id);
  }
  return sanitise_utf8(bytes);
}

}  // namespace octavo::tokenizer
