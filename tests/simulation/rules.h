// The rules that hold between requests, and between the figures and the state that they are about, checked on
// the state of the whole pool after every step.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "engine/api/event.h"
#include "engine/api/kv_snapshot.h"
#include "engine/api/metrics.h"
#include "engine/base/ids.h"
#include "tests/simulation/problem.h"
#include "tests/simulation/script.h"
#include "tests/simulation/simulated_runner.h"

namespace octavo::simulation {

// A step that computed something.
struct ScheduledStep {
  const KvSnapshot& before;
  const KvSnapshot& after;
  std::span<const EngineEvent> events;
  std::span<const SimulatedRunner::Scheduled> scheduled;
  bool device_failed = false;

  bool had_rows(RequestId request_id) const;
};

class Rules {
 public:
  // All three outlive this object.
  Rules(const Script& script, const SimulatedRunner& runner, Problem& problem)
      : script_(script), runner_(runner), problem_(problem) {}

  // An output of it ends before the others, or never begins.
  void note_cancelled_output(RequestId request_id) { with_cancelled_outputs_.insert(request_id); }

  // Of every step, also one that only handled commands; before check().
  void note_ends(std::span<const EngineEvent> events);
  void check(const ScheduledStep& step);
  void check(const StepRecord& record, const KvSnapshot& snapshot);

  // Recounts what the figures say.
  void check_figures(const KvSnapshot& snapshot);
  static void recount_states(const KvSnapshot& snapshot, KvFigures& recount);

 private:
  bool is_background(RequestId request_id) const { return runner_.asked(request_id).background; }
  bool has_both_lines(const ScheduledStep& step) const;
  bool takes_turns(const ScheduledStep& step, RequestId request_id) const;
  void check_order(const KvSnapshot& snapshot);
  void check_pauses(const ScheduledStep& step);
  void check_pause(const ScheduledStep& step, RequestId id);
  void check_groups(const ScheduledStep& step);
  void check_admissions(const ScheduledStep& step);
  void check_admission(const ScheduledStep& step, RequestId admitted);
  void check_preemptions(const ScheduledStep& step);
  void check_passed_over(const ScheduledStep& step);
  bool may_wait_for_an_end(const ScheduledStep& step, RequestId request_id) const;
  void check_prompts_go_on(const ScheduledStep& step);
  void check_out_of_memory(const ScheduledStep& step);
  void check_runs(const KvSnapshot& snapshot);
  void check_progress(const ScheduledStep& step);
  std::int32_t most_steps_without_progress(const KvSnapshot& snapshot) const;
  void check_named(const KvSnapshot& snapshot);
  void check_ratios(const KvFigures& figures);
  void forget_ended(const KvSnapshot& snapshot);

  const Script& script_;
  const SimulatedRunner& runner_;
  Problem& problem_;
  std::int32_t num_steps_without_progress_ = 0;
  std::map<RequestId, std::int32_t> ever_preempted_;  // and not ended: from which output on
  std::set<RequestId> ever_paused_;                   // of those, some outputs without the others
  std::set<RequestId> with_cancelled_outputs_;
  std::vector<bool> named_, host_named_;  // scratch
};

}  // namespace octavo::simulation
