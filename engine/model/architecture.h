// What sets the GGUF architectures apart that Octavo runs: one transformer, and for each architecture a
// description of its parts as data. A new architecture is a line in architecture.cc, as long as its parts are
// here.
//
// Names of keys and tensors are those that llama.cpp's converter writes. Sources of the models' definitions:
//   llama   Touvron et al. 2023, arXiv:2302.13971; also Mistral 7B (Jiang et al. 2023, arXiv:2310.06825)
//   qwen2   Yang et al. 2024, arXiv:2407.10671        qwen3   Yang et al. 2025, arXiv:2505.09388
//   gemma   Gemma Team 2024, arXiv:2403.08295         gemma2  Gemma Team 2024, arXiv:2408.00118
//   gemma3  Gemma Team 2025, arXiv:2503.19786         phi3, phimoe Abdin et al. 2024, arXiv:2404.14219
//   qwen3moe as qwen3      olmoe Muennighoff et al. 2024, arXiv:2409.02060
//   glm4moe GLM-4.5 Team 2025, arXiv:2508.06471       gpt-oss OpenAI 2025, arXiv:2508.10925
//   glm4    GLM Team 2024, arXiv:2406.12793           smollm3 Bakouch et al. 2025, its model card
//   starcoder2 Lozhkov et al. 2024, arXiv:2402.19173  stablelm Bellagente et al. 2024, arXiv:2402.17834
//   ernie4_5 Baidu 2025, ERNIE 4.5 Technical Report   seed_oss ByteDance Seed 2025, its model card
//   mistral3 Mistral AI 2025, Ministral 3, its model card
//   granite, granitemoe IBM 2024, Granite 3.0 Language Models      minicpm Hu et al. 2024, arXiv:2404.06395
//   llama with experts: Jiang et al. 2024, arXiv:2401.04088
//   gemma4  Google DeepMind 2026, its model card and published code
//   qwen35, qwen35moe, qwen3next Qwen Team 2025 and 2026, their model cards; their recurrent layers: Yang et
//   al.
//           2024, arXiv:2412.06464
//   lfm2, lfm2moe Liquid AI 2025, arXiv:2511.23404    granitehybrid IBM 2025, its model cards
//   nemotron_h NVIDIA 2025, arXiv:2504.03624          falcon-h1 Zuo et al. 2025, arXiv:2507.22448
//           the last three with layers of Mamba-2: Dao & Gu 2024, arXiv:2405.21060
//   deepseek2 DeepSeek-AI 2024, arXiv:2405.04434, and arXiv:2412.19437; GLM-4.7-Flash and Kimi K2, their
//   model
//           cards; mistral4 Mistral AI 2026, Mistral Small 4, its model card
//   gpt2    Radford et al. 2019, Language Models are Unsupervised Multitask Learners
//   opt     Zhang et al. 2022, arXiv:2205.01068; no GGUF specification names it
//   muse-glimmer Meta 2026, its model card            llama4  Meta 2025, its model card
//   olmo2   OLMo Team 2024, arXiv:2501.00656; OLMo 3 2025, its model card
//   exaone4 LG AI Research 2025, arXiv:2507.11407     cohere2, command-r Cohere 2025, arXiv:2504.00698
//   hunyuan-dense Tencent 2025, its model card        nemotron_h_moe NVIDIA 2025, Nemotron 3 Nano, its card
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "kernels/backend.h"

