// What becomes of a chat that outgrows its context. A plain value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace octavo {

enum class ContextPolicy {
  kRoll,       // the oldest turns are no longer sent
  kSummarise,  // the same, and a summary of them is sent in their place
  kStop,       // nothing leaves: further questions are refused
};

std::string_view context_policy_name(ContextPolicy policy);  // roll | summarise | stop
std::optional<ContextPolicy> parse_context_policy(std::string_view name);

// "12 earlier messages are no longer in the context; they stay in the chat"
std::string left_context_text(std::int64_t num_messages);

}  // namespace octavo
