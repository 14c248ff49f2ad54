#include "engine/model/model_tensors.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "engine/base/text.h"
#include "engine/model/limits.h"
#include "kernels/dequantize.h"

namespace octavo::model {
namespace {

std::string shape_text(std::span<const std::int64_t> dimensions) {
  std::string text;
  for (const std::int64_t dimension : dimensions)
    text += (text.empty() ? "" : " x ") + std::to_string(dimension);
  return text;
}

class TensorFinder {
 public:
  TensorFinder(const ModelSource& file, const ModelConfig& config) : file_(file), config_(config) {}

  Result<ModelTensors> find() {
    ModelTensors model;
    const std::int64_t width = config_.embedding_length;
    OCTAVO_TRY(model.token_embedding, matrix("token_embd.weight", config_.vocabulary_size, width));
    if (!model.token_embedding.column_order.empty()) return ordered_columns("token_embd.weight");
    if (parts().normalises_embedding) model.embedding_norm.assign(static_cast<std::size_t>(width), 1.0f);
    if (parts().positions == PositionEncoding::kLearned) {
      OCTAVO_TRY(model.position_embedding, matrix("position_embd.weight", config_.context_length, width));
    }
    OCTAVO_TRY(model.layer_embedding, find_layer_embedding());
    if (parts().skips_predicted_layers) OCTAVO_TRY_VOID(check_that_layers_are_there());
    model.layers.reserve(static_cast<std::size_t>(config_.num_layers));
    for (std::int32_t i = 0; i < config_.num_layers; ++i) {
      OCTAVO_TRY(auto layer, find_layer(i, "blk." + std::to_string(i) + "."));
      model.layers.push_back(std::move(layer));
    }
    OCTAVO_TRY(model.output_norm, norm(std::string(parts().output_norm)));
    OCTAVO_TRY_VOID(find_output(model));
    scale_logits(model);
    if (parts().rotates()) {
      OCTAVO_TRY_VOID(find_rope(model));
    }
    OCTAVO_TRY_VOID(refuse_unused());
    return model;
  }

  Result<NextTokenTensors> find_next_token() {
    const std::string prefix = "blk." + std::to_string(config_.num_layers) + ".", own = prefix + "nextn.";
    NextTokenTensors found;
    OCTAVO_TRY(found.joint.weight, matrix(own + "eh_proj.weight", width(), 2 * width()));
    OCTAVO_TRY(found.token_norm, norm(own + "enorm"));
    OCTAVO_TRY(found.hidden_norm, norm(own + "hnorm"));
    if (has(own + "embed_tokens.weight")) {
      OCTAVO_TRY(found.token_embedding,
                 matrix(own + "embed_tokens.weight", config_.vocabulary_size, width()));
    }
    if (has(own + "shared_head_norm.weight")) {
      OCTAVO_TRY(found.output_norm, norm(own + "shared_head_norm"));
    }
    if (has(own + "shared_head_head.weight")) {
      OCTAVO_TRY(found.output.weight,
                 matrix(own + "shared_head_head.weight", config_.vocabulary_size, width()));
    }
    const kernels::KvHeads heads = config_.next_token_heads();
    const std::int64_t head_dim = heads.head_dim;
    const HeadSizes sizes{head_dim, config_.num_heads * head_dim, heads.num_kv_heads * head_dim,
                          /*has_own=*/true};
    OCTAVO_TRY(found.layer.attention_norm, norm(prefix + "attn_norm"));
    OCTAVO_TRY_VOID(find_attention(config_.num_layers, sizes, prefix, found.layer));
    const FeedForwardKind kind =
        config_.experts.num_experts > 0 ? FeedForwardKind::kExperts : FeedForwardKind::kDense;
    OCTAVO_TRY_VOID(find_feed_forward(kind, config_.feed_forward_length, prefix, found.layer));
    return found;
  }

 private:
  const Architecture& parts() const { return config_.parts; }
  std::int64_t width() const { return config_.embedding_length; }

  enum class FeedForwardKind : std::uint8_t { kDense, kExperts };

  // The sizes that a layer's attention has.
  struct HeadSizes {
    std::int64_t head, query, key;
    bool has_own;  // keys and values
  };
  HeadSizes head_sizes(std::int32_t layer) const {
    const kernels::KvHeads heads = config_.kv_heads(layer);
    const std::int64_t head_dim = heads.head_dim;
    return {head_dim, config_.num_heads * head_dim, heads.num_kv_heads * head_dim,
            config_.kv_owner(layer) == layer};
  }

  // Files of the layers alone that guess further tokens are published beside the models that they belong to.
  Result<void> check_that_layers_are_there() const {
    const auto holds_layer = [this](std::int32_t index) {
      const std::string prefix = "blk." + std::to_string(index) + ".";
      return std::ranges::any_of(file_.tensors(),
                                 [&](const SourceTensor& tensor) { return tensor.name.starts_with(prefix); });
    };
    if (holds_layer(0) || !holds_layer(config_.num_layers)) return {};
    return error_about("blk.0.attn_norm.weight", ErrorCode::kUnsupported,
                       "is missing: this file holds only what guesses further tokens; choose the file of the "
                       "model itself");
  }