namespace octavo::model {

// How a row knows its position.
enum class PositionEncoding : std::uint8_t {
  kRotatesNeighbours,  // pairs (2i, 2i + 1)
  kRotatesHalves,      // pairs (i, i + rotary_dim / 2)
  kLearned,            // a row of position_embd.weight is added to the embedding
  kNone,               // by what recurrent layers keep of those before it
};

enum class FeedForwardForm : std::uint8_t {
  kGated,        // ffn_gate and ffn_up
  kPackedGated,  // ffn_up holds the gate's rows, then its own
  kPlain,        // ffn_up alone
};

// Which layers see a window of the context only.
enum class WindowedLayers : std::uint8_t {
  kRefused,  // none; a file that asks for a window is refused
  kAll,
  kAllButEveryNth,  // layers n - 1, 2 n - 1, ... see all
};

// What the layers are that keep a state instead of keys and values.
enum class RecurrentLayers : std::uint8_t {
  kNone,
  kTiledDeltaNet,    // Gated DeltaNet; value heads take turns at the key heads; ssm_alpha and ssm_beta
  kGroupedDeltaNet,  // those of a key head stand together; ssm_ba, in old files also ssm_in, packed by key
                     // head
  kStateSpace,       // Mamba-2
  kShortConvolution,
};

constexpr bool is_delta_net(RecurrentLayers layers) {
  return layers == RecurrentLayers::kTiledDeltaNet || layers == RecurrentLayers::kGroupedDeltaNet;
}

// What a layer of a model with recurrent ones is made of.
enum class LayerParts : std::uint8_t {
  kOneMixer,    // attention or recurrence, then a feed-forward layer
  kBothMixers,  // attention and recurrence of the same rows, added up, then a feed-forward layer
  kOneOfAll,    // attention, recurrence or a feed-forward layer, alone behind the one norm
};

// What becomes of the logits, before their cap.
enum class LogitScale : std::uint8_t {
  kNone,     // a file that asks for one is refused
  kDivides,  // they are divided by logit_scale
  kDividesIfGiven,
  kMultiplies,
  kMultipliesIfGiven,
};

// How a layer's attention and its feed-forward layer follow one another.
enum class Branches : std::uint8_t {
  kOneAfterOther,
  kSideBySide,  // both read the rows of attn_norm, and what both give is added: there is no ffn_norm
  kAsNormsSay,  // side by side where the file has no ffn_norm
};

// What attention gives may be gated.
enum class AttentionGate : std::uint8_t {
  kNone,
  kAmongQueries,  // attn_q holds the rows of each head's query, then those of its gate
  kApart,         // attn_gate
};

// Whether queries are multiplied by a factor that grows with their position.
enum class QueryScaling : std::uint8_t {
  kNone,
  kAsFileSays,      // attention.temperature_scale
  kWhereUnrotated,  // always the same, in layers that do not rotate, of models with windows
};

// Factors at places where other models have none; one that is 0 is not applied.
struct Multipliers {
  bool are_read = false;  // embedding_scale: of the embedding; residual_scale: of what each branch adds
  LogitScale logit_scale = LogitScale::kNone;
  // Of files from before the keys (minicpm): embedding_scale; residual_scale times sqrt(layers); and the
  // width that has the logit_scale 1, all others theirs in proportion. 0: none; a logit_scale must then be
  // given.
  double usual_embedding = 0.0, usual_depth = 0.0, usual_width = 0.0;
};

// ---- layers of routed experts

enum class ExpertUse : std::uint8_t { kNever, kIfGiven, kAlways };

// Which layers have them.
enum class ExpertLayers : std::uint8_t {
  kAll,
  kBehindDense,      // all but the first leading_dense_block_count
  kEveryNth,         // layers n - 1, 2 n - 1, ...: interleave_moe_layer_step
  kWithFeedForward,  // those with a feed_forward_length, of models with one part to a layer
};

// The expert that every row uses beside those that it chose.
enum class SharedExpert : std::uint8_t {
  kNone,
  kIfGiven,  // as wide as expert_shared_feed_forward_length, if the file says
  kCounted,  // expert_shared_count says how many experts wide
  kGated,    // always there, with ffn_gate_inp_shexp; as wide as kIfGiven, else as feed_forward_length
  kAsWide,   // always there, as wide as an expert
};

// How wide an expert is where expert_feed_forward_length is missing.
enum class ExpertLength : std::uint8_t {
  kOwnKey,              // it must not
  kFeedForward,         // feed_forward_length
  kFeedForwardPerUsed,  // that, divided among the experts that a row uses
};

struct ExpertParts {
  ExpertUse use = ExpertUse::kNever;
  kernels::RouterScoring scoring = kernels::RouterScoring::kSoftmax;
  bool normalises_weights = true;
  bool reads_weights = false;  // keys may say otherwise, and scale: expert_gating_func, expert_weights_*
  ExpertLength length = ExpertLength::kOwnKey;
  SharedExpert shared = SharedExpert::kNone;
  ExpertLayers layers = ExpertLayers::kAll;
  bool has_gates = true;            // else ffn_up_exps alone, and so the shared expert
  bool weighs_inputs = false;       // an expert's weight multiplies what it reads
  bool has_latent_rows = false;     // moe_latent_size: experts read ffn_latent_down, ffn_latent_up reads them
  bool has_selection_bias = false;  // exp_probs_b.bias, where the file has it
  bool needs_biases = false;        // of router, gate, up and down
  // A feed-forward layer of the usual names stands beside the experts, as the expert that every row uses; it,
  // the experts and the router have norms of their own, before and behind.
  bool stand_beside_dense = false;
};

// The defaults are llama's.
struct Architecture {
  std::string_view name = "llama";
  kernels::NormKind norm = kernels::NormKind::kRms;
  PositionEncoding positions = PositionEncoding::kRotatesNeighbours;
  FeedForwardForm feed_forward = FeedForwardForm::kGated;
  kernels::FeedForwardActivation activation = kernels::FeedForwardActivation::kSilu;
  bool packs_query_key_value = false;  // attn_qkv instead of attn_q, attn_k, attn_v; others may have it, too
  bool needs_biases = false;     // on every projection; elsewhere they are taken where the file has them
  bool needs_head_bias = false;  // output.bias, likewise
  Branches branches = Branches::kOneAfterOther;
  bool has_input_norms = true;           // attn_norm and ffn_norm
  bool has_norm_biases = false;          // of these and output_norm
  bool has_head_norms = false;           // attn_q_norm, attn_k_norm
  bool has_row_norms = false;            // these, but of all heads together
  bool head_norms_are_optional = false;  // taken where the file has them
  // Of kLayer each head has a weight of its own, and none has a bias.
  kernels::NormKind head_norm_kind = kernels::NormKind::kRms;
  bool head_norms_follow_rotation = false;
  // Heads are normalised without a weight, in layers that rotate, unless the model has so many experts.
  bool normalises_rotated_heads = false;
  std::int32_t experts_without_head_norms = 0;
  bool has_post_norms = false;        // post_attention_norm, post_ffw_norm
  float post_norm_epsilon = 0.0f;     // 0: as of the other norms
  bool normalises_embedding = false;  // without a weight
  bool has_value_norms = false;       // of each head's values, without a weight
  // Where a layer has no attn_v: the products of attn_k, before its norm.
  bool takes_values_from_keys = false;
  bool scales_embedding = false;     // by sqrt(embedding_length)
  Multipliers multipliers = {};      // not together with norms of heads or post norms
  bool output_is_embedding = false;  // whatever output.weight the file holds
  std::string_view output_norm = "output_norm";
  // attention.layer_norm_epsilon holds the epsilon where the usual key of RMS norms is missing.
  bool may_name_epsilon_by_layer_norm = false;

