// How long whoever generates waits for the next token while others compute prompts, and whether prompts get
// as much as that leaves: by the simulated device's own account of its time, without swaps. Tokens show
// nothing of it.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>

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
  void end_gap(RequestId request_id);

  const Script& script_;
  Problem& problem_;
  const bool has_target_;
  const Pace pace_;
  std::map<RequestId, Gap> gaps_;  // since the last token of each that generates and was not preempted since
  std::set<RequestId> paused_;     // some outputs once were: the others end, and they compute what they lost
  std::deque<double> costliest_rows_us_;  // of the last steps with prompts, each
  std::int64_t num_judged_ = 0;
};

}  // namespace octavo::simulation
