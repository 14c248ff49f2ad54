// Equally likely bins of requests by the length of the input; in each, quantiles of the lengths of input and
// output, drawn independently by linear interpolation (workload.h). One source for each table.
#pragma once

#include <array>

namespace octavo::paper {

struct LengthBin {
  std::array<double, 5> input_quantiles;
  std::array<double, 33> output_quantiles;
};
// As tests/golden/sharegpt_length_quantiles.json and alpaca_length_quantiles.json have them.
extern const std::array<LengthBin, 64> kShareGptLengths;
extern const std::array<LengthBin, 16> kAlpacaLengths;

}  // namespace octavo::paper
