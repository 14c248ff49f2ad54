#include "tests/simulation/intake_rules.h"

#include <algorithm>
#include <cstddef>

#include "tests/simulation/expected_prompt.h"

namespace octavo::simulation {
namespace {

constexpr std::size_t kMostRemembered = 8;  // as request_intake.h says

}  // namespace

void IntakeRules::check(const ScriptedRequest& asked, const PreparedRequest& prepared,
                        std::int64_t num_encoded_system_messages) {
  if (!prepared.request) return;
  const RequestId id = prepared.request_id;
  const scheduler::NewRequest& request = *prepared.request;
  const std::int32_t num_system_tokens = expected_system_tokens(asked);
  if (request.num_system_tokens != num_system_tokens)
    problem_.note(id, "its system message is " + std::to_string(num_system_tokens) + " tokens, not " +
                          std::to_string(request.num_system_tokens));
  // The template writes a begun answer as it writes one that has ended.
  const bool goes_on = has_states_ && !asked.chat.empty() && !asked.continue_answer;
  const std::int32_t num_next_turn_tokens = goes_on ? static_cast<std::int32_t>(asked.prompt.size()) : 0;
  if (request.num_next_turn_tokens != num_next_turn_tokens)
    problem_.note(id, "a wrong place where the next turn will part");
  if (request.retention != expected_retention(asked))
    problem_.note(id, "kept in another class than it asked");
  if (num_system_tokens > 0) use_system_message(content_of(asked.chat.front()));
  if (num_encoded_system_messages != num_to_encode_)
    problem_.note(id, "system messages were encoded " + std::to_string(num_encoded_system_messages) +
                          " times instead of " + std::to_string(num_to_encode_));
  count(asked);
}

void IntakeRules::use_system_message(const std::string& content) {
  const auto num_known = std::erase(system_messages_, content);
  if (num_known == 0) ++num_to_encode_;
  system_messages_.push_back(content);
  if (system_messages_.size() > kMostRemembered) system_messages_.erase(system_messages_.begin());
}

void IntakeRules::count(const ScriptedRequest& asked) {
  counts_.chat_prompts += asked.chat.empty() ? 0 : 1;
  counts_.continued_answers += asked.continue_answer ? 1 : 0;
  counts_.answers_with_ids +=
      std::ranges::count(asked.chat, ScriptedMessage::Kind::kAnswer, &ScriptedMessage::kind);
  counts_.encoded_system_messages = num_to_encode_;
}

}  // namespace octavo::simulation
