// Rotation frequencies of rotary position embeddings, with every way of scaling them that files ask for.
//
// The pair i of a head turns by position * inverse_frequencies[i]; cosine and sine are multiplied by
// attention_factor. Unscaled: base^(-2 i / rotary_dim) (Su et al. 2021, arXiv:2104.09864). Then, with
// f = factor:
//   linear   every frequency / f (Chen et al. 2023, arXiv:2306.15595)
//   llama3   wavelengths above original_context_length / low_frequency_factor: frequency / f; below
//            original_context_length / high_frequency_factor: as they are; between: blended linearly in 1 /
//            wavelength
//   yarn     frequencies below `beta_slow` rotations in the original context: / f; above `beta_fast`: as
//            they are; between: blended linearly in i; attention_factor 0.1 ln f + 1 (Peng et al. 2023,
//            arXiv:2309.00071), or that divided by what yarn_log_multiplier makes of it
//   longrope each frequency / its own divisor, of which files hold two lists: for contexts that stay within
//            the original length, and for longer ones (Ding et al. 2024, arXiv:2402.13753); the factor on
//            cosine and sine is attention_multiplier, with either
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/model/model_config.h"

namespace octavo::model {

struct RopeFrequencies {
  std::vector<double> inverse_frequencies;  // [rotary_dim / 2], radians per position
  double attention_factor = 1.0;
};

// A pair with this divisor does not turn at all: how converters write that a head is rotated in part, but in
// pairs that lie as far apart as if all of it were.
inline constexpr float kVanishingDivisor = 1e30f;

// `divisors`: the tensor rope_freqs.weight [rotary_dim / 2], by which files spell out llama3 scaling, or one
// of longrope's lists; each frequency is divided by its own. Empty: none. With it, scaling type llama3 is
// already in it and not applied again. REQUIRES: a validated config; divisors finite and above zero.
RopeFrequencies rope_frequencies(const RopeConfig& config, std::span<const float> divisors);

// Into [positions, frequencies, 2]: cosine and sine of each position's angles, times the attention factor.
void find_rotations(std::span<const std::int32_t> positions, const RopeFrequencies& rope,
                    std::vector<float>& rotations);

}  // namespace octavo::model
