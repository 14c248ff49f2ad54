#include "engine/scheduler/background_turns.h"

#include <algorithm>

namespace octavo::scheduler {
namespace {

constexpr double kWeightOfNewTurn = 0.25;

}  // namespace

StepParts& StepParts::operator+=(const StepParts& more) {
  interactive += more.interactive;
  background += more.background;
  has_interactive_prompt |= more.has_interactive_prompt;
  return *this;
}

bool BackgroundTurns::begin_step(bool is_mixed) {
  is_mixed_ = is_mixed;
  if (!is_mixed) {
    credit_us_ = 0.0;
    num_steps_since_ = 0;
    return true;
  }
  if (is_paid() || num_steps_since_ >= kMostStepsBetweenTurns) {
    num_steps_since_ = 0;
    return true;
  }
  ++num_steps_since_;
  return false;
}

double BackgroundTurns::interactive_us(const StepParts& parts, double us, const StepCosts& costs) const {
  const auto num_interactive = static_cast<double>(parts.interactive.num_rows);
  const auto num_background = static_cast<double>(parts.background.num_rows);
  if (num_background == 0.0) return us;
  if (num_interactive == 0.0) return 0.0;
  if (!parts.has_interactive_prompt && us_of_decodes_) return std::min(us, *us_of_decodes_);
  if (parts.has_interactive_prompt && costs.is_known()) return std::min(us, costs.us_of(parts.interactive));
  return us * num_interactive / (num_interactive + num_background);
}

// What is saved pays for one turn and a little, so that no time without work makes many of them; and a turn
// that had to come is not paid for more than once, so that dear ones do not pile up.
void BackgroundTurns::learn(const StepParts& parts, double us, const StepCosts& costs) {
  const double for_interactive_us = interactive_us(parts, us, costs),
               for_background_us = us - for_interactive_us;
  const bool only_decodes =
      parts.interactive.num_rows > 0 && parts.background.num_rows == 0 && !parts.has_interactive_prompt;
  if (only_decodes)
    us_of_decodes_ = us_of_decodes_ ? *us_of_decodes_ + kWeightOfNewTurn * (us - *us_of_decodes_) : us;
  if (parts.background.num_rows > 0) {
    const double weight = expected_us_ == 0.0 ? 1.0 : kWeightOfNewTurn;
    expected_us_ += weight * (for_background_us - expected_us_);
  }
  if (!is_mixed_) return;
  const double saved_us = kBackgroundShare * for_interactive_us;
  credit_us_ = std::min(credit_us_ + saved_us - for_background_us, expected_us_ + saved_us);
  if (parts.background.num_rows > 0) credit_us_ = std::max(credit_us_, -for_background_us);
}

}  // namespace octavo::scheduler
