#include "engine/model/model_config.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/base/text.h"
#include "engine/model/config_ranges.h"
#include "engine/model/limits.h"

namespace octavo::model {
namespace {

constexpr std::uint32_t kQuantisationVersion = 2;  // of ggml's block layouts, since May 2023

// ---- what is refused

// Numbers that leave the result as it is only when they have their neutral value, or, in a file that
// llama.cpp saved, 0.
constexpr std::string_view kAlphaKey = "rope.scaling.alpha";
struct NeutralNumber {
  std::string_view suffix;
  float neutral;
};
constexpr NeutralNumber kNeutralFloats[] = {
    {"attention.output_scale", 1.0f},
    {"attention.clamp_kqv", 0.0f},
    {"attention.max_alibi_bias", 0.0f},
    {kAlphaKey, 0.0f},
};
struct NeutralFlag {
  std::string_view suffix;
  bool neutral;
};
constexpr std::string_view kParallelKey = "use_parallel_residual";
constexpr NeutralFlag kNeutralFlags[] = {{"attention.causal", true}, {kParallelKey, false}};
constexpr std::string_view kWindowKey = "attention.sliding_window",
                           kPatternKey = "attention.sliding_window_pattern";
// Of QueryScaling::kWhereUnrotated (Nakanishi 2025, arXiv:2501.19399); no key of a file says it.
constexpr double kUnrotatedQueryFactor = 0.1;
constexpr std::string_view kSectionsKey = "rope.dimension_sections",
                           kExtrapolationKey = "rope.scaling.yarn_ext_factor";
constexpr std::string_view kLocalHeadKeys[] = {"rope.dimension_count_swa", "attention.key_length_swa",
                                               "attention.value_length_swa"};
constexpr float kSavedScoreCap = 50.0f, kSavedLogitCap = 30.0f;
// Counts that leave the result as it is only when they are 0.
struct CountedPart {
  std::string_view suffix;
  bool Architecture::*is_computed;
};
constexpr CountedPart kCountedParts[] = {
    {"attention.shared_kv_layers", &Architecture::shares_keys_and_values},
    {"embedding_length_per_layer_input", &Architecture::has_layer_embeddings}};

// Reads one model's metadata; every key but the general ones has the architecture's name before it.
class ConfigReader {
 public:
  explicit ConfigReader(const Metadata& header) : header_(header) {}

