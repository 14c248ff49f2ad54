#include "tests/scheduler/harness.h"

#include <algorithm>

#include "engine/base/hash.h"

namespace octavo::scheduler {

std::uint64_t Harness::seed_of(RequestId request_id) { return mix64(request_id.value); }

Tokens Harness::expected_output(const SimulatedRequest& request, std::uint64_t seed,
                                std::uint32_t output_index, std::int32_t num_tokens) {
  Tokens all = request.prompt;
  Tokens output;
  while (static_cast<std::int32_t>(output.size()) < num_tokens) {
    output.push_back(draw(hash_of(all), seed, output_index, output.size(), request.period));
    all.push_back(output.back());
  }
  return output;
}

RequestId Harness::submit(const SimulatedRequest& request) {
  const RequestId request_id{++last_request_};
  NewRequest added{.request_id = request_id,
                   .prompt_token_ids = request.prompt,
                   .sampling = {},
                   .seed = seed_of(request_id),
                   .cache_salt = request.salt,
                   .retention = request.retention,
                   .num_system_tokens = request.num_system_tokens,
                   .num_next_turn_tokens = request.num_next_turn_tokens,
                   .priority = request.priority};
  added.sampling.n = request.n;
  added.sampling.max_tokens = request.max_tokens;
  if (request.prompt_logprobs) added.sampling.prompt_logprobs = 0;
  added.sampling.beam_width = request.beam_width;
  if (request.beam_width) added.num_beam_candidates = 2 * *request.beam_width;
  const auto accepted = scheduler.add(std::move(added));
  EXPECT_TRUE(accepted) << accepted.error().message;
  requests_.emplace(request_id, request);
  if (request.beam_width) {
    const SequenceId first_seat = scheduler.sequences_of(request_id).front().sequence_id;
    searches_.try_emplace(request_id, *request.beam_width, seed_of(request_id), first_seat);
  }
  return request_id;
}

bool Harness::abort(RequestId request_id) {
  const bool was_known = scheduler.abort(request_id);
  searches_.erase(request_id);
  check_state();
  return was_known;
}

void Harness::finish_early(SequenceId sequence_id) {
  scheduler.finish(sequence_id);
  check_state();
}

SchedulerOutput Harness::step(bool device_fails) {
  const SchedulerOutput step = scheduler.schedule();
  note_plan(step);
  device_fails ? fail(step) : commit(step);
  end_out_of_memory(step);
  check_state();
  return step;
}

void Harness::run_until_idle(int most_steps) {
  for (int i = 0; scheduler.has_work() && !::testing::Test::HasFailure(); ++i) {
    ASSERT_LT(i, most_steps) << "it does not come to an end";
    step();
  }
}

SchedulerOutput Harness::run_until_preempted(RequestId request_id) {
  while (scheduler.has_work() && !::testing::Test::HasFailure()) {
    const SchedulerOutput step = this->step();
    for (const Preemption& preemption : step.preemptions) {
      if (preemption.request_id == request_id) return step;
    }
  }
  ADD_FAILURE() << "request " << request_id.value << " is never preempted";
  SchedulerOutput none;
  none.preemptions.emplace_back();
  return none;
}

// ---- the caller

void Harness::note_plan(const SchedulerOutput& step) {
  for (const Preemption& preemption : step.preemptions) preemptions.push_back(preemption);
  for (const Admission& admission : step.admissions) {
    start_order.push_back(admission.request_id);
    num_cached_tokens[admission.request_id] = admission.num_cached_tokens;
  }
}

void Harness::fail(const SchedulerOutput& step) {
  for (const RequestId request_id : scheduler.discard(step)) {
    failed.push_back(request_id);
    searches_.erase(request_id);
  }
}

void Harness::commit(const SchedulerOutput& step) {
  const auto tokens = sample(step);
  scheduler.commit(step, tokens);
  if (us_of_step) scheduler.note_step_time(us_of_step(step), /*has_ended=*/true);
  check_state();
  note_accounts(step);
  num_prefill_tokens += step.num_prefill_tokens;
  advance_searches();
  end_outputs(tokens);
}

std::vector<CommittedToken> Harness::sample(const SchedulerOutput& step) {
  std::vector<CommittedToken> tokens;
  for (const ScheduledSequence& row : step.sequences) {
    num_draft_tokens += row.num_draft_tokens;
    for (std::size_t i = 0; i < row.samples.size(); ++i) {
      const SampleTarget& target = row.samples[i];
      if (row.num_draft_tokens > 0 && i > 0) {
        if (tokens.back().token_id != row.draft()[i - 1]) break;
        ++num_accepted_tokens;
      }
      Tokens before(row.prompt_token_ids.begin(), row.prompt_token_ids.end());
      before.insert(before.end(), target.output_token_ids.begin(), target.output_token_ids.end());
      if (const auto search = searches_.find(row.request_id); search != searches_.end()) {
        EXPECT_EQ(target.num_candidates, search->second.num_candidates());
        search->second.report(target.sequence_id, continuations(hash_of(before), target.num_candidates));
        continue;
      }
      EXPECT_EQ(target.num_candidates, 0);
      const TokenId token = draw(hash_of(before), target.seed, target.output_index,
                                 target.output_token_ids.size(), requests_.at(row.request_id).period);
      tokens.push_back({target.sequence_id, token});
    }
  }
  return tokens;
}

void Harness::note_accounts(const SchedulerOutput& step) {
  for (const ScheduledSequence& row : step.sequences) {
    if (row.samples.empty() || accounts_.contains(row.request_id)) continue;
    accounts_[row.request_id] = scheduler.prompt_account(row.request_id);
  }
}

void Harness::advance_searches() {
  std::vector<RequestId> advancing;
  for (const auto& [request_id, search] : searches_) {
    if (search.all_reported()) advancing.push_back(request_id);
  }
  for (const RequestId request_id : advancing) {
    ToySearch& search = searches_.at(request_id);
    const auto chosen = search.advance();
    search.take_seats(scheduler.advance_beams(request_id, chosen));
    check_state();
    const auto num_prompt = static_cast<std::int32_t>(requests_.at(request_id).prompt.size());
    const bool is_full = num_prompt + search.num_steps() == options_.max_model_len;
    if (search.num_steps() == requests_.at(request_id).max_tokens || is_full) end_search(request_id);
  }
}

void Harness::end_search(RequestId request_id) {
  const auto found = searches_.at(request_id).outputs();
  for (std::uint32_t rank = 0; rank < found.size(); ++rank) {
    EXPECT_TRUE(outputs.emplace(std::pair{request_id, rank}, found[rank]).second) << "it ended twice";
  }
  abort(request_id);
}

void Harness::end_outputs(std::span<const CommittedToken> tokens) {
  for (const SequenceSnapshot& sequence : scheduler.snapshot().sequences) {
    if (std::ranges::count(tokens, sequence.sequence_id, &CommittedToken::sequence_id) == 0) continue;
    const RequestId request_id = sequence.request_id;
    const std::int32_t num_output = sequence.num_tokens - sequence.num_prompt_tokens;
    if (num_output < requests_.at(request_id).max_tokens && sequence.num_tokens < options_.max_model_len)
      continue;
    const auto index = static_cast<std::uint32_t>(sequence.output_index);
    const auto views = scheduler.sequences_of(request_id);
    const auto token_ids = std::ranges::find(views, index, &Scheduler::SequenceView::output_index)->token_ids;
    const Tokens output(token_ids.begin() + sequence.num_prompt_tokens, token_ids.end());
    EXPECT_TRUE(outputs.emplace(std::pair{request_id, index}, output).second) << "an output ended twice";
    scheduler.finish(sequence.sequence_id);
  }
}

void Harness::end_out_of_memory(const SchedulerOutput& step) {
  num_out_of_memory += static_cast<std::int32_t>(step.out_of_memory.size());
  for (const OutOfMemory& one : step.out_of_memory) {
    if (!requests_.at(one.request_id).beam_width) {
      scheduler.finish(one.sequence_id);
    } else if (searches_.contains(one.request_id)) {  // or it has ended with an earlier seat
      abort(one.request_id);
    }
  }
}

}  // namespace octavo::scheduler
