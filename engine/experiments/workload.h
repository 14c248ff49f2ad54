// Lengths of requests as in the paper's workloads (Kwon et al. 2023, arXiv:2309.06180, section 6.1 and figure
// 11), from one seed: the same seed gives the same requests on every machine.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "engine/base/result.h"

namespace octavo::paper {

// Prompt and output together are below this, and each is at least 1.
inline constexpr std::int32_t kMaxModelLen = 2'048;

struct RequestLengths {
  std::int32_t num_prompt_tokens = 1;
  std::int32_t num_output_tokens = 1;
};

// Uniform numbers in [0, 1).
class UniformStream {
 public:
  explicit UniformStream(std::uint64_t seed) : seed_(seed) {}
  double next();

 private:
  std::uint64_t seed_;
  std::uint64_t num_drawn_ = 0;
};

// Where requests come from. Drawing is a function of the stream alone.
class LengthSource {
 public:
  virtual ~LengthSource() = default;
  virtual RequestLengths draw(UniformStream& uniform) const = 0;
};

// Lengths by quantiles: a bin with equal chances, then input and output independently by linear
// interpolation between its quantiles.
class QuantileLengths final : public LengthSource {
 public:
  struct Bin {
    std::vector<double> input_quantiles, output_quantiles;
  };
  // An error unless there are bins, and the quantiles of each ascend from 1 to below kMaxModelLen.
  static Result<QuantileLengths> create(std::vector<Bin> bins);

  RequestLengths draw(UniformStream& uniform) const override;

 private:
  explicit QuantileLengths(std::vector<Bin> bins) : bins_(std::move(bins)) {}
  std::vector<Bin> bins_;
};

// ShareGPT: the table of sharegpt_table.h.
const QuantileLengths& sharegpt_lengths();

// Alpaca: of the paper's lengths only the means are known, 19.31 in and 58.45 out (figure 11). The shapes are
// ours: Weibull's, independent, as wide as the first 334 pairs of the public data in GPT-2 tokens (standard
// deviation / mean 0.7 and 1.1). See tests/experiments/README.md for what that leaves open.
class AlpacaLengths final : public LengthSource {
 public:
  static constexpr double kMeanInput = 19.31;
  static constexpr double kMeanOutput = 58.45;
  RequestLengths draw(UniformStream& uniform) const override;
};

}  // namespace octavo::paper