  Result<ModelConfig> read() {
    OCTAVO_TRY_VOID(read_architecture());
    OCTAVO_TRY(is_saved_, is_saved_by_llama_cpp());
    OCTAVO_TRY_VOID(refuse_unknown_features());
    OCTAVO_TRY(const auto name, header_.find<std::string_view>("general.name"));
    config_.name = std::string(name.value_or(""));
    OCTAVO_TRY_VOID(read_sizes());
    OCTAVO_TRY_VOID(read_head_dim());
    OCTAVO_TRY_VOID(read_vocabulary_size());
    OCTAVO_TRY_VOID(read_rope());
    OCTAVO_TRY_VOID(check_saved_local_heads());
    OCTAVO_TRY_VOID(read_score_scale());
    OCTAVO_TRY_VOID(read_multipliers());
    OCTAVO_TRY_VOID(read_soft_cap("attn_logit_softcapping", parts().caps_scores, parts().score_soft_cap,
                                  kSavedScoreCap, config_.score_soft_cap));
    OCTAVO_TRY_VOID(read_soft_cap("final_logit_softcapping", parts().caps_logits, parts().logit_soft_cap,
                                  kSavedLogitCap, config_.logit_soft_cap));
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

  // Such a file holds every key of every architecture, with what llama.cpp's structures hold where the file
  // that it had loaded said nothing. No other has this value, which stands for none.
  Result<bool> is_saved_by_llama_cpp() const {
    OCTAVO_TRY(const auto factor, header_.find<float>(key(kExtrapolationKey)));
    return factor && *factor == -1.0f;
  }

  Result<void> refuse_unknown_features() const {
    for (const NeutralNumber& number : kNeutralFloats) {
      if (parts().reads_alpha && number.suffix == kAlphaKey) continue;
      OCTAVO_TRY(const auto value, header_.find<float>(key(number.suffix)));
      const bool is_neutral = !value || *value == number.neutral || (is_saved_ && *value == 0.0f);
      if (!is_neutral) return not_computed(key(number.suffix));
    }
    for (const NeutralFlag& flag : kNeutralFlags) {
      if (parts().ignores_parallel_key && flag.suffix == kParallelKey) continue;
      OCTAVO_TRY(const auto value, header_.find<bool>(key(flag.suffix)));
      if (value && *value != flag.neutral) return not_computed(key(flag.suffix));
    }
    if (parts().ignores_position_sections || is_saved_) {
      OCTAVO_TRY(const auto sections, header_.find<std::vector<std::int32_t>>(key(kSectionsKey)));
      const bool say_something =
          sections && std::ranges::any_of(*sections, [](auto size) { return size != 0; });
      if (say_something && !parts().ignores_position_sections) return not_computed(key(kSectionsKey));
    } else if (header_.contains(key(kSectionsKey))) {
      return not_computed(key(kSectionsKey));
    }
    for (const std::string_view suffix : kLocalHeadKeys) {
      const bool is_refused = !parts().has_local_heads && !is_saved_ && header_.contains(key(suffix));
      if (is_refused) return not_computed(key(suffix));
    }
    for (const CountedPart& part : kCountedParts) {
      OCTAVO_TRY(const auto value, header_.find<std::uint64_t>(key(part.suffix)));
      if (value && *value != 0 && !(parts().*part.is_computed)) return not_computed(key(part.suffix));
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
    OCTAVO_TRY_VOID(read_if_present("attention.shared_kv_layers", config_.num_shared_layers));
    OCTAVO_TRY_VOID(read_if_present("embedding_length_per_layer_input", config_.layer_embedding_length));
    config_.norm_epsilon_is_layer_norms = parts().may_name_epsilon_by_layer_norm &&
                                          !header_.contains(key(norm_epsilon_suffix(config_))) &&
                                          header_.contains(key("attention.layer_norm_epsilon"));
    return read_into(norm_epsilon_suffix(config_), config_.norm_epsilon);
  }

  // Layers without heads of keys and values have no attention.
  Result<void> read_heads() {
    constexpr std::string_view kHeads = "attention.head_count", kKvHeads = "attention.head_count_kv";
    std::vector<std::int32_t> heads;
    OCTAVO_TRY_VOID(read_number_or_list(kHeads, config_.num_heads, heads));
    if (header_.contains(key(kKvHeads))) {
      OCTAVO_TRY_VOID(read_number_or_list(kKvHeads, config_.num_kv_heads, config_.layer_kv_heads));
    } else {
      config_.num_kv_heads = config_.num_heads;
      config_.layer_kv_heads = heads;
    }
    const bool may_lack = parts().recurrent_layers == RecurrentLayers::kStateSpace ||
                          parts().recurrent_layers == RecurrentLayers::kShortConvolution;
    if (may_lack && parts().layer_parts != LayerParts::kBothMixers)
      layers_without_heads_ = take_zeros(config_.num_kv_heads, config_.layer_kv_heads);
    return check_heads(kHeads, heads);
  }

  // Only layers without attention may have none.
  Result<void> check_heads(std::string_view suffix, const std::vector<std::int32_t>& heads) const {
    for (std::size_t i = 0; i < heads.size(); ++i) {
      const bool is_without = !layers_without_heads_.empty() && layers_without_heads_[i];
      if (heads[i] == config_.num_heads || (heads[i] == 0 && is_without)) continue;
      if (heads[i] == 0) {
        return header_.error_about(key(suffix), ErrorCode::kDamagedFile,
                                   "is 0 in a layer that needs some; convert the model again");
      }
      return header_.error_about(key(suffix), ErrorCode::kUnsupported,
                                 "holds " + std::to_string(heads[i]) + " and " +
                                     std::to_string(config_.num_heads) +
                                     "; layers that differ so are not supported: choose another model");
    }
    return {};
  }

  // A number, or one for each layer, of which the number is then the largest. A list of equal numbers is a
  // number.
  Result<void> read_number_or_list(std::string_view suffix, std::int32_t& number,
                                   std::vector<std::int32_t>& list) const {
    OCTAVO_TRY(const bool is_list, header_.is_array(key(suffix)));
    if (!is_list) return read_into(suffix, number);
    OCTAVO_TRY_VOID(read_into(suffix, list));
    if (!std::cmp_equal(list.size(), config_.num_layers + config_.num_skipped_layers) || list.empty()) {
      return wrong_length(suffix, list.size());
    }
    list.resize(static_cast<std::size_t>(config_.num_layers));
    number = *std::max_element(list.begin(), list.end());
    clear_if_all_are(number, list);
    return {};
  }

  static void clear_if_all_are(std::int32_t number, std::vector<std::int32_t>& list) {
    const bool is_one =
        std::all_of(list.begin(), list.end(), [&](std::int32_t each) { return each == number; });
    if (is_one) list.clear();
  }

  // Which layers have none, of what read_number_or_list() read: the list then holds `number` for them, so
  // that it says only how the others differ.
  static std::vector<bool> take_zeros(std::int32_t number, std::vector<std::int32_t>& list) {
    std::vector<bool> are_zero;
    for (std::int32_t& each : list) {
      are_zero.push_back(each == 0);
      if (each == 0) each = number;
    }
    clear_if_all_are(number, list);
    return are_zero;
  }

  Error wrong_length(std::string_view suffix, std::size_t length) const {
    return header_.error_about(key(suffix), ErrorCode::kDamagedFile,
                               "holds " + std::to_string(length) + " entries for " +
                                   std::to_string(config_.num_layers) + " layers; convert the model again");
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
    for (std::int32_t layer = 0; layer < config_.num_layers; ++layer)
      if (config_.has_attention(layer)) return {};
    return header_.error_about(key("attention.head_count_kv"), ErrorCode::kDamagedFile,
                               "leaves no layer with attention; convert the model again");
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

  // The first files of GLM-4.7-Flash do not say that its routers are sigmoids. Layers and vocabulary tell
  // them from others that do not say how they score, as in llama.cpp.
  Result<ExpertParts> expert_parts() const {
    constexpr std::uint64_t kVocabularySize = 154'880;
    ExpertParts experts = parts().experts;
    if (!parts().has_latent_attention) return experts;
    OCTAVO_TRY(const auto num_tokens, header_.find_array_length("tokenizer.ggml.tokens"));
    const bool has_its_layers = config_.num_layers == 47 || config_.num_layers == 48;
    if (has_its_layers && num_tokens == kVocabularySize) experts.scoring = kernels::RouterScoring::kSigmoid;
    return experts;
  }

  // Where all layers have experts, files may leave feed_forward_length out, and nothing has it.
  Result<void> read_feed_forward() {
    constexpr std::string_view kSuffix = "feed_forward_length";
    std::int32_t length = 0;
    if (parts().experts.use == ExpertUse::kNever || header_.contains(key(kSuffix))) {
      OCTAVO_TRY_VOID(read_number_or_list(kSuffix, length, config_.layer_feed_forward_lengths));
    }
    OCTAVO_TRY(const ExpertParts experts, expert_parts());
    OCTAVO_TRY(config_.experts,
               read_expert_config(header_, {config_.architecture, experts, config_.num_layers, length,
                                            config_.layer_feed_forward_lengths, is_saved_}));
    const bool say_where_experts_are = experts.layers == ExpertLayers::kWithFeedForward;
    if (config_.experts.num_experts > 0 && !config_.layer_feed_forward_lengths.empty() &&
        !say_where_experts_are)
      return not_computed(key(kSuffix));  // lengths that differ, beside experts
    if (config_.experts.in_all_layers(config_.num_layers)) return {};
    if (!header_.contains(key(kSuffix))) return read_into(kSuffix, length);
    config_.feed_forward_length = length;
    return {};
  }

  // All heads share what is kept, whatever the file says of their number.
  Result<void> read_latent_heads() {
    OCTAVO_TRY(config_.latent, read_latent_config(header_, config_.architecture));
    config_.head_dim = config_.latent.key_dim();
    config_.num_kv_heads = 1;
    config_.layer_kv_heads.clear();
    return {};
  }

  Result<void> read_head_dim() {
    if (parts().has_latent_attention) return read_latent_heads();
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
    OCTAVO_TRY_VOID(check_value_dim("attention.value_length", config_.head_dim, value_dim));
    if (!parts().has_local_heads) return {};
    OCTAVO_TRY_VOID(read_into("attention.key_length_swa", config_.local_head_dim));
    std::int32_t local_value_dim = 0;
    OCTAVO_TRY_VOID(read_into("attention.value_length_swa", local_value_dim));
    return check_value_dim("attention.value_length_swa", config_.local_head_dim, local_value_dim);
  }

  // Those of an architecture without heads of their own for layers with a window are saved as all others'.
  Result<void> check_saved_local_heads() const {
    if (parts().has_local_heads || parts().has_latent_attention || !is_saved_) return {};
    for (const std::string_view suffix : kLocalHeadKeys) {
      const bool is_of_rotation = suffix.starts_with("rope.");
      if (is_of_rotation && !parts().rotates()) continue;
      OCTAVO_TRY(const auto value, header_.find<std::int32_t>(key(suffix)));
      if (value && *value != (is_of_rotation ? config_.rope.rotary_dim : config_.head_dim))
        return not_computed(key(suffix));
    }
    return {};
  }

  Result<void> check_value_dim(std::string_view suffix, std::int32_t key_dim, std::int32_t value_dim) const {
    const bool is_possible = key_dim >= 1 && key_dim <= kMaxHeadDim;  // else: ranges
    if (value_dim == key_dim || !is_possible) return {};
    return header_.error_about(key(suffix), ErrorCode::kUnsupported,
                               "makes values of " + std::to_string(value_dim) + " dimensions and keys of " +
                                   std::to_string(key_dim) +
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
    OCTAVO_TRY_VOID(raise_frequency_base());
    OCTAVO_TRY_VOID(read_if_present("rope.scale_linear", rope.factor));  // the older name
    OCTAVO_TRY_VOID(read_if_present("rope.scaling.factor", rope.factor));
    if (is_saved_ && rope.factor == 0.0) rope.factor = 1.0;
    const bool has_factor =
        header_.contains(key("rope.scaling.factor")) || header_.contains(key("rope.scale_linear"));
    OCTAVO_TRY(rope.scaling, read_scaling_type(has_factor));
    rope.original_context_length = config_.context_length;
    OCTAVO_TRY_VOID(read_if_present("rope.scaling.original_context_length", rope.original_context_length));
    OCTAVO_TRY_VOID(read_if_present("rope.scaling.attn_factor", rope.attention_multiplier));
    OCTAVO_TRY_VOID(read_if_present("rope.scaling.low_freq_factor", rope.low_frequency_factor));
    OCTAVO_TRY_VOID(read_if_present("rope.scaling.high_freq_factor", rope.high_frequency_factor));
    if (!is_saved_) OCTAVO_TRY_VOID(read_if_present(kExtrapolationKey, rope.yarn_extrapolation_factor));
    OCTAVO_TRY_VOID(read_if_present("rope.scaling.yarn_beta_fast", rope.yarn_beta_fast));
    OCTAVO_TRY_VOID(read_if_present("rope.scaling.yarn_beta_slow", rope.yarn_beta_slow));
    OCTAVO_TRY_VOID(read_if_present("rope.scaling.yarn_rounds_borders", rope.rounds_yarn_borders));
    OCTAVO_TRY_VOID(read_number_of_some("rope.scaling.yarn_log_multiplier", parts().dampens_yarn,
                                        rope.yarn_log_multiplier));
    OCTAVO_TRY(const auto attention_factor, header_.find<float>(key("rope.scaling.yarn_attn_factor")));
    const bool is_given = attention_factor && !(is_saved_ && *attention_factor == 1.0f);
    if (is_given) rope.yarn_attention_factor = *attention_factor;
    // There the scores grow instead.
    const bool scales_scores = parts().has_latent_attention && rope.yarn_log_multiplier != 0.0;
    if (scales_scores && !rope.yarn_attention_factor) rope.yarn_attention_factor = 1.0;
    return {};
  }

  // Peng et al. 2023's "NTK-aware" scaling, as the authors of Hunyuan have it; 0: none.
  Result<void> raise_frequency_base() {
    if (!parts().reads_alpha) return {};
    OCTAVO_TRY(const auto alpha, header_.find<float>(key(kAlphaKey)));
    if (!alpha || *alpha == 0.0f) return {};
    const bool is_possible = *alpha >= kMinFactor && *alpha <= kMaxFactor && config_.head_dim > 2;
    if (!is_possible) {  // also NaN
      return header_.error_about(
          key(kAlphaKey), ErrorCode::kDamagedFile,
          "is " + std::to_string(*alpha) + ", by which no base can be raised; convert the model again");
    }
    const double dimensions = config_.head_dim;
    config_.rope.frequency_base *= std::pow(double{*alpha}, dimensions / (dimensions - 2.0));
    return {};
  }

  Result<void> read_score_scale() {
    const bool by_width = config_.num_layers == parts().layers_with_scale_of_width;
    const double dimensions = by_width && config_.num_heads > 0
                                  ? static_cast<double>(config_.embedding_length) / config_.num_heads
                              : parts().has_latent_attention ? config_.latent.query_dim
                                                             : config_.head_dim;
    config_.score_scale = dimensions > 0.0 ? 1.0 / std::sqrt(dimensions) : 0.0;
    if (parts().has_latent_attention) config_.score_scale *= yarn_score_factor();
    if (parts().score_scale != 0.0) config_.score_scale = parts().score_scale;
    OCTAVO_TRY(const auto given, header_.find<float>(key("attention.scale")));
    if (given && *given != 0.0f) config_.score_scale = *given;
    config_.query_scale_length = config_.rope.original_context_length;
    OCTAVO_TRY(const auto length, header_.find<std::int32_t>(key("attention.temperature_length")));
    if (length.value_or(0) != 0) config_.query_scale_length = *length;
    constexpr std::string_view kScale = "attention.temperature_scale";
    if (parts().query_scaling == QueryScaling::kWhereUnrotated) {  // llama.cpp saves the number that it has
      OCTAVO_TRY(const auto scale, header_.find<float>(key(kScale)));
      if (scale.value_or(0.0f) == static_cast<float>(kUnrotatedQueryFactor)) return {};
    }
    return read_number_of_some(kScale, parts().query_scaling == QueryScaling::kAsFileSays,
                               config_.query_scale_factor);
  }

  // As the authors of DeepSeek V2 scale by what YaRN stretches, squared because queries and keys would both
  // be; converters multiply what they call mscale_all_dim by 0.1.
  double yarn_score_factor() const {
    const RopeConfig& rope = config_.rope;
    if (rope.scaling != RopeScalingType::kYarn || !(rope.factor > 1.0)) return 1.0;
    const double factor = 1.0 + rope.yarn_log_multiplier * std::log(rope.factor);
    return factor * factor;
  }

  // 0 where the file says nothing; nothing else where it is not computed.
  Result<void> read_number_of_some(std::string_view suffix, bool is_computed, double& field) const {
    OCTAVO_TRY_VOID(read_if_present(suffix, field));
    if (!is_computed && field != 0.0) return not_computed(key(suffix));
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
    const bool may_lack = given.logit_scale == LogitScale::kDividesIfGiven ||
                          given.logit_scale == LogitScale::kMultipliesIfGiven;
    if (may_lack) {
      OCTAVO_TRY(const auto found, header_.find<float>(key(kLogitScale)));
      if (found.value_or(0.0f) == 0.0f) return {};
    }
    OCTAVO_TRY(const float factor, header_.get<float>(key(kLogitScale)));
    const bool multiplies =
        given.logit_scale == LogitScale::kMultiplies || given.logit_scale == LogitScale::kMultipliesIfGiven;
    config_.logit_multiplier = multiplies ? double{factor} : 1.0 / double{factor};
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

  // `saved`: what llama.cpp saves of a model that has none.
  Result<void> read_soft_cap(std::string_view suffix, bool is_computed, float usual, float saved,
                             float& cap) const {
    cap = usual;
    OCTAVO_TRY_VOID(read_if_present(suffix, cap));
    if (is_computed || cap == 0.0f) return {};
    if (!is_saved_ || cap != saved) return not_computed(key(suffix));
    cap = 0.0f;
    return {};
  }

  Result<void> read_window() {
    OCTAVO_TRY(const auto window, header_.find<std::uint32_t>(key(kWindowKey)));
    if (parts().has_local_heads) OCTAVO_TRY_VOID(require(kPatternKey));
    if (parts().has_local_heads || parts().needs_window) OCTAVO_TRY_VOID(require_window(window));
    config_.sliding_window = window_of(window);
    OCTAVO_TRY_VOID(read_window_pattern());
    if (config_.sliding_window == 0 || parts().windowed_layers == WindowedLayers::kRefused) return {};
    if (parts().query_scaling == QueryScaling::kWhereUnrotated) {
      config_.query_scale_factor = kUnrotatedQueryFactor;
      config_.query_scale_length = parts().window;
      config_.query_scale_offset = 1;
    }

    OCTAVO_TRY(const auto base, header_.find<float>(key("rope.freq_base_swa")));
    const double usual_base = parts().local_frequency_base;
    const bool starts_anew = usual_base > 0.0 || !parts().stretches_windows;
    if (!starts_anew && !base) return {};
    RopeConfig local = config_.rope;
    if (starts_anew) {  // Gemma 3 and OLMo 3 stretch positions in the other layers only
      local = RopeConfig{.rotary_dim = config_.rope.rotary_dim,
                         .frequency_base = usual_base > 0.0 ? usual_base : config_.rope.frequency_base};
      local.original_context_length = config_.context_length;
    }
    if (base) local.frequency_base = *base;
    if (parts().has_local_heads) {
      local.rotary_dim = config_.local_head_dim;
      OCTAVO_TRY_VOID(read_if_present("rope.dimension_count_swa", local.rotary_dim));
    }
    config_.local_rope = local;
    return {};
  }

  Result<void> require(std::string_view suffix) const {
    if (header_.contains(key(suffix))) return {};
    return header_.error_about(key(suffix), ErrorCode::kDamagedFile, "is missing; convert the model again");
  }

  // Layers with a window differ from the others in more than that.
  Result<void> require_window(std::optional<std::uint32_t> window) const {
    OCTAVO_TRY_VOID(require(kWindowKey));
    if (window.value_or(0) > 0) return {};
    return header_.error_about(
        key(kWindowKey), ErrorCode::kDamagedFile,
        parts().has_local_heads
            ? "is 0, and layers with a window have heads of their own; convert the model again"
            : "is 0, and layers with a window alone rotate; convert the model again");
  }

  // What llama.cpp saved of an architecture that has windows by its number of layers says nothing where it
  // has none.
  std::int32_t window_of(std::optional<std::uint32_t> given) const {
    const std::int32_t with_window = parts().layers_with_window;
    const bool has_usual = with_window == 0 || with_window == config_.num_layers;
    const bool is_said = given && (has_usual || !is_saved_);
    if (!is_said) return has_usual ? parts().window : 0;
    if (parts().has_one_window && *given > 0) return parts().window;
    return static_cast<std::int32_t>(std::min(*given, static_cast<std::uint32_t>(kMaxContextLength)));
  }

  // A number n (every n-th layer sees all), or a boolean for each layer, which some writers make an integer.
  Result<void> read_window_pattern() {
    config_.window_period = parts().window_period;
    if (!header_.contains(key(kPatternKey))) return {};
    OCTAVO_TRY(const bool is_list, header_.is_array(key(kPatternKey)));
    if (!is_list) return read_into(kPatternKey, config_.window_period);
    auto layers = header_.find<std::vector<bool>>(key(kPatternKey));
    if (layers) {
      config_.layers_with_window = **std::move(layers);
    } else {
      OCTAVO_TRY_VOID(read_integers_as_flags(kPatternKey, config_.layers_with_window));
    }
    const std::size_t num_entries = config_.layers_with_window.size();
    const bool is_whole = std::cmp_equal(num_entries, config_.num_layers) ||
                          std::cmp_equal(num_entries, config_.num_layers + config_.num_skipped_layers);
    if (!is_whole) return wrong_length(kPatternKey, num_entries);
    config_.layers_with_window.resize(static_cast<std::size_t>(config_.num_layers));
    return {};
  }

  Result<void> read_integers_as_flags(std::string_view suffix, std::vector<bool>& flags) const {
    std::vector<std::int32_t> integers;
    OCTAVO_TRY_VOID(read_into(suffix, integers));
    for (const std::int32_t each : integers) {
      if (each != 0 && each != 1) {
        return header_.error_about(
            key(suffix), ErrorCode::kDamagedFile,
            "holds " + std::to_string(each) + "; 0 or 1 is allowed for each layer: convert the model again");
      }
      flags.push_back(each == 1);
    }
    return {};
  }

  // A window that is not computed gives other results only for contexts longer than it.
  Result<void> check_refused_window() {
    if (parts().windowed_layers != WindowedLayers::kRefused || config_.sliding_window == 0) return {};
    if (config_.sliding_window < config_.context_length) return not_computed(key(kWindowKey));
    config_.sliding_window = 0;
    return {};
  }

  const Metadata& header_;
  ModelConfig config_;
  bool is_saved_ = false;                   // by llama.cpp, from another file
  std::vector<bool> layers_without_heads_;  // [num_layers], until read_recurrent(); empty: all have some
};

}  // namespace

Result<ModelConfig> read_model_config(const Metadata& header) { return ConfigReader(header).read(); }

bool ModelConfig::has_attention(std::int32_t layer) const {
  switch (parts.layer_parts) {
    case LayerParts::kOneMixer: return !is_recurrent(layer);
    case LayerParts::kBothMixers: return true;
    case LayerParts::kOneOfAll: return !is_recurrent(layer) && !has_feed_forward(layer);
  }
  return true;
}

bool ModelConfig::is_in_skipped_layer(std::string_view tensor_name) const {
  for (std::int32_t i = 0; i < num_skipped_layers; ++i) {
    if (tensor_name.starts_with("blk." + std::to_string(num_layers + i) + ".")) return true;
  }
  return false;
}

// Layers that differ from the others in their window differ in nothing where no layer has one.
bool ModelConfig::rotates(std::int32_t layer) const {
  if (!parts.rotates() || rotation_is_off) return false;
  if (sliding_window == 0 && parts.windowed_layers != WindowedLayers::kRefused) return true;
  if (parts.rotates_windows_only) return has_window(layer);
  const std::int32_t period = parts.unrotated_period;
  return period == 0 || layer % period != period - 1;
}

kernels::KvHeads ModelConfig::kv_heads(std::int32_t layer) const {
  const bool is_local = local_head_dim > 0 && has_window(layer);
  return {layer_kv_heads.empty() ? num_kv_heads : layer_kv_heads[static_cast<std::size_t>(layer)],
          is_local ? local_head_dim : head_dim, latent.latent_dim};
}

std::int32_t ModelConfig::feed_forward_length_of(std::int32_t layer) const {
  const bool is_listed = layer < static_cast<std::int32_t>(layer_feed_forward_lengths.size());
  if (!is_listed) return feed_forward_length;  // also of a layer behind the lists
  return layer_feed_forward_lengths[static_cast<std::size_t>(layer)];
}

std::int32_t ModelConfig::kv_owner(std::int32_t layer) const {
  if (!has_attention(layer)) return kNoLayer;
  const std::int32_t num_owners = num_layers - num_shared_layers;
  if (layer < num_owners) return layer;
  for (std::int32_t owner = num_owners - 1; owner >= 0; --owner) {
    if (has_attention(owner) && has_window(owner) == has_window(layer)) return owner;
  }
  return kNoLayer;
}

bool ModelConfig::has_usual_layers() const {
  return local_head_dim == 0 && layer_kv_heads.empty() && layer_feed_forward_lengths.empty() &&
         num_shared_layers == 0 && layer_embedding_length == 0 && !parts.has_value_norms &&
         !parts.has_output_scales;
}

float ModelConfig::query_scale(std::int32_t position) const {
  const std::int32_t steps = (position + query_scale_offset) / query_scale_length;
  return static_cast<float>(1.0 + query_scale_factor * std::log(1.0 + steps));
}

float ModelConfig::embedding_scale() const {
  if (parts.scales_embedding) return std::sqrt(static_cast<float>(embedding_length));
  return static_cast<float>(embedding_multiplier / residual_multiplier);
}

float ModelConfig::stream_epsilon() const {
  return static_cast<float>(norm_epsilon / (residual_multiplier * residual_multiplier));
}

}  // namespace octavo::model
