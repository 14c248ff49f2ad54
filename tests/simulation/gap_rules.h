// How long an output that is extended waits for its next token while others compute prompts, and whether
// prompts get as much as that leaves: by the simulated device's own account of its time, without swaps.
// Tokens show nothing of it.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "engine/base/ids.h"
#include "tests/simulation/memory_rules.h"
#include "tests/simulation/problem.h"
#include "tests/simulation/script.h"
#include "tests/simulation/simulated_runner.h"

namespace octavo::simulation {

class GapRules {
 public:
  // Both outlive this object.
  GapRules(const Script& script, Problem& problem);

  void check(const StepView& step, const std::optional<SimulatedRunner::Timing>& timing);

  // Gaps that were held against the target, with a prompt in the step.
  std::int64_t num_judged() const { return num_judged_; }

 private:
  struct Gap {
    double us = 0.0, most_us = 0.0;
    // Steps were shared with prompts: of which the engine knew, or did not know, what they would take.
    bool is_judged = false, is_unknown = false;
  };

  void check_is_filled(const StepView& step, const SimulatedRunner::Timing& timing);
  void add(const StepView& step, const SimulatedRunner::Timing& timing);
  bool knows(double us_of_costliest_row) const;
  using Output = std::pair<RequestId, std::int32_t>;  // and its index; the beams of a search are one
  void end_gap(const Output& output);
  void forget_paused(const StepView& step);
  void forget(RequestId request_id, std::int32_t first_output_index);

  const Script& script_;
  Problem& problem_;
  const bool has_target_;
  const Pace pace_;
  // Since the last token of each that was not preempted since: who was computes what it lost, and may be
  // alone with that.
  std::map<Output, Gap> gaps_;
  std::deque<double> costliest_rows_us_;  // of the last steps with prompts, each
  std::int64_t num_judged_ = 0;
};

}  // namespace octavo::simulation
