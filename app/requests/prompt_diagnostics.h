// Where a prompt parts from one that its client names, in the vendors' own fields: `diagnostics` of messages
// and `prompt_cache_diagnostics` of responses. Exact, since both prompts are kept as tokens with their parts.
//
// Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "app/json/json_text.h"
#include "app/requests/prompt_difference.h"
#include "app/requests/prompt_parts.h"
#include "engine/base/ids.h"
#include "engine/tokenizer/tokenizer.h"

namespace octavo::app {

struct PromptDivergence {
  enum class Found : std::uint8_t {
    kUnknown,        // a prompt is not kept any more
    kNoSuchRequest,  // nothing is known by this id
    kNone,           // one is the beginning of the other
    kTools,
    kSystem,
    kSettings,  // values that the template reads
    kMessages,
  };
  Found found = Found::kUnknown;
  std::size_t num_missed = 0;    // tokens of this prompt behind the difference
  std::size_t num_reusable = 0;  // tokens of the other that could be found again
};
//   theirs  with as much of its answer as can be found again
PromptDivergence find_divergence(const tokenizer::Tokenizer& tokenizer, const PromptParts& my_parts,
                                 std::span<const TokenId> mine, const PromptParts& their_parts,
                                 const PromptWithAnswer& theirs);

// null without a difference; else {"cache_miss_reason": {"type", "cache_missed_input_tokens"}}
Json message_diagnostics(const PromptDivergence& divergence);
// {"type": "cache_hit"}, {"type": "cache_miss", "reason", "cache_missed_tokens",
// "comparison_reusable_tokens"}, ...
Json response_diagnostics(const PromptDivergence& divergence);

}  // namespace octavo::app
