// What the 16 nibbles of the table types stand for: the numbers that dequantize.h multiplies with a scale.
#pragma once

#include <cstdint>

namespace octavo::kernels {

// IQ4_NL, IQ4_XS: dense around zero, where most weights are.
inline constexpr std::int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                               1,    13,   25,  38,  53,  69,  89,  113};

// MXFP4: floats of one sign, two exponent and one mantissa bits (0, 0.5, 1, 1.5, 2, 3, 4, 6), doubled so that
// they are integers; so their scale is 2^(e - 128), half of the format's.
inline constexpr std::int8_t kMxfp4Values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

}  // namespace octavo::kernels
