// The hyperparameters of a model, as its metadata gives them, held against plausible ranges once. Everything
// that is sized by a hyperparameter is sized by one that config_ranges.h lets through. What its
// architecture is made of: architecture.h.
//
// Metadata that would change the results and that nothing here computes is refused by name, never ignored:
// see the table in model_config.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/model/architecture.h"
#include "engine/model/expert_config.h"
#include "engine/model/latent_config.h"
#include "engine/model/metadata.h"
#include "engine/model/recurrent_config.h"
#include "kernels/kv_layout.h"

namespace octavo::model {

// How positions beyond the trained length are brought into range. The formulas are in rope.h.
enum class RopeScalingType : std::uint8_t { kNone, kLinear, kLlama3, kYarn, kLongRope };

struct RopeConfig {
  std::int32_t rotary_dim = 0;  // even, <= head_dim; 0: positions are learned
  double frequency_base = 10'000.0;
  RopeScalingType scaling = RopeScalingType::kNone;
  double factor = 1.0;                       // positions are stretched this many times
  std::int32_t original_context_length = 0;  // trained length before scaling; llama3, yarn, longrope
  double attention_multiplier = 1.0;       // rope.scaling.attn_factor: on top of what the scaling type gives
  double low_frequency_factor = 1.0;       // llama3
  double high_frequency_factor = 4.0;      // llama3
  double yarn_extrapolation_factor = 1.0;  // share of extrapolation where it is full; 1 in the paper
  std::optional<double> yarn_attention_factor = {};  // instead of 0.1 ln(factor) + 1
  double yarn_log_multiplier = 0.0;                  // that is divided by 0.1 * this * ln(factor) + 1
  double yarn_beta_fast = 32.0;  // rotations within the trained length: above, frequencies stay as they are
  double yarn_beta_slow = 1.0;   // below, they are divided by the factor
  bool rounds_yarn_borders = true;  // where between them frequencies start and end to change
};

struct ModelConfig {
  std::string architecture;             // "llama"
  Architecture parts;                   // what that is
  std::string name;                     // of the model; may be empty
  std::int32_t num_layers = 0;          // that are computed
  std::int32_t num_skipped_layers = 0;  // behind them in the file, see Architecture
  bool guesses_next_tokens = false;     // by the first of these, which then has keys and values too
  std::int32_t context_length = 0;      // tokens it was trained for
  std::int32_t embedding_length = 0;
  // Of layers without experts, where they differ of the longest; 0: there are none
  std::int32_t feed_forward_length = 0;
  std::int32_t num_heads = 0;
  std::int32_t num_kv_heads = 0;  // divides num_heads; where layers differ, the most of any
  // Of keys and values as they are kept; num_heads * head_dim need not be embedding_length
  std::int32_t head_dim = 0;
  std::int32_t local_head_dim = 0;  // of layers with a window; 0: as of all others
  // [num_layers], where layers differ; else empty. Of layers without attention, kv_heads are any; a length of
  // 0: the layer has no feed-forward part
  std::vector<std::int32_t> layer_kv_heads = {}, layer_feed_forward_lengths = {};
  std::int32_t num_shared_layers = 0;       // the last so many read other layers' keys and values
  std::int32_t layer_embedding_length = 0;  // of each layer's part of the second embedding; 0: there is none
  std::int32_t vocabulary_size = 0;
  float norm_epsilon = 0.0f;
  bool norm_epsilon_is_layer_norms = false;  // by its key, see Architecture
  // Of attention; 1 / sqrt(head_dim) unless the file or architecture says otherwise; with latent attention a
  // head's own size counts, not that of what is kept
  double score_scale = 0.0;
  // Queries at position p are multiplied by 1 + this * ln(1 + floor((p + offset) / length)), so that scores
  // of long contexts stay apart (Ministral 3, Llama 4); keys are not. 0: they are as they are
  double query_scale_factor = 0.0;
  std::int32_t query_scale_length = 1, query_scale_offset = 0;
  float score_soft_cap = 0.0f, logit_soft_cap = 0.0f;  // 0: none
  // Of the embedding, of what each branch adds, and of the logits before their cap
  double embedding_multiplier = 1.0, residual_multiplier = 1.0, logit_multiplier = 1.0;
  // Tokens that a layer with a window sees, its own included; 0: all layers see all
  std::int32_t sliding_window = 0;
  std::int32_t window_period = 0;             // every so-manieth layer has none; 0: all layers have one
  std::vector<bool> layers_with_window = {};  // [num_layers], instead of the period; empty: the period holds
  LatentConfig latent;                        // of all layers
  ExpertConfig experts;
  RecurrentConfig recurrent;
  RopeConfig rope;
  std::optional<RopeConfig> local_rope = {};  // of layers with a window, where those differ
  bool rotation_is_off = false;               // in all layers

