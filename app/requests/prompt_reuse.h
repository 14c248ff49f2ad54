// Why a prompt was computed as far as it was: the engine's account and cause, and the nearest earlier prompt,
// made into a cause with a name, sentences for people, and what it cost.
//
// Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/requests/prompt_difference.h"
#include "app/requests/prompt_parts.h"
#include "engine/api/metrics.h"

namespace octavo::app {

// What a request's prompt has in common with the nearest earlier one.
struct NearestFacts {
  std::string name = {};  // as sentences call it
  std::size_t num_common = 0;
  std::size_t num_prompt = 0;  // its tokens
  std::size_t num_answer = 0;  // generated behind them; those of an answer that came too late are not counted
  bool was_read = true;        // its prompt was computed when this one was admitted
  bool shares_blocks = true;   // else nothing of it could have been reused: chats and programs are kept apart
  std::vector<SameRun> same = {};  // behind the difference
  ChangeKind change = ChangeKind::kText;
  DifferingPlaces places = {};  // where they differ, as clients know it; without names where it is not known
  ToolChange tools = ToolChange::kNone;
};

struct ReuseFacts {
  std::int32_t block_size = 0;  // tokens
  std::size_t num_prompt = 0;   // tokens; at least one
  PromptAccount account = {};   // of all of them
  PrefixMiss miss = {};
  bool asked_prompt_logprobs = false;
  std::int64_t ttft_us = 0, queue_us = 0;
  std::optional<NearestFacts> nearest = {};
  bool forgot_earlier = false;  // some earlier prompts are no longer known
  // kEvicted: who took the place, and how long before this one it was let in
  std::string evicted_by = {};
  std::optional<std::int64_t> evicted_by_ms_earlier = {};
};

// Causes by name:
//   none               all that may be reused was
//   continues          the earlier prompt, or that and its answer, is the beginning of this one
//   differs            from the nearest earlier prompt, at a token
//   first_of_its_kind  no earlier prompt begins like it, by a block at least
//   evicted            the blocks were there, and others got their place
//   not_kept           the earlier prompt's blocks were not there any more, why is not known
//   being_computed     the earlier prompt was not computed yet
//   other_salt, no_checkpoint, behind_window, not_read   as MissCause
//   no_longer_known    what it began like is not known any more
struct ReuseStory {
  std::string_view cause;  // lives for ever
  std::string sentence;
  // That were computed and need not have been: of the common prefix, and behind a difference what is the same
  // again. At least the last token of a prompt is always computed and never lost.
  std::int64_t lost_tokens = 0;
  std::optional<double> lost_seconds = {};  // at this request's own speed; none: that is not known
  std::string advice;                       // one sentence
};
ReuseStory reuse_story(const ReuseFacts& facts);

}  // namespace octavo::app
