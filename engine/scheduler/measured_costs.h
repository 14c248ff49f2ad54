// What steps and swaps take, learned from those that were measured. The scheduler has no clock: the engine
// measures, and hands it these. They decide how much a step does and how a group is preempted; no token
// depends on them. Values; engine thread.
#pragma once

#include <cstdint>
#include <optional>

namespace octavo::scheduler {

// What a step computes, as far as its time depends on it.
struct StepWork {
  std::int64_t num_rows = 0;
  std::int64_t num_context_tokens = 0;  // that its rows attend to, summed over them

  // Rows of one sequence at neighbouring positions.
  static StepWork of_rows(std::int32_t start_position, std::int32_t num_rows);

  StepWork& operator+=(const StepWork& more);
  friend StepWork operator+(StepWork a, const StepWork& b) { return a += b; }
};

// A row takes a time that grows with the tokens that it attends to: us = pace * (base + slope * context).
// The line is a regression over the last fifty steps or so, each counting alike: it is what model and machine
// are like. The pace is how the last few steps went beside it: others use the machine, too. So a busy minute
// is followed at once, and does not spoil what is known of long contexts.
class StepCosts {
 public:
  // REQUIRES: at least one row; us >= 0.
  void learn(const StepWork& work, double us);

  bool is_known() const { return num_learned_ > 0; }

  // REQUIRES: is_known().
  double us_of(const StepWork& work) const { return pace_ * us_by_line(work); }

 private:
  void fit_line(const StepWork& work, double us);
  double us_by_line(const StepWork& work) const;

  std::int32_t num_learned_ = 0;  // counts up to what the line remembers
  // Of the measured steps: tokens that a row attends to, and what a row took.
  double mean_context_ = 0.0, mean_us_ = 0.0, variance_ = 0.0, covariance_ = 0.0;
  double base_us_ = 0.0, slope_us_ = 0.0;  // the line: of a row, and of each token that it attends to
  double pace_ = 1.0;
};

struct MeasuredCosts {
  std::optional<double> us_per_swapped_block = {};  // one way; none: not measured yet
  StepCosts steps;
};

}  // namespace octavo::scheduler
