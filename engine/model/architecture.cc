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
                      .shared = SharedExpert::kCounted,
                      .layers = ExpertLayers::kBehindDense,
                      .has_selection_bias = true}};
}

constexpr Architecture qwen35() {
  return {.name = "qwen35",
          .positions = PositionEncoding::kRotatesHalves,
          .has_head_norms = true,
          .names_feed_forward_norm_by_attention = true,
          .skips_predicted_layers = true,
          .predicts_next_tokens = true,
          .attention_gate = AttentionGate::kAmongQueries,
          .ignores_position_sections = true,
          .recurrent_layers = RecurrentLayers::kTiledDeltaNet};
}

constexpr Architecture qwen35moe() {
  Architecture architecture = qwen35();
  architecture.name = "qwen35moe";
  architecture.experts = {
      .use = ExpertUse::kAlways, .length = ExpertLength::kFeedForwardPerUsed, .shared = SharedExpert::kGated};
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
          .experts = {.use = ExpertUse::kIfGiven,
                      .length = ExpertLength::kFeedForward,
                      .shared = SharedExpert::kIfGiven}};
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
                          .layers = ExpertLayers::kBehindDense,
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
          .query_scaling = QueryScaling::kAsFileSays,
          .dampens_yarn = true,
          .has_latent_attention = true,
          .skips_predicted_layers = true,
          .experts = {.use = ExpertUse::kIfGiven,
                      .normalises_weights = false,
                      .reads_weights = true,
                      .shared = SharedExpert::kCounted,
                      .layers = ExpertLayers::kBehindDense,
                      .has_selection_bias = true}};
}

constexpr Architecture mistral4() {
  Architecture architecture = deepseek2();
  architecture.name = "mistral4";
  return architecture;
}

constexpr Architecture muse_glimmer() {
  return {.name = "muse-glimmer",
          .has_head_norms = true,
          .has_post_norms = true,
          .post_norm_epsilon = 1e-8f,
          .normalises_embedding = true,
          .multipliers = {.logit_scale = LogitScale::kMultiplies},
          .caps_logits = true,  // if the file says so
          .windowed_layers = WindowedLayers::kAllButEveryNth,
          .needs_window = true,
          .window_period = 4,
          .rotates_windows_only = true,
          .attention_gate = AttentionGate::kApart};
}

constexpr Architecture llama4() {
  return {.name = "llama4",
          .head_norms_follow_rotation = true,
          .normalises_rotated_heads = true,
          .experts_without_head_norms = 128,
          .windowed_layers = WindowedLayers::kAllButEveryNth,
          .window_form = kernels::WindowForm::kChunk,
          .window = 8192,
          .has_one_window = true,
          .window_period = 4,
          .query_scaling = QueryScaling::kWhereUnrotated,
          .unrotated_period = 4,
          .experts = {.use = ExpertUse::kAlways,
                      .scoring = kernels::RouterScoring::kSigmoidOfSelected,
                      .normalises_weights = false,
                      .shared = SharedExpert::kAsWide,
                      .layers = ExpertLayers::kEveryNth,
                      .weighs_inputs = true}};
}

constexpr Architecture command_r() {
  return {.name = "command-r",
          .norm = NormKind::kLayer,
          .branches = Branches::kSideBySide,
          .head_norms_are_optional = true,
          .head_norm_kind = NormKind::kLayer,
          .multipliers = {.logit_scale = LogitScale::kMultipliesIfGiven},
          .output_is_embedding = true};
}

constexpr Architecture cohere2() {
  Architecture architecture = command_r();
  architecture.name = "cohere2";
  architecture.head_norms_are_optional = false;
  architecture.multipliers.logit_scale = LogitScale::kMultiplies;
  architecture.windowed_layers = WindowedLayers::kAllButEveryNth;
  architecture.needs_window = true;
  architecture.window_period = 4;
  architecture.rotates_windows_only = true;
  return architecture;
}

constexpr Architecture olmo2() {
  return {.name = "olmo2",
          .positions = PositionEncoding::kRotatesHalves,
          .has_input_norms = false,
          .has_row_norms = true,
          .has_post_norms = true,
          .windowed_layers = WindowedLayers::kAllButEveryNth,
          .window_period = 4,
          .stretches_windows = false};
}

constexpr Architecture exaone4() {
  return {.name = "exaone4",
          .positions = PositionEncoding::kRotatesHalves,
          .has_input_norms = false,
          .has_head_norms = true,
          .has_post_norms = true,
          .windowed_layers = WindowedLayers::kAllButEveryNth,
          .window = 4096,
          .layers_with_window = 64,
          .window_period = 4,
          .rotates_windows_only = true,
          .skips_predicted_layers = true};
}

