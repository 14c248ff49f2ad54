#include "engine/experiments/saturated_queue.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "engine/base/check.h"
#include "engine/block/reservation.h"

namespace octavo::paper {
namespace {

constexpr TokenId kPromptToken = 0;
// Outputs of a request differ from their first token on: what they share after a preemption is found by
// tokens.
constexpr TokenId token_of(std::uint32_t output) { return 1 + static_cast<TokenId>(output); }

constexpr std::int32_t kUnlimited = 1 << 20;
constexpr std::int32_t kStepsBetweenReports = 500;
constexpr std::int32_t kMostWaiting = 2;  // the head, and one behind it: nobody overtakes

// What is looked at in one step.
struct StepView {
  double sharing_ratio = 1.0;  // of the blocks with which the step is computed
  MemoryMap memory;            // when its rows have been computed
  std::int32_t num_running = 0;
  std::size_t num_preemptions = 0;
};

// Sums over steps, made means at the end.
class Observations {
 public:
  void add(const StepView& step) {
    memory_.input += step.memory.input;
    memory_.output += step.memory.output;
    memory_.reserved += step.memory.reserved;
    memory_.internal += step.memory.internal;
    memory_.unreserved += step.memory.unreserved;
    sharing_ratio_ += step.sharing_ratio;
    num_running_ += step.num_running;
    num_preemptions_ += step.num_preemptions;
    ++num_steps_;
  }
  void add_finished() { ++num_finished_; }

  SteadyState means() const {
    if (num_steps_ == 0) return {};
    const double per_step = 1.0 / static_cast<double>(num_steps_);
    const double per_request = 1.0 / static_cast<double>(std::max<std::int64_t>(1, num_finished_));
    return {.memory = {memory_.input * per_step, memory_.output * per_step, memory_.reserved * per_step,
                       memory_.internal * per_step, memory_.unreserved * per_step},
            .batched_requests = static_cast<double>(num_running_) * per_step,
            .saved_blocks = 100.0 * (1.0 - 1.0 / (sharing_ratio_ * per_step)),
            .preemptions_per_request = static_cast<double>(num_preemptions_) * per_request};
  }

 private:
  MemoryMap memory_;
  double sharing_ratio_ = 0.0;
  std::int64_t num_running_ = 0;
  std::size_t num_preemptions_ = 0;
  std::int64_t num_finished_ = 0;
  std::int64_t num_steps_ = 0;
};

class SaturatedQueue {
 public:
  SaturatedQueue(const Experiment& experiment, const LengthSource& lengths)
      : experiment_(experiment),
        lengths_(lengths),
        uniform_(experiment.seed),
        scheduler_(experiment.options) {}

  SteadyState run(const GoOn& go_on) {
    const std::int32_t num_steps = experiment_.num_warm_up_steps + experiment_.num_measured_steps;
    Observations observations;
    for (std::int32_t i = 0; i < num_steps; ++i) {
      step(i < experiment_.num_warm_up_steps ? nullptr : &observations);
      if (!go_on || i % kStepsBetweenReports != 0) continue;
      if (!go_on(static_cast<double>(i) / num_steps, observations.means())) return observations.means();
    }
    if (go_on) go_on(1.0, observations.means());
    return observations.means();
  }

 private:
  struct Request {
    RequestLengths lengths;
    std::int32_t num_unfinished_outputs = 1;
    std::unique_ptr<BeamSearch> search;  // none: outputs are samples
    std::vector<SequenceId> beams;       // best first
    std::set<SequenceId> beams_at_end;   // of these, whose continuations the model has told
    std::size_t num_beam_steps = 0;

    std::size_t num_output_tokens() const { return static_cast<std::size_t>(lengths.num_output_tokens); }
  };

  void step(Observations* observations) {
    fill_queue();
    const scheduler::SchedulerOutput plan = scheduler_.schedule();
    OCTAVO_CHECK(plan.out_of_memory.empty(), "a request that does not fit the pool");
    forget_continuations(plan);
    StepView view;
    view.sharing_ratio = scheduler_.figures().sharing_ratio;
    view.num_running = scheduler_.num_running();
    view.num_preemptions = plan.preemptions.size();
    const MemoryMap slots = slots_of_rows(plan);
    commit(plan);
    view.memory = memory_map(slots);
    if (observations != nullptr) observations->add(view);
    finish_ended(observations);
    scheduler_.take_events();
  }

  // Beams whose KV was dropped are computed, and asked for continuations, once more.
  void forget_continuations(const scheduler::SchedulerOutput& plan) {
    for (const scheduler::Preemption& preemption : plan.preemptions) {
      if (!preemption.is_swap) requests_.at(preemption.request_id).beams_at_end.clear();
    }
  }

  void fill_queue() {
    while (scheduler_.num_waiting() < kMostWaiting) {
      const RequestLengths lengths = lengths_.draw(uniform_);
      const RequestId request_id{++last_request_};
      const auto prompt_length = static_cast<std::size_t>(lengths.num_prompt_tokens);
      scheduler::NewRequest request{.request_id = request_id,
                                    .prompt_token_ids = std::vector<TokenId>(prompt_length, kPromptToken),
                                    .sampling = sampling_of(lengths),
                                    .num_beam_candidates = num_beam_candidates()};
      const Result<void> added = scheduler_.add(std::move(request));
      OCTAVO_CHECK(added.has_value(), "%s", added.error().message.c_str());
      Request& known = requests_[request_id];
      known.lengths = lengths;
      known.num_unfinished_outputs = experiment_.num_outputs;
      if (experiment_.beams != nullptr) known.search = experiment_.beams->start(request_id.value);
    }
  }

