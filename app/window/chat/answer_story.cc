#include "app/window/chat/answer_story.h"

#include <algorithm>
#include <cstdint>

#include "engine/base/format.h"

namespace octavo::app {
namespace {

constexpr std::int64_t kLongWaitUs = 1'000'000;

std::string time_text(std::int64_t us) { return duration_text(static_cast<double>(us) / 1000.0); }

// Why the rest of the prompt had to be computed.
std::string reason_of(const PrefixMiss& miss) {
  switch (miss.cause) {
    case MissCause::kNone: return "";
    case MissCause::kFirstUse: return ", because nobody had sent them before";
    case MissCause::kEvicted: return ", because their blocks had been given to others";
    case MissCause::kOtherSalt: return ", because only requests that may not share had sent them";
    case MissCause::kDifferingToken:
      return ", because token " + with_thousands(miss.position + 1) + " differs from what was in memory";
    case MissCause::kNoCheckpoint:
      return ", because the recurrent layers kept nothing of more than " + with_thousands(miss.position) +
             " tokens";
    case MissCause::kNotRead: return ", because it did not look for blocks in memory";
  }
  return "";
}

std::string times_text(std::int32_t times) {
  if (times == 1) return "once";
  return times == 2 ? "twice" : with_thousands(times) + " times";
}

}  // namespace

std::string answer_story(const AnswerMetrics& metrics) {
  const RequestMetrics& request = metrics.request;
  if (request.e2e_us <= 0) return {};
  std::string story = "Waited " + time_text(request.queue_us) + " for its turn.";
  if (request.ttft_us > 0) {
    const std::int32_t computed = std::max(0, metrics.num_prompt_tokens - metrics.num_cached_tokens);
    story += " Read its prompt in " +
             time_text(std::max<std::int64_t>(0, request.ttft_us - request.queue_us)) + ": " +
             with_thousands(metrics.num_cached_tokens) + " of " +
             count_text(metrics.num_prompt_tokens, "token") + " were in memory";
    story += computed > 0
                 ? ", " + with_thousands(computed) + " were computed" + reason_of(request.prefix_miss) + "."
                 : ".";
    story += " Wrote for " + time_text(std::max<std::int64_t>(0, request.e2e_us - request.ttft_us)) + ".";
  }
  if (request.num_preemptions > 0) {
    story += " Gave its memory to others " + times_text(request.num_preemptions) +
             ", and waited until it could have it back: the pool was full.";
  }
  return story;
}

std::string answer_delay(const AnswerMetrics& metrics) {
  const RequestMetrics& request = metrics.request;
  std::string delay;
  if (request.queue_us >= kLongWaitUs || (request.e2e_us > 0 && request.queue_us > request.e2e_us / 5))
    delay = "waited " + time_text(request.queue_us);
  if (request.num_preemptions > 0) {
    delay += delay.empty() ? "" : ", ";
    delay += "preempted " + times_text(request.num_preemptions);
  }
  return delay;
}

}  // namespace octavo::app