  Result<LayerTensors> find_layer(std::int32_t index, const std::string& prefix) {
    LayerTensors layer;
    if (parts().has_input_norms) {
      OCTAVO_TRY(layer.attention_norm, norm(prefix + "attn_norm"));
    }
    if (parts().has_latent_attention) {
      OCTAVO_TRY_VOID(find_latent_attention(prefix, layer));
    } else if (config_.has_attention(index)) {
      OCTAVO_TRY_VOID(find_attention(index, head_sizes(index), prefix, layer));
    }
    if (config_.is_recurrent(index)) {
      OCTAVO_TRY(layer.recurrent, find_recurrent(prefix));
    }
    if (config_.has_feed_forward(index)) {
      const FeedForwardKind kind =
          config_.experts.in_layer(index) ? FeedForwardKind::kExperts : FeedForwardKind::kDense;
      OCTAVO_TRY_VOID(find_feed_forward(kind, config_.feed_forward_length_of(index), prefix, layer));
    }
    if (parts().has_post_norms) {
      OCTAVO_TRY(layer.post_attention_norm, norm(prefix + "post_attention_norm"));
      OCTAVO_TRY(layer.post_feed_forward_norm, norm(prefix + "post_ffw_norm"));
    }
    OCTAVO_TRY_VOID(find_ends(prefix, layer));
    return layer;
  }

  // `hidden`: of a dense one.
  Result<void> find_feed_forward(FeedForwardKind kind, std::int64_t hidden, const std::string& prefix,
                                 LayerTensors& layer) {
    OCTAVO_TRY_VOID(find_feed_forward_norm(prefix, layer));
    if (kind == FeedForwardKind::kExperts) {
      OCTAVO_TRY(layer.experts, find_experts(prefix));
    } else {
      OCTAVO_TRY_VOID(find_gate_and_up(prefix, hidden, layer));
      OCTAVO_TRY(layer.down, projection(prefix + "ffn_down", width(), hidden));
    }
    return {};
  }

  Result<void> find_feed_forward_norm(const std::string& prefix, LayerTensors& layer) {
    if (!parts().has_input_norms) return {};
    const bool says_by_norms = parts().branches == Branches::kAsNormsSay;
    layer.branches_stand_side_by_side =
        parts().branches == Branches::kSideBySide ||
        (says_by_norms && file_.find_tensor(prefix + "ffn_norm.weight") == nullptr);
    if (parts().layer_parts == LayerParts::kOneOfAll) {
      layer.feed_forward_norm = std::move(layer.attention_norm);
    } else if (layer.branches_stand_side_by_side) {
      layer.feed_forward_norm = layer.attention_norm;
    } else {
      const bool by_attention = parts().names_feed_forward_norm_by_attention;
      OCTAVO_TRY(layer.feed_forward_norm, norm(prefix + (by_attention ? "post_attention_norm" : "ffn_norm")));
    }
    return {};
  }

  Result<void> find_attention(std::int32_t index, const HeadSizes& sizes, const std::string& prefix,
                              LayerTensors& layer) {
    OCTAVO_TRY_VOID(find_query_key_value(sizes, prefix, layer));
    if (gates_stand_among_queries()) take_gate_apart(sizes, layer);
    if (parts().attention_gate == AttentionGate::kApart) {
      OCTAVO_TRY(layer.attention_gate.weight, matrix(prefix + "attn_gate.weight", sizes.query, width()));
    }
    OCTAVO_TRY_VOID(find_head_norms(index, sizes, prefix, layer));
    OCTAVO_TRY(layer.attention_output, projection(prefix + "attn_output", width(), sizes.query));
    if (parts().has_sinks) {
      OCTAVO_TRY(layer.sinks, vector(prefix + "attn_sinks.weight", config_.num_heads));
    }
    return {};
  }

  Result<void> find_latent_attention(const std::string& prefix, LayerTensors& layer) {
    const LatentConfig& sizes = config_.latent;
    const std::int64_t heads = config_.num_heads, queries = heads * sizes.query_dim;
    LatentTensors& found = layer.latent;
    if (const std::int64_t rank = sizes.query_rank; rank > 0) {
      OCTAVO_TRY(found.query_down.weight, matrix(prefix + "attn_q_a.weight", rank, width()));
      OCTAVO_TRY(found.query_norm, vector(prefix + "attn_q_a_norm.weight", rank));
      OCTAVO_TRY(found.query.weight, matrix(prefix + "attn_q_b.weight", queries, rank));
    } else {
      OCTAVO_TRY(found.query.weight, matrix(prefix + "attn_q.weight", queries, width()));
    }
    OCTAVO_TRY(found.key_value.weight, matrix(prefix + "attn_kv_a_mqa.weight", sizes.key_dim(), width()));
    OCTAVO_TRY(found.latent_norm, vector(prefix + "attn_kv_a_norm.weight", sizes.latent_dim));
    OCTAVO_TRY_VOID(find_head_matrices(prefix, found));
    OCTAVO_TRY(layer.attention_output.weight,
               matrix(prefix + "attn_output.weight", width(), heads * sizes.value_dim));
    return {};
  }

  Result<void> find_head_matrices(const std::string& prefix, LatentTensors& found) {
    const LatentConfig& sizes = config_.latent;
    const std::int64_t heads = config_.num_heads, latent = sizes.latent_dim,
                       unrotated = sizes.unrotated_dim();
    if (!sizes.has_joint_matrix) {
      OCTAVO_TRY(const Stack keys, matrices(prefix + "attn_k_b.weight", heads, latent, unrotated));
      OCTAVO_TRY(const Stack values, matrices(prefix + "attn_v_b.weight", heads, sizes.value_dim, latent));
      found.keys = each_of(keys, heads, 0, latent);
      found.values = each_of(values, heads, 0, sizes.value_dim);
      return {};
    }
    const std::int64_t both = unrotated + sizes.value_dim;
    Projection all;  // of each head the rows of its keys, then those of its values
    OCTAVO_TRY(all.weight, matrix(prefix + "attn_kv_b.weight", heads * both, latent));
    for (std::int64_t head = 0; head < heads; ++head) {
      found.keys.push_back(rows_of(all, head * both, unrotated).weight);
      found.values.push_back(rows_of(all, head * both + unrotated, sizes.value_dim).weight);
    }
    found.keys_are_transposed = true;
    return {};
  }

