#include "engine/experiments/workload.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "engine/base/check.h"
#include "engine/base/rng.h"
#include "engine/experiments/length_tables.h"

namespace octavo::paper {
namespace {

// The quantile of `probability`, which runs from 0 at the first entry to 1 at the last.
double interpolate(const std::vector<double>& quantiles, double probability) {
  const double place = probability * static_cast<double>(quantiles.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  return quantiles[below] + (place - static_cast<double>(below)) * (quantiles[below + 1] - quantiles[below]);
}

std::int32_t at_least_one(double length) {
  return std::max(1, static_cast<std::int32_t>(std::min(length, double{kMaxModelLen})));
}

// Quantile of the Weibull distribution: exponential for shape 1, wider below.
double weibull(double mean, double shape, double probability) {
  return mean / std::tgamma(1.0 + 1.0 / shape) * std::pow(-std::log1p(-probability), 1.0 / shape);
}

bool fits(RequestLengths lengths) {
  return lengths.num_prompt_tokens + lengths.num_output_tokens < kMaxModelLen;
}

bool is_table(const std::vector<double>& quantiles) {
  return quantiles.size() >= 2 && std::ranges::is_sorted(quantiles) && quantiles.front() >= 1 &&
         quantiles.back() < kMaxModelLen;
}

QuantileLengths lengths_of(std::span<const LengthBin> table) {
  std::vector<QuantileLengths::Bin> bins;
  for (const LengthBin& bin : table) {
    bins.push_back({{bin.input_quantiles.begin(), bin.input_quantiles.end()},
                    {bin.output_quantiles.begin(), bin.output_quantiles.end()}});
  }
  auto made = QuantileLengths::create(std::move(bins));
  OCTAVO_CHECK(made.has_value(), "%s", made.error().message.c_str());
  return *std::move(made);
}

}  // namespace

double UniformStream::next() { return uniform_at(seed_, 0, num_drawn_++); }

Result<QuantileLengths> QuantileLengths::create(std::vector<Bin> bins) {
  const auto is_good = [](const Bin& bin) {
    return is_table(bin.input_quantiles) && is_table(bin.output_quantiles);
  };
  if (bins.empty() || !std::ranges::all_of(bins, is_good)) {
    return Error{ErrorCode::kInvalidArgument,
                 "there is a bin whose quantiles do not ascend from 1 to below 2,048, or none at all"};
  }
  return QuantileLengths(std::move(bins));
}

const QuantileLengths& sharegpt_lengths() {
  static const QuantileLengths lengths = lengths_of(kShareGptLengths);
  return lengths;
}

const QuantileLengths& alpaca_pairs() {
  static const QuantileLengths lengths = lengths_of(kAlpacaLengths);
  return lengths;
}

RequestLengths QuantileLengths::draw(UniformStream& uniform) const {
  while (true) {
    const double place = uniform.next() * static_cast<double>(bins_.size());
    const Bin& bin = bins_[static_cast<std::size_t>(place)];
    RequestLengths lengths;
    lengths.num_prompt_tokens = at_least_one(std::round(interpolate(bin.input_quantiles, uniform.next())));
    lengths.num_output_tokens = at_least_one(std::round(interpolate(bin.output_quantiles, uniform.next())));
    if (fits(lengths)) return lengths;
  }
}

ScriptedRequest Translations::draw(UniformStream& uniform) const {
  constexpr double kShape = 1.8;
  const double input = weibull(share_ * kMeanInput - 0.5, kShape, uniform.next());
  const double output = weibull(share_ * kMeanOutput - 0.5, kShape, uniform.next());
  return {.lengths = {num_prefix_tokens_ + at_least_one(std::ceil(input)), at_least_one(std::ceil(output))},
          .num_shared_tokens = num_prefix_tokens_};
}

ScriptedRequest ChatTurns::draw(UniformStream& uniform) const {
  const double stay = mean_turns_before_ / (1.0 + mean_turns_before_);
  const auto num_before = static_cast<std::int32_t>(std::log1p(-uniform.next()) / std::log(stay));
  const QuantileLengths& turns = sharegpt_lengths();
  RequestLengths lengths = turns.draw(uniform);
  for (std::int32_t i = 0; i < num_before && lengths.num_prompt_tokens < kMostPromptTokens; ++i) {
    const RequestLengths before = turns.draw(uniform);
    lengths.num_prompt_tokens += before.num_prompt_tokens + before.num_output_tokens;
  }
  return {.lengths = {std::min(lengths.num_prompt_tokens, kMostPromptTokens),
                      std::min(lengths.num_output_tokens, kMostOutputTokens)}};
}

RequestLengths AlpacaLengths::draw(UniformStream& uniform) const {
  while (true) {
    const double input = uniform.next(), output = uniform.next();
    const RequestLengths lengths = at(input, output);
    if (fits(lengths)) return lengths;
  }
}

RequestLengths AlpacaLengths::at(double input_quantile, double output_quantile) {
  constexpr double kInputShape = 1.4, kOutputShape = 0.9;
  constexpr double kRounding = 0.5;  // what rounding up adds on average
  const double input = weibull(kMeanInput - kRounding, kInputShape, input_quantile);
  const double output = weibull(kMeanOutput - kRounding, kOutputShape, output_quantile);
  return {at_least_one(std::ceil(input)), at_least_one(std::ceil(output))};
}

}  // namespace octavo::paper
