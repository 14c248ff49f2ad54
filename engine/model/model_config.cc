#include "engine/model/model_config.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/base/text.h"
#include "engine/model/config_ranges.h"
#include "engine/model/layer_numbers.h"
#include "engine/model/limits.h"

namespace octavo::model {
namespace {

constexpr std::uint32_t kQuantisationVersion = 2;  // of ggml's block layouts, since May 2023

// ---- what is refused

// Numbers that leave the result as it is only when they have their neutral value.
struct NeutralNumber {
  std::string_view suffix;
  float neutral;
};
constexpr NeutralNumber kNeutralFloats[] = {
    {"attention.output_scale", 1.0f}, {"attention.temperature_scale", 0.0f},
    {"attention.clamp_kqv", 0.0f},    {"attention.max_alibi_bias", 0.0f},
    {"rope.scaling.alpha", 0.0f},     {"rope.scaling.yarn_log_multiplier", 0.0f},
};
struct NeutralFlag {
  std::string_view suffix;
  bool neutral;
};
constexpr std::string_view kParallelKey = "use_parallel_residual";
constexpr NeutralFlag kNeutralFlags[] = {{"attention.causal", true}, {kParallelKey, false}};
constexpr std::string_view kSectionsKey = "rope.dimension_sections";
constexpr std::string_view kRefusedKeys[] = {kSectionsKey, "rope.dimension_count_swa",
                                             "attention.key_length_swa", "attention.value_length_swa"};

// Reads one model's metadata; every key but the general ones has the architecture's name before it.
class ConfigReader {
 public:
  explicit ConfigReader(const GgufHeader& header) : header_(header) {}

  Result<ModelConfig> read() {
    OCTAVO_TRY_VOID(read_architecture());
    OCTAVO_TRY_VOID(refuse_unknown_features());
    OCTAVO_TRY(const auto name, header_.find<std::string_view>("general.name"));
    config_.name = std::string(name.value_or(""));
    OCTAVO_TRY_VOID(read_sizes());
    OCTAVO_TRY_VOID(read_head_dim());
    OCTAVO_TRY_VOID(read_vocabulary_size());
    OCTAVO_TRY_VOID(read_rope());
    OCTAVO_TRY_VOID(read_score_scale());
    OCTAVO_TRY_VOID(read_multipliers());
    OCTAVO_TRY_VOID(read_soft_cap("attn_logit_softcapping", parts().caps_scores, parts().score_soft_cap,
                                  config_.score_soft_cap));
    OCTAVO_TRY_VOID(read_soft_cap("final_logit_softcapping", parts().caps_logits, parts().logit_soft_cap,
                                  config_.logit_soft_cap));
    OCTAVO_TRY_VOID(read_window());
    OCTAVO_TRY_VOID(check_ranges());
    OCTAVO_TRY_VOID(check_refused_window());
    OCTAVO_TRY_VOID(read_recurrent());
    return config_;
  }

 private:
  Result<void> check_ranges() const {
    const auto problem = find_range_problem(config_);
    if (!problem) return {};
    return header_.error_about(problem->key, ErrorCode::kDamagedFile,
                               problem->sentence + "; convert the model again");
  }

  const Architecture& parts() const { return config_.parts; }
  std::string key(std::string_view suffix) const { return config_.architecture + "." + std::string(suffix); }

  Error not_computed(const std::string& name) const {
    return header_.error_about(name, ErrorCode::kUnsupported,
                               "needs something that Octavo does not support; choose another model");
  }

  Result<void> read_architecture() {
    OCTAVO_TRY(const auto name, header_.get<std::string_view>("general.architecture"));
    const Architecture* found = find_architecture(name);
    if (found == nullptr) {
      return header_.error_about("general.architecture", ErrorCode::kUnsupported,
                                 "is \"" + escape_for_message(name) + "\"; supported are " +
                                     supported_architectures() + ": choose a model of one of these");
    }
    config_.architecture = std::string(name);
    config_.parts = *found;
    OCTAVO_TRY(const auto version, header_.find<std::uint32_t>("general.quantization_version"));
    if (version && *version != kQuantisationVersion) {
      return header_.error_about(
          "general.quantization_version", ErrorCode::kUnsupported,
          "is " + std::to_string(*version) + "; supported is 2: convert the model again");
    }
    return {};
  }

