// A runner without arithmetic: each next token is a function of the request and the position, given by the
// test.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
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
        output.has_ended = true;
        output.tokens.push_back(draw(sequence.request_id, target));
      }
    }
    if (clock_ != nullptr) take_time(step, output.has_ended);
    return {};
  }

  // Once it is to run ahead: a step that only draws is begun, and what it drew is known when it is asked for.
  bool begin(const scheduler::SchedulerOutput& step) override {
    const auto only_draws = [](const scheduler::ScheduledSequence& sequence) {
      return sequence.samples.size() == 1 && sequence.samples.front().num_candidates == 0 &&
             !sequence.sampling->prompt_logprobs && !sequence.pooling;
    };
    if (!runs_ahead_ || step.empty() || !std::ranges::all_of(step.sequences, only_draws)) return false;
    Begun& begun = begun_.emplace_back();
    begun.fails = fails_next_.exchange(false);
    for (const auto& sequence : step.sequences) {
      if (sequence.token_ids.front() == scheduler::kNotDrawnYet) ++num_rows_ahead_;
      begun.tokens.push_back(draw(sequence.request_id, sequence.samples.front()));
    }
    return true;
  }

  Result<void> finish(const scheduler::SchedulerOutput& step, runner::RunnerOutput& output) override {
    ++num_steps_;
    const Begun begun = std::move(begun_.front());
    begun_.pop_front();
    if (begun.fails) {
      begun_.clear();
      return Error{ErrorCode::kDevice, "the device fell over"};
    }
    for (const runner::SampledToken& token : begun.tokens) {
      const bool is_wanted =
          std::ranges::find(step.sequences, token.sequence_id, &scheduler::ScheduledSequence::sequence_id) !=
          step.sequences.end();
      is_wanted ? output.tokens.push_back(token) : void(++num_drawn_in_vain_);
    }
    return {};
  }

  void run_ahead() { runs_ahead_ = true; }
  bool has_begun() const { return !begun_.empty(); }
  std::int64_t num_rows_ahead() const { return num_rows_ahead_; }
  std::int64_t num_drawn_in_vain() const { return num_drawn_in_vain_; }  // of rows that were nobody's

  void fail_next() { fails_next_ = true; }
  // As a device that is waited for only when it draws: it takes so long for a row.
  void run_behind(ManualClock& clock, std::int64_t us_per_row) {
    clock_ = &clock;
    us_per_row_ = us_per_row;
  }
  std::int64_t num_steps() const { return num_steps_; }
  std::int64_t num_drawn() const { return num_drawn_; }  // tokens

 private:
  struct Begun {
    bool fails = false;
    std::vector<runner::SampledToken> tokens;
  };

  runner::SampledToken draw(RequestId request_id, const scheduler::SampleTarget& target) {
    const TokenId token = script_(request_id, target.position());
    ++num_drawn_;
    return {.sequence_id = target.sequence_id,
            .token_id = target.num_candidates > 0 ? -1 : token,
            .logprob = -0.5f,
            .top_logprobs = {{token, -0.5f}},
            .candidates = continuations(token, target.num_candidates),
            .invalid_logits = token < 0};
  }

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
  bool runs_ahead_ = false;
  std::deque<Begun> begun_;
  std::int64_t num_rows_ahead_ = 0, num_drawn_in_vain_ = 0;
  std::atomic<bool> fails_next_ = false;
  std::atomic<std::int64_t> num_steps_ = 0, num_drawn_ = 0;
};

}  // namespace octavo
