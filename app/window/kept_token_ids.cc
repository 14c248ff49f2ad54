#include "app/window/kept_token_ids.h"

#include <algorithm>
#include <variant>

namespace octavo::app {
namespace {

bool has_all(const tokenizer::Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  return std::all_of(ids.begin(), ids.end(),
                     [&](TokenId id) { return id >= 0 && id < tokenizer.vocabulary_size(); });
}

}  // namespace

bool spells(const tokenizer::Tokenizer& tokenizer, const std::vector<TokenId>& ids, std::string_view text) {
  const bool is_text = has_all(tokenizer, ids) && std::none_of(ids.begin(), ids.end(), [&](TokenId id) {
                         return tokenizer.is_control(id);
                       });
  return is_text && tokenizer.decode(ids, /*skip_special=*/true) == text;
}

void keep_ids_of_text(const tokenizer::Tokenizer& tokenizer, const StopReason& stop_reason,
                      Message& message) {
  if (message.token_ids.empty() || message.finish_reason != FinishReason::kStop) return;
  if (std::holds_alternative<std::string>(stop_reason)) {
    message.token_ids.clear();
    return;
  }
  const TokenId last = message.token_ids.back();
  const auto* const stop_token = std::get_if<TokenId>(&stop_reason);
  if (tokenizer.is_end_of_sequence(last) || (stop_token != nullptr && *stop_token == last))
    message.token_ids.pop_back();
}

void forget_foreign_ids(const tokenizer::Tokenizer& tokenizer, GenerationRequest& request) {
  auto* const chat = std::get_if<ChatPrompt>(&request.prompt);
  if (chat == nullptr) return;
  for (ChatMessage& message : chat->messages) {
    if (!has_all(tokenizer, message.token_ids)) message.token_ids.clear();
  }
}

}  // namespace octavo::app
