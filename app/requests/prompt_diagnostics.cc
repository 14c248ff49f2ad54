#include "app/requests/prompt_diagnostics.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace octavo::app {

PromptDivergence find_divergence(const tokenizer::Tokenizer& tokenizer, const PromptParts& my_parts,
                                 std::span<const TokenId> mine, const PromptParts& their_parts,
                                 const PromptWithAnswer& theirs) {
  const std::size_t num_common = common_prefix_len(mine, theirs);
  PromptDivergence divergence{.found = PromptDivergence::Found::kNone,
                              .num_missed = mine.size() - num_common,
                              .num_reusable = theirs.size()};
  if (num_common == std::min(mine.size(), theirs.size())) return divergence;
  const DifferingPlaces places =
      differing_places(tokenizer, my_parts, {.prompt = mine}, their_parts, theirs, num_common);
  const auto either_is = [&](PromptPart::Kind kind) {
    return places.mine.kind == kind || places.theirs.kind == kind;
  };
  if (tool_change(my_parts.tools(), their_parts.tools()) != ToolChange::kNone ||
      either_is(PromptPart::Kind::kTool)) {
    divergence.found = PromptDivergence::Found::kTools;
  } else if (either_is(PromptPart::Kind::kSystem)) {
    divergence.found = PromptDivergence::Found::kSystem;
  } else if (either_is(PromptPart::Kind::kTemplate) && my_parts.values() != their_parts.values()) {
    divergence.found = PromptDivergence::Found::kSettings;
  } else {
    divergence.found = PromptDivergence::Found::kMessages;
  }
  return divergence;
}

Json message_diagnostics(const PromptDivergence& divergence) {
  const auto reason = [&](const char* type) {
    return Json{
        {"cache_miss_reason", {{"type", type}, {"cache_missed_input_tokens", divergence.num_missed}}}};
  };
  switch (divergence.found) {
    case PromptDivergence::Found::kNone: return nullptr;
    case PromptDivergence::Found::kTools: return reason("tools_changed");
    case PromptDivergence::Found::kSystem: return reason("system_changed");
    case PromptDivergence::Found::kSettings:
    case PromptDivergence::Found::kMessages: return reason("messages_changed");
    case PromptDivergence::Found::kNoSuchRequest:
      return {{"cache_miss_reason", {{"type", "previous_message_not_found"}}}};
    case PromptDivergence::Found::kUnknown: break;
  }
  return {{"cache_miss_reason", {{"type", "unavailable"}}}};
}

Json response_diagnostics(const PromptDivergence& divergence) {
  const auto miss = [&](const char* reason) {
    return Json{{"type", "cache_miss"},
                {"reason", reason},
                {"cache_missed_tokens", divergence.num_missed},
                {"comparison_reusable_tokens", divergence.num_reusable}};
  };
  switch (divergence.found) {
    case PromptDivergence::Found::kNone: return {{"type", "cache_hit"}};
    case PromptDivergence::Found::kTools: return miss("tools_changed");
    case PromptDivergence::Found::kSettings: return miss("reasoning_effort_changed");
    case PromptDivergence::Found::kSystem:
    case PromptDivergence::Found::kMessages: return miss("input_changed");
    case PromptDivergence::Found::kNoSuchRequest: return {{"type", "comparison_response_not_found"}};
    case PromptDivergence::Found::kUnknown: break;
  }
  return {{"type", "unavailable"}};
}

}  // namespace octavo::app
