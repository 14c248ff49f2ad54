#include "engine/experiments/saturated_queue.h"

#include <algorithm>
#include <vector>

#include "engine/block/reservation.h"
#include "engine/experiments/scripted_engine.h"

namespace octavo::paper {
namespace {

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
  void add_finished(std::int64_t number) { num_finished_ += number; }

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
        engine_({experiment.options, experiment.num_outputs, experiment.beams, experiment.tells_lengths}) {}

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
  void step(Observations* observations) {
    while (engine_.num_waiting() < kMostWaiting) engine_.add({.lengths = lengths_.draw(uniform_)});
    const scheduler::SchedulerOutput& plan = engine_.begin_step();
    StepView view;
    view.sharing_ratio = sharing_ratio(plan);
    view.num_running = engine_.num_running();
    view.num_preemptions = plan.preemptions.size();
    const MemoryMap slots = slots_of_rows(plan);
    engine_.commit_step();
    view.memory = memory_map(slots);
    if (observations != nullptr) observations->add(view);
    const std::vector<RequestId> finished = engine_.end_step();
    if (observations != nullptr) observations->add_finished(std::ssize(finished));
  }

  // Logical blocks for each physical one. A prompt under way is one sequence of ours; the authors count it
  // for each of the outputs that will share it.
  double sharing_ratio(const scheduler::SchedulerOutput& plan) const {
    const KvFigures figures = engine_.figures();
    if (figures.used_blocks == 0) return 1.0;
    double num_logical = figures.logical_blocks;
    for (const scheduler::ScheduledSequence& row : plan.sequences) {
      const std::int32_t num_prompt_tokens = engine_.lengths_of(row.request_id).num_prompt_tokens;
      if (row.start_position + std::ssize(row.token_ids) > num_prompt_tokens) continue;
      const std::int32_t block_size = experiment_.options.block_size;
      num_logical += (experiment_.num_outputs - 1) * ((num_prompt_tokens + block_size - 1) / block_size);
    }
    return num_logical / figures.used_blocks;
  }

  // Slots that the rows of a step will have used; the last class is left to memory_map(). Rows are all that
  // runs, since nothing limits a step.
  MemoryMap slots_of_rows(const scheduler::SchedulerOutput& plan) const {
    MemoryMap slots;
    const scheduler::SchedulerOptions& options = experiment_.options;
    for (const scheduler::ScheduledSequence& row : plan.sequences) {
      const RequestLengths lengths = engine_.lengths_of(row.request_id);
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
    const KvFigures figures = engine_.figures();
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

  const Experiment& experiment_;
  const LengthSource& lengths_;
  UniformStream uniform_;
  ScriptedEngine engine_;
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
