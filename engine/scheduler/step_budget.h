// How many rows a step may still have, while it is made. Beside outputs that are being extended, prompts get
// as many rows as keep the step near its target: so a long prompt holds nobody up, and alone it takes all
// rows. Without any limit of time it is a plain count. A value of one step; no clock, and no effect on
// tokens. Engine thread.
#pragma once

#include <cstdint>

#include "engine/scheduler/measured_costs.h"

namespace octavo::scheduler {

// However long a step takes already, and before anything was measured: a prompt goes on. (On a CPU a step of
// 4 rows takes twice as long as one of a single row, so that fewer would mostly read the weights once more;
// 8, far back in a long prompt on a slow machine, take longer than the target.)
inline constexpr std::int32_t kFewestPromptRows = 4;

class StepBudget {
 public:
  // At most `most_rows`; beside decodes, about `target_us` (0: however long it takes). `costs` outlives this
  // object.
  StepBudget(std::int32_t most_rows, std::int64_t target_us, const StepCosts& costs)
      : costs_(costs), target_us_(static_cast<double>(target_us)), num_left_(most_rows) {}

  std::int32_t num_left() const { return num_left_; }
  std::int32_t num_taken() const { return static_cast<std::int32_t>(work_.num_rows); }

  // Whether take_chunk() would give anything.
  bool has_rows_for_prompts() const { return num_left_ > 0 && most_prompt_rows(0) > 0; }

  // Prompts are limited from now on, as beside decodes: what comes meanwhile waits until the step has ended.
  void keep_to_target() { keeps_to_target_ = true; }

  // A row that extends an output. From the first one on, prompts are limited. REQUIRES: num_left() >= 1.
  void take_decode(std::int32_t position);

  // Rows of known tokens from `start_position` on: as many as may be, at most `num_wanted`.
  std::int32_t take_chunk(std::int32_t start_position, std::int32_t num_wanted);

  // How many rows a draft from there on may have: beside prompts, those that end by the target.
  std::int32_t most_draft_rows(std::int32_t start_position) const;

  // Rows of a draft behind a decode. REQUIRES: at most most_draft_rows().
  void take_draft(std::int32_t start_position, std::int32_t num_rows);

 private:
  bool is_limited() const { return target_us_ > 0.0 && (keeps_to_target_ || num_decodes_ > 0); }
  bool has_time_left() const { return costs_.is_known() && costs_.us_of(work_) < target_us_; }
  std::int32_t most_prompt_rows(std::int32_t start_position) const;
  std::int32_t most_rows_in_time(std::int32_t start_position) const;
  void take(const StepWork& rows);

  const StepCosts& costs_;
  const double target_us_;
  std::int32_t num_left_;
  StepWork work_;  // that was given out
  std::int32_t num_decodes_ = 0, num_prompt_rows_ = 0;
  bool keeps_to_target_ = false;
};

}  // namespace octavo::scheduler