// As llama.cpp reads these files, which is how people know these models. The authors' code centres rows first
// (LayerNorm) and weighs each chosen expert by a softmax over those whose scores are close to its own
// ("sparsemixer"): answers differ from theirs, and a folder as they publish it is refused.
constexpr Architecture phimoe() {
  return {.name = "phimoe",
          .positions = PositionEncoding::kRotatesHalves,
          .needs_biases = true,
          .needs_head_bias = true,
          .has_norm_biases = true,
          .windowed_layers = WindowedLayers::kAll,
          .experts = {.use = ExpertUse::kAlways, .length = ExpertLength::kFeedForward}};
}

constexpr Architecture nemotron_h() {
  return {.name = "nemotron_h",
          .positions = PositionEncoding::kNone,
          .feed_forward = FeedForwardForm::kPlain,
          .activation = FeedForwardActivation::kSquaredRelu,
          .may_name_epsilon_by_layer_norm = true,
          .recurrent_layers = RecurrentLayers::kStateSpace,
          .layer_parts = LayerParts::kOneOfAll};
}

constexpr Architecture nemotron_h_moe() {
  Architecture architecture = nemotron_h();
  architecture.name = "nemotron_h_moe";
  architecture.skips_predicted_layers = true;
  architecture.experts = {.use = ExpertUse::kIfGiven,
                          .scoring = kernels::RouterScoring::kSigmoid,
                          .normalises_weights = false,
                          .reads_weights = true,
                          .length = ExpertLength::kFeedForwardPerUsed,
                          .shared = SharedExpert::kIfGiven,
                          .layers = ExpertLayers::kWithFeedForward,
                          .has_gates = false,
                          .has_latent_rows = true,
                          .has_selection_bias = true};
  return architecture;
}

// In the order of their names.
constexpr Architecture kArchitectures[] = {
    cohere2(),
    command_r(),
    deepseek2(),
    {.name = "ernie4_5"},
    exaone4(),
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
     .needs_biases = true,
     .has_norm_biases = true},
    granite(),
    granitehybrid(),
    granitemoe(),
    {.name = "hunyuan-dense",
     .positions = PositionEncoding::kRotatesHalves,
     .has_head_norms = true,
     .head_norms_follow_rotation = true,
     .reads_alpha = true,
     .ignores_position_sections = true},
    lfm2(),
    lfm2moe(),
    {.name = "llama",
     .windowed_layers = WindowedLayers::kAll,
     .experts = {.use = ExpertUse::kIfGiven,
                 .length = ExpertLength::kFeedForward,
                 .shared = SharedExpert::kIfGiven}},
    llama4(),
    minicpm(),
    {.name = "mistral3",
     .query_scaling = QueryScaling::kAsFileSays,
     .dampens_yarn = true,
     .experts = {.use = ExpertUse::kIfGiven, .length = ExpertLength::kFeedForward}},
    mistral4(),
    muse_glimmer(),
    nemotron_h(),
    nemotron_h_moe(),
    olmo2(),
    {.name = "olmoe",
     .positions = PositionEncoding::kRotatesHalves,
     .has_row_norms = true,
     .experts = {.use = ExpertUse::kAlways,
                 .normalises_weights = false,
                 .length = ExpertLength::kFeedForward}},
    {.name = "opt",
     .norm = NormKind::kLayer,
     .positions = PositionEncoding::kLearned,
     .feed_forward = FeedForwardForm::kPlain,
     .activation = FeedForwardActivation::kRelu,
     .needs_biases = true,
     .has_norm_biases = true},
    {.name = "phi3",
     .positions = PositionEncoding::kRotatesHalves,
     .feed_forward = FeedForwardForm::kPackedGated,
     .packs_query_key_value = true,
     .windowed_layers = WindowedLayers::kAll},
    phimoe(),
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
     .branches = Branches::kAsNormsSay,
     .has_norm_biases = true,
     .head_norms_are_optional = true,
     .head_norm_kind = NormKind::kLayer,
     .ignores_parallel_key = true},
    {.name = "starcoder2",
     .norm = NormKind::kLayer,
     .positions = PositionEncoding::kRotatesHalves,
     .feed_forward = FeedForwardForm::kPlain,
     .activation = FeedForwardActivation::kGelu,
     .needs_biases = true,
     .has_norm_biases = true},
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
