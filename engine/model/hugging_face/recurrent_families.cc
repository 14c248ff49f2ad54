// Models whose layers keep a state, some or all. Names of values and weights: Hugging Face transformers.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "engine/model/hugging_face/families.h"
#include "engine/model/hugging_face/layer_helpers.h"

namespace octavo::model {
namespace {

// ---- Qwen3-Next and Qwen3.5: a Gated DeltaNet in most layers

struct DeltaNetSizes {
  std::int64_t key_heads = 0, value_heads = 0, key_columns = 0;  // of queries and keys together
};

// Within what the engine's ranges allow, so that nothing wraps.
std::int64_t bounded(std::int64_t value) { return value < 0 || value > (1 << 20) ? 0 : value; }

DeltaNetSizes copy_delta_net_keys(Translation& t) {
  const std::int64_t key_heads = bounded(t.config.whole({"linear_num_key_heads"})),
                     value_heads = bounded(t.config.whole({"linear_num_value_heads"})),
                     key_dim = bounded(t.config.whole({"linear_key_head_dim"})),
                     value_dim = bounded(t.config.whole({"linear_value_head_dim"}));
  t.copy_whole("ssm.conv_kernel", {"linear_conv_kernel_dim"});
  t.add_whole("ssm.state_size", key_dim, "linear_key_head_dim");
  t.add_whole("ssm.group_count", key_heads, "linear_num_key_heads");
  t.add_whole("ssm.time_step_rank", value_heads, "linear_num_value_heads");
  t.add_whole("ssm.inner_size", value_heads * value_dim, "linear_value_head_dim");
  return {key_heads, value_heads, 2 * key_heads * key_dim};
}

void copy_hybrid_keys(Translation& t) {
  t.copy_sizes(kRmsEpsilonKey, {"rms_norm_eps"});
  if (t.config.has("intermediate_size")) t.copy_whole("feed_forward_length", {"intermediate_size"});
  t.copy_rope(10'000.0);
  t.set_norms_less_one();
  if (t.layer_types().empty()) {
    t.copy_whole_or("full_attention_interval", {"full_attention_interval"}, 4);
    return;
  }
  std::vector<bool> layers;
  for (const std::string& type : t.layer_types()) layers.push_back(type == "linear_attention");
  t.metadata.add_flags(t.key("attention.recurrent_layers"), layers, "layer_types");
}

void copy_hybrid_experts(Translation& t) {
  t.copy_whole("expert_count", {"num_experts"});
  t.copy_whole("expert_used_count", {"num_experts_per_tok"});
  t.copy_whole("expert_feed_forward_length", {"moe_intermediate_size"});
  t.copy_whole("expert_shared_feed_forward_length", {"shared_expert_intermediate_size"});
  require_flag(t, "norm_topk_prob", true, true);
}

void add_hybrid_layers(Translation& t) {
  t.add_ends();
  for (std::int64_t i = 0; i < t.num_layers(); ++i) {
    t.add_norm(layer_here(i) + "attn_norm", layer_there(t, i) + "input_layernorm");
    t.add_attention(i, /*rows_of_neighbours=*/false);
    t.add_norm(layer_here(i) + "post_attention_norm", layer_there(t, i) + "post_attention_layernorm");
  }
  add_head_norms(t);
}

void add_hybrid_experts(Translation& t) {
  for (std::int64_t i = 0; i < t.num_layers(); ++i) {
    const std::string here = layer_here(i), block = layer_there(t, i) + "mlp.";
    t.add(here + "ffn_gate_inp.weight", block + "gate.weight");
    t.add_experts(i, block + "experts", t.config.whole({"num_experts"}), "gate_proj", "up_proj", "down_proj");
    t.add_linear(here + "ffn_gate_shexp", block + "shared_expert.gate_proj");
    t.add_linear(here + "ffn_up_shexp", block + "shared_expert.up_proj");
    t.add_linear(here + "ffn_down_shexp", block + "shared_expert.down_proj");
    t.add(here + "ffn_gate_inp_shexp.weight", block + "shared_expert_gate.weight");
  }
}

void add_tiled_delta_net(Translation& t, const DeltaNetSizes& sizes) {
  const RowOrder heads = {.key_heads = sizes.key_heads, .value_heads = sizes.value_heads};
  RowOrder behind_keys = heads;
  behind_keys.first_tiled = sizes.key_columns;
  for (std::int64_t i = 0; i < t.num_layers(); ++i) {
    const std::string here = layer_here(i), block = layer_there(t, i) + "linear_attn.";
    t.add(here + "attn_qkv.weight", block + "in_proj_qkv.weight").rows = behind_keys;
    t.add(here + "attn_gate.weight", block + "in_proj_z.weight").rows = heads;
    t.add(here + "ssm_beta.weight", block + "in_proj_b.weight").rows = heads;
    t.add(here + "ssm_alpha.weight", block + "in_proj_a.weight").rows = heads;
    TensorRecipe& convolution = t.add(here + "ssm_conv1d.weight", block + "conv1d.weight");
    convolution.rows = behind_keys;
    convolution.drops_middle = true;
    t.add(here + "ssm_dt.bias", block + "dt_bias").rows = heads;
    TensorRecipe& decay = t.add(here + "ssm_a", block + "A_log");
    decay.rows = heads;
    decay.change = NumberChange::kNegativeExp;
    t.add(here + "ssm_norm.weight", block + "norm.weight");
    TensorRecipe& output = t.add(here + "ssm_out.weight", block + "out_proj.weight");
    output.rows = heads;
    output.tiles_columns = true;
  }
}

void translate_qwen3_5(Translation& t) {
  copy_hybrid_keys(t);
  const DeltaNetSizes sizes = copy_delta_net_keys(t);
  add_hybrid_layers(t);
  add_tiled_delta_net(t, sizes);
  for (std::int64_t i = 0; i < t.num_layers(); ++i) t.add_gated_feed_forward(i);
}

void translate_qwen3_5_moe(Translation& t) {
  copy_hybrid_keys(t);
  const DeltaNetSizes sizes = copy_delta_net_keys(t);
  copy_hybrid_experts(t);
  add_hybrid_layers(t);
  add_tiled_delta_net(t, sizes);
  add_hybrid_experts(t);
}

// Inputs are packed by key head, as the engine takes them.
void translate_qwen3_next(Translation& t) {
  copy_hybrid_keys(t);
  copy_delta_net_keys(t);
  copy_hybrid_experts(t);
  add_hybrid_layers(t);
  for (std::int64_t i = 0; i < t.num_layers(); ++i) {
    const std::string here = layer_here(i), block = layer_there(t, i) + "linear_attn.";
    t.add(here + "ssm_in.weight", block + "in_proj_qkvz.weight");
    t.add(here + "ssm_ba.weight", block + "in_proj_ba.weight");
    t.add(here + "ssm_conv1d.weight", block + "conv1d.weight").drops_middle = true;
    t.add(here + "ssm_dt.bias", block + "dt_bias");
    t.add(here + "ssm_a", block + "A_log").change = NumberChange::kNegativeExp;
    t.add(here + "ssm_norm.weight", block + "norm.weight");
    t.add(here + "ssm_out.weight", block + "out_proj.weight");
  }
  add_hybrid_experts(t);
}

// ---- layers without heads of keys and values are the recurrent ones

void add_heads_by_layer(Translation& t, std::string_view type_of_attention) {
  std::vector<std::int32_t> heads;
  for (std::int64_t i = 0; i < t.num_layers(); ++i) {
    heads.push_back(t.has_layer_type(i, type_of_attention) ? static_cast<std::int32_t>(t.num_kv_heads()) : 0);
  }
  t.set_kv_heads(heads);
}

// LFM2: short convolutions in most layers.
void copy_lfm2_keys(Translation& t, std::int64_t feed_forward_length) {
  t.copy_sizes(kRmsEpsilonKey, {"norm_eps", "block_norm_eps"});
  t.add_whole("feed_forward_length", feed_forward_length, "intermediate_size");
  t.copy_rope(1'000'000.0);
  t.copy_whole("shortconv.l_cache", {"conv_L_cache"});
  add_heads_by_layer(t, "full_attention");
  t.add("token_embd.weight", t.stem("embed_tokens.weight"));
  t.add("token_embd_norm.weight", t.stem("embedding_norm.weight"));
  t.ignored.push_back("lm_head.weight");
  for (std::int64_t i = 0; i < t.num_layers(); ++i) {
    const std::string here = layer_here(i), there = layer_there(t, i);
    t.add_norm(here + "attn_norm", there + "operator_norm");
    t.add_norm(here + "ffn_norm", there + "ffn_norm");
    t.add_linear(here + "attn_q", there + "self_attn.q_proj");
    t.add_linear(here + "attn_k", there + "self_attn.k_proj");
    t.add_linear(here + "attn_v", there + "self_attn.v_proj");
    t.add_linear(here + "attn_output", there + "self_attn.out_proj");
    t.add(here + "shortconv.conv.weight", there + "conv.conv.weight").drops_middle = true;
    t.add_linear(here + "shortconv.in_proj", there + "conv.in_proj");
    t.add_linear(here + "shortconv.out_proj", there + "conv.out_proj");
  }
  add_head_norms(t, "q_layernorm", "k_layernorm");
}

void add_lfm2_feed_forward(Translation& t, std::int64_t layer) {
  const std::string here = layer_here(layer), block = layer_there(t, layer) + "feed_forward.";
  t.add_linear(here + "ffn_gate", block + "w1");
  t.add_linear(here + "ffn_up", block + "w3");
  t.add_linear(here + "ffn_down", block + "w2");
}

void translate_lfm2(Translation& t) {
  std::int64_t length = bounded(t.config.whole({"intermediate_size", "block_ff_dim"}));
  if (t.config.flag_or("block_auto_adjust_ff_dim", true)) {  // as its authors round it
    length = 2 * length / 3;
    const double factor = t.config.number_or({"block_ffn_dim_multiplier"}, 1.0);
    if (factor > 0.0 && factor < 16.0)
      length = static_cast<std::int64_t>(factor * static_cast<double>(length));
    const std::int64_t multiple =
        std::max<std::int64_t>(bounded(t.config.whole_or({"block_multiple_of"}, 256)), 1);
    length = (length + multiple - 1) / multiple * multiple;
  }
  copy_lfm2_keys(t, length);
  for (std::int64_t i = 0; i < t.num_layers(); ++i) add_lfm2_feed_forward(t, i);
}

void translate_lfm2_moe(Translation& t) {
  copy_lfm2_keys(t, t.config.whole({"intermediate_size"}));
  t.copy_whole("expert_count", {"num_experts"});
  t.copy_whole("expert_used_count", {"num_experts_per_tok"});
  t.copy_whole("expert_feed_forward_length", {"moe_intermediate_size"});
  t.copy_whole_or("leading_dense_block_count", {"num_dense_layers"}, 0);
  require_flag(t, "norm_topk_prob", true, true);
  t.copy_number_or("expert_weights_scale", {"routed_scaling_factor"}, 1.0);
  const std::int64_t num_dense = t.config.whole_or({"num_dense_layers"}, 0);
  for (std::int64_t i = 0; i < t.num_layers(); ++i) {
    const std::string here = layer_here(i), block = layer_there(t, i) + "feed_forward.";
    if (i < num_dense) {
      add_lfm2_feed_forward(t, i);
      continue;
    }
    t.add(here + "ffn_gate_inp.weight", block + "gate.weight");
    t.add(here + "exp_probs_b.bias", block + "expert_bias");
    t.add_experts(i, block + "experts", t.config.whole({"num_experts"}), "w1", "w3", "w2");
  }
}

// ---- Mamba-2

void add_state_space(Translation& t, std::int64_t layer, std::string_view name, std::int64_t groups) {
  const std::string here = layer_here(layer), block = layer_there(t, layer) + std::string(name) + ".";
  t.add(here + "ssm_in.weight", block + "in_proj.weight");
  t.add(here + "ssm_conv1d.weight", block + "conv1d.weight").drops_middle = true;
  t.add(here + "ssm_conv1d.bias", block + "conv1d.bias");
  t.add(here + "ssm_dt.bias", block + "dt_bias");
  TensorRecipe& decay = t.add(here + "ssm_a", block + "A_log");
  decay.change = NumberChange::kNegativeExp;
  decay.columns = 1;
  t.add(here + "ssm_d", block + "D").columns = 1;
  TensorRecipe& norm = t.add(here + "ssm_norm.weight", block + "norm.weight");
  norm.rows_of_list = groups;
  t.add(here + "ssm_out.weight", block + "out_proj.weight");
}

void copy_state_space_keys(Translation& t, ConfigNames heads, ConfigNames head_dim, ConfigNames groups,
                           ConfigNames state, ConfigNames width) {
  t.copy_whole("ssm.conv_kernel", width);
  t.copy_whole("ssm.state_size", state);
  t.copy_whole("ssm.group_count", groups);
  t.copy_whole("ssm.time_step_rank", heads);
  t.add_whole("ssm.inner_size", bounded(t.config.whole(heads)) * bounded(t.config.whole(head_dim)),
              *head_dim.begin());
}

void translate_granitemoehybrid(Translation& t) {
  const std::int64_t num_experts = t.config.whole_or({"num_local_experts"}, 0),
                     shared = t.config.whole_or({"shared_intermediate_size"}, 0);
  t.copy_sizes(kRmsEpsilonKey, {"rms_norm_eps"});
  if (num_experts > 0) {
    t.copy_whole("feed_forward_length", {"intermediate_size"});
  } else {
    t.add_whole("feed_forward_length", shared, "shared_intermediate_size");
  }
  t.copy_rope(10'000.0);
  t.copy_number_or("embedding_scale", {"embedding_multiplier"}, 1.0);
  t.copy_number_or("residual_scale", {"residual_multiplier"}, 1.0);
  t.copy_number_or("logit_scale", {"logits_scaling"}, 1.0);
  t.copy_number_or("attention.scale", {"attention_multiplier"}, 1.0);
  t.add_flag("rope.scaling.finetuned", t.config.text_or("position_embedding_type", "rope") == "rope",
             "position_embedding_type");
  copy_state_space_keys(t, {"mamba_n_heads"}, {"mamba_d_head"}, {"mamba_n_groups"}, {"mamba_d_state"},
                        {"mamba_d_conv"});
  add_heads_by_layer(t, "attention");
  if (num_experts > 0) {
    t.add_whole("expert_count", num_experts, "num_local_experts");
    t.copy_whole("expert_used_count", {"num_experts_per_tok"});
    t.add_whole("expert_shared_feed_forward_length", shared, "shared_intermediate_size");
  }
  t.add_ends();
  for (std::int64_t i = 0; i < t.num_layers(); ++i) {
    const std::string here = layer_here(i), there = layer_there(t, i), block = there + "block_sparse_moe.";
    t.add_norm(here + "attn_norm", there + "input_layernorm");
    t.add_norm(here + "ffn_norm", there + "post_attention_layernorm");
    t.add_attention(i, /*rows_of_neighbours=*/true);
    add_state_space(t, i, "mamba", bounded(t.config.whole_or({"mamba_n_groups"}, 1)));
    const std::string suffix = num_experts > 0 ? "_shexp.weight" : ".weight";
    const std::string both = there + "shared_mlp.input_linear.weight";
    t.add(here + "ffn_gate" + suffix, both).rows.count = bounded(shared);
    t.add(here + "ffn_up" + suffix, both).rows = {.first = bounded(shared), .count = bounded(shared)};
    t.add(here + "ffn_down" + suffix, there + "shared_mlp.output_linear.weight");
    if (num_experts == 0) continue;
    t.add(here + "ffn_gate_inp.weight", block + "router.layer.weight");
    t.add(here + "ffn_gate_inp.weight", block + "router.weight");
    t.add(here + "ffn_gate_up_exps.weight", block + "input_linear.weight");
    t.add(here + "ffn_down_exps.weight", block + "output_linear.weight");
    t.add_experts(i, block + "experts", 0, "gate_proj", "up_proj", "down_proj");
  }
}

constexpr Family kRecurrentFamilies[] = {
    {"granitemoehybrid", "granitehybrid", translate_granitemoehybrid},
    {"lfm2", "lfm2", translate_lfm2},
    {"lfm2_moe", "lfm2moe", translate_lfm2_moe},
    {"qwen3_5_moe_text", "qwen35moe", translate_qwen3_5_moe},
    {"qwen3_5_text", "qwen35", translate_qwen3_5},
    {"qwen3_next", "qwen3next", translate_qwen3_next},
};

}  // namespace

std::span<const Family> recurrent_families() { return kRecurrentFamilies; }

}  // namespace octavo::model