  Result<RecurrentTensors> find_recurrent(const std::string& prefix) {
    switch (parts().recurrent_layers) {
      case RecurrentLayers::kNone: break;
      case RecurrentLayers::kTiledDeltaNet:
      case RecurrentLayers::kGroupedDeltaNet: return find_delta_net(prefix);
      case RecurrentLayers::kStateSpace: return find_state_space(prefix);
      case RecurrentLayers::kShortConvolution: return find_short_convolution(prefix);
    }
    return RecurrentTensors();
  }

  Result<RecurrentTensors> find_delta_net(const std::string& prefix) {
    const kernels::DeltaNetShape& shape = config_.recurrent.delta_net;
    RecurrentTensors found;
    OCTAVO_TRY_VOID(find_delta_net_inputs(prefix, found));
    OCTAVO_TRY_VOID(find_alpha_and_beta(prefix, found));
    OCTAVO_TRY(found.convolution,
               matrix_of_floats(prefix + "ssm_conv1d.weight", shape.channels(), shape.convolution_width));
    OCTAVO_TRY(found.time_bias, vector(prefix + "ssm_dt.bias", shape.num_value_heads));
    OCTAVO_TRY(found.decay, vector(prefix + "ssm_a", shape.num_value_heads));
    OCTAVO_TRY_VOID(check_decay(prefix, found.decay));
    OCTAVO_TRY(found.output_norm, vector(prefix + "ssm_norm.weight", shape.value_dim));
    OCTAVO_TRY(found.output.weight, matrix(prefix + "ssm_out.weight", width(), shape.value_columns()));
    return found;
  }

  Result<RecurrentTensors> find_state_space(const std::string& prefix) {
    const kernels::StateSpaceShape& shape = config_.recurrent.state_space;
    const std::int64_t columns = shape.inner_columns(), channels = shape.channels(), heads = shape.num_heads;
    RecurrentTensors found;
    Projection all;
    OCTAVO_TRY(all.weight, matrix(prefix + "ssm_in.weight", columns + channels + heads, width()));
    found.gate = rows_of(all, 0, columns);
    found.input = rows_of(all, columns, channels);
    found.time_step = rows_of(all, columns + channels, heads);
    OCTAVO_TRY(found.convolution,
               matrix_of_floats(prefix + "ssm_conv1d.weight", channels, shape.convolution_width));
    OCTAVO_TRY(found.convolution_bias, optional_vector(prefix + "ssm_conv1d.bias", channels));
    OCTAVO_TRY(found.time_bias, vector(prefix + "ssm_dt.bias", heads));
    OCTAVO_TRY(found.decay, matrix_of_floats(prefix + "ssm_a", heads, 1));
    OCTAVO_TRY_VOID(check_decay(prefix, found.decay));
    OCTAVO_TRY(found.skip, matrix_of_floats(prefix + "ssm_d", heads, 1));
    const std::string norm = prefix + "ssm_norm.weight";
    if (parts().layer_parts != LayerParts::kBothMixers || file_.find_tensor(norm) != nullptr) {
      OCTAVO_TRY(found.output_norm, matrix_of_floats(norm, shape.num_groups, columns / shape.num_groups));
    }
    OCTAVO_TRY(found.output.weight, matrix(prefix + "ssm_out.weight", width(), columns));
    return found;
  }

  Result<RecurrentTensors> find_short_convolution(const std::string& prefix) {
    const kernels::ShortConvolutionShape& shape = config_.recurrent.short_convolution;
    const std::int64_t channels = shape.num_channels;
    RecurrentTensors found;
    Projection all;
    OCTAVO_TRY(all.weight, matrix(prefix + "shortconv.in_proj.weight", 3 * channels, width()));
    found.input_gate = rows_of(all, 0, channels);
    found.gate = rows_of(all, channels, channels);
    found.input = rows_of(all, 2 * channels, channels);
    OCTAVO_TRY(found.convolution,
               matrix_of_floats(prefix + "shortconv.conv.weight", channels, shape.convolution_width));
    OCTAVO_TRY(found.output.weight, matrix(prefix + "shortconv.out_proj.weight", width(), channels));
    return found;
  }

  Result<void> check_decay(const std::string& prefix, std::span<const float> decays) const {
    for (const float decay : decays) {
      if (decay > 0.0f) {  // not for NaN, which fails the requests that it reaches
        return damaged(prefix + "ssm_a",
                       "holds " + std::to_string(decay) + ", with which a state would grow without end");
      }
    }
    return {};
  }

  // Few numbers, which are kept as floats whatever the file holds.
  Result<std::vector<float>> matrix_of_floats(std::string_view name, std::int64_t rows,
                                              std::int64_t columns) {
    OCTAVO_TRY(const SourceTensor* tensor, required(name));
    const std::int64_t shape[] = {columns, rows};
    return expand(*tensor, shape);
  }

  Result<void> find_delta_net_inputs(const std::string& prefix, RecurrentTensors& found) {
    const kernels::DeltaNetShape& shape = config_.recurrent.delta_net;
    const std::string all = prefix + "ssm_in.weight";
    if (parts().recurrent_layers == RecurrentLayers::kGroupedDeltaNet && file_.find_tensor(all) != nullptr)
      return take_delta_net_inputs_apart(all, found);
    OCTAVO_TRY(found.input.weight, matrix(prefix + "attn_qkv.weight", shape.channels(), width()));
    OCTAVO_TRY(found.gate.weight, matrix(prefix + "attn_gate.weight", shape.value_columns(), width()));
    return {};
  }

