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

// Of length_tables.h. ShareGPT's are those of the paper. Alpaca's are 1,801 pairs of the public data, in
// which long inputs go with short outputs (rank correlation -0.31); they are a little shorter than the
// paper's, 18.8 in and 54.0 out.
const QuantileLengths& sharegpt_lengths();
const QuantileLengths& alpaca_pairs();

// Alpaca: of the paper's lengths only the means are known, 19.31 in and 58.45 out (figure 11). The shapes are
// ours: Weibull's, independent, about as wide as the pairs of the public data (standard deviation / mean 0.7
// and 1.1). See tests/experiments/README.md for what that leaves open.
class AlpacaLengths final : public LengthSource {
 public:
  static constexpr double kMeanInput = 19.31;
  static constexpr double kMeanOutput = 58.45;
  RequestLengths draw(UniformStream& uniform) const override;
  // The lengths at these quantiles of input and output, each from 0 to below 1.
  static RequestLengths at(double input_quantile, double output_quantile);
};

// One request: how long it is, and how much of its prompt it has in common with all others.
struct ScriptedRequest {
  RequestLengths lengths;
  std::int32_t num_shared_tokens = 0;  // at the prompt's start; the rest is like no other's
};

// Where whole requests come from. Drawing is a function of the stream alone.
class RequestSource {
 public:
  virtual ~RequestSource() = default;
  virtual ScriptedRequest draw(UniformStream& uniform) const = 0;
};

// Requests that have nothing in common.
class SingleRequests final : public RequestSource {
 public:
  // `lengths` outlives this object.
  explicit SingleRequests(const LengthSource& lengths) : lengths_(lengths) {}
  ScriptedRequest draw(UniformStream& uniform) const override { return {.lengths = lengths_.draw(uniform)}; }

 private:
  const LengthSource& lengths_;
};

// Translations from English to German behind examples that all have in common (section 6.4: 80 tokens with
// one example, 341 with five). The paper does not give the lengths of what follows; these are Weibull's, as
// wide as sentences are (standard deviation / mean 0.58).
class Translations final : public RequestSource {
 public:
  // The means: sentences of WMT16's test set (newstest2016: 21 words of English, 22 of German) in tokens of
  // LLaMA, 1.4 a word in English and 1.9 in German; or `share` of that.
  static constexpr double kMeanInput = 30.0;
  static constexpr double kMeanOutput = 42.0;
  explicit Translations(std::int32_t num_prefix_tokens, double share = 1.0)
      : num_prefix_tokens_(num_prefix_tokens), share_(share) {}
  ScriptedRequest draw(UniformStream& uniform) const override;

 private:
  std::int32_t num_prefix_tokens_;
  double share_;
};

// A turn of a chat whose prompt is what was said before, cut to its last 1,024 tokens; the answer has at most
// 1,016 (section 6.5 and the authors' code). Of ShareGPT's chats only lengths of single turns are at hand:
// the number of turns before this one is geometric. With a mean of 4 most prompts are cut, as in the paper.
class ChatTurns final : public RequestSource {
 public:
  static constexpr std::int32_t kMostPromptTokens = 1'024, kMostOutputTokens = 1'016;
  explicit ChatTurns(double mean_turns_before = 4.0) : mean_turns_before_(mean_turns_before) {}
  ScriptedRequest draw(UniformStream& uniform) const override;

 private:
  double mean_turns_before_;
};

}  // namespace octavo::paper
