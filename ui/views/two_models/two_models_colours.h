// What the marks under the words of a text say about two models. Pure functions of a token's figures.
#pragma once

#include <optional>

#include "ui/two_models_state.h"

namespace octavo::ui {

enum class TwoModelsColour { kDivergence, kProbability, kRank };
inline constexpr int kNumTwoModelsColours = 3;

const char* two_models_colour_name(TwoModelsColour colour);
// One sentence.
const char* two_models_colour_help(TwoModelsColour colour);

// How much B departs from A, 0 to 1, on the scale that the legend names: divergence by powers of ten, the
// change of the token's probability with none in the middle, B's rank by powers of ten. None where there is
// nothing to mark.
std::optional<float> departure(const TwoModelsToken& token, TwoModelsColour colour);

// What 0, the middle and 1 stand for.
struct ColourLegend {
  const char* low;
  const char* middle;
  const char* high;
};
ColourLegend two_models_legend(TwoModelsColour colour);

}  // namespace octavo::ui