  // Of each key head the rows of its query, its key, its values and their gates.
  Result<void> take_delta_net_inputs_apart(const std::string& name, RecurrentTensors& found) {
    const kernels::DeltaNetShape& shape = config_.recurrent.delta_net;
    Projection all;
    OCTAVO_TRY(all.weight, matrix(name, shape.channels() + shape.value_columns(), width()));
    const std::int64_t num_heads = shape.num_key_heads, key = shape.key_dim,
                       value = shape.value_columns() / num_heads, period = 2 * (key + value);
    std::vector<RowRange> inputs = every(period, {0, key}, num_heads);
    for (const RowRange& range : {RowRange{key, key}, RowRange{2 * key, value}}) {
      const std::vector<RowRange> more = every(period, range, num_heads);
      inputs.insert(inputs.end(), more.begin(), more.end());
    }
    found.input = rows_of(all, std::move(inputs));
    found.gate = rows_of(all, every(period, {2 * key + value, value}, num_heads));
    return {};
  }

  Result<void> find_alpha_and_beta(const std::string& prefix, RecurrentTensors& found) {
    const kernels::DeltaNetShape& shape = config_.recurrent.delta_net;
    const std::int64_t count = shape.num_value_heads;
    if (parts().recurrent_layers == RecurrentLayers::kTiledDeltaNet) {
      OCTAVO_TRY(found.time_step.weight, matrix(prefix + "ssm_alpha.weight", count, width()));
      OCTAVO_TRY(found.beta.weight, matrix(prefix + "ssm_beta.weight", count, width()));
      return {};
    }
    Projection both;  // of each key head the rows of beta, then those of alpha
    OCTAVO_TRY(both.weight, matrix(prefix + "ssm_ba.weight", 2 * count, width()));
    const std::int64_t size = count / shape.num_key_heads;
    found.beta = rows_of(both, every(2 * size, {0, size}, shape.num_key_heads));
    found.time_step = rows_of(both, every(2 * size, {size, size}, shape.num_key_heads));
    return {};
  }

  // What follows a layer's feed-forward part.
  Result<void> find_ends(const std::string& prefix, LayerTensors& layer) {
    if (const std::int64_t size = config_.layer_embedding_length; size > 0) {
      OCTAVO_TRY(layer.embedding_gate.weight, matrix(prefix + "inp_gate.weight", size, width()));
      OCTAVO_TRY(layer.embedding_projection.weight, matrix(prefix + "proj.weight", width(), size));
      OCTAVO_TRY(layer.post_embedding_norm, norm(prefix + "post_norm"));
    }
    if (!parts().has_output_scales) return {};
    OCTAVO_TRY(const std::vector<float> scale, optional_vector(prefix + "layer_output_scale.weight", 1));
    if (!scale.empty()) layer.output_scale = scale.front();
    return {};
  }

  bool gates_stand_among_queries() const { return parts().attention_gate == AttentionGate::kAmongQueries; }

  Result<void> find_head_norms(std::int32_t index, const HeadSizes& sizes, const std::string& prefix,
                               LayerTensors& layer) {
    const std::vector<float> ones(static_cast<std::size_t>(sizes.head), 1.0f);
    if (parts().has_value_norms && sizes.has_own) layer.value_norm = ones;
    const bool lacks_norms = config_.experts.num_experts == parts().experts_without_head_norms;
    if (parts().normalises_rotated_heads && config_.rotates(index) && !lacks_norms)
      layer.query_norm = layer.key_norm = ones;
    const bool holds_one = file_.find_tensor(prefix + "attn_q_norm.weight") != nullptr ||
                           file_.find_tensor(prefix + "attn_k_norm.weight") != nullptr;
    const bool has_norms =
        parts().has_head_norms || parts().has_row_norms || (parts().head_norms_are_optional && holds_one);
    if (!has_norms) return {};
    OCTAVO_TRY(layer.query_norm, head_norm(prefix + "attn_q_norm.weight", sizes.query, sizes.head));
    if (!sizes.has_own) return {};
    OCTAVO_TRY(layer.key_norm, head_norm(prefix + "attn_k_norm.weight", sizes.key, sizes.head));
    return {};
  }

  Result<std::vector<float>> head_norm(const std::string& name, std::int64_t row, std::int64_t head) {
    if (parts().head_norm_kind == kernels::NormKind::kLayer) return matrix_of_floats(name, row / head, head);
    return vector(name, parts().has_row_norms ? row : head);
  }

  Result<LayerEmbeddingTensors> find_layer_embedding() {
    LayerEmbeddingTensors found;
    const std::int64_t size = config_.layer_embedding_length, all = config_.num_layers * size;
    if (size == 0) return found;
    OCTAVO_TRY(found.tokens, matrix("per_layer_token_embd.weight", config_.vocabulary_size, all));
    OCTAVO_TRY(found.projection.weight, matrix("per_layer_model_proj.weight", all, width()));
    OCTAVO_TRY(found.norm, vector("per_layer_proj_norm.weight", size));
    return found;
  }

  // A scale or a bias that nobody applies would make every answer wrong, and nothing would say so.
  Result<void> refuse_unused() const {
    for (const SourceTensor& tensor : file_.tensors()) {
      if (used_.contains(&tensor)) continue;
      if (parts().output_is_embedding && tensor.name == "output.weight") continue;  // a copy
      if (config_.is_in_skipped_layer(tensor.name) || is_of_other_input(tensor.name)) continue;
      return error_about(tensor.name, ErrorCode::kUnsupported,
                         "is not used by Octavo's " + config_.architecture +
                             " models and would change their answers; choose another model");
    }
    return {};
  }

