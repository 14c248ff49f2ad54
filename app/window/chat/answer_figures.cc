#include "app/window/chat/answer_figures.h"

#include <cstdint>
#include <string>

#include "app/chat/finish_text.h"
#include "app/window/chat/answer_story.h"

namespace octavo::app {
namespace {

std::string end_text(const Message& message) {
  if (message.interrupted) return "interrupted";
  if (!message.finish_reason) return {};
  if (message.stopped_repeating) return "stopped, it repeated itself";
  if (message.context_full) return "the context is full";
  const StopReason reason = message.stop_text.empty() ? StopReason{} : StopReason(message.stop_text);
  return finish_text(*message.finish_reason, reason);
}

double milliseconds(std::int64_t us) { return static_cast<double>(us) / 1000.0; }

}  // namespace

ui::AnswerFigures figures_of(const Message& message) {
  ui::AnswerFigures figures;
  figures.seed = message.seed;
  figures.stop_reason = end_text(message);
  if (!message.metrics) return figures;
  const AnswerMetrics& metrics = *message.metrics;
  figures.delay = answer_delay(metrics);
  figures.story = answer_story(metrics);
  if (metrics.request.tpot_us > 0)
    figures.tokens_per_second = 1e6 / static_cast<double>(metrics.request.tpot_us);
  if (metrics.request.ttft_us > 0) figures.first_token_ms = milliseconds(metrics.request.ttft_us);
  if (metrics.num_prompt_tokens > 0) {
    figures.num_prompt_tokens = metrics.num_prompt_tokens;
    figures.num_cached_tokens = metrics.num_cached_tokens;
  }
  return figures;
}

void add_live_figures(const AnswerUnderWay& answer, ui::AnswerFigures& figures) {
  if (answer.num_prompt_tokens > 0) figures.num_prompt_tokens = answer.num_prompt_tokens;
  if (answer.num_cached_tokens) figures.num_cached_tokens = answer.num_cached_tokens;
  if (answer.ttft_us > 0) figures.first_token_ms = milliseconds(answer.ttft_us);
  const std::int64_t elapsed = answer.newest_token_us - answer.first_token_us;
  if (answer.num_tokens > 1 && elapsed > 0)
    figures.tokens_per_second =
        static_cast<double>(answer.num_tokens - 1) * 1e6 / static_cast<double>(elapsed);
}

}  // namespace octavo::app
