#include "app/requests/prompt_reuse.h"

#include <algorithm>
#include <utility>

#include "engine/base/format.h"

namespace octavo::app {
namespace {

std::int64_t reuse_count(std::size_t count) { return static_cast<std::int64_t>(count); }

// The numbers that the cause hangs on.
struct ReuseNumbers {
  std::int64_t prompt = 0, computed = 0, reused = 0;
  std::int64_t common = 0;
  std::int64_t lost_common = 0;  // of the common prefix
  std::int64_t lost_behind = 0;  // behind the difference
  std::int64_t lost = 0;

  std::int64_t most_reusable() const { return prompt - 1; }
};

ReuseNumbers numbers_of(const ReuseFacts& facts) {
  ReuseNumbers numbers{.prompt = reuse_count(facts.num_prompt), .computed = facts.account.num_computed};
  numbers.reused = numbers.prompt - numbers.computed;
  if (facts.nearest && facts.nearest->shares_blocks) {
    const NearestFacts& nearest = *facts.nearest;
    numbers.common = reuse_count(nearest.num_common);
    // The last token of an answer is drawn, but never computed.
    const std::int64_t num_with_kv =
        reuse_count(nearest.num_prompt) + std::max<std::int64_t>(0, reuse_count(nearest.num_answer) - 1);
    const std::int64_t reusable = std::min({numbers.common, num_with_kv, numbers.most_reusable()});
    numbers.lost_common = std::max<std::int64_t>(0, reusable - numbers.reused);
    const std::int64_t behind = std::max(numbers.common, numbers.reused);
    for (const SameRun& run : nearest.same) {
      const std::int64_t begin = std::max(behind, reuse_count(run.mine));
      numbers.lost_behind += std::max<std::int64_t>(0, reuse_count(run.mine + run.length) - begin);
    }
  }
  numbers.lost = numbers.lost_common + numbers.lost_behind;
  const bool is_whole_block =
      facts.miss.cause == MissCause::kEvicted || facts.miss.cause == MissCause::kOtherSalt;
  if (is_whole_block) numbers.lost = std::max<std::int64_t>(numbers.lost, facts.block_size);
  numbers.lost = std::clamp<std::int64_t>(numbers.lost, 0, std::max<std::int64_t>(0, numbers.computed - 1));
  return numbers;
}

struct CauseText {
  std::string_view cause;
  std::string sentence;
  std::string advice;
};

const char* const kMoreMemory =
    "Give the cache more memory (--kv-cache-memory), or send fewer different prompts in between.";

CauseText not_read_text(const ReuseFacts& facts) {
  if (facts.asked_prompt_logprobs)
    return {"not_read", "Prompt log-probabilities do not read the cache: they need every token computed.",
            "Ask for log-probabilities of the prompt (echo) only where you need them."};
  return {"not_read", "This request did not look for its beginning in the cache.",
          "Leave the prefix cache on."};
}

CauseText evicted_text(const ReuseFacts& facts) {
  const std::string what = "The blocks behind token " + with_thousands(facts.miss.position) + " were evicted";
  if (facts.miss.evicted_by == 0)
    return {"evicted", what + ": the prefix cache was emptied.", "Empty the cache only for measurements."};
  if (facts.evicted_by.empty())
    return {"evicted", what + " for a request that is no longer known.", kMoreMemory};
  std::string sentence = what + " for " + facts.evicted_by;
  if (facts.evicted_by_ms_earlier)
    sentence += ", which began " +
                duration_text(static_cast<double>(std::max<std::int64_t>(0, *facts.evicted_by_ms_earlier))) +
                " earlier";
  return {"evicted", sentence + ".", kMoreMemory};
}

CauseText not_kept_text(const NearestFacts& nearest) {
  const std::string common =
      "The first " + count_text(nearest.num_common, "token") + " are those of " + nearest.name;
  if (!nearest.was_read)
    return {"being_computed", common + ", which was itself still being computed.",
            "Of requests that begin alike, send the others when the first has begun to answer."};
  return {"not_kept", common + ", but its blocks were no longer in the cache.", kMoreMemory};
}

// What of the tools explains a difference among them.
std::string_view tools_text_of(const NearestFacts& nearest) {
  const bool is_in_tools = nearest.places.mine.kind == PromptPart::Kind::kTool ||
                           nearest.places.theirs.kind == PromptPart::Kind::kTool;
  if (!is_in_tools) return {};
  switch (nearest.tools) {
    case ToolChange::kNone: return {};
    case ToolChange::kReordered: return "tools were sent in another order";
    case ToolChange::kAdded: return "a tool was added";
    case ToolChange::kLeftOut: return "a tool was left out";
    case ToolChange::kReplaced: return "other tools were sent";
  }
  return {};
}

// ": a date or a time changed in system, line 3"; empty where it is not known what the place is.
std::string place_text(const NearestFacts& nearest) {
  const std::string& mine = nearest.places.mine.name;
  const std::string& theirs = nearest.places.theirs.name;
  if (const std::string_view tools = tools_text_of(nearest); !tools.empty())
    return ": " + std::string(tools) + " (" + mine + ")";
  if (mine.empty() || theirs.empty()) return mine.empty() ? std::string() : ": in " + mine;
  if (mine != theirs) return ": it has " + mine + " where that has " + theirs;
  switch (nearest.change) {
    case ChangeKind::kTime: return ": a date or a time changed in " + mine;
    case ChangeKind::kChecksum: return ": a checksum or an id changed in " + mine;
    case ChangeKind::kNumber: return ": a number changed in " + mine;
    case ChangeKind::kText: break;
  }
  return ": in " + mine;
}

std::string differs_advice(const NearestFacts& nearest, const ReuseNumbers& numbers) {
  if (numbers.lost_behind == 0) return "Nothing to do: what follows the difference is new.";
  const std::string behind =
      count_text(numbers.lost_behind, "token") + " behind the difference are the same as before";
  if (nearest.num_common >= nearest.num_prompt)
    return "Send answers back exactly as they were generated, with their thinking and white space: " +
           behind + ".";
  if (!tools_text_of(nearest).empty())
    return "Send the same tools in the same order in every request: " + behind + ".";
  if (is_reordered(nearest.same))
    return "Send tools, documents and messages in the same order every time: " + behind + ".";
  switch (nearest.change) {
    case ChangeKind::kTime:
      return "The differing text looks like a date or a time: move it to the end of the prompt; " + behind +
             ".";
    case ChangeKind::kChecksum:
      return "The differing text looks like a checksum or an id: leave it out, or move it to the end of the "
             "prompt; " +
             behind + ".";
    case ChangeKind::kNumber:
      return "The differing text looks like a number that changes: move it to the end of the prompt; " +
             behind + ".";
    case ChangeKind::kText: break;
  }
  return "Keep text that changes at the end of the prompt: " + behind + ".";
}

CauseText unknown_text(const ReuseNumbers& numbers) {
  return {"no_longer_known",
          "The first " + count_text(numbers.reused, "token") +
              " were reused, of an earlier prompt that is no longer known.",
          "Nothing to do that is known."};
}

CauseText first_text(const ReuseFacts& facts) {
  std::string sentence = facts.forgot_earlier
                             ? "First request of its kind among the prompts that are still known"
                             : "First request of its kind";
  if (facts.nearest)
    sentence += ": it begins like " + facts.nearest->name + " for only " +
                count_text(facts.nearest->num_common, "token");
  return {"first_of_its_kind", sentence + ".",
          "Nothing to do: later prompts that begin like this one will reuse it."};
}

CauseText kept_apart_text(const NearestFacts& nearest) {
  return {"other_salt",
          "The first " + count_text(nearest.num_common, "token") + " are those of " + nearest.name +
              ", but chats and programs share no blocks.",
          "Nothing to do: by what is reused, a program could find out what you wrote."};
}

// What the comparison says, where the engine has no reason of its own.
CauseText compared_text(const ReuseFacts& facts, const ReuseNumbers& numbers) {
  const std::int64_t block_size = facts.block_size;
  const bool is_kept_apart = facts.nearest && !facts.nearest->shares_blocks;
  if (is_kept_apart && reuse_count(facts.nearest->num_common) >= block_size)
    return kept_apart_text(*facts.nearest);
  if (facts.nearest && numbers.lost_common >= block_size) return not_kept_text(*facts.nearest);
  if (numbers.reused >= numbers.most_reusable() || numbers.common >= numbers.prompt)
    return {"none", "All that may be reused of this prompt was reused.", "Nothing to do."};
  if (numbers.reused > numbers.common) return unknown_text(numbers);
  const bool shares_little = numbers.common < block_size && numbers.lost_behind == 0;
  if (!facts.nearest || shares_little) return first_text(facts);
  const NearestFacts& nearest = *facts.nearest;
  if (nearest.num_common == nearest.num_prompt + nearest.num_answer)
    return {"continues", "The prompt continues " + nearest.name + ": only what is new was computed.",
            "Nothing to do."};
  const bool is_in_answer = nearest.num_common >= nearest.num_prompt && nearest.num_answer > 0;
  return {"differs",
          "The prompt differs from " + nearest.name + (is_in_answer ? ", in its answer," : "") +
              " at token " + with_thousands(numbers.common) + place_text(nearest) + ".",
          differs_advice(nearest, numbers)};
}

CauseText cause_text(const ReuseFacts& facts, const ReuseNumbers& numbers) {
  const std::string position = with_thousands(facts.miss.position);
  switch (facts.miss.cause) {
    case MissCause::kNotRead: return not_read_text(facts);
    case MissCause::kEvicted: return evicted_text(facts);
    case MissCause::kOtherSalt:
      if (facts.nearest && !facts.nearest->shares_blocks) return kept_apart_text(*facts.nearest);
      return {"other_salt",
              "The same tokens are in the cache, but of requests that share nothing with this one.",
              "Use one key and one cache_salt for requests that may share."};
    case MissCause::kNoCheckpoint:
      return {"no_checkpoint", "The recurrent layers kept no state behind token " + position + ".",
              "Keep the beginning of prompts the same up to the end of a message: states are kept there."};
    case MissCause::kBehindWindow:
      return {"behind_window",
              "Layers with a window kept nothing of the tokens before token " + position + ".", kMoreMemory};
    case MissCause::kNone:
    case MissCause::kFirstUse:
    case MissCause::kDifferingToken: break;
  }
  return compared_text(facts, numbers);
}

}  // namespace

ReuseStory reuse_story(const ReuseFacts& facts) {
  const ReuseNumbers numbers = numbers_of(facts);
  CauseText text = cause_text(facts, numbers);
  ReuseStory story{.cause = text.cause,
                   .sentence = std::move(text.sentence),
                   .lost_tokens = numbers.lost,
                   .lost_seconds = {},
                   .advice = std::move(text.advice)};
  const std::int64_t work_us = facts.ttft_us - facts.queue_us;
  if (facts.ttft_us > 0 && work_us >= 0 && numbers.computed > 0)
    story.lost_seconds = static_cast<double>(work_us) / 1e6 / static_cast<double>(numbers.computed) *
                         static_cast<double>(numbers.lost);
  return story;
}

}  // namespace octavo::app
