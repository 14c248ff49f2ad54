#include "engine/model/config_ranges.h"

#include <cstdio>
#include <optional>
#include <string>
#include <utility>

#include "engine/model/limits.h"

namespace octavo::model {
namespace {

class RangeCheck {
 public:
  explicit RangeCheck(const ModelConfig& config) : architecture_(config.architecture) {}

  void whole(std::string_view suffix, std::int64_t value, std::int64_t least, std::int64_t most) {
    if (value >= least && value <= most) return;
    report(suffix, "is " + std::to_string(value) + "; " + std::to_string(least) + " to " +
                       std::to_string(most) + " is allowed");
  }
  void real(std::string_view suffix, double value, double least, double most) {
    if (value >= least && value <= most) return;  // false for NaN
    report(suffix, "is " + std::to_string(value) + "; it must be a number from " + short_number(least) +
                       " to " + short_number(most));
  }
  void that(bool holds, std::string_view suffix, const std::string& sentence) {
    if (!holds) report(suffix, sentence);
  }
  // Later checks may rely on the earlier ones: only the first problem counts.
  const std::optional<RangeProblem>& first() const { return first_; }

 private:
  static std::string short_number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%g", value);
    return text;
  }
  void report(std::string_view suffix, std::string sentence) {
    if (!first_) first_ = RangeProblem{architecture_ + "." + std::string(suffix), std::move(sentence)};
  }
  std::string architecture_;
  std::optional<RangeProblem> first_;
};

void check_sizes(const ModelConfig& config, RangeCheck& check) {
  check.whole("block_count", config.num_layers, 1, kMaxLayers);
  check.whole("context_length", config.context_length, 1, kMaxContextLength);
  check.whole("embedding_length", config.embedding_length, 1, kMaxEmbeddingLength);
  if (!config.experts.in_all_layers(config.num_layers))
    check.whole("feed_forward_length", config.feed_forward_length, 1, kMaxFeedForwardLength);
  check.whole("attention.head_count", config.num_heads, 1, kMaxHeads);
  check.whole("attention.head_count_kv", config.num_kv_heads, 1, kMaxHeads);
  const std::int32_t least_length = config.parts.layer_parts == LayerParts::kOneOfAll ? 0 : 1;
  for (const std::int32_t length : config.layer_feed_forward_lengths)
    check.whole("feed_forward_length", length, least_length, kMaxFeedForwardLength);
  check.whole("attention.key_length", config.head_dim, 1, kMaxHeadDim);
  if (config.parts.has_local_heads)
    check.whole("attention.key_length_swa", config.local_head_dim, 1, kMaxHeadDim);
  check.whole("embedding_length_per_layer_input", config.layer_embedding_length, 0, kMaxEmbeddingLength);
  check.whole("vocab_size", config.vocabulary_size, 1, kMaxVocabularySize);
  check.real(norm_epsilon_suffix(config), config.norm_epsilon, kMinNormEpsilon, kMaxNormEpsilon);
  check.real("attention.scale", config.score_scale, kMinFactor, kMaxFactor);
  const auto check_kv_heads = [&](std::int32_t num_kv_heads) {
    check.that(num_kv_heads > 0 && config.num_heads % num_kv_heads == 0, "attention.head_count_kv",
               "is " + std::to_string(num_kv_heads) + ", which does not divide the " +
                   std::to_string(config.num_heads) + " heads");
  };
  check_kv_heads(config.num_kv_heads);
  for (const std::int32_t num_kv_heads : config.layer_kv_heads) check_kv_heads(num_kv_heads);
}

// REQUIRES: sizes in range.
void check_shared_layers(const ModelConfig& config, RangeCheck& check) {
  constexpr std::string_view kSuffix = "attention.shared_kv_layers";
  check.whole(kSuffix, config.num_shared_layers, 0, config.num_layers - 1);
  if (check.first()) return;
  for (std::int32_t layer = config.num_layers - config.num_shared_layers; layer < config.num_layers;
       ++layer) {
    const std::int32_t owner = config.kv_owner(layer);
    check.that(owner >= 0, kSuffix,
               "leaves layer " + std::to_string(layer) + " without one of its kind to read from");
    check.that(owner < 0 || config.kv_heads(owner) == config.kv_heads(layer), "attention.head_count_kv",
               "gives layer " + std::to_string(layer) + " other heads than those that it reads");
  }
}

void check_window_and_caps(const ModelConfig& config, RangeCheck& check) {
  check.whole("attention.sliding_window", config.sliding_window, 0, kMaxContextLength);
  check.whole("attention.sliding_window_pattern", config.window_period, 0, kMaxLayers);
  const auto check_cap = [&](std::string_view suffix, float cap) {
    if (cap != 0.0f) check.real(suffix, cap, kMinFactor, kMaxFactor);
  };
  check_cap("attn_logit_softcapping", config.score_soft_cap);
  check_cap("final_logit_softcapping", config.logit_soft_cap);
}

void check_multipliers(const ModelConfig& config, RangeCheck& check) {
  check.real("embedding_scale", config.embedding_multiplier, kMinFactor, kMaxFactor);
  check.real("residual_scale", config.residual_multiplier, kMinFactor, kMaxFactor);
  const LogitScale scale = config.parts.multipliers.logit_scale;
  const bool divides = scale == LogitScale::kDivides || scale == LogitScale::kDividesIfGiven;
  check.real("logit_scale", divides ? 1.0 / config.logit_multiplier : config.logit_multiplier, kMinFactor,
             kMaxFactor);
}

void check_rope(const ModelConfig& config, RangeCheck& check) {
  if (!config.parts.rotates()) return;
  const RopeConfig& rope = config.rope;
  check.whole("rope.dimension_count", rope.rotary_dim, 2, config.head_dim);
  check.that(
      rope.rotary_dim % 2 == 0, "rope.dimension_count",
      "is " + std::to_string(rope.rotary_dim) + "; dimensions are rotated in pairs, so this must be even");
  check.real("rope.freq_base", rope.frequency_base, kMinRopeFrequencyBase, kMaxRopeFrequencyBase);
  if (config.local_rope) {
    check.real("rope.freq_base_swa", config.local_rope->frequency_base, kMinRopeFrequencyBase,
               kMaxRopeFrequencyBase);
  }
  if (config.local_rope && config.local_head_dim > 0) {
    check.whole("rope.dimension_count_swa", config.local_rope->rotary_dim, 2, config.local_head_dim);
    check.that(config.local_rope->rotary_dim % 2 == 0, "rope.dimension_count_swa",
               "is " + std::to_string(config.local_rope->rotary_dim) +
                   "; dimensions are rotated in pairs, so this must be even");
  }
  check.real("rope.scaling.factor", rope.factor, kMinFactor, kMaxFactor);
  check.real("rope.scaling.attn_factor", rope.attention_multiplier, kMinFactor, kMaxFactor);
  check.real("rope.scaling.yarn_log_multiplier", rope.yarn_log_multiplier, 0.0, kMaxFactor);
  check.real("attention.temperature_scale", config.query_scale_factor, 0.0, kMaxFactor);
  check.whole("rope.scaling.original_context_length", rope.original_context_length, 1, kMaxContextLength);
  check.whole("attention.temperature_length", config.query_scale_length, 1, kMaxContextLength);
  check.real("rope.scaling.low_freq_factor", rope.low_frequency_factor, kMinFactor, kMaxFactor);
  check.real("rope.scaling.high_freq_factor", rope.high_frequency_factor, kMinFactor, kMaxFactor);
  check.that(rope.high_frequency_factor > rope.low_frequency_factor, "rope.scaling.high_freq_factor",
             "is not above low_freq_factor");
  check.real("rope.scaling.yarn_ext_factor", rope.yarn_extrapolation_factor, 0.0, 1.0);
  check.real("rope.scaling.yarn_attn_factor", rope.yarn_attention_factor.value_or(1.0), kMinFactor,
             kMaxFactor);
  check.real("rope.scaling.yarn_beta_slow", rope.yarn_beta_slow, kMinFactor, kMaxFactor);
  check.real("rope.scaling.yarn_beta_fast", rope.yarn_beta_fast, rope.yarn_beta_slow, kMaxFactor);
  check.that(rope.scaling != RopeScalingType::kYarn || rope.frequency_base > kMinRopeFrequencyBase,
             "rope.freq_base", "is 1, with which all frequencies are equal and cannot be scaled by yarn");
}

}  // namespace

std::optional<RangeProblem> find_range_problem(const ModelConfig& config) {
  RangeCheck check(config);
  check_sizes(config, check);
  check_window_and_caps(config, check);
  if (!check.first()) check_shared_layers(config, check);
  check_multipliers(config, check);
  check_rope(config, check);
  return check.first();
}

}  // namespace octavo::model
