// Which way preempted blocks go, and what that drops, decided once more from nothing but the state before the
// step and what the simulated device takes for a block and a row. Tokens show nothing of it: both ways lead
// to the same ones.
#pragma once

#include <cstdint>
#include <span>

#include "engine/api/event.h"
#include "engine/api/metrics.h"
#include "tests/simulation/memory_rules.h"
#include "tests/simulation/problem.h"
#include "tests/simulation/script.h"

namespace octavo::simulation {

class PreemptionRules {
 public:
  // Both outlive this object.
  PreemptionRules(const Script& script, Problem& problem) : script_(script), problem_(problem) {}

  void check(const StepView& step);
  // After check(): what the engine could measure in this step.
  void learn(const StepRecord& record, bool device_failed);

 private:
  struct Victim {
    std::int32_t num_sequences = 0;
    std::int32_t num_blocks = 0;  // with KV, each once
    std::int32_t num_tokens = 0;  // with KV, those of shared full blocks once
    bool holds_nothing = false;
    bool may_change = false;  // siblings may take shared blocks just before it is preempted
  };

  Victim victim_of(const KvSnapshot& before, std::span<const std::uint64_t> sequences) const;
  void check_choice(const KvSnapshot& before, std::span<const std::uint64_t> sequences,
                    const RequestPreempted& told, bool was_swapped, std::int32_t num_host_free);
  bool is_right(const Victim& victim, bool was_swapped) const;

  const Script& script_;
  Problem& problem_;
  bool has_swapped_ = false, has_prefilled_ = false;  // in a step that did not fail
};

}  // namespace octavo::simulation
