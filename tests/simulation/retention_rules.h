// How long the contents of blocks are worth keeping: as long as one of the requests that made them asked for,
// a system message as such, and no longer. Tokens show nothing of it, but what is evicted first does.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/api/kv_snapshot.h"
#include "engine/base/ids.h"
#include "tests/simulation/memory_rules.h"
#include "tests/simulation/problem.h"
#include "tests/simulation/script.h"
#include "tests/simulation/simulated_runner.h"

namespace octavo::simulation {

class RetentionRules {
 public:
  // All three outlive this object.
  RetentionRules(const Script& script, const SimulatedRunner& runner, Problem& problem);

  // Before the runner poisons what was let go in the step.
  void check(const StepView& step);

 private:
  void check_sealed(const StepView& step, const BlockEvent& seal);
  std::uint64_t content_of_block(const BlockSnapshot& block, std::int32_t id) const;
  RetentionClass wanted(const ScriptedRequest& asked, std::uint64_t content) const;
  RetentionClass most_wanted(const StepView& step, const ScriptedRequest& owner, std::uint64_t content) const;

  const Script& script_;
  const SimulatedRunner& runner_;
  Problem& problem_;
  std::vector<std::uint64_t> held_;  // of each block: its content after the last step; 0: nothing findable
};

}  // namespace octavo::simulation