  // Of what turns images and sound into rows of the embedding: text does not pass through it.
  static bool is_of_other_input(std::string_view name) {
    return name.starts_with("v.") || name.starts_with("a.") || name.starts_with("mm.");
  }

  Result<ExpertTensors> find_experts(const std::string& prefix) {
    const ExpertConfig& experts = config_.experts;
    const std::int64_t count = experts.num_experts, hidden = experts.expert_length;
    ExpertTensors found;
    OCTAVO_TRY(found.router.weight, matrix(prefix + "ffn_gate_inp.weight", count, width()));
    OCTAVO_TRY(found.router.bias, expert_biases(prefix + "ffn_gate_inp.bias", 1, count));
    if (parts().experts.has_selection_bias) {
      OCTAVO_TRY(found.selection_bias, optional_vector(prefix + "exp_probs_b.bias", count));
    }
    const std::int64_t columns = experts.latent_length > 0 ? experts.latent_length : width();
    const std::string both = prefix + "ffn_gate_up_exps.weight";
    if (parts().experts.has_gates && file_.find_tensor(both) != nullptr) {
      OCTAVO_TRY(const Stack all, matrices(both, count, 2 * hidden, columns));
      found.gate = each_of(all, count, 0, hidden);
      found.up = each_of(all, count, hidden, hidden);
    } else {
      if (parts().experts.has_gates) {
        OCTAVO_TRY(const Stack gate, matrices(prefix + "ffn_gate_exps.weight", count, hidden, columns));
        found.gate = each_of(gate, count, 0, hidden);
      }
      OCTAVO_TRY(const Stack up, matrices(prefix + "ffn_up_exps.weight", count, hidden, columns));
      found.up = each_of(up, count, 0, hidden);
    }
    OCTAVO_TRY(const Stack down, matrices(prefix + "ffn_down_exps.weight", count, columns, hidden));
    found.down = each_of(down, count, 0, columns);
    if (experts.latent_length > 0) {
      OCTAVO_TRY(found.latent_down.weight, matrix(prefix + "ffn_latent_down.weight", columns, width()));
      OCTAVO_TRY(found.latent_up.weight, matrix(prefix + "ffn_latent_up.weight", width(), columns));
    }
    OCTAVO_TRY(found.gate_bias, expert_biases(prefix + "ffn_gate_exps.bias", count, hidden));
    OCTAVO_TRY(found.up_bias, expert_biases(prefix + "ffn_up_exps.bias", count, hidden));
    OCTAVO_TRY(found.down_bias, expert_biases(prefix + "ffn_down_exps.bias", count, width()));
    if (parts().experts.stand_beside_dense) {
      OCTAVO_TRY_VOID(find_beside_dense(prefix, found));
    } else if (experts.shared_length > 0) {
      if (parts().experts.has_gates) {
        OCTAVO_TRY(found.shared_gate.weight,
                   matrix(prefix + "ffn_gate_shexp.weight", experts.shared_length, width()));
      }
      OCTAVO_TRY(found.shared_up.weight,
                 matrix(prefix + "ffn_up_shexp.weight", experts.shared_length, width()));
      OCTAVO_TRY(found.shared_down.weight,
                 matrix(prefix + "ffn_down_shexp.weight", width(), experts.shared_length));
    }
    if (parts().experts.shared == SharedExpert::kGated) {
      OCTAVO_TRY(const SourceTensor* router, required(prefix + "ffn_gate_inp_shexp.weight"));
      const std::int64_t shape[] = {width()};
      OCTAVO_TRY(const kernels::TensorType type, check(*router, shape));
      found.shared_router.weight = stored(*router, type, 1, width());
    }
    return found;
  }

  // The layer that stands beside the experts, as their shared one, and what only such experts have.
  Result<void> find_beside_dense(const std::string& prefix, ExpertTensors& found) {
    const std::int64_t hidden = config_.experts.shared_length;
    OCTAVO_TRY(found.shared_gate.weight, matrix(prefix + "ffn_gate.weight", hidden, width()));
    OCTAVO_TRY(found.shared_up.weight, matrix(prefix + "ffn_up.weight", hidden, width()));
    OCTAVO_TRY(found.shared_down.weight, matrix(prefix + "ffn_down.weight", width(), hidden));
    OCTAVO_TRY(found.shared_post_norm, norm(prefix + "post_ffw_norm_1"));
    OCTAVO_TRY(found.norm, norm(prefix + "pre_ffw_norm_2"));
    OCTAVO_TRY(found.routed_post_norm, norm(prefix + "post_ffw_norm_2"));
    OCTAVO_TRY(found.output_scale,
               optional_vector(prefix + "ffn_down_exps.scale", config_.experts.num_experts));
    // The router reads rows of the mean square 1 / width, times this.
    OCTAVO_TRY(found.router_norm, vector(prefix + "ffn_gate_inp.scale", width()));
    const float factor = 1.0f / std::sqrt(static_cast<float>(width()));
    for (float& weight : found.router_norm) weight *= factor;
    return {};
  }

  // Of `count` experts, one behind the other; of an architecture without them, none are looked for, and a
  // file that has some is refused.
  Result<std::vector<float>> expert_biases(const std::string& name, std::int64_t count, std::int64_t size) {
    if (!parts().experts.needs_biases) return std::vector<float>();
    OCTAVO_TRY(const SourceTensor* tensor, required(name));
    const std::int64_t shape[] = {size, count};
    return expand(*tensor, shape);
  }