  Result<void> refuse_unknown_features() const {
    for (const NeutralNumber& number : kNeutralFloats) {
      OCTAVO_TRY(const auto value, header_.find<float>(key(number.suffix)));
      if (value && *value != number.neutral) return not_computed(key(number.suffix));
    }
    for (const NeutralFlag& flag : kNeutralFlags) {
      if (parts().ignores_parallel_key && flag.suffix == kParallelKey) continue;
      OCTAVO_TRY(const auto value, header_.find<bool>(key(flag.suffix)));
      if (value && *value != flag.neutral) return not_computed(key(flag.suffix));
    }
    for (const std::string_view suffix : kRefusedKeys) {
      if (parts().ignores_position_sections && suffix == kSectionsKey) {
        OCTAVO_TRY([[maybe_unused]] const auto sections,
                   header_.find<std::vector<std::int32_t>>(key(suffix)));
        continue;
      }
      if (header_.contains(key(suffix))) return not_computed(key(suffix));
    }
    return {};
  }

  template <class T>
  Result<void> read_into(std::string_view suffix, T& field) const {
    OCTAVO_TRY(field, header_.get<T>(key(suffix)));
    return {};
  }

  // Leaves the field as it is when the key is missing.
  template <class T>
  Result<void> read_if_present(std::string_view suffix, T& field) const {
    OCTAVO_TRY(const auto value, header_.find<T>(key(suffix)));
    if (value) field = *value;
    return {};
  }

  Result<void> read_if_present(std::string_view suffix, double& field) const {
    OCTAVO_TRY(const auto value, header_.find<float>(key(suffix)));
    if (value) field = *value;
    return {};
  }

  Result<void> read_sizes() {
    OCTAVO_TRY_VOID(read_into("block_count", config_.num_layers));
    // Before lists are held against it.
    if (config_.num_layers < 1 || config_.num_layers > kMaxLayers) return check_ranges();
    OCTAVO_TRY_VOID(read_skipped_layers());
    OCTAVO_TRY_VOID(read_into("context_length", config_.context_length));
    OCTAVO_TRY_VOID(read_into("embedding_length", config_.embedding_length));
    OCTAVO_TRY_VOID(read_feed_forward());
    OCTAVO_TRY_VOID(read_heads());
    config_.norm_epsilon_is_layer_norms = parts().may_name_epsilon_by_layer_norm &&
                                          !header_.contains(key(norm_epsilon_suffix(config_))) &&
                                          header_.contains(key("attention.layer_norm_epsilon"));
    return read_into(norm_epsilon_suffix(config_), config_.norm_epsilon);
  }

  // Where layers differ, those without heads of keys and values have no attention.
  Result<void> read_heads() {
    constexpr std::string_view kHeads = "attention.head_count", kKvHeads = "attention.head_count_kv";
    OCTAVO_TRY(LayerNumbers heads, read_layer_numbers(kHeads));
    LayerNumbers kv_heads = heads;
    if (header_.contains(key(kKvHeads))) {
      OCTAVO_TRY(kv_heads, read_layer_numbers(kKvHeads));
    }
    const bool may_lack = parts().recurrent_layers == RecurrentLayers::kStateSpace ||
                          parts().recurrent_layers == RecurrentLayers::kShortConvolution;
    const bool has_all = !may_lack || parts().layer_parts == LayerParts::kBothMixers;
    if (has_all && kv_heads.lacks_any()) return lacks_some(kKvHeads);
    for (std::size_t i = 0; i < heads.is_without.size(); ++i) {
      if (heads.is_without[i] && (kv_heads.is_without.empty() || !kv_heads.is_without[i]))
        return lacks_some(kHeads);
    }
    config_.num_heads = heads.number;
    config_.num_kv_heads = kv_heads.number;
    layers_without_heads_ = std::move(kv_heads.is_without);
    return {};
  }

  Error lacks_some(std::string_view suffix) const {
    return header_.error_about(key(suffix), ErrorCode::kDamagedFile,
                               "is 0 in a layer that needs some; convert the model again");
  }

  // REQUIRES: validated sizes.
  Result<void> read_recurrent() {
    const auto num_layers = static_cast<std::size_t>(config_.num_layers);
    std::vector<bool> layers = std::move(layers_without_heads_);
    layers.resize(num_layers);
    for (std::size_t i = 0; i < num_layers; ++i) {
      const bool has_one_part = parts().layer_parts == LayerParts::kOneOfAll;
      if (parts().layer_parts == LayerParts::kBothMixers) layers[i] = true;
      if (has_one_part && config_.has_feed_forward(static_cast<std::int32_t>(i))) layers[i] = false;
    }
    OCTAVO_TRY(config_.recurrent,
               read_recurrent_config(header_, {.architecture = config_.architecture,
                                               .parts = parts().recurrent_layers,
                                               .num_layers = config_.num_layers,
                                               .num_skipped_layers = config_.num_skipped_layers,
                                               .embedding_length = config_.embedding_length,
                                               .layers = std::move(layers)}));
    // The blocks of their keys and values count a sequence's tokens.
    if (config_.num_attention_layers() > 0) return {};
    return header_.error_about(key("attention.head_count_kv"), ErrorCode::kDamagedFile,
                               "leaves no layer with attention; convert the model again");
  }

