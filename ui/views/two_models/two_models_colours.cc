#include "ui/views/two_models/two_models_colours.h"

#include <algorithm>
#include <cmath>

namespace octavo::ui {
namespace {

constexpr double kLeastDivergence = 1e-3, kMostDivergence = 1.0;  // nats
constexpr double kMostChange = 0.5, kLeastChange = 0.01;          // of a probability
constexpr double kMostRank = 1000.0;

float level(double value) { return static_cast<float>(std::clamp(value, 0.0, 1.0)); }

}  // namespace

const char* two_models_colour_name(TwoModelsColour colour) {
  switch (colour) {
    case TwoModelsColour::kDivergence: return "KL divergence";
    case TwoModelsColour::kProbability: return "Probability";
    case TwoModelsColour::kRank: return "Rank";
  }
  return "";
}

const char* two_models_colour_help(TwoModelsColour colour) {
  switch (colour) {
    case TwoModelsColour::kDivergence:
      return "How far B's expectation of what comes here is from A's, over the whole vocabulary.";
    case TwoModelsColour::kProbability: return "How much likelier or less likely B finds this token than A.";
    case TwoModelsColour::kRank: return "How many tokens B finds likelier than this one.";
  }
  return "";
}

std::optional<float> departure(const TwoModelsToken& token, TwoModelsColour colour) {
  switch (colour) {
    case TwoModelsColour::kDivergence: {
      if (token.kl_divergence < kLeastDivergence) return std::nullopt;
      return level(std::log(token.kl_divergence / kLeastDivergence) /
                   std::log(kMostDivergence / kLeastDivergence));
    }
    case TwoModelsColour::kProbability: {
      const double change = token.probability_change();
      if (std::abs(change) < kLeastChange) return std::nullopt;
      return level(0.5 - 0.5 * change / kMostChange);
    }
    case TwoModelsColour::kRank: return level(std::log(token.b.rank) / std::log(kMostRank));
  }
  return std::nullopt;
}

ColourLegend two_models_legend(TwoModelsColour colour) {
  switch (colour) {
    case TwoModelsColour::kDivergence: return {"0.001 nats", "0.03", "1 or more"};
    case TwoModelsColour::kProbability: return {"B +50 %", "the same", "B −50 %"};
    case TwoModelsColour::kRank: return {"first in B", "32nd", "1,000th or later"};
  }
  return {"", "", ""};
}

}  // namespace octavo::ui
