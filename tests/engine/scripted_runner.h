// A runner without arithmetic: each next token is a function of the request and the position, given by the
// test.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "engine/base/clock.h"
#include "engine/runner/runner.h"

namespace octavo {

class ScriptedRunner final : public runner::Runner {
 public:
  // The token that a request draws as its `position`-th, 0-based. Negative: its logits are not finite.
  using Script = std::function<TokenId(RequestId request_id, std::size_t position)>;

  explicit ScriptedRunner(Script script) : script_(std::move(script)) {}

  Result<void> execute(const scheduler::SchedulerOutput& step, runner::RunnerOutput& output) override {
    ++num_steps_;
    if (fails_next_.exchange(false)) return Error{ErrorCode::kDevice, "the device fell over"};
    output.swap_out_us = 10 * static_cast<std::int64_t>(step.swap_outs.size());
    output.swap_in_us = 20 * static_cast<std::int64_t>(step.swap_ins.size());
    output.has_ended = clock_ == nullptr;
    for (const auto& sequence : step.sequences) {
      report_prompt(sequence, output);
      report_hidden_states(sequence, output);
      for (std::size_t i = 0; i < sequence.samples.size(); ++i) {
        const auto& target = sequence.samples[i];
        const auto draft = sequence.draft();
        if (i > 0 && !draft.empty() && output.tokens.back().token_id != draft[i - 1]) break;
        const TokenId token = script_(sequence.request_id, target.output_token_ids.size());
        ++num_drawn_;
        output.has_ended = true;
        output.tokens.push_back({.sequence_id = target.sequence_id,
                                 .token_id = target.num_candidates > 0 ? -1 : token,
                                 .logprob = -0.5f,
                                 .top_logprobs = {{token, -0.5f}},
                                 .candidates = continuations(token, target.num_candidates),
                                 .invalid_logits = token < 0});
      }
    }
    if (clock_ != nullptr) take_time(step, output.has_ended);
    return {};
  }

  void fail_next() { fails_next_ = true; }
  // As a device that is waited for only when it draws: it takes so long for a row.
  void run_behind(ManualClock& clock, std::int64_t us_per_row) {
    clock_ = &clock;
    us_per_row_ = us_per_row;
  }
  std::int64_t num_steps() const { return num_steps_; }
  std::int64_t num_drawn() const { return num_drawn_; }  // tokens

 private:
  void take_time(const scheduler::SchedulerOutput& step, bool is_waited_for) {
    for (const auto& sequence : step.sequences)
      us_behind_ += us_per_row_ * static_cast<std::int64_t>(sequence.token_ids.size());
    if (is_waited_for) clock_->advance_us(std::exchange(us_behind_, 0));
  }

  // The scripted token and those after it, each a little less likely.
  static std::vector<runner::BeamCandidate> continuations(TokenId token, std::int32_t num_candidates) {
    std::vector<runner::BeamCandidate> candidates;
    for (std::int32_t i = 0; i < num_candidates; ++i) {
      const float logprob = -0.5f - 0.25f * static_cast<float>(i);
      candidates.push_back({token + i, logprob, logprob});
    }
    return candidates;
  }

  // The log-probability of position p is -p, and all its alternatives are token p.
  static void report_prompt(const scheduler::ScheduledSequence& sequence, runner::RunnerOutput& output) {
    if (!sequence.sampling->prompt_logprobs) return;
    const auto num_prompt = static_cast<std::int32_t>(sequence.prompt_token_ids.size());
    const auto num_rows = static_cast<std::int32_t>(sequence.token_ids.size());
    for (std::int32_t row = 0; row < num_rows; ++row) {
      const std::int32_t position = sequence.start_position + row + 1;
      if (position >= num_prompt) break;
      std::vector<TokenLogprob> top(static_cast<std::size_t>(*sequence.sampling->prompt_logprobs),
                                    {position, -1.0f});
      output.prompt_logprobs.push_back(
          {sequence.sequence_id, position, -static_cast<float>(position), std::move(top)});
    }
  }

  // The row of position p is (1, p).
  static void report_hidden_states(const scheduler::ScheduledSequence& sequence,
                                   runner::RunnerOutput& output) {
    if (!sequence.pooling) return;
    const auto end = sequence.start_position + static_cast<std::int32_t>(sequence.token_ids.size());
    runner::HiddenStates hidden{sequence.sequence_id, sequence.request_id, sequence.start_position, 2, {}};
    for (std::int32_t position = sequence.start_position; position < end; ++position) {
      hidden.values.push_back(1.0f);
      hidden.values.push_back(static_cast<float>(position));
    }
    output.hidden_states.push_back(std::move(hidden));
  }

  const Script script_;
  ManualClock* clock_ = nullptr;
  std::int64_t us_per_row_ = 0, us_behind_ = 0;
  std::atomic<bool> fails_next_ = false;
  std::atomic<std::int64_t> num_steps_ = 0, num_drawn_ = 0;
};

}  // namespace octavo