  bool has_window(std::int32_t layer) const {
    if (sliding_window == 0) return false;
    if (!layers_with_window.empty()) return layers_with_window[static_cast<std::size_t>(layer)];
    return window_period == 0 || layer % window_period != window_period - 1;
  }
  // Whether the windows are chunks, of which several are in the context.
  bool has_chunks() const {
    return parts.window_form == kernels::WindowForm::kChunk && sliding_window > 0 &&
           sliding_window < context_length;
  }
  // Tokens that the layer sees; 0: all, as long as the context may be.
  std::int32_t window_of(std::int32_t layer) const {
    return has_window(layer) && sliding_window < context_length ? sliding_window : 0;
  }
  // What a layer is made of, see LayerParts; a recurrent one has a place in a state.
  bool has_attention(std::int32_t layer) const;
  bool is_recurrent(std::int32_t layer) const { return recurrent.in_layer(layer); }
  bool has_feed_forward(std::int32_t layer) const {
    return experts.in_layer(layer) || feed_forward_length_of(layer) > 0;
  }
  kernels::KvHeads kv_heads(std::int32_t layer) const;  // of a layer with attention
  // Of the layer that guesses next tokens: file lists end before it
  kernels::KvHeads next_token_heads() const { return {num_kv_heads, head_dim}; }
  std::int32_t feed_forward_length_of(std::int32_t layer) const;
  std::int32_t state_layer(std::int32_t layer) const { return recurrent.num_before(layer); }
  static constexpr std::int32_t kNoLayer = -1;
  // The layer whose keys and values this one reads: itself, or, of the last num_shared_layers, the last one
  // of its kind (with a window, or without) before these; kNoLayer: there is none, as without attention.
  // Where these are in the KV layout: kv_use.h.
  std::int32_t kv_owner(std::int32_t layer) const;
  // Whether all layers with attention have heads alike and keys and values of their own, and no more parts
  // than those of most models.
  bool has_usual_layers() const;
  float query_scale(std::int32_t position) const;
  // By its name, of a layer that is in the file and not computed.
  bool is_in_skipped_layer(std::string_view tensor_name) const;
  bool rotates(std::int32_t layer) const;
  // Whether query_scale() is applied there.
  bool scales_queries(std::int32_t layer) const {
    return query_scale_factor > 0.0 &&
           (parts.query_scaling != QueryScaling::kWhereUnrotated || !rotates(layer));
  }
  // The residual stream is kept divided by residual_multiplier, so that branches are added as they are: what
  // its first rows are multiplied by, and the epsilon that makes its norms the same. In float32, as the
  // original multiplies when it computes in float32.
  float embedding_scale() const;
  float stream_epsilon() const;
};

// kUnsupported: another architecture, or a feature that is not computed here, each by name. kDamagedFile: a
// value that is missing, of the wrong type or out of range.
Result<ModelConfig> read_model_config(const Metadata& header);

}  // namespace octavo::model
