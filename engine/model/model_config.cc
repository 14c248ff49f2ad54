#include "engine/model/model_config.h"

#include <cmath>
#include <utility>

#include "engine/base/text.h"
#include "engine/model/limits.h"

namespace octavo::model {
namespace {

constexpr std::string_view kArchitecture = "llama";
constexpr std::uint32_t kQuantisationVersion = 2;  // of ggml's block layouts, since May 2023

std::string key(std::string_view suffix) { return std::string(kArchitecture) + "." + std::string(suffix); }

// ---- what is refused ----

// Numbers that leave the result as it is only when they have their neutral value.
struct NeutralNumber {
  std::string_view suffix;
  float neutral;
};
constexpr NeutralNumber kNeutralFloats[] = {
    {"logit_scale", 1.0f},
    {"residual_scale", 1.0f},
    {"embedding_scale", 1.0f},
    {"attention.output_scale", 1.0f},
    {"attention.temperature_scale", 0.0f},
    {"attention.clamp_kqv", 0.0f},
    {"attention.max_alibi_bias", 0.0f},
    {"attn_logit_softcapping", 0.0f},
    {"final_logit_softcapping", 0.0f},
    {"rope.scaling.alpha", 0.0f},
    {"rope.scaling.yarn_log_multiplier", 0.0f},
};
constexpr std::string_view kZeroCounts[] = {"expert_count", "expert_used_count", "expert_shared_count",
                                            "nextn_predict_layers"};
struct NeutralFlag {
  std::string_view suffix;
  bool neutral;
};
constexpr NeutralFlag kNeutralFlags[] = {{"attention.causal", true}, {"use_parallel_residual", false}};
constexpr std::string_view kRefusedKeys[] = {"rope.dimension_sections"};

Error not_computed(const GgufHeader& header, const std::string& name) {
  return header.error_about(name, ErrorCode::kUnsupported,
                            "asks for something that Octavo does not compute; choose another model");
}

Result<void> refuse_unknown_features(const GgufHeader& header) {
  for (const NeutralNumber& number : kNeutralFloats) {
    OCTAVO_TRY(const auto value, header.find<float>(key(number.suffix)));
    if (value && *value != number.neutral) return not_computed(header, key(number.suffix));
  }
  for (const std::string_view suffix : kZeroCounts) {
    OCTAVO_TRY(const auto value, header.find<std::uint64_t>(key(suffix)));
    if (value && *value != 0) return not_computed(header, key(suffix));
  }
  for (const NeutralFlag& flag : kNeutralFlags) {
    OCTAVO_TRY(const auto value, header.find<bool>(key(flag.suffix)));
    if (value && *value != flag.neutral) return not_computed(header, key(flag.suffix));
  }
  for (const std::string_view suffix : kRefusedKeys) {
    if (header.contains(key(suffix))) return not_computed(header, key(suffix));
  }
  return {};
}

Result<void> check_architecture(const GgufHeader& header) {
  OCTAVO_TRY(const auto architecture, header.get<std::string_view>("general.architecture"));
  if (architecture != kArchitecture) {
    return header.error_about("general.architecture", ErrorCode::kUnsupported,
                              "is \"" + escape_for_message(architecture) +
                                  "\"; supported is \"llama\": choose a model of that architecture");
  }
  OCTAVO_TRY(const auto version, header.find<std::uint32_t>("general.quantization_version"));
  if (version && *version != kQuantisationVersion) {
    return header.error_about("general.quantization_version", ErrorCode::kUnsupported,
                              "is " + std::to_string(*version) + "; supported is 2: convert the model again");
  }
  return {};
}

// ---- reading ----

template <class T>
Result<void> read_into(const GgufHeader& header, std::string_view suffix, T& field) {
  OCTAVO_TRY(field, header.get<T>(key(suffix)));
  return {};
}

// Leaves the field as it is when the key is missing.
template <class T>
Result<void> read_if_present(const GgufHeader& header, std::string_view suffix, T& field) {
  OCTAVO_TRY(const auto value, header.find<T>(key(suffix)));
  if (value) field = *value;
  return {};
}

Result<void> read_if_present(const GgufHeader& header, std::string_view suffix, double& field) {
  OCTAVO_TRY(const auto value, header.find<float>(key(suffix)));
  if (value) field = *value;
  return {};
}

Result<void> read_sizes(const GgufHeader& header, ModelConfig& config) {
  OCTAVO_TRY_VOID(read_into(header, "block_count", config.num_layers));
  OCTAVO_TRY_VOID(read_into(header, "context_length", config.context_length));
  OCTAVO_TRY_VOID(read_into(header, "embedding_length", config.embedding_length));
  OCTAVO_TRY_VOID(read_into(header, "feed_forward_length", config.feed_forward_length));
  OCTAVO_TRY_VOID(read_into(header, "attention.head_count", config.num_heads));
  config.num_kv_heads = config.num_heads;
  OCTAVO_TRY_VOID(read_if_present(header, "attention.head_count_kv", config.num_kv_heads));
  return read_into(header, "attention.layer_norm_rms_epsilon", config.norm_epsilon);
}

Result<void> read_head_dim(const GgufHeader& header, ModelConfig& config) {
  OCTAVO_TRY(const auto key_length, header.find<std::int32_t>(key("attention.key_length")));
  OCTAVO_TRY(const auto value_length, header.find<std::int32_t>(key("attention.value_length")));
  const bool derivable = config.num_heads > 0 && config.embedding_length % config.num_heads == 0;
  if (!key_length && !derivable) {
    return header.error_about(key("attention.head_count"), ErrorCode::kDamagedFile,
                              "is " + std::to_string(config.num_heads) +
                                  ", which does not divide the embedding length " +
                                  std::to_string(config.embedding_length) + "; convert the model again");
  }
  config.head_dim = key_length ? *key_length : config.embedding_length / config.num_heads;
  const std::int32_t value_dim =
      value_length ? *value_length
                   : (derivable ? config.embedding_length / config.num_heads : config.head_dim);
  if (value_dim == config.head_dim) return {};
  return header.error_about(key("attention.value_length"), ErrorCode::kUnsupported,
                            "makes values of " + std::to_string(value_dim) + " dimensions beside keys of " +
                                std::to_string(config.head_dim) +
                                "; only equal ones are supported: choose another model");
}

// The token list decides: `vocab_size` is a copy of its length, stale in some files.
Result<void> read_vocabulary_size(const GgufHeader& header, ModelConfig& config) {
  OCTAVO_TRY(const auto num_tokens, header.find_array_length("tokenizer.ggml.tokens"));
  if (!num_tokens) return read_into(header, "vocab_size", config.vocabulary_size);
  // Larger than any size that is allowed, it only has to stay so.
  config.vocabulary_size =
      std::in_range<std::int32_t>(*num_tokens) ? static_cast<std::int32_t>(*num_tokens) : -1;
  return {};
}

Result<RopeScalingType> read_scaling_type(const GgufHeader& header, bool has_factor) {
  const std::string name = key("rope.scaling.type");
  OCTAVO_TRY(const auto type, header.find<std::string_view>(name));
  if (!type) return has_factor ? RopeScalingType::kLinear : RopeScalingType::kNone;
  if (*type == "none") return RopeScalingType::kNone;
  if (*type == "linear") return RopeScalingType::kLinear;
  if (*type == "llama3") return RopeScalingType::kLlama3;
  if (*type == "yarn") return RopeScalingType::kYarn;
  return header.error_about(name, ErrorCode::kUnsupported,
                            "is \"" + escape_for_message(*type) +
                                "\"; supported are none, linear, llama3 and yarn: choose another model");
}

Result<void> read_rope(const GgufHeader& header, ModelConfig& config) {
  RopeConfig& rope = config.rope;
  rope.rotary_dim = config.head_dim;
  OCTAVO_TRY_VOID(read_if_present(header, "rope.dimension_count", rope.rotary_dim));
  OCTAVO_TRY_VOID(read_if_present(header, "rope.freq_base", rope.frequency_base));
  OCTAVO_TRY_VOID(read_if_present(header, "rope.scale_linear", rope.factor));  // the older name
  OCTAVO_TRY_VOID(read_if_present(header, "rope.scaling.factor", rope.factor));
  const bool has_factor =
      header.contains(key("rope.scaling.factor")) || header.contains(key("rope.scale_linear"));
  OCTAVO_TRY(rope.scaling, read_scaling_type(header, has_factor));
  rope.original_context_length = config.context_length;
  OCTAVO_TRY_VOID(
      read_if_present(header, "rope.scaling.original_context_length", rope.original_context_length));
  OCTAVO_TRY_VOID(read_if_present(header, "rope.scaling.attn_factor", rope.attention_multiplier));
  OCTAVO_TRY_VOID(read_if_present(header, "rope.scaling.low_freq_factor", rope.low_frequency_factor));
  OCTAVO_TRY_VOID(read_if_present(header, "rope.scaling.high_freq_factor", rope.high_frequency_factor));
  OCTAVO_TRY_VOID(read_if_present(header, "rope.scaling.yarn_ext_factor", rope.yarn_extrapolation_factor));
  OCTAVO_TRY_VOID(read_if_present(header, "rope.scaling.yarn_beta_fast", rope.yarn_beta_fast));
  OCTAVO_TRY_VOID(read_if_present(header, "rope.scaling.yarn_beta_slow", rope.yarn_beta_slow));
  OCTAVO_TRY(const auto attention_factor, header.find<float>(key("rope.scaling.yarn_attn_factor")));
  if (attention_factor) rope.yarn_attention_factor = *attention_factor;
  return {};
}

Result<void> read_score_scale(const GgufHeader& header, ModelConfig& config) {
  config.score_scale = config.head_dim > 0 ? 1.0 / std::sqrt(static_cast<double>(config.head_dim)) : 0.0;
  return read_if_present(header, "attention.scale", config.score_scale);
}

// Sliding-window attention gives other results only for contexts longer than the window.
Result<void> check_sliding_window(const GgufHeader& header, const ModelConfig& config) {
  OCTAVO_TRY(const auto window, header.find<std::uint32_t>(key("attention.sliding_window")));
  if (!window || *window == 0 || std::cmp_greater_equal(*window, config.context_length)) return {};
  return not_computed(header, key("attention.sliding_window"));
}

// ---- ranges ----

struct Problem {
  std::string key;
  std::string sentence;  // follows the key
};

class RangeCheck {
 public:
  void whole(std::string_view suffix, std::int64_t value, std::int64_t least, std::int64_t most) {
    if (value >= least && value <= most) return;
    report(suffix, "is " + std::to_string(value) + "; " + std::to_string(least) + " to " +
                       std::to_string(most) + " is possible");
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
  const std::optional<Problem>& first() const { return first_; }

 private:
  static std::string short_number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%g", value);
    return text;
  }
  void report(std::string_view suffix, std::string sentence) {
    if (!first_) first_ = Problem{key(suffix), std::move(sentence)};
  }
  std::optional<Problem> first_;
};

void check_sizes(const ModelConfig& config, RangeCheck& check) {
  check.whole("block_count", config.num_layers, 1, kMaxLayers);
  check.whole("context_length", config.context_length, 1, kMaxContextLength);
  check.whole("embedding_length", config.embedding_length, 1, kMaxEmbeddingLength);
  check.whole("feed_forward_length", config.feed_forward_length, 1, kMaxFeedForwardLength);
  check.whole("attention.head_count", config.num_heads, 1, kMaxHeads);
  check.whole("attention.head_count_kv", config.num_kv_heads, 1, kMaxHeads);
  check.whole("attention.key_length", config.head_dim, 1, kMaxHeadDim);
  check.whole("vocab_size", config.vocabulary_size, 1, kMaxVocabularySize);
  check.real("attention.layer_norm_rms_epsilon", config.norm_epsilon, kMinNormEpsilon, kMaxNormEpsilon);
  check.real("attention.scale", config.score_scale, kMinFactor, kMaxFactor);
  check.that(config.num_kv_heads > 0 && config.num_heads % config.num_kv_heads == 0,
             "attention.head_count_kv",
             "is " + std::to_string(config.num_kv_heads) + ", which does not divide the " +
                 std::to_string(config.num_heads) + " heads");
}

void check_rope(const ModelConfig& config, RangeCheck& check) {
  const RopeConfig& rope = config.rope;
  check.whole("rope.dimension_count", rope.rotary_dim, 2, config.head_dim);
  check.that(
      rope.rotary_dim % 2 == 0, "rope.dimension_count",
      "is " + std::to_string(rope.rotary_dim) + "; dimensions are rotated in pairs, so it must be even");
  check.real("rope.freq_base", rope.frequency_base, kMinRopeFrequencyBase, kMaxRopeFrequencyBase);
  check.real("rope.scaling.factor", rope.factor, kMinFactor, kMaxFactor);
  check.real("rope.scaling.attn_factor", rope.attention_multiplier, kMinFactor, kMaxFactor);
  check.whole("rope.scaling.original_context_length", rope.original_context_length, 1, kMaxContextLength);
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

std::optional<Problem> find_problem(const ModelConfig& config) {
  RangeCheck check;
  check_sizes(config, check);
  check_rope(config, check);
  return check.first();
}

}  // namespace

Result<void> validate(const ModelConfig& config) {
  const std::optional<Problem> problem = find_problem(config);
  if (!problem) return {};
  return Error{ErrorCode::kDamagedFile, problem->key + " " + problem->sentence, problem->key};
}

Result<ModelConfig> read_model_config(const GgufHeader& header) {
  OCTAVO_TRY_VOID(check_architecture(header));
  OCTAVO_TRY_VOID(refuse_unknown_features(header));
  ModelConfig config;
  config.architecture = std::string(kArchitecture);
  OCTAVO_TRY(const auto name, header.find<std::string_view>("general.name"));
  config.name = std::string(name.value_or(""));
  OCTAVO_TRY_VOID(read_sizes(header, config));
  OCTAVO_TRY_VOID(read_head_dim(header, config));
  OCTAVO_TRY_VOID(read_vocabulary_size(header, config));
  OCTAVO_TRY_VOID(read_rope(header, config));
  OCTAVO_TRY_VOID(read_score_scale(header, config));
  if (const auto problem = find_problem(config)) {
    return header.error_about(problem->key, ErrorCode::kDamagedFile,
                              problem->sentence + "; convert the model again");
  }
  OCTAVO_TRY_VOID(check_sliding_window(header, config));
  return config;
}

}  // namespace octavo::model
