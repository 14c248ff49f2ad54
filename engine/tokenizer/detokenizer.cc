#include "engine/tokenizer/detokenizer.h"

#include <utility>

#include "engine/base/text.h"

namespace octavo::tokenizer {

std::string Detokenizer::push(TokenId id) {
  if (skip_special_ && tokenizer_->is_control(id)) return {};
  pending_ += tokenizer_->token_bytes(id);
  const std::size_t kept = incomplete_utf8_suffix(pending_);
  const std::size_t certain = pending_.size() - kept;
  std::string text = sanitise_utf8(std::string_view(pending_).substr(0, certain));
  pending_.erase(0, certain);
  return text;
}

std::string Detokenizer::flush() { return sanitise_utf8(std::exchange(pending_, {})); }

}  // namespace octavo::tokenizer
