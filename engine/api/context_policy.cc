#include "engine/api/context_policy.h"

#include "engine/base/format.h"

namespace octavo {

std::string_view context_policy_name(ContextPolicy policy) {
  switch (policy) {
    case ContextPolicy::kRoll: return "roll";
    case ContextPolicy::kSummarise: return "summarise";
    case ContextPolicy::kStop: return "stop";
  }
  return "roll";
}

std::optional<ContextPolicy> parse_context_policy(std::string_view name) {
  for (const ContextPolicy policy : {ContextPolicy::kRoll, ContextPolicy::kSummarise, ContextPolicy::kStop}) {
    if (context_policy_name(policy) == name) return policy;
  }
  return std::nullopt;
}

std::string left_context_text(std::int64_t num_messages) {
  if (num_messages == 1) return "1 earlier message is no longer in the context; it stays in the chat";
  return with_thousands(num_messages) +
         " earlier messages are no longer in the context; they stay in the chat";
}

}  // namespace octavo