  SamplingParams sampling_of(RequestLengths lengths) const {
    SamplingParams sampling{
        .n = experiment_.num_outputs, .max_tokens = lengths.num_output_tokens, .ignore_eos = true};
    if (experiment_.beams != nullptr) sampling.beam_width = experiment_.num_outputs;
    return sampling;
  }

  std::int32_t num_beam_candidates() const {
    return experiment_.beams != nullptr ? 2 * experiment_.num_outputs : 0;
  }

  // Slots that the rows of a step will have used; the last class is left to memory_map(). Rows are all that
  // runs, since nothing limits a step.
  MemoryMap slots_of_rows(const scheduler::SchedulerOutput& plan) const {
    MemoryMap slots;
    const scheduler::SchedulerOptions& options = experiment_.options;
    for (const scheduler::ScheduledSequence& row : plan.sequences) {
      const RequestLengths lengths = requests_.at(row.request_id).lengths;
      const std::int32_t num_used = row.start_position + static_cast<std::int32_t>(row.token_ids.size());
      const std::int32_t num_at_end = lengths.num_prompt_tokens + lengths.num_output_tokens;
      slots.input += std::min(num_used, lengths.num_prompt_tokens);
      slots.output += std::max(0, num_used - lengths.num_prompt_tokens);
      if (options.memory_manager == MemoryManager::kPaged) continue;
      slots.reserved += num_at_end - num_used;
      slots.internal += block::reservation_tokens(options.memory_manager, lengths.num_prompt_tokens,
                                                  lengths.num_output_tokens, options.max_model_len) -
                        num_at_end;
    }
    return slots;
  }

  // In percent. Sharing makes slots_of_rows() count a slot for each of its readers: what the pool says
  // counts, and input and output share it in their proportion.
  MemoryMap memory_map(const MemoryMap& slots) const {
    const scheduler::SchedulerOptions& options = experiment_.options;
    const KvFigures figures = scheduler_.figures();
    const double percent = 100.0 / (double{1} * options.num_blocks * options.block_size);
    const double seen = percent * figures.filled_slots / std::max(1.0, slots.input + slots.output);
    MemoryMap map{.input = slots.input * seen, .output = slots.output * seen};
    if (options.memory_manager == MemoryManager::kPaged) {
      map.reserved = percent * figures.reserved_ahead_slots;
      map.internal = percent * figures.unfilled_slots;
    } else {
      map.reserved = percent * slots.reserved;
      map.internal = percent * slots.internal;
    }
    map.unreserved = 100.0 - map.tokens_held() - map.reserved - map.internal;
    return map;
  }

  void commit(const scheduler::SchedulerOutput& plan) {
    std::vector<scheduler::CommittedToken> tokens;
    std::set<RequestId> searches;
    for (const scheduler::ScheduledSequence& row : plan.sequences) {
      Request& request = requests_.at(row.request_id);
      for (const scheduler::SampleTarget& target : row.samples) {
        if (request.search != nullptr) {
          if (request.beams.empty()) request.beams = {target.sequence_id};
          request.beams_at_end.insert(target.sequence_id);
          if (request.beams_at_end.size() == request.beams.size()) searches.insert(row.request_id);
          continue;
        }
        tokens.push_back({target.sequence_id, token_of(target.output_index)});
        if (target.output_token_ids.size() + 1 == request.num_output_tokens()) {
          ended_.emplace_back(row.request_id, target.sequence_id);
        }
      }
    }
    scheduler_.commit(plan, tokens);
    for (const RequestId request_id : searches) advance_beams(request_id);
  }

  void advance_beams(RequestId request_id) {
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

  void finish_ended(Observations* observations) {
    for (const auto& [request_id, sequence_id] : ended_) {
      scheduler_.finish(sequence_id);
      const auto request = requests_.find(request_id);
      if (--request->second.num_unfinished_outputs > 0) continue;
      requests_.erase(request);
      if (observations != nullptr) observations->add_finished();
    }
    ended_.clear();
  }

  const Experiment& experiment_;
  const LengthSource& lengths_;
  UniformStream uniform_;
  scheduler::Scheduler scheduler_;
  std::map<RequestId, Request> requests_;                // waiting and running
  std::vector<std::pair<RequestId, SequenceId>> ended_;  // in the step under way
  std::uint64_t last_request_ = 0;
};

}  // namespace

scheduler::SchedulerOptions paper_pool(MemoryManager manager, std::int32_t block_size) {
  return {.block_size = block_size,
          .num_blocks = kPaperSlots / block_size,
          .max_num_seqs = kUnlimited,
          .max_num_batched_tokens = kUnlimited,
          .max_model_len = kMaxModelLen,
          .enable_prefix_caching = false,
          .memory_manager = manager};
}

SteadyState run_saturated(const Experiment& experiment, const LengthSource& lengths, const GoOn& go_on) {
  return SaturatedQueue(experiment, lengths).run(go_on);
}

}  // namespace octavo::paper
