#include "engine/request_intake.h"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "engine/api/option_error.h"
#include "engine/base/text.h"

namespace octavo {
namespace {

Error refusal(std::string message, std::string subject) {
  return Error{ErrorCode::kInvalidArgument, std::move(message), std::move(subject)};
}

Result<void> check_token_ids(std::span<const TokenId> ids, std::int32_t vocabulary_size,
                             std::string_view subject) {
  for (std::size_t index = 0; index < ids.size(); ++index) {
    if (ids[index] >= 0 && ids[index] < vocabulary_size) continue;
    return refusal(std::string(subject) + ": token id " + std::to_string(ids[index]) + " at index " +
                       std::to_string(index) + " is not in the vocabulary: give ids from 0 to " +
                       std::to_string(vocabulary_size - 1),
                   std::string(subject));
  }
  return {};
}

// Stop strings are searched in text of whole characters.
Result<void> check_stop_strings(std::span<const std::string> stops) {
  for (const std::string& stop : stops) {
    if (sanitise_utf8(stop) != stop)
      return option_out_of_range("stop", "valid UTF-8", escape_for_message(stop));
  }
  return {};
}

Result<std::vector<TokenId>> encode(const TextPrompt& prompt, const IntakeSources& sources) {
  return sources.tokenizer->encode(prompt.text, prompt.parse_special, /*add_bos=*/true);
}

Result<std::vector<TokenId>> encode(const ChatPrompt& prompt, const IntakeSources& sources) {
  if (prompt.messages.empty())
    return refusal("messages: the chat has no message: give at least one", "messages");
  const std::int32_t vocabulary_size = sources.tokenizer->vocabulary_size();
  for (const ChatMessage& message : prompt.messages) {
    OCTAVO_TRY_VOID(check_token_ids(message.token_ids, vocabulary_size, "messages"));
  }
  return sources.tokenizer->encode_chat(prompt.messages, sources.unix_time_s());
}

Result<std::vector<TokenId>> encode(const TokenPrompt& prompt, const IntakeSources& sources) {
  OCTAVO_TRY_VOID(
      check_token_ids(prompt.token_ids, sources.tokenizer->vocabulary_size(), "prompt_token_ids"));
  return prompt.token_ids;
}

}  // namespace

Result<scheduler::NewRequest> take_in(SubmitRequest submit, const IntakeSources& sources) {
  GenerationRequest& request = submit.request;
  OCTAVO_TRY_VOID(validate(request.sampling, sources.tokenizer->vocabulary_size()));
  OCTAVO_TRY_VOID(check_stop_strings(request.sampling.stop));
  OCTAVO_TRY(auto prompt_token_ids,
             std::visit([&](const auto& prompt) { return encode(prompt, sources); }, request.prompt));
  if (prompt_token_ids.empty()) {
    return refusal("prompt: it has no tokens: give at least one character or token id", "prompt");
  }
  const std::uint64_t seed = request.sampling.seed ? *request.sampling.seed : sources.draw_seed();
  return scheduler::NewRequest{.request_id = submit.request_id,
                               .prompt_token_ids = std::move(prompt_token_ids),
                               .sampling = std::move(request.sampling),
                               .seed = seed,
                               .cache_salt = std::move(request.cache_salt)};
}

}  // namespace octavo
