// 64 equally likely bins of chats by input length; in each, quantiles of the lengths of input and
// output, drawn independently by linear interpolation.
#pragma once

#include <array>
#include <cstddef>

namespace octavo::paper {

inline constexpr std::size_t kNumLengthBins = 64;
struct LengthBin {
  std::array<double, 5> input_quantiles;
  std::array<double, 33> output_quantiles;
};
// As tests/golden/sharegpt_length_quantiles.json has it.
extern const std::array<LengthBin, kNumLengthBins> kShareGptLengths;

}  // namespace octavo::paper