  Result<LayerNumbers> read_layer_numbers(std::string_view suffix) const {
    const std::int32_t num_in_file = config_.num_layers + config_.num_skipped_layers;
    OCTAVO_TRY(auto numbers, find_layer_numbers(header_, key(suffix), num_in_file));
    if (numbers) return *std::move(numbers);
    return header_.error_about(key(suffix), ErrorCode::kDamagedFile, "is missing; convert the model again");
  }

  // Layers that only guess further tokens stand behind the others.
  Result<void> read_skipped_layers() {
    constexpr std::string_view kSuffix = "nextn_predict_layers";
    OCTAVO_TRY(const auto skipped, header_.find<std::uint64_t>(key(kSuffix)));
    if (!skipped || *skipped == 0) return {};
    if (!parts().skips_predicted_layers) return not_computed(key(kSuffix));
    if (std::cmp_greater_equal(*skipped, config_.num_layers)) {
      return header_.error_about(key(kSuffix), ErrorCode::kDamagedFile,
                                 "is " + std::to_string(*skipped) + " of " +
                                     std::to_string(config_.num_layers) + " layers; convert the model again");
    }
    config_.num_skipped_layers = static_cast<std::int32_t>(*skipped);
    config_.num_layers -= config_.num_skipped_layers;
    return {};
  }

  // Where all layers have experts, files may leave feed_forward_length out, and nothing has it.
  Result<void> read_feed_forward() {
    constexpr std::string_view kSuffix = "feed_forward_length";
    LayerNumbers length;
    if (parts().experts.use == ExpertUse::kNever || header_.contains(key(kSuffix))) {
      OCTAVO_TRY(length, read_layer_numbers(kSuffix));
    }
    OCTAVO_TRY(config_.experts, read_expert_config(header_, {config_.architecture, parts().experts,
                                                             config_.num_layers, length.number}));
    if (!config_.experts.in_layer(0)) {
      OCTAVO_TRY(length, read_layer_numbers(kSuffix));
      config_.feed_forward_length = length.number;
    }
    if (!length.lacks_any()) return {};
    if (parts().layer_parts != LayerParts::kOneOfAll) return lacks_some(kSuffix);
    config_.layers_without_feed_forward = std::move(length.is_without);
    return {};
  }

  Result<void> read_head_dim() {
    OCTAVO_TRY(const auto key_length, header_.find<std::int32_t>(key("attention.key_length")));
    OCTAVO_TRY(const auto value_length, header_.find<std::int32_t>(key("attention.value_length")));
    const bool derivable = config_.num_heads > 0 && config_.embedding_length % config_.num_heads == 0;
    if (!key_length && !derivable) {
      return header_.error_about(key("attention.head_count"), ErrorCode::kDamagedFile,
                                 "is " + std::to_string(config_.num_heads) +
                                     ", which does not divide the embedding length " +
                                     std::to_string(config_.embedding_length) + "; convert the model again");
    }
    config_.head_dim = key_length ? *key_length : config_.embedding_length / config_.num_heads;
    const std::int32_t value_dim =
        value_length ? *value_length
                     : (derivable ? config_.embedding_length / config_.num_heads : config_.head_dim);
    const bool is_possible = config_.head_dim >= 1 && config_.head_dim <= kMaxHeadDim;  // else: ranges
    if (value_dim == config_.head_dim || !is_possible) return {};
    return header_.error_about(key("attention.value_length"), ErrorCode::kUnsupported,
                               "makes values of " + std::to_string(value_dim) + " dimensions and keys of " +
                                   std::to_string(config_.head_dim) +
                                   "; only equal sizes are supported: choose another model");
  }

  // The token list decides: `vocab_size` is a copy of its length, stale in some files.
  Result<void> read_vocabulary_size() {
    OCTAVO_TRY(const auto num_tokens, header_.find_array_length("tokenizer.ggml.tokens"));
    if (!num_tokens) return read_into("vocab_size", config_.vocabulary_size);
    // Larger than any size that is allowed, it only has to stay so.
    config_.vocabulary_size =
        std::in_range<std::int32_t>(*num_tokens) ? static_cast<std::int32_t>(*num_tokens) : -1;
    return {};
  }

