// When background groups have rows of a step that interactive ones want, too: in turns. A person notices each
// step that takes longer, and on a CPU one more row takes longer: so background work may take, of the time
// that interactive work takes, a quarter beside it. What it takes is learned from measured steps: a turn
// comes when what was saved for it pays for the last ones, and at the latest after kMostStepsBetweenTurns
// others, whatever they cost. On a device where rows beside others are nearly free each step is a turn.
//
// No clock, and no effect on tokens. Engine thread.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/scheduler/measured_costs.h"

namespace octavo::scheduler {

// A time per token that grows by this is within what a person is promised: 1.3 times that of an idle engine.
inline constexpr double kBackgroundShare = 0.25;
inline constexpr std::int32_t kMostStepsBetweenTurns = 64;

// What a step computes for whom.
struct StepParts {
  StepWork interactive, background;
  bool has_interactive_prompt = false;  // known tokens: rows of which it is known what they take

  StepParts& operator+=(const StepParts& more);
};

class BackgroundTurns {
 public:
  // A step is to be made. Whether background groups have a part in it: always, unless both kinds are there.
  bool begin_step(bool is_mixed);

  // What a step took that was begun, once for each in order; a failed one is passed over. `costs` as of then.
  void learn(const StepParts& parts, double us, const StepCosts& costs);

 private:
  bool is_paid() const { return credit_us_ >= expected_us_; }
  // Of the step's time, that for interactive rows.
  double interactive_us(const StepParts& parts, double us, const StepCosts& costs) const;

  bool is_mixed_ = false;
  std::int32_t num_steps_since_ = 0;     // the last turn
  double credit_us_ = 0.0;               // that background work may take; below 0: it took too much
  double expected_us_ = 0.0;             // of background work in a turn
  std::optional<double> us_of_decodes_;  // of steps that only extended interactive outputs
};

}  // namespace octavo::scheduler
