// What the colours under the words of an answer say. Pure functions of a token's figures.
//
// A mark never relies on colour alone: it is thicker where a token was less expected.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ui/compare_state.h"
#include "ui/theme.h"

namespace octavo::ui {

enum class TextColour { kNone, kSharedPrefix, kProbability, kRelative, kEntropy, kBlocks };
inline constexpr int kNumTextColours = 6;

const char* text_colour_name(TextColour colour);
// One sentence for the key.
const char* text_colour_help(TextColour colour);

// 1-based rank among the alternatives; 0 when the token is not one of them.
std::int32_t rank_of(const ComparedToken& token);

// Probability of the token divided by that of the likeliest one; none without alternatives.
std::optional<double> relative_probability(const ComparedToken& token);

// In bits, of the alternatives that the engine returned, their probabilities scaled to a sum of 1: a lower
// bound of how open the place was. None with fewer than two.
std::optional<double> entropy_bits(const ComparedToken& token);

// How little a token was expected, 0 (surely) to 1 (hardly), on the scale of this colouring; none where it
// says nothing.
std::optional<float> surprise(const ComparedToken& token, TextColour colour);

// What the key below the colours shows.
enum class LegendMark {
  kUnderline,  // as thick and coloured as a word of this surprise has it
  kPale,       // text that another answer has as well
  kBar,        // where answers part
  kShared,     // a block that several answers read
  kOwn,        // a block of this answer alone
};
struct LegendEntry {
  LegendMark mark = LegendMark::kUnderline;
  float surprise = 0;  // kUnderline
  std::string label = {};
};
// `num_alternatives` come with each token.
std::vector<LegendEntry> colour_legend(TextColour colour, std::int32_t num_alternatives);

// Green, orange, red-brown: distinguishable for the colour-blind too.
ImU32 surprise_colour(const Theme& theme, float surprise);

}  // namespace octavo::ui