  bool caps_scores = false, caps_logits = false;
  float score_soft_cap = 0.0f, logit_soft_cap = 0.0f;  // where the file says nothing; 0: none

  WindowedLayers windowed_layers = WindowedLayers::kRefused;
  kernels::WindowForm window_form = kernels::WindowForm::kSliding;
  std::int32_t window = 0;              // tokens, where the file says nothing; 0: none
  bool has_one_window = false;          // whatever the file says, unless that is 0
  bool needs_window = false;            // a file without one is refused
  std::int32_t layers_with_window = 0;  // `window` is that of models with so many layers only; 0: of all
  std::int32_t window_period = 0;       // n of kAllButEveryNth, where the file says nothing
  // Where the file says nothing: of the layers with a window, which are then not scaled. 0: as the others.
  double local_frequency_base = 0.0;
  bool stretches_windows = true;  // layers with a window, as the others
  // Layers with a window have heads of a size of their own (key_length_swa, rope.dimension_count_swa); the
  // file says which layers they are.
  bool has_local_heads = false;
  bool shares_keys_and_values = false;  // shared_kv_layers: the last so many read those of layers before them
  bool needs_rope_divisors = false;     // rope_freqs, of layers that see all
  double score_scale = 0.0;             // where the file says nothing; 0: 1 / sqrt(head size)
  QueryScaling query_scaling = QueryScaling::kNone;
  bool dampens_yarn = false;  // rope.scaling.yarn_log_multiplier; with latent attention it scales the scores
  bool reads_alpha = false;   // rope.scaling.alpha: raises the base of the frequencies

  // With so many layers, scores are scaled by sqrt(heads / width) instead of 1 / sqrt(head size): the 27B
  // models, whose files do not say so. 0: never.
  std::int32_t layers_with_scale_of_width = 0;

  // Layers n - 1, 2 n - 1, ... do not rotate; 0: all do.
  std::int32_t unrotated_period = 0;
  bool rotates_windows_only = false;  // of models that have some
  bool has_rotation_switch = false;   // rope.scaling.finetuned, without which no layer rotates

  // Whether attention and feed-forward layer stand beside one another is told by the tensors (then there is
  // no ffn_norm), not by use_parallel_residual, which converters set where the authors say nothing.
  bool ignores_parallel_key = false;

  // Keys and values of all heads are made from a few numbers of each token, and these are kept (DeepSeek V2).
  bool has_latent_attention = false;
  bool has_sinks = false;  // attn_sinks: a score of each head without a value
  // The norm before the feed-forward layer is called post_attention_norm.
  bool names_feed_forward_norm_by_attention = false;
  bool has_layer_embeddings = false;    // where embedding_length_per_layer_input is not 0
  bool has_output_scales = false;       // layer_output_scale, where the file has it
  bool skips_predicted_layers = false;  // the last nextn_predict_layers, which only guess further tokens
  // The first of these is a layer with attention as the others have it, with `nextn` tensors around it: see
  // NextTokenTensors
  bool predicts_next_tokens = false;
  AttentionGate attention_gate = AttentionGate::kNone;
  // rope.dimension_sections says which angles turn by a picture's rows and columns: all the same for text.
  bool ignores_position_sections = false;
  RecurrentLayers recurrent_layers = RecurrentLayers::kNone;
  LayerParts layer_parts = LayerParts::kOneMixer;
  ExpertParts experts = {};

  bool rotates() const {
    return positions == PositionEncoding::kRotatesNeighbours || positions == PositionEncoding::kRotatesHalves;
  }
};

std::span<const Architecture> architectures();
const Architecture* find_architecture(std::string_view name);  // nullptr: unknown
std::string supported_architectures();                         // "gemma, gemma2, ... and qwen3"

}  // namespace octavo::model
