#include "app/remote/remote_tokenizer.h"

#include <cstddef>

#include "engine/base/text.h"

namespace octavo::app {
namespace {

Error not_counted() {
  return {ErrorCode::kUnsupported, "how a remote model cuts texts into tokens is not known here"};
}

}  // namespace

TokenId RemoteTokenizer::token(std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  const auto found = tokens_.find(bytes);
  if (found != tokens_.end()) return found->second;
  const auto id = static_cast<TokenId>(pieces_.size());
  tokens_.emplace(pieces_.emplace_back(bytes), id);
  return id;
}

std::int32_t RemoteTokenizer::vocabulary_size() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::int32_t>(pieces_.size());
}

Result<std::vector<TokenId>> RemoteTokenizer::encode(std::string_view, bool, bool,
                                                     const tokenizer::EncodeLimits&) const {
  return not_counted();
}

Result<std::vector<TokenId>> RemoteTokenizer::encode_spans(std::span<const tokenizer::PromptSpan>) const {
  return not_counted();
}

Result<std::vector<tokenizer::PromptSpan>> RemoteTokenizer::apply_chat_template(std::span<const ChatMessage>,
                                                                                const TemplateInputs&) const {
  return not_counted();
}

Result<std::vector<TokenId>> RemoteTokenizer::encode_chat(std::span<const ChatMessage>, const TemplateInputs&,
                                                          const tokenizer::EncodeLimits&) const {
  return not_counted();
}

std::string_view RemoteTokenizer::token_bytes(TokenId id) const {
  const std::lock_guard lock(mutex_);
  const auto index = static_cast<std::size_t>(id);
  return id >= 0 && index < pieces_.size() ? std::string_view(pieces_[index]) : std::string_view();
}

std::string RemoteTokenizer::decode(std::span<const TokenId> ids, bool) const {
  std::string text;
  for (const TokenId id : ids) text += token_bytes(id);
  return sanitise_utf8(text);
}

}  // namespace octavo::app
