// What requests of one line may do to those of the other: a request that a person waits for does not wait for
// background ones, which have their turns all the same. Tokens show nothing of it.
#pragma once

#include <cstdint>
#include <map>

#include "engine/base/ids.h"
#include "tests/simulation/memory_rules.h"
#include "tests/simulation/problem.h"
#include "tests/simulation/script.h"
#include "tests/simulation/simulated_runner.h"

namespace octavo::simulation {

class PriorityRules {
 public:
  // All three outlive this object.
  PriorityRules(const Script& script, const SimulatedRunner& runner, Problem& problem);

  void check(const StepView& step, std::span<const SimulatedRunner::Scheduled> scheduled);

  // Steps in which background groups that ran had no part.
  std::int64_t num_passed_over() const { return num_passed_over_; }
  // Background groups that gave way to an interactive one.
  std::int64_t num_gave_way() const { return num_gave_way_; }

 private:
  // Of one state of the pool.
  struct Lines {
    bool interactive_runs = false, background_runs = false;
    RequestId first_waiting{};  // of the interactive line; 0: none
  };
  Lines lines_of(const KvSnapshot& snapshot) const;
  bool is_background(RequestId request_id) const { return runner_.asked(request_id).background; }
  bool goes_on_in_background(const StepView& step) const;
  void check_turns(const StepView& step, const Lines& before, const Lines& after, bool had_turn);
  void check_start(const StepView& step, const Lines& before, const Lines& after);
  void count_who_gave_way(const StepView& step, const Lines& after);

  const Script& script_;
  const SimulatedRunner& runner_;
  Problem& problem_;
  const bool lines_count_;  // as more than an order
  std::int32_t num_steps_since_turn_ = 0;
  std::int32_t num_steps_waited_ = 0;  // by the first of the interactive line, for background groups alone
  std::int64_t num_passed_over_ = 0, num_gave_way_ = 0;
};

}  // namespace octavo::simulation
