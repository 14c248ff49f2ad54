#include "engine/model/architecture.h"

#include <algorithm>

namespace octavo::model {
namespace {

using kernels::FeedForwardActivation;
using kernels::NormKind;

constexpr Architecture gemma() {
  return {.name = "gemma",
          .positions = PositionEncoding::kRotatesHalves,
          .activation = FeedForwardActivation::kGelu,
          .scales_embedding = true,
          .output_is_embedding = true};
}

constexpr Architecture gemma2() {
  Architecture architecture = gemma();
  architecture.name = "gemma2";
  architecture.has_post_norms = true;
  architecture.caps_scores = architecture.caps_logits = true;
  architecture.score_soft_cap = 50.0f;
  architecture.logit_soft_cap = 30.0f;
  architecture.windowed_layers = WindowedLayers::kAllButEveryNth;
  architecture.window = 4096;
  architecture.window_period = 2;
  architecture.layers_with_scale_of_width = 46;
  return architecture;
}

constexpr Architecture gemma3() {
  Architecture architecture = gemma();
  architecture.name = "gemma3";
  architecture.has_head_norms = true;
  architecture.has_post_norms = true;
  architecture.output_is_embedding = false;
  architecture.caps_logits = true;  // if the file says so
  architecture.windowed_layers = WindowedLayers::kAllButEveryNth;
  architecture.window_period = 6;
  architecture.local_frequency_base = 10'000.0;
  architecture.layers_with_scale_of_width = 62;
  return architecture;
}

constexpr Architecture gemma4() {
  Architecture architecture = gemma();
  architecture.name = "gemma4";
  architecture.output_is_embedding = false;
  architecture.has_head_norms = true;
  architecture.has_value_norms = true;
  architecture.takes_values_from_keys = true;
  architecture.has_post_norms = true;
  architecture.caps_logits = true;  // if the file says so
  architecture.windowed_layers = WindowedLayers::kAllButEveryNth;
  architecture.local_frequency_base = 10'000.0;
  architecture.has_local_heads = true;
  architecture.shares_keys_and_values = true;
  architecture.needs_rope_divisors = true;
  architecture.score_scale = 1.0;
  architecture.has_layer_embeddings = true;
  architecture.has_output_scales = true;
  architecture.experts = {.use = ExpertUse::kIfGiven, .stand_beside_dense = true};
  return architecture;
}

constexpr Architecture gpt_oss() {
  return {.name = "gpt-oss",
          .positions = PositionEncoding::kRotatesHalves,
          .activation = FeedForwardActivation::kClampedSwiglu,
          .needs_biases = true,
          .windowed_layers = WindowedLayers::kAllButEveryNth,
          .window_period = 2,
          .has_sinks = true,
          .names_feed_forward_norm_by_attention = true,
          .experts = {.use = ExpertUse::kAlways,
                      .scoring = kernels::RouterScoring::kSoftmaxOfSelected,
                      .normalises_weights = false,
                      .needs_biases = true}};
}

constexpr Architecture glm4moe() {
  return {.name = "glm4moe",
          .positions = PositionEncoding::kRotatesHalves,
          .head_norms_are_optional = true,
          .names_feed_forward_norm_by_attention = true,
          .skips_predicted_layers = true,
          .predicts_next_tokens = true,
          .experts = {.use = ExpertUse::kAlways,
                      .scoring = kernels::RouterScoring::kSigmoid,
                      .normalises_weights = false,
                      .reads_weights = true,
                      .counts_shared = true,
                      .has_dense_layers = true,
                      .has_selection_bias = true}};
}

constexpr Architecture qwen35() {
  return {.name = "qwen35",
          .positions = PositionEncoding::kRotatesHalves,
          .has_head_norms = true,
          .names_feed_forward_norm_by_attention = true,
          .skips_predicted_layers = true,
          .predicts_next_tokens = true,
          .gates_attention = true,
          .ignores_position_sections = true,
          .recurrent_layers = RecurrentLayers::kTiledDeltaNet};
}

constexpr Architecture qwen35moe() {
  Architecture architecture = qwen35();
  architecture.name = "qwen35moe";
  architecture.experts = {
      .use = ExpertUse::kAlways, .length = ExpertLength::kFeedForwardPerUsed, .gates_shared = true};
  return architecture;
}

constexpr Architecture qwen3next() {
  Architecture architecture = qwen35moe();
  architecture.name = "qwen3next";
  architecture.predicts_next_tokens = false;  // nobody has published such a file
  architecture.ignores_position_sections = false;
  architecture.recurrent_layers = RecurrentLayers::kGroupedDeltaNet;
  return architecture;
}

constexpr Architecture granitemoe() {
  return {.name = "granitemoe",
          .multipliers = {.are_read = true, .logit_scale = LogitScale::kDivides},
          .experts = {.use = ExpertUse::kIfGiven, .length = ExpertLength::kFeedForward, .has_shared = true}};
}

constexpr Architecture granite() {
  Architecture architecture = granitemoe();
  architecture.name = "granite";
  architecture.has_rotation_switch = true;
  return architecture;
}

constexpr Architecture granitehybrid() {
  Architecture architecture = granite();
  architecture.name = "granitehybrid";
  architecture.multipliers.logit_scale = LogitScale::kDividesIfGiven;
  architecture.recurrent_layers = RecurrentLayers::kStateSpace;
  return architecture;
}

constexpr Architecture lfm2() {
  return {.name = "lfm2",
          .positions = PositionEncoding::kRotatesHalves,
          .has_head_norms = true,
          .output_norm = "token_embd_norm",
          .windowed_layers = WindowedLayers::kAll,
          .recurrent_layers = RecurrentLayers::kShortConvolution};
}

constexpr Architecture lfm2moe() {
  Architecture architecture = lfm2();
  architecture.name = "lfm2moe";
  architecture.windowed_layers = WindowedLayers::kRefused;
  architecture.experts = {.use = ExpertUse::kAlways,
                          .scoring = kernels::RouterScoring::kSigmoid,
                          .has_dense_layers = true,
                          .has_selection_bias = true};
  return architecture;
}

constexpr Architecture minicpm() {
  Architecture architecture = granitemoe();
  architecture.name = "minicpm";
  architecture.multipliers.usual_embedding = 12.0;
  architecture.multipliers.usual_depth = 1.4;
  architecture.multipliers.usual_width = 256.0;
  return architecture;
}

constexpr Architecture deepseek2() {
  return {.name = "deepseek2",
          .scales_queries = true,
          .dampens_yarn = true,
          .has_latent_attention = true,
          .skips_predicted_layers = true,
          .experts = {.use = ExpertUse::kIfGiven,
                      .normalises_weights = false,
                      .reads_weights = true,
                      .counts_shared = true,
                      .has_dense_layers = true,
                      .has_selection_bias = true}};
}

constexpr Architecture mistral4() {
  Architecture architecture = deepseek2();
  architecture.name = "mistral4";
  return architecture;
}

// In the order of their names.
constexpr Architecture kArchitectures[] = {
    deepseek2(),
    {.name = "ernie4_5"},
    {.name = "falcon-h1",
     .positions = PositionEncoding::kRotatesHalves,
     .recurrent_layers = RecurrentLayers::kStateSpace,
     .layer_parts = LayerParts::kBothMixers},
    gemma(),
    gemma2(),
    gemma3(),
    gemma4(),
    {.name = "glm4",
     .feed_forward = FeedForwardForm::kPackedGated,
     .has_post_norms = true,
     .skips_predicted_layers = true},
    glm4moe(),
    gpt_oss(),
    {.name = "gpt2",
     .norm = NormKind::kLayer,
     .positions = PositionEncoding::kLearned,
     .feed_forward = FeedForwardForm::kPlain,
     .activation = FeedForwardActivation::kGelu,
     .packs_query_key_value = true,
     .needs_biases = true},
    granite(),
    granitehybrid(),
    granitemoe(),
    lfm2(),
    lfm2moe(),
    {.name = "llama",
     .windowed_layers = WindowedLayers::kAll,
     .experts = {.use = ExpertUse::kIfGiven, .length = ExpertLength::kFeedForward, .has_shared = true}},
    minicpm(),
    {.name = "mistral3",
     .scales_queries = true,
     .dampens_yarn = true,
     .experts = {.use = ExpertUse::kIfGiven, .length = ExpertLength::kFeedForward}},
    mistral4(),
    {.name = "nemotron_h",
     .positions = PositionEncoding::kNone,
     .feed_forward = FeedForwardForm::kPlain,
     .activation = FeedForwardActivation::kSquaredRelu,
     .may_name_epsilon_by_layer_norm = true,
     .recurrent_layers = RecurrentLayers::kStateSpace,
     .layer_parts = LayerParts::kOneOfAll},
    {.name = "olmoe",
     .positions = PositionEncoding::kRotatesHalves,
     .has_row_norms = true,
     .experts = {.use = ExpertUse::kAlways,
                 .normalises_weights = false,
                 .length = ExpertLength::kFeedForward}},
    {.name = "phi3",
     .positions = PositionEncoding::kRotatesHalves,
     .feed_forward = FeedForwardForm::kPackedGated,
     .packs_query_key_value = true,
     .windowed_layers = WindowedLayers::kAll},
    {.name = "qwen2", .positions = PositionEncoding::kRotatesHalves},
    {.name = "qwen3", .positions = PositionEncoding::kRotatesHalves, .has_head_norms = true},
    qwen35(),
    qwen35moe(),
    {.name = "qwen3moe",
     .positions = PositionEncoding::kRotatesHalves,
     .has_head_norms = true,
     .experts = {.use = ExpertUse::kAlways, .length = ExpertLength::kFeedForwardPerUsed}},
    qwen3next(),
    {.name = "seed_oss",
     .positions = PositionEncoding::kRotatesHalves,
     .names_feed_forward_norm_by_attention = true},
    {.name = "smollm3", .unrotated_period = 4},
    {.name = "stablelm",
     .norm = NormKind::kLayer,
     .positions = PositionEncoding::kRotatesHalves,
     .ignores_parallel_key = true},
    {.name = "starcoder2",
     .norm = NormKind::kLayer,
     .positions = PositionEncoding::kRotatesHalves,
     .feed_forward = FeedForwardForm::kPlain,
     .activation = FeedForwardActivation::kGelu,
     .needs_biases = true},
};

}  // namespace

std::span<const Architecture> architectures() { return kArchitectures; }

const Architecture* find_architecture(std::string_view name) {
  const auto found = std::find_if(std::begin(kArchitectures), std::end(kArchitectures),
                                  [&](const Architecture& each) { return each.name == name; });
  return found == std::end(kArchitectures) ? nullptr : found;
}

std::string supported_architectures() {
  std::string text;
  for (const Architecture& each : kArchitectures) {
    if (!text.empty()) text += &each == std::end(kArchitectures) - 1 ? " and " : ", ";
    text += each.name;
  }
  return text;
}

}  // namespace octavo::model