  // Matrices of one size, of experts or heads, one behind the other.
  struct Stack {
    StoredMatrix rows;          // of all
    std::vector<float> scales;  // of each
  };

  Result<Stack> matrices(std::string_view name, std::int64_t count, std::int64_t rows, std::int64_t columns) {
    OCTAVO_TRY(const SourceTensor* tensor, required(name));
    const std::int64_t shape[] = {columns, rows, count};
    OCTAVO_TRY(const kernels::TensorType type, check(*tensor, shape));
    OCTAVO_TRY(std::vector<float> scales, second_scales(name, type, count));
    if (const RowReader* const reader = file_.reader_of(*tensor); reader != nullptr) {
      for (std::int64_t i = 0; i < count; ++i) {
        scales[static_cast<std::size_t>(i)] *= reader->scale_of(i);
        if (!reader->column_order_of(i).empty()) return ordered_columns(name);
      }
    }
    return Stack{stored(*tensor, type, count * rows, columns), std::move(scales)};
  }

  // Rows first..first + size of each expert.
  static std::vector<StoredMatrix> each_of(const Stack& all, std::int64_t count, std::int64_t first,
                                           std::int64_t size) {
    std::vector<StoredMatrix> matrices;
    const std::int64_t stride = all.rows.rows / count;
    for (std::int64_t i = 0; i < count; ++i) {
      matrices.push_back(rows_of({all.rows, {}}, i * stride + first, size).weight);
      matrices.back().scale = all.scales[static_cast<std::size_t>(i)];
    }
    return matrices;
  }

  // Apart, or in one matrix: which one is the converter's choice, whatever the architecture.
  Result<void> find_query_key_value(const HeadSizes& sizes, const std::string& prefix, LayerTensors& layer) {
    const std::int64_t query = gates_stand_among_queries() ? 2 * sizes.query : sizes.query, key = sizes.key;
    if (!sizes.has_own) take_unread(prefix);
    const std::string packed = prefix + "attn_qkv";
    const bool is_packed =
        file_.find_tensor(packed + ".weight") != nullptr ||
        (parts().packs_query_key_value && file_.find_tensor(prefix + "attn_q.weight") == nullptr);
    if (!is_packed) {
      OCTAVO_TRY(layer.query, query_projection(prefix + "attn_q", query));
      if (!sizes.has_own) return {};
      OCTAVO_TRY(layer.key, projection(prefix + "attn_k", key, width()));
      const bool has_values =
          !parts().takes_values_from_keys || file_.find_tensor(prefix + "attn_v.weight") != nullptr;
      if (has_values) {
        OCTAVO_TRY(layer.value, projection(prefix + "attn_v", key, width()));
      }
      return {};
    }
    OCTAVO_TRY(const Projection all, query_projection(packed, query + 2 * key));
    layer.query = rows_of(all, 0, query);
    if (!sizes.has_own) return {};
    layer.key = rows_of(all, query, key);
    layer.value = rows_of(all, query + key, key);
    return {};
  }

  // What some converters keep of keys and values in a layer that reads another one's.
  void take_unread(const std::string& prefix) {
    for (const char* name : {"attn_k.weight", "attn_v.weight", "attn_k_norm.weight"}) take(prefix + name);
  }

  // No gate has a bias, so that where gates stand among the rows, one would be of no use.
  Result<Projection> query_projection(const std::string& name, std::int64_t rows) {
    if (!gates_stand_among_queries()) return projection(name, rows, width());
    Projection found;
    OCTAVO_TRY(found.weight, matrix(name + ".weight", rows, width()));
    return found;
  }

  void take_gate_apart(const HeadSizes& sizes, LayerTensors& layer) const {
    const Projection both = std::move(layer.query);
    layer.query = rows_of(both, every(2 * sizes.head, {0, sizes.head}, config_.num_heads));
    layer.attention_gate = rows_of(both, every(2 * sizes.head, {sizes.head, sizes.head}, config_.num_heads));
  }

  Result<void> find_gate_and_up(const std::string& prefix, std::int64_t hidden, LayerTensors& layer) {
    const std::string up = prefix + "ffn_up";
    if (parts().feed_forward == FeedForwardForm::kPackedGated) {
      OCTAVO_TRY(const Projection both, projection(up, 2 * hidden, width()));
      layer.gate = rows_of(both, 0, hidden);
      layer.up = rows_of(both, hidden, hidden);
      return {};
    }
    if (parts().feed_forward == FeedForwardForm::kGated) {
      OCTAVO_TRY(layer.gate, projection(prefix + "ffn_gate", hidden, width()));
    }
    OCTAVO_TRY(layer.up, projection(up, hidden, width()));
    return {};
  }

  // A part of a packed projection.
  static Projection rows_of(const Projection& all, std::int64_t first, std::int64_t count) {
    const auto row_bytes = all.weight.bytes.size() / static_cast<std::size_t>(all.weight.rows);
    const auto begin = static_cast<std::size_t>(first), size = static_cast<std::size_t>(count);
    Projection part;
    part.weight = all.weight;
    part.weight.rows = count;
    part.weight.bytes = all.weight.bytes.subspan(begin * row_bytes, size * row_bytes);
    part.weight.first_row += first;
    if (!all.bias.empty()) {
      const auto bias = std::span(all.bias).subspan(begin, size);
      part.bias.assign(bias.begin(), bias.end());
    }
    return part;
  }

  // Rows that others stand between.
  static Projection rows_of(const Projection& all, std::vector<RowRange> ranges) {
    Projection part;
    part.weight = all.weight;
    part.weight.rows = 0;
    for (const RowRange& range : ranges) part.weight.rows += range.count;
    part.row_ranges = std::move(ranges);
    return part;
  }

