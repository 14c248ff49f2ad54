#include "ui/views/compare/token_colours.h"

#include <algorithm>
#include <cmath>

#include "engine/base/format.h"
#include "ui/compare_state.h"

namespace octavo::ui {

const char* text_colour_name(TextColour colour) {
  switch (colour) {
    case TextColour::kNone: return "none";
    case TextColour::kSharedPrefix: return "shared start";
    case TextColour::kProbability: return "probability";
    case TextColour::kRelative: return "relative";
    case TextColour::kEntropy: return "entropy";
    case TextColour::kBlocks: return "blocks";
  }
  return "";
}

const char* text_colour_help(TextColour colour) {
  switch (colour) {
    case TextColour::kNone: return "Plain text.";
    case TextColour::kSharedPrefix:
      return "Text that another answer starts with too is pale; the bar marks where they diverge.";
    case TextColour::kProbability:
      return "Probability of each token before temperature and filters: green 100 %, orange 3 %, red 0.1 % "
             "or less.";
    case TextColour::kRelative:
      return "Probability relative to the likeliest token there: green 1, orange 0.1, red 0.01 or less.";
    case TextColour::kEntropy:
      return "Uncertainty at each token: entropy of the returned alternatives, scaled to a sum of 1.";
    case TextColour::kBlocks:
      return "KV blocks as stripes; hatched cells below are shared with another answer.";
  }
  return "";
}

std::int32_t rank_of(const ComparedToken& token) {
  for (std::size_t i = 0; i < token.alternatives.size(); ++i) {
    if (token.alternatives[i].token_id == token.token_id) return static_cast<std::int32_t>(i) + 1;
  }
  return 0;
}

std::optional<double> relative_probability(const ComparedToken& token) {
  if (token.alternatives.empty()) return std::nullopt;
  const float best = std::max(token.alternatives.front().logprob, token.logprob);
  return std::exp(static_cast<double>(token.logprob - best));
}

std::optional<double> entropy_bits(const ComparedToken& token) {
  if (token.alternatives.size() < 2) return std::nullopt;
  double sum = 0;
  for (const TokenAlternative& alternative : token.alternatives)
    sum += std::exp(static_cast<double>(alternative.logprob));
  if (!(sum > 0)) return std::nullopt;
  double bits = 0;
  for (const TokenAlternative& alternative : token.alternatives) {
    const double probability = std::exp(static_cast<double>(alternative.logprob)) / sum;
    if (probability > 0) bits -= probability * std::log2(probability);
  }
  return bits;
}

std::optional<float> surprise(const ComparedToken& token, TextColour colour) {
  const auto decades = [](double logprob, double most) {
    return static_cast<float>(std::clamp(-logprob / std::log(10.0) / most, 0.0, 1.0));
  };
  switch (colour) {
    case TextColour::kProbability: return decades(static_cast<double>(token.logprob), 3.0);
    case TextColour::kRelative:
      if (const auto relative = relative_probability(token)) return decades(std::log(*relative), 2.0);
      return std::nullopt;
    case TextColour::kEntropy:
      if (const auto bits = entropy_bits(token)) {
        const double most = std::log2(static_cast<double>(token.alternatives.size()));
        return static_cast<float>(std::clamp(*bits / most, 0.0, 1.0));
      }
      return std::nullopt;
    default: return std::nullopt;
  }
}

std::vector<LegendEntry> colour_legend(TextColour colour, std::int32_t num_alternatives) {
  std::vector<LegendEntry> entries;
  // Each shade is what a token of that figure has.
  const auto add = [&](const ComparedToken& token, std::string label) {
    if (const auto level = surprise(token, colour)) entries.push_back({.surprise = *level, .label = label});
  };
  const auto of_probability = [](double probability) {
    ComparedToken token{.token_id = 1, .logprob = static_cast<float>(std::log(probability))};
    token.alternatives.push_back({.token_id = 0, .text = {}, .logprob = 0});
    return token;
  };
  switch (colour) {
    case TextColour::kNone: break;
    case TextColour::kSharedPrefix:
      entries = {{.mark = LegendMark::kPale, .label = "starts another answer too"},
                 {.mark = LegendMark::kBar, .label = "they diverge"}};
      break;
    case TextColour::kProbability:
      add(of_probability(1), "100 %");
      add(of_probability(0.3), "30 %");
      add(of_probability(0.03), "3 %");
      add(of_probability(0.001), "0.1 % or less");
      break;
    case TextColour::kRelative:
      add(of_probability(1), "likeliest");
      add(of_probability(0.1), "a tenth of it");
      add(of_probability(0.01), "a hundredth or less");
      break;
    case TextColour::kEntropy: {
      const double most = std::log2(static_cast<double>(std::max(2, num_alternatives)));
      for (const double share : {0.0, 0.5, 1.0}) {
        const std::string bits = two_decimals(share * most) + " bit";
        entries.push_back({.surprise = static_cast<float>(share), .label = bits});
      }
      break;
    }
    case TextColour::kBlocks:
      entries = {{.mark = LegendMark::kShared, .label = "block shared by answers"},
                 {.mark = LegendMark::kOwn, .label = "block of this answer"}};
      break;
  }
  return entries;
}

ImU32 surprise_colour(const Theme& theme, float surprise) {
  const ImU32 low = theme.owners[2], middle = theme.owners[1], high = theme.owners[4];
  return surprise < 0.5f ? mix(low, middle, surprise * 2) : mix(middle, high, surprise * 2 - 1);
}

}  // namespace octavo::ui
