// Nobody waits without a reason, and why what was found in the cache ended where it did. Both are decided
// once more from the state before the step, by comparing contents; where a step did too much at once to say,
// they are left alone.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "engine/api/metrics.h"
#include "engine/base/ids.h"
#include "tests/simulation/memory_rules.h"
#include "tests/simulation/problem.h"
#include "tests/simulation/script.h"
#include "tests/simulation/simulated_runner.h"

namespace octavo::simulation {

// What the engine says of a request that was admitted in this step.
struct AdmittedMiss {
  RequestId request_id;
  PrefixMiss miss;
};

class AdmissionRules {
 public:
  // All three outlive this object.
  AdmissionRules(const Script& script, const SimulatedRunner& runner, Problem& problem);

  // Before the runner poisons what was let go in the step.
  void check(const StepView& step, std::span<const AdmittedMiss> misses);

 private:
  struct Eviction {
    std::int64_t step = 0;
    std::uint64_t by = 0;
  };
  // Who runs when the step decides who starts.
  struct Runners {
    std::int32_t num_sequences = 0;
    bool has_groups = false;
    bool may_have_start = false;  // somebody computes what the waiting request may start with
  };

  void check_begun_ahead(const StepView& step);
  void check_waiting(const StepView& step);
  std::int32_t most_to_leave(std::int32_t num_running) const;
  bool may_judge(const StepView& step, const SequenceSnapshot& waiting) const;
  Runners runners_of(const StepView& step, const ScriptedRequest& waiting) const;
  bool may_share(const ScriptedRequest& a, const ScriptedRequest& b) const;
  std::int32_t num_live_hits(const StepView& step, const ScriptedRequest& asked) const;

  void check_miss(const StepView& step, const AdmittedMiss& admitted);
  bool is_of_evicted(const PrefixMiss& miss, std::span<const std::uint64_t> rest) const;
  bool is_under_other_salt(const StepView& step, const ScriptedRequest& asked) const;
  void note_evictions(const StepView& step);

  std::vector<std::uint64_t> hashes_of(const ScriptedRequest& asked, std::int32_t salt) const;
  std::int32_t block_with(const StepView& step, std::span<const std::uint64_t> hashes) const;
  bool reads_cache(const ScriptedRequest& asked) const;

  const Script& script_;
  const SimulatedRunner& runner_;
  Problem& problem_;
  const bool has_both_lines_;        // then who waits first need not be the next
  std::set<std::int32_t> salts_;     // of all who were ever admitted
  std::vector<std::uint64_t> held_;  // of each block: its content after the last step, or one of the below
  std::map<std::uint64_t, Eviction> evicted_;
  std::uint64_t newest_evicted_ = 0;
  std::set<std::int64_t> unknown_evictions_;  // steps that gave up what nobody knows here
};

}  // namespace octavo::simulation