  // `range`, and the same again in each further period.
  static std::vector<RowRange> every(std::int64_t period, const RowRange& range, std::int64_t num_periods) {
    std::vector<RowRange> ranges;
    for (std::int64_t i = 0; i < num_periods; ++i) ranges.push_back({i * period + range.first, range.count});
    return ranges;
  }

  Result<void> find_output(ModelTensors& model) {
    model.output_is_tied = parts().output_is_embedding || file_.find_tensor("output.weight") == nullptr;
    if (model.output_is_tied) {
      model.output.weight = model.token_embedding;
    } else {
      OCTAVO_TRY(model.output.weight, matrix("output.weight", config_.vocabulary_size, width()));
    }
    const std::int64_t size = config_.vocabulary_size;
    OCTAVO_TRY(model.output.bias,
               parts().needs_head_bias ? vector("output.bias", size) : optional_vector("output.bias", size));
    return {};
  }

  // The output's rows are sums of what the norm gives: scaled there, once, they need no operation of their
  // own.
  void scale_logits(ModelTensors& model) const {
    for (std::vector<float>* factors :
         {&model.output_norm.weight, &model.output_norm.bias, &model.output.bias})
      for (float& factor : *factors) factor = static_cast<float>(factor * config_.logit_multiplier);
  }

  Result<void> find_rope(ModelTensors& model) {
    constexpr std::string_view kLong = "rope_factors_long.weight", kShort = "rope_factors_short.weight";
    const bool is_long_rope = config_.rope.scaling == RopeScalingType::kLongRope ||
                              file_.find_tensor(kLong) != nullptr || file_.find_tensor(kShort) != nullptr;
    if (config_.local_rope) model.local_rope = rope_frequencies(*config_.local_rope, {});
    if (!is_long_rope) {
      OCTAVO_TRY(const std::vector<float> divisors, rope_divisors("rope_freqs.weight"));
      model.rope = rope_frequencies(config_.rope, divisors);
      // Those of a file with another base are divided as well, if they are not of another kind.
      const bool starts_anew = parts().local_frequency_base > 0.0 || !parts().stretches_windows;
      if (config_.local_rope && !starts_anew)
        model.local_rope = rope_frequencies(*config_.local_rope, divisors);
      return {};
    }
    for (const std::string_view name : {kLong, kShort}) {
      if (file_.find_tensor(name) == nullptr) return damaged(name, "is missing");
    }
    OCTAVO_TRY(const std::vector<float> within, rope_divisors(kShort));
    OCTAVO_TRY(const std::vector<float> beyond, rope_divisors(kLong));
    model.rope = rope_frequencies(config_.rope, beyond);
    model.short_rope = rope_frequencies(config_.rope, within);
    return {};
  }

  // Empty: the file has none, and need not.
  Result<std::vector<float>> rope_divisors(std::string_view name) {
    const std::int64_t count = config_.rope.rotary_dim / 2;
    OCTAVO_TRY(std::vector<float> divisors,
               parts().needs_rope_divisors ? vector(name, count) : optional_vector(name, count));
    for (const float divisor : divisors) {
      const bool is_possible = divisor >= kMinFactor && divisor <= kMaxFactor;  // false for NaN
      const bool vanishes = parts().needs_rope_divisors && divisor == kVanishingDivisor;
      if (!is_possible && !vanishes) {
        return damaged(name, "holds " + std::to_string(divisor) + ", which cannot divide a frequency");
      }
    }
    return divisors;
  }

  Result<NormTensors> norm(const std::string& name) {
    NormTensors found;
    // The converter leaves the suffix out of falcon-h1's ffn_norm.
    const bool has_suffix = file_.find_tensor(name) == nullptr;
    OCTAVO_TRY(found.weight, vector(has_suffix ? name + ".weight" : name, width()));
    if (parts().has_norm_biases) {
      OCTAVO_TRY(found.bias, vector(name + ".bias", width()));
    }
    return found;
  }

  Result<Projection> projection(const std::string& name, std::int64_t rows, std::int64_t columns) {
    Projection found;
    OCTAVO_TRY(found.weight, matrix(name + ".weight", rows, columns));
    const std::string bias = name + ".bias";
    OCTAVO_TRY(found.bias, parts().needs_biases ? vector(bias, rows) : optional_vector(bias, rows));
    return found;
  }

  Result<StoredMatrix> matrix(std::string_view name, std::int64_t rows, std::int64_t columns) {
    OCTAVO_TRY(const SourceTensor* tensor, required(name));
    const std::int64_t shape[] = {columns, rows};
    OCTAVO_TRY(const kernels::TensorType type, check(*tensor, shape));
    OCTAVO_TRY(const std::vector<float> scales, second_scales(name, type, 1));
    StoredMatrix found = stored(*tensor, type, rows, columns, scales.front());
    if (found.reader != nullptr) {
      found.scale *= found.reader->scale_of(0);
      found.column_order = found.reader->column_order_of(0);
    }
    return found;
  }

  // Of what is read row by row, or as a stack. Kernels take an order of columns in other matrices only.
  Error ordered_columns(std::string_view name) const {
    return error_about(name, ErrorCode::kUnsupported,
                       "is quantised in groups that are not neighbours (desc_act), which is read in plain "
                       "layers only; choose a quantisation without it");
  }

