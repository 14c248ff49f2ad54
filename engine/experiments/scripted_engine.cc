#include "engine/experiments/scripted_engine.h"

#include <algorithm>

#include "engine/base/check.h"
#include "engine/scheduler/work_of_plan.h"

namespace octavo::paper {
namespace {

// Outputs of a request differ from their first token on: what they share after a preemption is found by
// tokens. No prompt holds such a token.
constexpr TokenId token_of(std::uint32_t output) { return 1 + static_cast<TokenId>(output); }

constexpr TokenId kPromptToken = 0;
constexpr TokenId kFirstOwnToken = 1'000;  // from here on the first token of what a prompt shares with nobody

// A sequence's beams that do not go on where they are: each parent keeps one of its continuations in its
// place, and a manager that shares nothing copies the others.
std::int64_t num_moved(const std::vector<std::size_t>& parents) {
  const std::set<std::size_t> distinct(parents.begin(), parents.end());
  return std::ssize(parents) - std::ssize(distinct);
}

}  // namespace

ScriptedEngine::ScriptedEngine(const Setup& setup) : setup_(setup), scheduler_(setup.options) {}

RequestId ScriptedEngine::add(const ScriptedRequest& request) {
  const RequestId request_id{++last_request_};
  const auto prompt_length = static_cast<std::size_t>(request.lengths.num_prompt_tokens);
  std::vector<TokenId> prompt(prompt_length, kPromptToken);
  if (setup_.options.enable_prefix_caching && request.num_shared_tokens < request.lengths.num_prompt_tokens) {
    prompt[static_cast<std::size_t>(request.num_shared_tokens)] =
        kFirstOwnToken + static_cast<TokenId>(request_id.value);
  }
  const Result<void> added =
      scheduler_.add({.request_id = request_id,
                      .prompt_token_ids = std::move(prompt),
                      .sampling = sampling_of(request.lengths),
                      .num_beam_candidates = searches_beams() ? 2 * setup_.num_outputs : 0});
  OCTAVO_CHECK(added.has_value(), "%s", added.error().message.c_str());
  Request& known = requests_[request_id];
  known.request = request;
  known.num_unfinished_outputs = setup_.num_outputs;
  if (setup_.beams != nullptr) known.search = setup_.beams->start(request_id.value);
  return request_id;
}

SamplingParams ScriptedEngine::sampling_of(RequestLengths lengths) const {
  SamplingParams sampling{
      .n = setup_.num_outputs,
      .max_tokens = setup_.tells_lengths ? lengths.num_output_tokens : setup_.options.max_model_len,
      .ignore_eos = true};
  if (searches_beams()) sampling.beam_width = setup_.num_outputs;
  return sampling;
}

const scheduler::SchedulerOutput& ScriptedEngine::begin_step() {
  plan_ = scheduler_.schedule();
  OCTAVO_CHECK(plan_.out_of_memory.empty(), "a request that does not fit the pool");
  forget_continuations();
  return plan_;
}

// Beams whose KV was dropped are computed, and asked for continuations, once more.
void ScriptedEngine::forget_continuations() {
  for (const scheduler::Preemption& preemption : plan_.preemptions) {
    if (!preemption.is_swap) requests_.at(preemption.request_id).beams_at_end.clear();
  }
}

StepLoad ScriptedEngine::load() const {
  StepLoad load{.num_swapped_out_blocks = std::ssize(plan_.swap_outs),
                .num_swapped_in_blocks = std::ssize(plan_.swap_ins),
                .num_copied_tokens = std::ssize(plan_.block_copies) * setup_.options.block_size};
  RequestId last_sampled;  // rows of a request stand together
  for (const scheduler::ScheduledSequence& row : plan_.sequences) {
    const auto num_rows = std::ssize(row.token_ids);
    load.num_rows += num_rows;
    load.num_sampled += std::ssize(row.samples);
    if (!row.samples.empty() && row.request_id != last_sampled) ++load.num_requests;
    if (!row.samples.empty()) last_sampled = row.request_id;
    // A chunk's keys are read from the pool once for all of its rows.
    load.num_context_tokens += row.start_position + (num_rows == 1 ? 1 : 0);
    if (num_rows > 1) load.num_prompt_pairs += num_rows * row.start_position + num_rows * (num_rows + 1) / 2;
    const Request& request = requests_.at(row.request_id);
    if (!shares_blocks() && !row.samples.empty() && row.samples.front().output_index == 0)
      load.num_copied_tokens += request.num_moved_beams * row.start_position;
  }
  return load;
}

void ScriptedEngine::commit_step() {
  std::vector<scheduler::CommittedToken> tokens;
  std::set<RequestId> searches;
  for (const scheduler::ScheduledSequence& row : plan_.sequences) {
    Request& request = requests_.at(row.request_id);
    for (const scheduler::SampleTarget& target : row.samples) {
      if (searches_beams()) {
        if (request.beams.empty()) request.beams = {target.sequence_id};
        request.beams_at_end.insert(target.sequence_id);
        if (request.beams_at_end.size() == request.beams.size()) searches.insert(row.request_id);
        continue;
      }
      if (request.search != nullptr && target.output_index == 0)
        request.num_moved_beams = num_moved(request.search->next_parents());
      tokens.push_back({target.sequence_id, token_of(target.output_index)});
      if (target.output_token_ids.size() + 1 == request.num_output_tokens()) {
        ended_.emplace_back(row.request_id, target.sequence_id);
      }
    }
  }
  scheduler_.commit(plan_, tokens);
  for (const RequestId request_id : searches) advance_beams(request_id);
}

void ScriptedEngine::advance_beams(RequestId request_id) {
  Request& request = requests_.at(request_id);
  std::vector<scheduler::BeamContinuation> continuations;
  for (const std::size_t parent : request.search->next_parents()) {
    const auto rank = static_cast<std::uint32_t>(continuations.size());
    continuations.push_back({request.beams.at(parent), token_of(rank)});
  }
  request.beams = scheduler_.advance_beams(request_id, continuations);
  request.beams_at_end.clear();
  if (++request.num_beam_steps < request.num_output_tokens()) return;
  for (const SequenceId beam : request.beams) ended_.emplace_back(request_id, beam);
}

void ScriptedEngine::note_step_time(double seconds) {
  const auto us = static_cast<std::int64_t>(seconds * 1e6);
  if (plan_.num_prefill_tokens > 0) costs_.steps.learn(scheduler::work_of(plan_), static_cast<double>(us));
  scheduler_.set_costs(costs_);
  scheduler_.note_step_time(us, /*has_ended=*/true);
}

std::vector<RequestId> ScriptedEngine::end_step() {
  std::vector<RequestId> finished;
  for (const auto& [request_id, sequence_id] : ended_) {
    scheduler_.finish(sequence_id);
    const auto request = requests_.find(request_id);
    if (--request->second.num_unfinished_outputs > 0) continue;
    requests_.erase(request);
    finished.push_back(request_id);
  }
  ended_.clear();
  scheduler_.take_events();
  return finished;
}

}  // namespace octavo::paper
