// What a visitor of the tour types, as a chapter: limits, and the words that answer.
#pragma once

#include "app/window/memory/tour_script.h"
#include "engine/base/result.h"
#include "ui/tour_state.h"

namespace octavo::app {

inline constexpr const char* kTrialTitle = "Try it yourself";

// What stands in the fields before anybody types.
ui::TourTrial first_trial();

// Each answer goes on with eight words of the tour's own, drawn from the text alone. What cannot be played is
// one sentence.
Result<TourScript> trial_script(const ui::TourTrial& trial);

}  // namespace octavo::app
