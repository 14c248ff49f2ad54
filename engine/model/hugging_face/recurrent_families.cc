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

// transformers 5 calls such a layer "full_attention" in every family, before it was also "attention".
void add_heads_by_layer(Translation& t) {
  std::vector<std::int32_t> heads;
  for (std::int64_t i = 0; i < t.num_layers(); ++i) {
    const bool attends = t.has_layer_type(i, "full_attention") || t.has_layer_type(i, "attention");
    heads.push_back(attends ? static_cast<std::int32_t>(t.num_kv_heads()) : 0);
  }
  t.set_kv_heads(heads);
}

// LFM2: short convolutions in most layers.
void copy_lfm2_keys(Translation& t, std::int64_t feed_forward_length) {
  t.copy_sizes(kRmsEpsilonKey, {"norm_eps", "block_norm_eps"});
  t.add_whole("feed_forward_length", feed_forward_length, "intermediate_size");
  t.copy_rope(1'000'000.0);
  t.copy_whole("shortconv.l_cache", {"conv_L_cache"});
  add_heads_by_layer(t);
  t.add("token_embd.weight", t.stem("embed_tokens.weight"));
  t.add("token_embd_norm.weight", t.stem("embedding_norm.weight"));
  if (t.config.flag_or("tie_word_embeddings", t.config.flag_or("tie_embedding", true))) {
    t.ignored.push_back("lm_head.weight");  // a copy
  } else {
    t.add("output.weight", "lm_head.weight");
  }
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
  t.add_flag("rope.scaling.finetuned", t.config.text_or("position_embedding_type", "nope") == "rope",
             "position_embedding_type");
  copy_state_space_keys(t, {"mamba_n_heads"}, {"mamba_d_head"}, {"mamba_n_groups"}, {"mamba_d_state"},
                        {"mamba_d_conv"});
  add_heads_by_layer(t);
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

// Falcon-H1: attention beside Mamba-2 in every layer, and a multiplier at every place, which the engine has
// in the weights.
void translate_falcon_h1(Translation& t) {
  copy_usual_keys(t);
  if (t.config.flag_or("mamba_rms_norm", false)) require_flag(t, "mamba_norm_before_gate", true, false);
  const std::int64_t heads = bounded(t.config.whole({"mamba_n_heads"})),
                     groups = bounded(t.config.whole({"mamba_n_groups"})),
                     state = bounded(t.config.whole({"mamba_d_state"})),
                     inner = bounded(t.config.whole({"mamba_d_ssm"}));
  t.copy_whole("ssm.conv_kernel", {"mamba_d_conv"});
  t.add_whole("ssm.state_size", state, "mamba_d_state");
  t.add_whole("ssm.group_count", groups, "mamba_n_groups");
  t.add_whole("ssm.time_step_rank", heads, "mamba_n_heads");
  t.add_whole("ssm.inner_size", inner, "mamba_d_ssm");
  const auto scaled = [&](const std::string& name, const std::string& part, double factor) -> TensorRecipe& {
    TensorRecipe& recipe = t.add(name, part);
    if (factor != 1.0) recipe.change = NumberChange::kScaled;
    recipe.factor = factor;
    return recipe;
  };
  const auto factor = [&](std::string_view name) { return t.config.number_or({name}, 1.0); };
  std::vector<float> of_mlp = t.config.numbers("mlp_multipliers"),
                     of_state = t.config.numbers("ssm_multipliers");
  of_mlp.resize(2, 1.0f);
  of_state.resize(5, 1.0f);
  scaled("token_embd.weight", t.stem("embed_tokens.weight"), factor("embedding_multiplier"));
  const bool is_tied = t.config.flag_or("tie_word_embeddings", false);
  scaled("output.weight", is_tied ? t.stem("embed_tokens.weight") : "lm_head.weight",
         factor("lm_head_multiplier"));
  if (is_tied) t.ignored.push_back("lm_head.weight");
  t.add_norm("output_norm", t.stem("final_layernorm"));
  // Of the gate, the inputs, their two groups of coefficients, and the time steps.
  std::vector<float> of_rows;
  const std::int64_t kParts[] = {inner, inner, bounded(groups * state), bounded(groups * state), heads};
  for (std::size_t i = 0; i < std::size(kParts); ++i)
    of_rows.insert(of_rows.end(), static_cast<std::size_t>(kParts[i]), of_state[i]);
  const double into = factor("attention_in_multiplier");
  for (std::int64_t i = 0; i < t.num_layers(); ++i) {
    const std::string here = layer_here(i), there = layer_there(t, i), attention = there + "self_attn.";
    t.add_norm(here + "attn_norm", there + "input_layernorm");
    t.add_norm(here + "ffn_norm", there + "pre_ff_layernorm");
    scaled(here + "attn_q.weight", attention + "q_proj.weight", into);
    scaled(here + "attn_k.weight", attention + "k_proj.weight", into * factor("key_multiplier"));
    scaled(here + "attn_v.weight", attention + "v_proj.weight", into);
    scaled(here + "attn_output.weight", attention + "o_proj.weight", factor("attention_out_multiplier"));
    scaled(here + "ffn_gate.weight", there + "feed_forward.gate_proj.weight", double{of_mlp[0]});
    scaled(here + "ffn_up.weight", there + "feed_forward.up_proj.weight", 1.0);
    scaled(here + "ffn_down.weight", there + "feed_forward.down_proj.weight", double{of_mlp[1]});
    TensorRecipe& input =
        scaled(here + "ssm_in.weight", there + "mamba.in_proj.weight", factor("ssm_in_multiplier"));
    input.change = NumberChange::kScaled;
    input.row_factors = of_rows;
    scaled(here + "ssm_out.weight", there + "mamba.out_proj.weight", factor("ssm_out_multiplier"));
    add_state_space(t, i, "mamba", groups);
  }
}

// Nemotron-H: attention, Mamba-2 or a feed-forward layer, alone behind the one norm; perhaps experts.
std::string_view nemotron_architecture(const FolderConfig& config) {
  const std::vector<std::string> kinds = config.texts("layers_block_type");
  const bool has_experts = std::ranges::find(kinds, "moe") != kinds.end() ||
                           config.text_or("hybrid_override_pattern", "").find('E') != std::string::npos;
  return has_experts ? "nemotron_h_moe" : "nemotron_h";
}

// One character for each layer: M, *, - or E.
std::string nemotron_pattern(const Translation& t) {
  std::string pattern = t.config.text_or("hybrid_override_pattern", "");
  if (!pattern.empty()) return pattern;
  for (const std::string& kind : t.config.texts("layers_block_type")) {
    const bool attends = kind == "attention" || kind == "full_attention";
    const bool recurs = kind == "mamba" || kind == "linear_attention";  // by transformers 5
    pattern += recurs ? 'M' : attends ? '*' : kind == "mlp" ? '-' : 'E';
  }
  return pattern;
}

void add_nemotron_experts(Translation& t, std::int64_t i) {
  const std::string here = layer_here(i), mixer = layer_there(t, i) + "mixer.";
  t.add(here + "ffn_gate_inp.weight", mixer + "gate.weight");
  t.add(here + "exp_probs_b.bias", mixer + "gate.e_score_correction_bias");
  t.add_experts(i, mixer + "experts", t.config.whole({"n_routed_experts"}), "", "up_proj", "down_proj");
  t.add_linear(here + "ffn_up_shexp", mixer + "shared_experts.up_proj");
  t.add_linear(here + "ffn_down_shexp", mixer + "shared_experts.down_proj");
  t.add_linear(here + "ffn_latent_down", mixer + "fc1_latent_proj");
  t.add_linear(here + "ffn_latent_up", mixer + "fc2_latent_proj");
}

void translate_nemotron_h(Translation& t) {
  const std::string pattern = nemotron_pattern(t);
  t.config.assume("num_hidden_layers", static_cast<std::int64_t>(pattern.size()));
  if (t.config.has("attention_head_dim")) t.config.assume("head_dim", t.config.whole({"attention_head_dim"}));
  t.copy_sizes(kRmsEpsilonKey, {"layer_norm_epsilon", "rms_norm_eps"});
  if (std::cmp_not_equal(pattern.size(), t.num_layers())) {
    t.config.refuse("hybrid_override_pattern", ErrorCode::kDamagedFile,
                    "has " + std::to_string(pattern.size()) + " entries for " +
                        std::to_string(t.num_layers()) + " layers: download the repository again");
    return;
  }
  const bool has_experts = nemotron_architecture(t.config) == "nemotron_h_moe";
  const auto hidden = static_cast<std::int32_t>(bounded(t.config.whole_or({"intermediate_size"}, 0))),
             of_experts = static_cast<std::int32_t>(bounded(t.config.whole_or({"moe_intermediate_size"}, 0)));
  std::vector<std::int32_t> heads, lengths;
  for (const char kind : pattern) {
    heads.push_back(kind == '*' ? static_cast<std::int32_t>(t.num_kv_heads()) : 0);
    lengths.push_back(kind == '-' ? hidden : kind == 'E' ? of_experts : 0);
  }
  t.set_kv_heads(std::move(heads));
  t.metadata.add_list(t.key("feed_forward_length"), lengths, "intermediate_size");
  copy_state_space_keys(t, {"mamba_num_heads"}, {"mamba_head_dim"}, {"n_groups"}, {"ssm_state_size"},
                        {"conv_kernel"});
  if (has_experts) {
    if (pattern.find('-') != std::string::npos)
      t.config.refuse(
          "hybrid_override_pattern", ErrorCode::kUnsupported,
          "has layers with and without experts, which is not computed here; choose another model");
    t.copy_whole("expert_count", {"n_routed_experts"});
    t.copy_whole("expert_used_count", {"num_experts_per_tok"});
    t.copy_whole("expert_feed_forward_length", {"moe_intermediate_size"});
    t.copy_whole_or("expert_shared_feed_forward_length", {"moe_shared_expert_intermediate_size"}, 0);
    t.copy_whole_or("moe_latent_size", {"moe_latent_size"}, 0);
    t.copy_number_or("expert_weights_scale", {"routed_scaling_factor"}, 1.0);
    t.add_flag("expert_weights_norm", t.config.flag_or("norm_topk_prob", true), "norm_topk_prob");
    require_whole(t, "n_group", 1, 1);
  }
  t.add_ends("embeddings", "norm_f");
  for (std::int64_t i = 0; i < t.num_layers(); ++i) {
    t.add_norm(layer_here(i) + "attn_norm", layer_there(t, i) + "norm");
    switch (pattern[static_cast<std::size_t>(i)]) {
      case 'M': add_state_space(t, i, "mixer", bounded(t.config.whole({"n_groups"}))); break;
      case '*': t.add_attention(i, /*rows_of_neighbours=*/false, "mixer"); break;
      case 'E': add_nemotron_experts(t, i); break;
      default:
        t.add_linear(layer_here(i) + "ffn_up", layer_there(t, i) + "mixer.up_proj");
        t.add_linear(layer_here(i) + "ffn_down", layer_there(t, i) + "mixer.down_proj");
    }
  }
}

constexpr Family kRecurrentFamilies[] = {
    {"falcon_h1", "falcon-h1", translate_falcon_h1},
    {"granitemoehybrid", "granitehybrid", translate_granitemoehybrid},
    {"lfm2", "lfm2", translate_lfm2},
    {"lfm2_moe", "lfm2moe", translate_lfm2_moe},
    {"nemotron_h", "nemotron_h", translate_nemotron_h, "embeddings.weight", nemotron_architecture},
    {"qwen3_5_moe_text", "qwen35moe", translate_qwen3_5_moe},
    {"qwen3_5_text", "qwen35", translate_qwen3_5},
    {"qwen3_next", "qwen3next", translate_qwen3_next},
};

}  // namespace

std::span<const Family> recurrent_families() { return kRecurrentFamilies; }

}  // namespace octavo::model