  Result<RopeScalingType> read_scaling_type(bool has_factor) const {
    const std::string name = key("rope.scaling.type");
    OCTAVO_TRY(const auto type, header_.find<std::string_view>(name));
    if (!type) return has_factor ? RopeScalingType::kLinear : RopeScalingType::kNone;
    if (*type == "none") return RopeScalingType::kNone;
    if (*type == "linear") return RopeScalingType::kLinear;
    if (*type == "llama3") return RopeScalingType::kLlama3;
    if (*type == "yarn") return RopeScalingType::kYarn;
    if (*type == "longrope") return RopeScalingType::kLongRope;
    return header_.error_about(
        name, ErrorCode::kUnsupported,
        "is \"" + escape_for_message(*type) +
            "\"; supported are none, linear, llama3, yarn and longrope: choose another model");
  }

  Result<void> read_rope() {
    if (!parts().rotates()) return {};
    RopeConfig& rope = config_.rope;
    rope.rotary_dim = config_.head_dim;
    if (parts().has_rotation_switch) {
      OCTAVO_TRY(const auto is_on, header_.find<bool>(key("rope.scaling.finetuned")));
      config_.rotation_is_off = !is_on.value_or(true);
    }
    OCTAVO_TRY_VOID(read_if_present("rope.dimension_count", rope.rotary_dim));
    OCTAVO_TRY_VOID(read_if_present("rope.freq_base", rope.frequency_base));
    OCTAVO_TRY_VOID(read_if_present("rope.scale_linear", rope.factor));  // the older name
    OCTAVO_TRY_VOID(read_if_present("rope.scaling.factor", rope.factor));
    const bool has_factor =
        header_.contains(key("rope.scaling.factor")) || header_.contains(key("rope.scale_linear"));
    OCTAVO_TRY(rope.scaling, read_scaling_type(has_factor));
    rope.original_context_length = config_.context_length;
    OCTAVO_TRY_VOID(read_if_present("rope.scaling.original_context_length", rope.original_context_length));
    OCTAVO_TRY_VOID(read_if_present("rope.scaling.attn_factor", rope.attention_multiplier));
    OCTAVO_TRY_VOID(read_if_present("rope.scaling.low_freq_factor", rope.low_frequency_factor));
    OCTAVO_TRY_VOID(read_if_present("rope.scaling.high_freq_factor", rope.high_frequency_factor));
    OCTAVO_TRY_VOID(read_if_present("rope.scaling.yarn_ext_factor", rope.yarn_extrapolation_factor));
    OCTAVO_TRY_VOID(read_if_present("rope.scaling.yarn_beta_fast", rope.yarn_beta_fast));
    OCTAVO_TRY_VOID(read_if_present("rope.scaling.yarn_beta_slow", rope.yarn_beta_slow));
    OCTAVO_TRY(const auto attention_factor, header_.find<float>(key("rope.scaling.yarn_attn_factor")));
    if (attention_factor) rope.yarn_attention_factor = *attention_factor;
    return {};
  }

  Result<void> read_score_scale() {
    const bool by_width = config_.num_layers == parts().layers_with_scale_of_width;
    const double dimensions = by_width && config_.num_heads > 0
                                  ? static_cast<double>(config_.embedding_length) / config_.num_heads
                                  : config_.head_dim;
    config_.score_scale = dimensions > 0.0 ? 1.0 / std::sqrt(dimensions) : 0.0;
    OCTAVO_TRY(const auto given, header_.find<float>(key("attention.scale")));
    if (given && *given != 0.0f) config_.score_scale = *given;
    return {};
  }

  Result<void> read_multipliers() {
    const Multipliers& given = parts().multipliers;
    const double depth = std::sqrt(std::max(config_.num_layers, 1));
    OCTAVO_TRY_VOID(read_multiplier("embedding_scale", given.are_read, given.usual_embedding,
                                    config_.embedding_multiplier));
    OCTAVO_TRY_VOID(read_multiplier("residual_scale", given.are_read, given.usual_depth / depth,
                                    config_.residual_multiplier));
    constexpr std::string_view kLogitScale = "logit_scale";
    if (given.logit_scale == LogitScale::kNone)
      return read_multiplier(kLogitScale, false, 0.0, config_.logit_multiplier);
    if (given.usual_width > 0.0 && !header_.contains(key(kLogitScale))) {
      config_.logit_multiplier = given.usual_width / config_.embedding_length;
      return {};
    }
    if (given.logit_scale == LogitScale::kDividesIfGiven) {
      OCTAVO_TRY(const auto found, header_.find<float>(key(kLogitScale)));
      if (found.value_or(0.0f) == 0.0f) return {};
    }
    OCTAVO_TRY(const float divisor, header_.get<float>(key(kLogitScale)));
    config_.logit_multiplier = 1.0 / double{divisor};
    return {};
  }

