#include "engine/tokenizer/prompt_tokenizer.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/api/option_error.h"
#include "engine/base/format.h"
#include "engine/base/text.h"
#include "engine/chat_template/template_switches.h"

namespace octavo::tokenizer {
namespace {

std::string text_of(const Vocabulary& vocabulary, std::optional<TokenId> id) {
  return id ? vocabulary.tokens[static_cast<std::size_t>(*id)] : std::string();
}

Error too_long(std::size_t bytes, std::size_t most, const std::string& whose_limit) {
  return {ErrorCode::kTooLong, "the prompt has " + with_thousands(bytes) + " bytes; " + whose_limit +
                                   " at most " + with_thousands(most) + ": cut at least " +
                                   with_thousands(bytes - most)};
}

Result<void> check_length(std::size_t bytes) {
  if (bytes <= PromptTokenizer::kMaxTextBytes) return {};
  return too_long(bytes, PromptTokenizer::kMaxTextBytes, "the tokenizer accepts");
}

std::string room_of(std::size_t num_tokens) {
  return "the " + count_text(num_tokens, "token") + " that there is room for can hold";
}

// Without a template no model has learnt to call.
Result<void> check_has_no_tools(std::span<const ChatMessage> messages, const TemplateInputs& inputs) {
  const bool has_calls =
      std::ranges::any_of(messages, [](const ChatMessage& message) { return !message.tool_calls.empty(); });
  if (inputs.tools.empty() && !has_calls) return {};
  return option_not_built("tools",
                          "this model has no chat template and cannot call; choose a model for chats");
}

// What a message adds to what a template prints.
std::size_t text_bytes(const ChatMessage& message) {
  std::size_t bytes = message.content.size();
  for (const ToolCall& call : message.tool_calls) bytes += call.name.size() + call.arguments.size();
  return bytes;
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
      added_token_rules_(vocabulary.added_token_rules),
      bos_token_id_(vocabulary.bos_token_id),
      eos_token_id_(vocabulary.eos_token_id),
      end_token_ids_(vocabulary.further_eos_token_ids),
      add_bos_token_(vocabulary.add_bos_token),
      template_constants_{text_of(vocabulary, vocabulary.bos_token_id),
                          text_of(vocabulary, vocabulary.eos_token_id)} {
  if (vocabulary.eos_token_id) end_token_ids_.push_back(*vocabulary.eos_token_id);
  for (TokenId id = 0; id < vocabulary_size(); ++id) {
    const std::string_view bytes = token_bytes(id);
    const bool is_text = !is_special(id) || (kind(id) == TokenKind::kUserDefined && !is_marker(bytes));
    if (is_text) longest_bytes_ = std::max(longest_bytes_, bytes.size());
  }
  if (!vocabulary.chat_template.empty()) chat_template_ = ChatTemplate::parse(vocabulary.chat_template);
}

std::vector<TemplateSwitch> PromptTokenizer::template_switches() const {
  if (!chat_template_ || !chat_template_->has_value()) return {};
  return find_template_switches(chat_template_->value(), template_constants_);
}

std::string_view PromptTokenizer::chat_template_source() const {
  if (!chat_template_ || !chat_template_->has_value()) return {};
  return chat_template_->value().source();
}

bool PromptTokenizer::knows_tools() const {
  return chat_template_ && chat_template_->has_value() && chat_template_->value().knows_tools();
}

bool PromptTokenizer::is_end_of_sequence(TokenId id) const {
  return std::find(end_token_ids_.begin(), end_token_ids_.end(), id) != end_token_ids_.end();
}

bool PromptTokenizer::is_special(TokenId id) const {
  return kind(id) == TokenKind::kControl || kind(id) == TokenKind::kUserDefined;
}

Result<std::vector<TokenId>> PromptTokenizer::encode(std::string_view text, bool parse_special, bool add_bos,
                                                     const EncodeLimits& limits) const {
  OCTAVO_TRY_VOID(check_length(text.size()));
  std::vector<TokenId> token_ids;
  if (add_bos && add_bos_token_ && bos_token_id_) token_ids.push_back(*bos_token_id_);
  std::vector<SettledTokens> specials;
  if (parse_special) specials_.find_all(text, 0, text.size(), specials);
  added_token_rules_.apply(text, specials);
  OCTAVO_TRY_VOID(encode_text(text, specials, limits, token_ids));
  return token_ids;
}

Result<std::vector<TokenId>> PromptTokenizer::encode_spans(std::span<const PromptSpan> spans) const {
  return encode_prompt(spans, {}, {});
}

Result<std::vector<PromptSpan>> PromptTokenizer::apply_chat_template(std::span<const ChatMessage> messages,
                                                                     const TemplateInputs& inputs) const {
  if (!chat_template_) {
    OCTAVO_TRY_VOID(check_has_no_tools(messages, inputs));
    return plain_completion(messages);
  }
  if (!chat_template_->has_value()) return chat_template_->error();
  return chat_template_->value().render_any(messages, template_constants_, inputs);
}

Result<std::vector<TokenId>> PromptTokenizer::encode_chat(std::span<const ChatMessage> messages,
                                                          const TemplateInputs& inputs,
                                                          const EncodeLimits& limits) const {
  if (chat_template_) OCTAVO_TRY_VOID(check_can_be_rendered(messages, inputs, limits.max_tokens));
  OCTAVO_TRY(const std::vector<PromptSpan> spans, apply_chat_template(messages, inputs));
  OCTAVO_TRY(std::vector<TokenId> token_ids, encode_prompt(spans, messages, limits));
  const bool template_writes_it = chat_template_ && chat_template_->value().writes_bos();
  const bool needs_bos = !template_writes_it && add_bos_token_ && bos_token_id_;
  if (needs_bos) token_ids.insert(token_ids.begin(), *bos_token_id_);
  return token_ids;
}

Result<std::vector<TokenId>> PromptTokenizer::encode_prompt(std::span<const PromptSpan> spans,
                                                            std::span<const ChatMessage> messages,
                                                            const EncodeLimits& limits) const {
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
  added_token_rules_.apply(text, settled);
  std::vector<TokenId> token_ids;
  OCTAVO_TRY_VOID(encode_text(text, settled, limits, token_ids));
  return token_ids;
}

Result<void> PromptTokenizer::encode_text(std::string_view text, std::span<const SettledTokens> settled,
                                          const EncodeLimits& limits, std::vector<TokenId>& out) const {
  OCTAVO_TRY_VOID(check_can_fit(text, settled, limits.max_tokens));
  OCTAVO_TRY_VOID(encode_around(text, settled, limits.stop, out));
  if (limits.stop.stop_requested()) return Error{ErrorCode::kCancelled, "the prompt is no longer wanted"};
  return {};
}

// A prompt that is long only because of what leaves no trace in its tokens (spaces that a model removes, say)
// passes. The bytes to cut are the text's own: rules may have made it longer.
Result<void> PromptTokenizer::check_can_fit(std::string_view text, std::span<const SettledTokens> settled,
                                            std::size_t max_tokens) const {
  const std::size_t most = most_bytes_of(max_tokens);
  if (text.size() <= most) return {};
  OCTAVO_TRY(std::size_t bytes, count_bytes_around(text, settled));
  for (const SettledTokens& stretch : settled) bytes += most_bytes_of(stretch.token_ids.size());
  if (bytes <= most) return {};
  const auto share = static_cast<double>(most) / static_cast<double>(bytes);
  const auto kept = static_cast<std::size_t>(share * static_cast<double>(text.size()));
  return too_long(text.size(), kept, room_of(max_tokens));
}

// What no template could print is refused before one tries, with the tighter limit of the two.
Result<void> PromptTokenizer::check_can_be_rendered(std::span<const ChatMessage> messages,
                                                    const TemplateInputs& inputs,
                                                    std::size_t max_tokens) const {
  std::size_t bytes = inputs.tools.size();
  for (const ChatMessage& message : messages) bytes += text_bytes(message);
  if (bytes <= ChatTemplate::kMaxTextBytes) return {};
  const std::size_t most = most_bytes_of(max_tokens);
  if (most < ChatTemplate::kMaxTextBytes) return too_long(bytes, most, room_of(max_tokens));
  return too_long(bytes, ChatTemplate::kMaxTextBytes, "a chat template prints");
}

std::size_t PromptTokenizer::most_bytes_of(std::size_t num_tokens) const {
  return std::min(num_tokens, std::numeric_limits<std::size_t>::max() / longest_bytes_) * longest_bytes_;
}

// Control tokens are no part of an answer's text: ids that contain one were not generated for this content
// alone. Nor are calls, which the ids of an answer that made some hold as text.
bool PromptTokenizer::stands_for(const ChatMessage& message, std::string_view content) const {
  if (message.role != Role::kAssistant || message.token_ids.empty()) return false;
  if (!message.tool_calls.empty()) return false;
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
