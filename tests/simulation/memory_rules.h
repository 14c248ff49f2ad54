// The rules of paging that tokens do not show: which contents are given up first, how much is left free when
// somebody starts, that swapping keeps what is shared, that what can be found is found. Checked on the states
// of the pool before and after a step.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/api/block_event.h"
#include "engine/api/event.h"
#include "engine/api/kv_snapshot.h"
#include "engine/base/ids.h"
#include "tests/simulation/problem.h"
#include "tests/simulation/script.h"
#include "tests/simulation/simulated_runner.h"

namespace octavo::simulation {

struct StepView {
  const KvSnapshot& before;
  const KvSnapshot& after;
  std::span<const EngineEvent> events;
  std::span<const BlockEvent> block_events;
  std::span<const SimulatedRunner::Drafted> drafted;
  bool releases_pins = false;  // by a command
  bool device_failed = false;
  bool is_ahead = false;  // begun in the step before: commands came after it
};

class MemoryRules {
 public:
  // All three outlive this object.
  MemoryRules(const Script& script, const SimulatedRunner& runner, Problem& problem)
      : script_(script), runner_(runner), problem_(problem), has_both_lines_(has_both_lines(script)) {}

  // Before the runner poisons what was let go in the step.
  void check(const StepView& step);

 private:
  void check_evictions(const StepView& step);
  void check_eviction(const StepView& step, std::size_t evicted, const std::vector<bool>& has_child);
  void check_watermark(const StepView& step);
  void check_swap_out(const StepView& step, RequestId request_id, std::int32_t first_output,
                      std::int32_t end_output);
  void check_swap_in(const StepView& step, RequestId request_id);
  void check_hit(const StepView& step, const RequestAdmitted& admission);
  std::int32_t num_findable(const StepView& step, const ScriptedRequest& asked, std::int32_t num_left) const;
  void check_double_work(const StepView& step, const RequestAdmitted& admission);
  void check_left_behind(const StepView& step);
  void check_draft(const StepView& step, const SimulatedRunner::Drafted& drafted);
  void check_blocks_ahead(const StepView& step, SequenceId sequence_id, std::int32_t num_ahead);
  void check_nothing_ahead(const KvSnapshot& snapshot);
  void check_windows(const KvSnapshot& snapshot);
  std::int32_t last_whole_window(const StepView& step, const ScriptedRequest& asked,
                                 std::int32_t num_tokens) const;
  std::int32_t last_checkpoint(const StepView& step, const ScriptedRequest& asked,
                               std::int32_t num_tokens) const;
  bool holds_start(const BlockSnapshot& block, std::int32_t id, std::span<const std::uint64_t> hashes) const;
  std::int32_t least_to_leave(const StepView& step, std::int32_t num_running,
                              std::int32_t most_in_draft = 0) const;
  std::int32_t least_taken_ahead(const StepView& step, std::int32_t most_in_draft) const;
  std::int32_t num_promised(const StepView& step, RequestId newest) const;
  bool reads_cache(const ScriptedRequest& asked) const;

  const Script& script_;
  const SimulatedRunner& runner_;
  Problem& problem_;
  const bool has_both_lines_;
};

}  // namespace octavo::simulation