  // 1 where neither file nor architecture has one.
  Result<void> read_multiplier(std::string_view suffix, bool is_computed, double usual, double& field) const {
    field = usual;
    OCTAVO_TRY_VOID(read_if_present(suffix, field));
    if (field == 0.0) field = 1.0;
    if (!is_computed && field != 1.0) return not_computed(key(suffix));
    return {};
  }

  Result<void> read_soft_cap(std::string_view suffix, bool is_computed, float usual, float& cap) const {
    cap = usual;
    OCTAVO_TRY_VOID(read_if_present(suffix, cap));
    if (!is_computed && cap != 0.0f) return not_computed(key(suffix));
    return {};
  }

  Result<void> read_window() {
    OCTAVO_TRY(const auto window, header_.find<std::uint32_t>(key("attention.sliding_window")));
    const auto most = static_cast<std::uint32_t>(kMaxContextLength);
    config_.sliding_window = window ? static_cast<std::int32_t>(std::min(*window, most)) : parts().window;
    OCTAVO_TRY_VOID(read_window_pattern());
    if (config_.sliding_window == 0 || parts().windowed_layers == WindowedLayers::kRefused) return {};

    OCTAVO_TRY(const auto base, header_.find<float>(key("rope.freq_base_swa")));
    const bool starts_anew = parts().local_frequency_base > 0.0;
    if (!starts_anew && !base) return {};
    RopeConfig local = config_.rope;
    if (starts_anew) {  // Gemma 3 stretches positions in the other layers only
      local =
          RopeConfig{.rotary_dim = config_.rope.rotary_dim, .frequency_base = parts().local_frequency_base};
      local.original_context_length = config_.context_length;
    }
    if (base) local.frequency_base = *base;
    config_.local_rope = local;
    return {};
  }

  // A number n (every n-th layer sees all), or a boolean for each layer.
  Result<void> read_window_pattern() {
    constexpr std::string_view kSuffix = "attention.sliding_window_pattern";
    config_.window_period = parts().window_period;
    auto layers = header_.find<std::vector<bool>>(key(kSuffix));
    if (!layers || !*layers) return read_if_present(kSuffix, config_.window_period);
    config_.layers_with_window = **std::move(layers);
    if (std::cmp_equal(config_.layers_with_window.size(), config_.num_layers)) return {};
    return header_.error_about(key(kSuffix), ErrorCode::kDamagedFile,
                               "holds " + std::to_string(config_.layers_with_window.size()) +
                                   " entries for " + std::to_string(config_.num_layers) +
                                   " layers; convert the model again");
  }

  // A window that is not computed gives other results only for contexts longer than it.
  Result<void> check_refused_window() {
    if (parts().windowed_layers != WindowedLayers::kRefused || config_.sliding_window == 0) return {};
    if (config_.sliding_window < config_.context_length) return not_computed(key("attention.sliding_window"));
    config_.sliding_window = 0;
    return {};
  }

  const GgufHeader& header_;
  ModelConfig config_;
  std::vector<bool> layers_without_heads_;  // as of LayerNumbers
};

}  // namespace

Result<ModelConfig> read_model_config(const GgufHeader& header) { return ConfigReader(header).read(); }

bool ModelConfig::has_attention(std::int32_t layer) const {
  switch (parts.layer_parts) {
    case LayerParts::kOneMixer: return !is_recurrent(layer);
    case LayerParts::kBothMixers: return true;
    case LayerParts::kOneOfAll: return !is_recurrent(layer) && !has_feed_forward(layer);
  }
  return true;
}

std::int32_t ModelConfig::kv_layer(std::int32_t layer) const {
  std::int32_t count = 0;
  for (std::int32_t i = 0; i < layer; ++i) count += has_attention(i) ? 1 : 0;
  return count;
}

bool ModelConfig::is_in_skipped_layer(std::string_view tensor_name) const {
  for (std::int32_t i = 0; i < num_skipped_layers; ++i) {
    if (tensor_name.starts_with("blk." + std::to_string(num_layers + i) + ".")) return true;
  }
  return false;
}

float ModelConfig::embedding_scale() const {
  if (parts.scales_embedding) return std::sqrt(static_cast<float>(embedding_length));
  return static_cast<float>(embedding_multiplier / residual_multiplier);
}

float ModelConfig::stream_epsilon() const {
  return static_cast<float>(norm_epsilon / (residual_multiplier * residual_multiplier));
}

}  // namespace octavo::model
