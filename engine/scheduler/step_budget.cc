#include "engine/scheduler/step_budget.h"

#include <algorithm>

namespace octavo::scheduler {

void StepBudget::take_decode(std::int32_t position) {
  take(StepWork::of_rows(position, 1));
  ++num_decodes_;
}

std::int32_t StepBudget::take_chunk(std::int32_t start_position, std::int32_t num_wanted) {
  const std::int32_t num_rows = std::min(num_wanted, most_prompt_rows(start_position));
  take(StepWork::of_rows(start_position, num_rows));
  num_prompt_rows_ += num_rows;
  return num_rows;
}

void StepBudget::take_draft(std::int32_t start_position, std::int32_t num_rows) {
  take(StepWork::of_rows(start_position, num_rows));
}

void StepBudget::take(const StepWork& rows) {
  work_ += rows;
  num_left_ -= static_cast<std::int32_t>(rows.num_rows);
}

std::int32_t StepBudget::most_prompt_rows(std::int32_t start_position) const {
  if (!is_limited()) return num_left_;
  const std::int32_t num_fewest = std::max(0, kFewestPromptRows - num_prompt_rows_);
  const std::int32_t num_least = has_time_left() ? 1 : 0;  // whoever starts before the target gets a row
  return std::min(num_left_, std::max({num_fewest, num_least, most_rows_in_time(start_position)}));
}

std::int32_t StepBudget::most_draft_rows(std::int32_t start_position) const {
  const bool is_shared = is_limited() && num_prompt_rows_ > 0;
  return is_shared ? most_rows_in_time(start_position) : num_left_;
}

// Those that end by the target.
std::int32_t StepBudget::most_rows_in_time(std::int32_t start_position) const {
  if (!has_time_left()) return 0;
  std::int32_t fits = 0, too_many = num_left_ + 1;
  while (too_many - fits > 1) {
    const std::int32_t middle = fits + (too_many - fits) / 2;
    const bool in_time = costs_.us_of(work_ + StepWork::of_rows(start_position, middle)) <= target_us_;
    (in_time ? fits : too_many) = middle;
  }
  return fits;
}

}  // namespace octavo::scheduler