  // Of each of `count` matrices, what NVFP4 keeps in a tensor beside them; other types have no such scale,
  // and converters leave out those that are 1. What stands there for rounding activations to four bits is
  // taken and not used: ours keep more.
  Result<std::vector<float>> second_scales(std::string_view weight, kernels::TensorType type,
                                           std::int64_t count) {
    std::vector<float> ones(static_cast<std::size_t>(count), 1.0f);
    if (type != kernels::TensorType::kNVFP4) return ones;
    const std::string name(weight.substr(0, weight.rfind(".weight")));
    take(name + ".input_scale");
    const SourceTensor* tensor = take(name + ".scale");
    if (tensor == nullptr) return ones;
    return expand(*tensor, std::span(&count, 1));
  }

  Result<std::vector<float>> vector(std::string_view name, std::int64_t size) {
    OCTAVO_TRY(const SourceTensor* tensor, required(name));
    return expand(*tensor, std::span(&size, 1));
  }

  Result<std::vector<float>> optional_vector(std::string_view name, std::int64_t size) {
    const SourceTensor* tensor = take(name);
    if (tensor == nullptr) return std::vector<float>();
    return expand(*tensor, std::span(&size, 1));
  }

  Result<std::vector<float>> expand(const SourceTensor& tensor, std::span<const std::int64_t> shape) const {
    OCTAVO_TRY(const kernels::TensorType type, check(tensor, shape));
    std::vector<float> values(static_cast<std::size_t>(tensor.num_elements));
    std::span<const std::byte> bytes = file_.bytes_of(tensor);
    std::vector<std::byte> made;
    if (file_.reader_of(tensor) != nullptr) {
      OCTAVO_TRY(made, read_tensor(file_, tensor));
      bytes = made;
    }
    kernels::dequantize(type, bytes.data(), tensor.num_elements, values.data());
    return values;
  }

  StoredMatrix stored(const SourceTensor& tensor, kernels::TensorType type, std::int64_t rows,
                      std::int64_t columns, float scale = 1.0f) const {
    return {{type, rows, columns, file_.bytes_of(tensor), scale}, file_.reader_of(tensor)};
  }

  bool has(std::string_view name) const { return file_.find_tensor(name) != nullptr; }

  // What is taken is used.
  const SourceTensor* take(std::string_view name) {
    const SourceTensor* tensor = file_.find_tensor(name);
    if (tensor != nullptr) used_.insert(tensor);
    return tensor;
  }

  Result<const SourceTensor*> required(std::string_view name) {
    const SourceTensor* tensor = take(name);
    if (tensor == nullptr) return damaged(name, "is missing");
    return tensor;
  }

  // `shape` fastest first; further dimensions must be 1.
  Result<kernels::TensorType> check(const SourceTensor& tensor, std::span<const std::int64_t> shape) const {
    bool same = true;
    for (std::size_t i = 0; i < tensor.dimensions.size(); ++i) {
      same = same && tensor.dimensions[i] == (i < shape.size() ? shape[i] : 1);
    }
    if (!same) {
      const auto found = std::span(tensor.dimensions).first(tensor.num_dimensions);
      return damaged(tensor.name,
                     "has the shape " + shape_text(found) + ", but the metadata says " + shape_text(shape));
    }
    const auto type = tensor.type();
    if (type) return *type;
    Error error = error_about(
        tensor.name, ErrorCode::kUnsupported,
        "has type " + std::string(tensor.type_name) +
            "; supported are F32, F16, BF16, Q1_0, Q2_0, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K to Q6_K, "
            "IQ1_S to IQ4_XS, TQ1_0, TQ2_0, MXFP4 and NVFP4: choose another quantisation");
    return error;
  }

  Error error_about(std::string_view name, ErrorCode code, const std::string& sentence) const {
    return {code,
            path_for_message(file_.path()) + ": tensor \"" + escape_for_message(file_.stored_name(name)) +
                "\" " + sentence,
            std::string(name)};
  }
  Error damaged(std::string_view name, const std::string& sentence) const {
    Error error = error_about(name, ErrorCode::kDamagedFile, sentence + "; download the file again");
    if (const SourceTensor* tensor = file_.find_tensor(name)) error.byte_offset = tensor->byte_offset;
    return error;
  }

  const ModelSource& file_;
  const ModelConfig& config_;
  std::set<const SourceTensor*> used_;
};

}  // namespace

std::vector<kernels::TensorType> ModelTensors::matrix_types() const {
  std::vector<kernels::TensorType> types;
  const auto add = [&](const StoredMatrix& source) {
    if (std::find(types.begin(), types.end(), source.type) == types.end()) types.push_back(source.type);
  };
  add(token_embedding);
  if (position_embedding.rows > 0) add(position_embedding);
  if (next_token && next_token->token_embedding.rows > 0) add(next_token->token_embedding);
  visit_multiplied(add);
  return types;
}

Result<ModelTensors> find_model_tensors(const ModelSource& file, const ModelConfig& config) {
  return TensorFinder(file, config).find();
}

Result<void> add_next_token_layer(const ModelSource& file, ModelConfig& config, ModelTensors& tensors) {
  if (config.num_skipped_layers == 0 || !config.parts.predicts_next_tokens) {
    return Error{.code = ErrorCode::kInvalidArgument,
                 .message =
                     "speculative is mtp, but this model has no layer that predicts further tokens; use "
                     "ngram, or choose a file that has one",
                 .subject = "speculative"};
  }
  OCTAVO_TRY(tensors.next_token, TensorFinder(file, config).find_next_token());
  config.guesses_next_tokens = true;
  return {};
}

bool limit_context(ModelTensors& tensors, const ModelConfig& config, std::int32_t max_model_len) {
  if (!tensors.short_rope || max_model_len > config.rope.original_context_length) return false;
  tensors.rope = *std::exchange(tensors.short_rope, std::nullopt);
  return true;
}

}  // namespace octavo::model
