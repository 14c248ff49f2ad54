// The real scheduler and block manager, and in place of a model a script: every request says beforehand how
// long its prompt and its outputs are, and which beam continues which. All that an experiment about memory
// and scheduling needs. Draws one fixed token for every target.
//
//   add() ... begin_step() -> what is to be computed -> commit_step() -> end_step() -> who has ended
//
// One thread; no clock.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "engine/experiments/beam_search.h"
#include "engine/experiments/workload.h"
#include "engine/scheduler/scheduler.h"

namespace octavo::paper {

// What a step computes and moves, as far as its time depends on it.
struct StepLoad {
  std::int64_t num_rows = 0;            // tokens computed
  std::int64_t num_sampled = 0;         // outputs that get a token
  std::int64_t num_requests = 0;        // whose outputs these are
  std::int64_t num_context_tokens = 0;  // whose keys and values are read from the pool, for each reader
  std::int64_t num_prompt_pairs = 0;    // query and key both of a chunk of several rows
  std::int64_t num_swapped_out_blocks = 0, num_swapped_in_blocks = 0;
  std::int64_t num_copied_tokens = 0;  // within the device: copy-on-write, or a contiguous manager's forks
};

class ScriptedEngine {
 public:
  struct Setup {
    scheduler::SchedulerOptions options;
    std::int32_t num_outputs = 1;         // of every request
    const BeamSearches* beams = nullptr;  // then the outputs are beams; outlives the engine
    // As the authors' clients ask: max_tokens is how long an output becomes. False: as long as it may be, as
    // where an output ends when the model says so.
    bool tells_lengths = true;
  };

  explicit ScriptedEngine(const Setup& setup);

  // REQUIRES: the request fits the pool.
  RequestId add(const ScriptedRequest& request);

  bool has_work() const { return scheduler_.has_work(); }
  std::int32_t num_waiting() const { return scheduler_.num_waiting(); }
  std::int32_t num_running() const { return scheduler_.num_running(); }
  std::int32_t num_swapped_out() const { return scheduler_.num_swapped_out(); }
  KvFigures figures() const { return scheduler_.figures(); }
  // REQUIRES: it has not ended.
  RequestLengths lengths_of(RequestId request_id) const { return requests_.at(request_id).request.lengths; }

  // The plan is valid until commit_step().
  const scheduler::SchedulerOutput& begin_step();
  StepLoad load() const;  // of the step that was begun
  void commit_step();
  // What the step that was committed took, from which costs are learned as the engine learns them: how many
  // rows prompts get beside outputs depends on them, where the options set a target.
  void note_step_time(double seconds);
  // The requests that ended with the step, whose blocks go back now.
  std::vector<RequestId> end_step();

 private:
  struct Request {
    ScriptedRequest request;
    std::int32_t num_unfinished_outputs = 1;
    std::unique_ptr<BeamSearch> search;  // none: outputs are samples
    std::vector<SequenceId> beams;       // best first
    std::set<SequenceId> beams_at_end;   // of these, whose continuations the model has told
    std::size_t num_beam_steps = 0;
    std::int64_t num_moved_beams = 0;  // of a contiguous manager's last step: beams that changed places

    std::size_t num_output_tokens() const {
      return static_cast<std::size_t>(request.lengths.num_output_tokens);
    }
  };

  bool shares_blocks() const { return setup_.options.memory_manager == MemoryManager::kPaged; }
  bool searches_beams() const { return setup_.beams != nullptr && shares_blocks(); }
  SamplingParams sampling_of(RequestLengths lengths) const;
  void forget_continuations();
  void advance_beams(RequestId request_id);

  const Setup setup_;
  scheduler::Scheduler scheduler_;
  scheduler::SchedulerOutput plan_;
  scheduler::MeasuredCosts costs_;
  std::map<RequestId, Request> requests_;                // waiting and running
  std::vector<std::pair<RequestId, SequenceId>> ended_;  // in the step under way
  std::uint64_t last_request_ = 0;
};

}  // namespace octavo::paper
