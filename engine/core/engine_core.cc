#include "engine/core/engine_core.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>

#include "engine/base/check.h"
#include "engine/scheduler/work_of_plan.h"

namespace octavo {
namespace {

// All outputs of a request end at the same length.
std::int32_t token_limit(const scheduler::NewRequest& request, std::int32_t max_model_len) {
  const auto num_prompt_tokens = static_cast<std::int32_t>(request.prompt_token_ids.size());
  return std::min(request.sampling.max_tokens, max_model_len - num_prompt_tokens);
}

ActiveRequest& make_active(ActiveRequests& requests, const scheduler::NewRequest& request,
                           std::int64_t submitted_us) {
  ActiveRequest& active = requests[request.request_id];
  active.request_id = request.request_id;
  active.sampling = request.sampling;
  active.submitted_us = submitted_us;
  const std::size_t num_prompt_tokens = request.prompt_token_ids.size();
  active.num_prompt_tokens = static_cast<std::int32_t>(num_prompt_tokens);
  if (request.sampling.prompt_logprobs) active.prompt_logprobs.resize(num_prompt_tokens);
  if (request.sampling.prompt_logprobs.value_or(0) > 0) active.prompt_top_logprobs.resize(num_prompt_tokens);
  if (request.sampling.best_of) active.untold.resize(static_cast<std::size_t>(*request.sampling.best_of));
  return active;
}
// The first of `rest`: what was drawn for a sequence, at most `most` tokens.
std::span<const runner::SampledToken> take_tokens(SequenceId sequence_id, std::size_t most,
                                                  std::span<const runner::SampledToken>& rest) {
  std::size_t count = 0;
  while (count < std::min(most, rest.size()) && rest[count].sequence_id == sequence_id) ++count;
  OCTAVO_CHECK(count > 0, "the runner draws a token for each target, in the plan's order");
  const auto taken = rest.first(count);
  rest = rest.subspan(count);
  return taken;
}

}  // namespace

EngineCore::EngineCore(const scheduler::SchedulerOptions& options, EngineDependencies dependencies)
    : options_(options),
      dependencies_(std::move(dependencies)),
      scheduler_(options),
      recorder_(std::make_shared<metrics::StepRecorder>(
          metrics::PoolShape{options.block_size, options.num_blocks, options.num_host_blocks,
                             options.num_states, options.num_host_states, options.window,
                             options.num_window_blocks, options.num_host_window_blocks})) {}

std::vector<EngineEvent> EngineCore::step(std::vector<EngineCommand> commands) {
  Step step;
  if (ahead_) {
    const bool goes_on = commands.empty();
    step = end_ahead(goes_on);
    handle(std::move(commands));
  } else {
    handle(std::move(commands));  // From here on, the set of requests is fixed for this step.
    if (scheduler_.has_work()) {
      schedule(step);  // From here until commit, the blocks in the plan belong to it.
      announce(step);
      execute(step, /*goes_on=*/true);
      commit(step);
    }
  }
  publish(step);
  return std::exchange(events_, {});
}

std::vector<EngineEvent> EngineCore::stop(std::vector<EngineCommand> commands) {
  Step step;
  if (ahead_) step = end_ahead(/*goes_on=*/false);
  handle(std::move(commands));
  while (!requests_.empty()) handle(CancelRequest{requests_.begin()->first});
  publish(step);
  return std::exchange(events_, {});
}

KvSnapshot EngineCore::snapshot(SnapshotScope scope) const {
  KvSnapshot snapshot = scheduler_.snapshot(scope);
  snapshot.time_us = dependencies_.clock->now_us();
  snapshot.event_mark = recorder_->next_event_mark();
  return snapshot;
}

// ---- commands

void EngineCore::handle(std::vector<EngineCommand> commands) {
  for (EngineCommand& command : commands) {
    std::visit([&](auto& chosen) { handle(chosen); }, command);
  }
}

void EngineCore::handle(PreparedRequest& prepared) {
  const auto refuse = [&](Error error) {
    events_.push_back(
        RequestFailed{prepared.request_id, std::move(error), metrics_unscheduled(prepared.submitted_us)});
  };
  if (!prepared.request) return refuse(std::move(prepared.request).error());
  if (auto added = scheduler_.add(*prepared.request); !added) return refuse(std::move(added).error());
  accept(*std::move(prepared.request), prepared.submitted_us, prepared.reports_progress);
}

void EngineCore::handle(const AbandonedRequest& abandoned) {
  for (std::int32_t index = 0; index < abandoned.num_outputs; ++index) {
    events_.push_back(OutputFinished{abandoned.request_id, index, FinishReason::kAbort});
  }
  events_.push_back(RequestFinished{abandoned.request_id, {}, metrics_unscheduled(abandoned.submitted_us)});
}

RequestMetrics EngineCore::metrics_unscheduled(std::int64_t submitted_us) const {
  const std::int64_t waited_us = dependencies_.clock->now_us() - submitted_us;
  return {.queue_us = waited_us, .e2e_us = waited_us};
}

void EngineCore::accept(scheduler::NewRequest request, std::int64_t submitted_us, bool reports_progress) {
  ActiveRequest& active = make_active(requests_, request, submitted_us);
  active.reports_progress = reports_progress;
  const OutputProcessor output(*dependencies_.tokenizer, active.sampling,
                               token_limit(request, options_.max_model_len));
  if (request.embedding) {
    active.embedding.emplace(*request.embedding, active.num_prompt_tokens);
    active.num_open_outputs = 1;
  } else if (active.sampling.beam_width) {
    const SequenceId first_seat = scheduler_.sequences_of(request.request_id).front().sequence_id;
    active.beams.emplace(active.sampling, output, first_seat);
  } else {
    active.num_open_outputs = active.sampling.num_sequences();
    active.outputs.assign(static_cast<std::size_t>(active.num_open_outputs), output);
  }
  events_.push_back(RequestAccepted{request.request_id, std::move(request.prompt_token_ids), request.seed});
}

void EngineCore::handle(const CancelRequest& cancel) {
  const auto found = requests_.find(cancel.request_id);
  if (found == requests_.end()) return;
  scheduler_.abort(cancel.request_id);
  ActiveRequest& request = found->second;
  if (request.beams) return end_beams(request, FinishReason::kAbort);
  for (std::size_t index = 0; index < request.outputs.size(); ++index) {
    if (!request.outputs[index].ended()) end_output(request, index, {FinishReason::kAbort, {}});
  }
  if (request.embedding) request.num_open_outputs = 0;
  finish_if_ended(cancel.request_id);
}

void EngineCore::handle(const CancelOutput& cancel) {
  const auto found = requests_.find(cancel.request_id);
  if (found == requests_.end()) return;
  ActiveRequest& request = found->second;
  const auto index = static_cast<std::size_t>(cancel.output_index);
  const bool can_end_alone =
      cancel.output_index >= 0 && index < request.outputs.size() && request.untold.empty();
  if (!can_end_alone || request.outputs[index].ended()) return;
  if (request.num_open_outputs == 1) return handle(CancelRequest{cancel.request_id});
  end_output(request, index, {FinishReason::kAbort, {}});
  const auto sequences = scheduler_.sequences_of(cancel.request_id);
  scheduler_.finish(
      std::ranges::find(sequences, index, &scheduler::Scheduler::SequenceView::output_index)->sequence_id);
}

void EngineCore::handle(const ResetPrefixCache&) { scheduler_.reset_prefix_cache(); }
void EngineCore::handle(const ReleasePins&) { scheduler_.release_pins(); }

// ---- the step

void EngineCore::schedule(Step& step) {
  StepRecord& record = step.record.emplace();
  record.begin_us = dependencies_.clock->now_us();
  step.plan = scheduler_.schedule();
  record.step = step.plan.step;
  record.num_preempted = static_cast<std::int32_t>(step.plan.preemptions.size());
  record.num_block_copies = static_cast<std::int32_t>(step.plan.block_copies.size());
  record.num_swapped_out = static_cast<std::int32_t>(step.plan.swap_outs.size());
  record.num_swapped_in = static_cast<std::int32_t>(step.plan.swap_ins.size());
  record.schedule_us = dependencies_.clock->now_us() - record.begin_us;
}

void EngineCore::announce(const Step& step) {
  const std::int64_t now_us = dependencies_.clock->now_us();
  for (const scheduler::Preemption& preemption : step.plan.preemptions) {
    ++requests_.at(preemption.request_id).num_preemptions;
    events_.push_back(RequestPreempted{preemption.request_id,
                                       static_cast<std::int32_t>(preemption.first_output_index),
                                       preemption.num_tokens_dropped});
  }
  for (const scheduler::Admission& admission : step.plan.admissions) {
    ActiveRequest& request = requests_.at(admission.request_id);
    request.admitted_us = now_us;
    request.num_cached_tokens = admission.num_cached_tokens;
    request.prefix_miss = scheduler_.prefix_miss(admission.request_id);
    events_.push_back(RequestAdmitted{admission.request_id, admission.num_cached_tokens,
                                      now_us - request.submitted_us,
                                      scheduler_.sequences_of(admission.request_id).front().sequence_id});
  }
}

// What was begun ahead is computed from the end of the step before on.
void EngineCore::execute(Step& step, bool goes_on) {
  runner::Runner& runner = *dependencies_.runner;
  const bool is_ahead = step.is_begun;
  if (!is_ahead && step.plan.empty() && !step.plan.moves_memory()) return;
  const std::int64_t begin_us = step.record->begin_us + step.record->schedule_us;
  if (!is_ahead) step.is_begun = runner.begin(step.plan);
  if (step.is_begun && goes_on) begin_ahead(step);
  auto executed =
      step.is_begun ? runner.finish(step.plan, step.drawn) : runner.execute(step.plan, step.drawn);
  if (!executed) {
    step.failure = std::move(executed).error();
    ahead_.reset();
  } else if (step.drawn.experts) {
    expert_choices_ = std::exchange(step.drawn.experts, std::nullopt);
    expert_choices_->step = step.plan.step;
  }
  const std::int64_t end_us = dependencies_.clock->now_us();
  step.record->execute_us = end_us - begin_us;
  if (ahead_) ahead_->record->begin_us = end_us;
}

void EngineCore::begin_ahead(const Step& step) {
  scheduler::SchedulerOutput plan = scheduler_.schedule_ahead(step.plan);
  if (plan.empty()) return;
  const bool is_begun = dependencies_.runner->begin(plan);
  OCTAVO_CHECK(is_begun, "step %lld cannot be begun", static_cast<long long>(plan.step));
  ahead_.emplace();
  ahead_->record.emplace().step = plan.step;
  ahead_->plan = std::move(plan);
  ahead_->is_begun = true;
}

EngineCore::Step EngineCore::end_ahead(bool goes_on) {
  Step step = *std::exchange(ahead_, std::nullopt);
  scheduler_.take_up(step.plan);
  execute(step, goes_on);
  commit(step);
  return step;
}

void EngineCore::commit(Step& step) {
  const std::int64_t begin_us = dependencies_.clock->now_us();
  if (step.failure) {
    discard(step);
  } else {
    learn_costs(step);
    step.record->num_prefill_tokens = step.plan.num_prefill_tokens;
    step.record->num_decode_tokens = step.plan.num_decode_tokens;
    step.record->num_draft_tokens = step.plan.num_draft_tokens;
    keep_prompt_logprobs(step);
    tell_progress(step);
    deliver_tokens(step);
    tell_embeddings(step);
  }
  end_out_of_memory(step);
  step.record->commit_us = dependencies_.clock->now_us() - begin_us;
}

void EngineCore::publish(Step& step) {
  if (step.record) {
    const KvFigures figures = scheduler_.figures();
    step.record->num_running = scheduler_.num_running();
    step.record->num_waiting = scheduler_.num_waiting();
    step.record->used_blocks = figures.used_blocks;
    step.record->cached_blocks = figures.cached_blocks;
    step.record->free_blocks = figures.free_blocks;
    step.record->logical_blocks = figures.logical_blocks;
    step.record->unfilled_slots = figures.unfilled_slots;
    step.record->reserved_ahead_slots = figures.reserved_ahead_slots;
    step.record->filled_slots = figures.filled_slots;
    step.record->num_swapped_groups = scheduler_.num_swapped_out();
    step.record->host_used_blocks = figures.host_used_blocks;
    step.record->used_window_blocks = figures.used_window_blocks;
    step.record->cached_window_blocks = figures.cached_window_blocks;
  }
  std::vector<BlockEvent> block_events = scheduler_.take_events();
  const std::int64_t now_us = dependencies_.clock->now_us();
  for (BlockEvent& event : block_events) event.time_us = now_us;
  recorder_->record(step.record, block_events);
}

// ---- what a step means for its requests

void EngineCore::discard(const Step& step) {
  for (const RequestId request_id : scheduler_.discard(step.plan)) {
    const bool lost = step.failure->code == ErrorCode::kDeviceLost;
    fail(request_id, Error{lost ? ErrorCode::kDeviceLost : ErrorCode::kDevice, step.failure->message});
  }
}

// What decides how a group is preempted, and how many rows prompts get. (A step that only decodes says what
// reading the weights takes, and nothing of a row more.)
void EngineCore::learn_costs(const Step& step) {
  constexpr double kWeightOfNewest = 0.2;
  const auto num_swapped = step.plan.swap_outs.size() + step.plan.swap_ins.size();
  const std::int64_t swap_us = step.drawn.swap_out_us + step.drawn.swap_in_us;
  scheduler_.note_swap_times(step.drawn.swap_out_us, step.drawn.swap_in_us);
  if (num_swapped > 0) {
    const double us = static_cast<double>(swap_us) / static_cast<double>(num_swapped);
    std::optional<double>& average = costs_.us_per_swapped_block;
    average = average ? *average + kWeightOfNewest * (us - *average) : us;
  }
  if (step.plan.num_prefill_tokens > 0 || uncosted_.work.num_rows > 0) {
    uncosted_.work += scheduler::work_of(step.plan);
    uncosted_.execute_us += step.record->execute_us - swap_us;
  }
  if (uncosted_.work.num_rows > 0 && step.drawn.has_ended) {
    costs_.steps.learn(uncosted_.work, static_cast<double>(uncosted_.execute_us));
    uncosted_ = {};
  }
  scheduler_.set_costs(costs_);
  scheduler_.note_step_time(step.record->execute_us - swap_us, step.drawn.has_ended);
}

// A preempted prompt is computed again, to the same bits: the first value of each position stays.
void EngineCore::keep_prompt_logprobs(const Step& step) {
  if (step.drawn.prompt_logprobs.empty()) return;
  std::unordered_map<SequenceId, RequestId> request_of;
  for (const auto& sequence : step.plan.sequences) request_of[sequence.sequence_id] = sequence.request_id;
  for (const runner::PromptLogprob& value : step.drawn.prompt_logprobs) {
    ActiveRequest& request = requests_.at(request_of.at(value.sequence_id));
    const auto position = static_cast<std::size_t>(value.position);
    if (position >= request.prompt_logprobs.size() || request.prompt_logprobs[position]) continue;
    request.prompt_logprobs[position] = value.logprob;
    if (!request.prompt_top_logprobs.empty()) request.prompt_top_logprobs[position] = value.top_logprobs;
  }
}

void EngineCore::tell_progress(const Step& step) {
  for (const scheduler::ScheduledSequence& sequence : step.plan.sequences) {
    ActiveRequest& request = requests_.at(sequence.request_id);
    if (!request.reports_progress) continue;
    const auto num_rows = static_cast<std::int32_t>(sequence.token_ids.size());
    const std::int32_t num_computed = std::min(sequence.start_position + num_rows, request.num_prompt_tokens);
    if (num_computed <= request.num_computed_told) continue;
    request.num_computed_told = num_computed;
    events_.push_back(PromptProgress{sequence.request_id, request.num_prompt_tokens,
                                     request.num_cached_tokens, num_computed,
                                     dependencies_.clock->now_us() - *request.admitted_us});
  }
}

// After the commit: then nothing of the step is under way.
void EngineCore::tell_embeddings(const Step& step) {
  for (const runner::HiddenStates& hidden : step.drawn.hidden_states) {
    const auto found = requests_.find(hidden.request_id);
    if (found == requests_.end()) continue;
    ActiveRequest& request = found->second;
    request.embedding->add(hidden.first_position, hidden.width, hidden.values);
    if (!request.embedding->is_complete()) continue;
    std::optional<std::vector<float>> values = request.embedding->take();
    if (!values) {
      fail(hidden.request_id,
           Error{ErrorCode::kInvalidLogits,
                 "the model computed no finite hidden state; the model file may be damaged, "
                 "or try --activation-dtype f32"});
      continue;
    }
    request.prompt = scheduler_.prompt_account(hidden.request_id);
    request.num_open_outputs = 0;
    events_.push_back(EmbeddingComputed{hidden.request_id, *std::move(values)});
    scheduler_.abort(hidden.request_id);
    finish(request);
  }
}

// An output that ends among the tokens of a draft keeps none after its end: so they are read before they are
// committed.
void EngineCore::deliver_tokens(Step& step) {
  std::vector<Delivery> deliveries = read_tokens(step);
  std::vector<scheduler::CommittedToken> committed;
  committed.reserve(step.drawn.tokens.size());
  for (const Delivery& delivery : deliveries) {
    for (const runner::SampledToken& token : delivery.tokens) {
      if (token.token_id >= 0) committed.push_back({token.sequence_id, token.token_id});
    }
  }
  const bool was_executed = !step.plan.empty() || step.plan.moves_memory();
  const bool is_settled = step.plan.num_draft_tokens > 0 || options_.speculative == Speculation::kMtp;
  std::vector<SequenceId> guessable;
  if (was_executed && is_settled) guessable = dependencies_.runner->settle(step.plan, committed);
  scheduler_.commit(step.plan, committed, guessable);
  count_drafts(step, deliveries);
  for (Delivery& delivery : deliveries) {
    const auto request = requests_.find(delivery.request_id);
    if (request != requests_.end()) deliver(request->second, delivery);
  }
}

std::vector<EngineCore::Delivery> EngineCore::read_tokens(const Step& step) {
  std::vector<Delivery> deliveries;
  std::span<const runner::SampledToken> rest = step.drawn.tokens;
  for (const scheduler::ScheduledSequence& sequence : step.plan.sequences) {
    const auto num_rows = static_cast<std::size_t>(1 + sequence.num_draft_tokens);
    for (std::size_t i = 0; i < sequence.samples.size(); i += num_rows) {
      const scheduler::SampleTarget& target = sequence.samples[i];
      Delivery delivery{.request_id = sequence.request_id,
                        .sequence_id = target.sequence_id,
                        .output_index = target.output_index,
                        .tokens = take_tokens(target.sequence_id, num_rows, rest)};
      const bool has_failed = !deliveries.empty() && deliveries.back().fails() &&
                              deliveries.back().request_id == sequence.request_id;
      if (has_failed) continue;  // with another output
      ActiveRequest& request = requests_.at(sequence.request_id);
      if (!request.beams) read_output(request.outputs[target.output_index], delivery);
      deliveries.push_back(std::move(delivery));
    }
  }
  return deliveries;
}

void EngineCore::read_output(OutputProcessor& output, Delivery& delivery) const {
  for (std::size_t i = 0; i < delivery.tokens.size(); ++i) {
    const bool fails = delivery.tokens[i].invalid_logits;
    if (!fails) {
      OutputProcessor::Step read = output.append(delivery.tokens[i].token_id);
      delivery.text += read.text;
      delivery.end = std::move(read.end);
    }
    if (fails || delivery.end) delivery.tokens = delivery.tokens.first(i + 1);
  }
}

void EngineCore::count_drafts(Step& step, std::span<const Delivery> deliveries) {
  for (const scheduler::ScheduledSequence& sequence : step.plan.sequences) {
    requests_.at(sequence.request_id).num_draft_tokens += sequence.num_draft_tokens;
  }
  for (const Delivery& delivery : deliveries) {
    const auto num_tokens = static_cast<std::int32_t>(delivery.tokens.size()) - (delivery.fails() ? 1 : 0);
    const std::int32_t num_accepted = std::max(0, num_tokens - 1);
    requests_.at(delivery.request_id).num_accepted_tokens += num_accepted;
    step.record->num_accepted_tokens += num_accepted;
  }
}

void EngineCore::deliver(ActiveRequest& request, Delivery& delivery) {
  const RequestId request_id = request.request_id;
  const bool has_token = delivery.tokens.size() > 1 || !delivery.fails();
  if (has_token) note_token_time(request);
  if (has_token && !request.beams) tell_tokens(request, delivery);
  if (delivery.fails()) return fail_invalid_logits(request_id);
  if (request.beams) {
    request.beams->report(delivery.tokens.front());
    return advance_beams(request);
  }
  if (!delivery.end) return;
  tell_end(request, delivery.output_index, *std::move(delivery.end));
  scheduler_.finish(delivery.sequence_id);
  finish_if_ended(request_id);
}

void EngineCore::tell_tokens(ActiveRequest& request, Delivery& delivery) {
  TokensGenerated generated{.request_id = request.request_id,
                            .output_index = static_cast<std::int32_t>(delivery.output_index),
                            .token_ids = {},
                            .logprobs = {},
                            .top_logprobs = {},
                            .text = std::move(delivery.text),
                            .ttft_us = *request.first_token_us - request.submitted_us};
  for (const runner::SampledToken& token : delivery.tokens) {
    if (token.invalid_logits) break;
    generated.token_ids.push_back(token.token_id);
    generated.logprobs.push_back(token.logprob);
    if (request.sampling.num_top_logprobs() > 0) generated.top_logprobs.push_back(token.top_logprobs);
  }
  tell(request, std::move(generated));
}

// What best_of generates waits for its end.
void EngineCore::tell(ActiveRequest& request, TokensGenerated generated) {
  if (request.untold.empty()) return events_.push_back(std::move(generated));
  request.untold[static_cast<std::size_t>(generated.output_index)].tokens.push_back(std::move(generated));
}

void EngineCore::end_out_of_memory(const Step& step) {
  const std::string detail = "the KV pool of " + std::to_string(options_.num_blocks) + " blocks of " +
                             std::to_string(options_.block_size) +
                             " tokens is too small for a longer answer; raise --num-kv-blocks";
  for (const scheduler::OutOfMemory& one : step.plan.out_of_memory) {
    const auto request = requests_.find(one.request_id);
    // Its request failed in this step, or its search has ended with an earlier seat.
    if (request == requests_.end()) continue;
    if (request->second.beams) {
      end_beams(request->second, FinishReason::kLength, detail);
      continue;
    }
    end_output(request->second, one.output_index, {FinishReason::kLength, {}}, detail);
    scheduler_.finish(one.sequence_id);
    finish_if_ended(one.request_id);
  }
}

// Ends an output that did not end by itself. Its sequence is left to the caller.
void EngineCore::end_output(ActiveRequest& request, std::size_t output_index, OutputEnd end,
                            const std::string& detail) {
  const auto index = static_cast<std::int32_t>(output_index);
  if (std::string text = request.outputs[output_index].end_now(); !text.empty()) {
    tell(request, TokensGenerated{request.request_id, index, {}, {}, {}, std::move(text)});
  }
  tell_end(request, output_index, std::move(end), detail);
}

void EngineCore::tell_end(ActiveRequest& request, std::size_t output_index, OutputEnd end,
                          const std::string& detail) {
  --request.num_open_outputs;
  OutputFinished finished{request.request_id, static_cast<std::int32_t>(output_index), end.finish_reason,
                          std::move(end.stop_reason), detail};
  if (request.untold.empty()) return events_.push_back(std::move(finished));
  request.untold[output_index].end = std::move(finished);
}

// ---- beams

void EngineCore::note_token_time(ActiveRequest& request) {
  request.last_token_us = dependencies_.clock->now_us();
  if (request.first_token_us) return;
  request.first_token_us = request.last_token_us;
  request.prompt = scheduler_.prompt_account(request.request_id);
}

void EngineCore::advance_beams(ActiveRequest& request) {
  if (!request.beams->all_reported()) return;
  BeamSearch::Advance advance = request.beams->advance();
  events_.push_back(BeamsAdvanced{request.request_id, {std::move(advance.step)}});
  if (advance.is_over) return end_beams(request, FinishReason::kLength);
  request.beams->take_seats(scheduler_.advance_beams(request.request_id, advance.continuations));
}

// The answers of a search come at its end, best first. Where there are fewer
// than asked for, the rest is empty.
void EngineCore::end_beams(ActiveRequest& request, FinishReason of_those_under_way,
                           const std::string& detail) {
  const RequestId request_id = request.request_id;
  scheduler_.abort(request_id);
  std::int32_t index = 0;
  for (BeamSearch::Hypothesis& one : request.beams->best(of_those_under_way)) {
    const std::string& why = one.end.finish_reason == of_those_under_way ? detail : std::string();
    events_.push_back(TokensGenerated{request_id, index, std::move(one.token_ids), std::move(one.logprobs),
                                      std::move(one.top_logprobs), std::move(one.text)});
    events_.push_back(OutputFinished{request_id, index++, one.end.finish_reason,
                                     std::move(one.end.stop_reason), why, one.score});
  }
  for (; index < request.sampling.num_outputs(); ++index) {
    events_.push_back(OutputFinished{request_id, index, of_those_under_way, {}, detail});
  }
  finish(request);
}

// ---- ends

void EngineCore::finish_if_ended(RequestId request_id) {
  ActiveRequest& request = requests_.at(request_id);
  if (request.ended()) finish(request);
}

void EngineCore::finish(ActiveRequest& request) {
  const RequestId request_id = request.request_id;
  for (ActiveRequest::Untold& one : request.take_best()) {
    for (TokensGenerated& tokens : one.tokens) events_.push_back(std::move(tokens));
    events_.push_back(std::move(one.end));
  }
  const RequestMetrics metrics = request.metrics_at(dependencies_.clock->now_us());
  events_.push_back(RequestFinished{request_id, std::move(request.prompt_logprobs), metrics,
                                    std::move(request.prompt_top_logprobs)});
  requests_.erase(request_id);
}

void EngineCore::fail_invalid_logits(RequestId request_id) {
  const auto request = requests_.find(request_id);
  const auto forbids = [](const SamplingParams& sampling) {
    return sampling.allowed_token_ids || !sampling.bad_words.empty() || sampling.structured_output;
  };
  const bool may_forbid_all = request != requests_.end() && forbids(request->second.sampling);
  fail(
      request_id,
      Error{ErrorCode::kInvalidLogits,
            may_forbid_all
                ? "no token could come next: structured_output, allowed_token_ids, bad_words, logit_bias and "
                  "min_tokens together forbid all that the model finds possible; allow more"
                : "the model computed no finite probability for the next token; the model file may be "
                  "damaged, or try --activation-dtype f32"});
}

// No effect on a request that has ended: several of its sequences may report the same failure.
void EngineCore::fail(RequestId request_id, Error error) {
  const auto found = requests_.find(request_id);
  if (found == requests_.end()) return;
  scheduler_.abort(request_id);
  const RequestMetrics metrics = found->second.metrics_at(dependencies_.clock->now_us());
  events_.push_back(RequestFailed{request_id, std::move(error), metrics});
  requests_.erase(found);
}

}  // namespace octavo
