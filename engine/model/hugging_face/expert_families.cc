// Models with routed experts, and those with latent attention. Names of values and weights: Hugging Face
// transformers.
#include <cmath>
#include <string>
#include <utility>

#include "engine/model/hugging_face/families.h"
#include "engine/model/hugging_face/layer_helpers.h"

namespace octavo::model {
namespace {

// transformers 5 writes num_local_experts where earlier versions and published folders have num_experts.
std::int64_t count_of_experts(Translation& t) { return t.config.whole({"num_experts", "num_local_experts"}); }

void copy_expert_counts(Translation& t, std::string_view count) {
  t.copy_whole("expert_count", {count, "num_local_experts"});
  t.copy_whole("expert_used_count", {"num_experts_per_tok", "num_experts_per_token"});
}

// Attention and norms of each layer; experts are added besides.
void add_layers_without_feed_forward(Translation& t, bool rows_of_neighbours, std::string_view second_norm) {
  t.add_ends();
  for (std::int64_t i = 0; i < t.num_layers(); ++i) {
    t.add_norm(layer_here(i) + "attn_norm", layer_there(t, i) + "input_layernorm");
    t.add_attention(i, rows_of_neighbours);
    t.add_norm(layer_here(i) + std::string(second_norm), layer_there(t, i) + "post_attention_layernorm");
  }
}

void add_router(Translation& t, std::int64_t layer, const std::string& part) {
  t.add_linear(layer_here(layer) + "ffn_gate_inp", part);
}

// A gated feed-forward layer that all rows use beside their experts.
void add_shared_expert(Translation& t, std::int64_t layer, const std::string& block) {
  t.add_linear(layer_here(layer) + "ffn_gate_shexp", block + ".gate_proj");
  t.add_linear(layer_here(layer) + "ffn_up_shexp", block + ".up_proj");
  t.add_linear(layer_here(layer) + "ffn_down_shexp", block + ".down_proj");
}

void translate_mixtral(Translation& t) {
  copy_usual_keys(t);
  t.copy_window();
  copy_expert_counts(t, "num_local_experts");
  add_layers_without_feed_forward(t, /*rows_of_neighbours=*/true, "ffn_norm");
  const std::int64_t count = t.config.whole({"num_local_experts"});
  for (std::int64_t i = 0; i < t.num_layers(); ++i) {
    const std::string block = layer_there(t, i) + "block_sparse_moe", newer = layer_there(t, i) + "mlp";
    add_router(t, i, block + ".gate");
    add_router(t, i, newer + ".gate");
    t.add_experts(i, block + ".experts", count, "w1", "w3", "w2");
    t.add_experts(i, newer + ".experts", count, "gate_proj", "up_proj", "down_proj");
  }
}

void translate_qwen3_moe(Translation& t) {
  copy_usual_keys(t);
  require_whole(t, "decoder_sparse_step", 1, 1);
  require_flag(t, "norm_topk_prob", true, true);
  if (!t.config.wholes("mlp_only_layers").empty())
    t.config.refuse("mlp_only_layers", ErrorCode::kUnsupported,
                    "names layers without experts, which is not computed here; choose another model");
  copy_expert_counts(t, "num_experts");
  t.copy_whole("expert_feed_forward_length", {"moe_intermediate_size"});
  if (t.config.flag_or("use_sliding_window", false)) t.copy_window();
  add_layers_without_feed_forward(t, /*rows_of_neighbours=*/false, "ffn_norm");
  add_head_norms(t);
  for (std::int64_t i = 0; i < t.num_layers(); ++i) {
    add_router(t, i, layer_there(t, i) + "mlp.gate");
    t.add_experts(i, layer_there(t, i) + "mlp.experts", count_of_experts(t), "gate_proj", "up_proj",
                  "down_proj");
  }
}

void translate_olmoe(Translation& t) {
  copy_usual_keys(t);
  require_flag(t, "norm_topk_prob", false, false);
  if (t.config.has("clip_qkv"))
    t.config.refuse("clip_qkv", ErrorCode::kUnsupported,
                    "bounds queries, keys and values, which is not computed here; choose another model");
  copy_expert_counts(t, "num_experts");
  add_layers_without_feed_forward(t, /*rows_of_neighbours=*/false, "ffn_norm");
  add_head_norms(t);
  for (std::int64_t i = 0; i < t.num_layers(); ++i) {
    add_router(t, i, layer_there(t, i) + "mlp.gate");
    t.add_experts(i, layer_there(t, i) + "mlp.experts", count_of_experts(t), "gate_proj", "up_proj",
                  "down_proj");
  }
}

// Gate and up stand by turns, in what are columns where the weights are floats.
void translate_gpt_oss(Translation& t) {
  copy_usual_keys(t, 150'000.0);
  copy_expert_counts(t, "num_local_experts");
  t.copy_whole("expert_feed_forward_length", {"intermediate_size"});
  t.copy_window();
  add_layers_without_feed_forward(t, /*rows_of_neighbours=*/false, "post_attention_norm");
  for (std::int64_t i = 0; i < t.num_layers(); ++i) {
    const std::string here = layer_here(i), block = layer_there(t, i) + "mlp.";
    t.add(here + "attn_sinks.weight", layer_there(t, i) + "self_attn.sinks");
    add_router(t, i, block + "router");
    for (const auto& [name, first] : {std::pair("gate", 0), std::pair("up", 1)}) {
      const RowOrder by_turns = {.first = first, .step = 2};
      TensorRecipe& weight = t.add(here + "ffn_" + name + "_exps.weight", block + "experts.gate_up_proj");
      weight.rows = by_turns;
      weight.is_transposed = true;
      TensorRecipe& bias = t.add(here + "ffn_" + name + "_exps.bias", block + "experts.gate_up_proj_bias");
      bias.rows = by_turns;
      bias.orders_numbers = true;
    }
    t.add(here + "ffn_down_exps.weight", block + "experts.down_proj").is_transposed = true;
    t.add(here + "ffn_down_exps.bias", block + "experts.down_proj_bias");
  }
}

void copy_granite_multipliers(Translation& t) {
  t.copy_number_or("embedding_scale", {"embedding_multiplier"}, 1.0);
  t.copy_number_or("residual_scale", {"residual_multiplier"}, 1.0);
  t.copy_number_or("logit_scale", {"logits_scaling"}, 1.0);
  t.copy_number_or("attention.scale", {"attention_multiplier"}, 1.0);
}

// Gate and up of all experts in one weight, of the shared one as well.
void translate_granitemoe(Translation& t) {
  copy_usual_keys(t);
  copy_granite_multipliers(t);
  copy_expert_counts(t, "num_local_experts");
  const std::int64_t shared = t.config.whole_or({"shared_intermediate_size"}, 0);
  t.add_whole("expert_shared_feed_forward_length", shared, "shared_intermediate_size");
  add_layers_without_feed_forward(t, /*rows_of_neighbours=*/true, "ffn_norm");
  for (std::int64_t i = 0; i < t.num_layers(); ++i) {
    const std::string here = layer_here(i), block = layer_there(t, i) + "block_sparse_moe.";
    t.add(here + "ffn_gate_inp.weight", block + "router.layer.weight");
    t.add(here + "ffn_gate_inp.weight", block + "router.weight");
    t.add(here + "ffn_gate_up_exps.weight", block + "input_linear.weight");
    t.add(here + "ffn_down_exps.weight", block + "output_linear.weight");
    t.add_experts(i, block + "experts", 0, "gate_proj", "up_proj", "down_proj");
    if (shared <= 0) continue;
    const std::string both = layer_there(t, i) + "shared_mlp.input_linear.weight";
    t.add(here + "ffn_gate_shexp.weight", both).rows.count = shared;
    t.add(here + "ffn_up_shexp.weight", both).rows = {.first = shared, .count = shared};
    t.add(here + "ffn_down_shexp.weight", layer_there(t, i) + "shared_mlp.output_linear.weight");
  }
}

// ---- experts behind some dense layers, chosen in groups, as GLM-4.5 and DeepSeek V3 have them

void copy_grouped_experts(Translation& t, std::string_view count, bool normalises) {
  copy_expert_counts(t, count);
  t.copy_whole("expert_feed_forward_length", {"moe_intermediate_size"});
  t.copy_whole_or("expert_shared_count", {"n_shared_experts"}, 0);
  t.copy_whole_or("leading_dense_block_count", {"first_k_dense_replace"}, 0);
  t.copy_number_or("expert_weights_scale", {"routed_scaling_factor"}, 1.0);
  t.add_flag("expert_weights_norm", t.config.flag_or("norm_topk_prob", normalises), "norm_topk_prob");
  if (t.config.whole_or({"n_group"}, 1) > 1) {
    t.copy_whole("expert_group_count", {"n_group"});
    t.copy_whole("expert_group_used_count", {"topk_group"});
  }
}

void add_layers_behind_dense(Translation& t, std::string_view count) {
  const std::int64_t num_dense = t.config.whole_or({"first_k_dense_replace"}, 0);
  for (std::int64_t i = 0; i < t.num_layers(); ++i) {
    const std::string block = layer_there(t, i) + "mlp";
    if (i < num_dense) {
      t.add_gated_feed_forward(i);
      continue;
    }
    t.add(layer_here(i) + "ffn_gate_inp.weight", block + ".gate.weight");
    t.add(layer_here(i) + "exp_probs_b.bias", block + ".gate.e_score_correction_bias");
    t.add_experts(i, block + ".experts", t.config.whole({count}), "gate_proj", "up_proj", "down_proj");
    add_shared_expert(t, i, block + ".shared_experts");
  }
  // Layers that only guess further tokens.
  for (std::int64_t i = 0; i < t.config.whole_or({"num_nextn_predict_layers"}, 0) && i < 8; ++i)
    t.ignored.push_back(layer_there(t, t.num_layers() + i));
}

void translate_glm4_moe(Translation& t) {
  copy_usual_keys(t);
  copy_grouped_experts(t, "n_routed_experts", /*normalises=*/true);
  add_layers_without_feed_forward(t, /*rows_of_neighbours=*/false, "post_attention_norm");
  add_head_norms(t);
  add_layers_behind_dense(t, "n_routed_experts");
}

constexpr std::uint8_t kSoftmax = 1, kSigmoid = 2;  // of expert_gating_func

void translate_latent(Translation& t, std::uint8_t scoring) {
  t.copy_sizes(kRmsEpsilonKey, {"rms_norm_eps"});
  t.copy_whole("feed_forward_length", {"intermediate_size"});
  require_flag(t, "rope_interleave", true, true);
  require_whole(t, "moe_layer_freq", 1, 1);
  const std::int64_t rotary = t.config.whole({"qk_rope_head_dim"});
  t.copy_rope(10'000.0, rotary);
  const FolderConfig rope =
      t.config.object(t.config.has("rope_parameters") ? "rope_parameters" : "rope_scaling");
  if (const double all = rope.number_or({"mscale_all_dim"}, 0.0); all != 0.0)
    t.add_number("rope.scaling.yarn_log_multiplier", 0.1 * all, "rope_scaling.mscale_all_dim");
  if (rope.has("llama_4_scaling_beta")) {
    t.add_number("attention.temperature_scale", rope.number({"llama_4_scaling_beta"}),
                 "rope_parameters.llama_4_scaling_beta");
  }
  const std::int64_t unrotated = t.config.whole({"qk_nope_head_dim"});
  t.add_whole("attention.key_length", unrotated < (1 << 20) && rotary < (1 << 20) ? unrotated + rotary : 0,
              "qk_nope_head_dim");
  t.copy_whole("attention.value_length", {"v_head_dim"});
  t.copy_whole("attention.kv_lora_rank", {"kv_lora_rank"});
  t.copy_whole_or("attention.q_lora_rank", {"q_lora_rank"}, 0);
  copy_grouped_experts(t, "n_routed_experts", /*normalises=*/scoring == kSigmoid);
  t.add_whole("expert_gating_func", scoring, "scoring_func");
  t.add_ends();
  for (std::int64_t i = 0; i < t.num_layers(); ++i) {
    const std::string here = layer_here(i), block = layer_there(t, i) + "self_attn.";
    t.add_norm(here + "attn_norm", layer_there(t, i) + "input_layernorm");
    t.add_linear(here + "attn_q", block + "q_proj");
    t.add_linear(here + "attn_q_a", block + "q_a_proj");
    t.add_norm(here + "attn_q_a_norm", block + "q_a_layernorm");
    t.add_linear(here + "attn_q_b", block + "q_b_proj");
    t.add_linear(here + "attn_kv_a_mqa", block + "kv_a_proj_with_mqa");
    t.add_norm(here + "attn_kv_a_norm", block + "kv_a_layernorm");
    t.add_linear(here + "attn_kv_b", block + "kv_b_proj");
    t.add_linear(here + "attn_output", block + "o_proj");
    t.add_norm(here + "ffn_norm", layer_there(t, i) + "post_attention_layernorm");
  }
  add_layers_behind_dense(t, "n_routed_experts");
}

// Groups are worth their two best experts here, the best one in DeepSeek V2.
void translate_deepseek_v2(Translation& t) {
  if (t.config.text_or("topk_method", "greedy") != "greedy" && t.config.whole_or({"n_group"}, 1) > 1)
    t.config.refuse("topk_method", ErrorCode::kUnsupported,
                    "chooses groups by their best expert, which is not computed here; choose another model");
  translate_latent(t, kSoftmax);
}

void translate_deepseek_v3(Translation& t) { translate_latent(t, kSigmoid); }

void translate_mistral4(Translation& t) { translate_latent(t, kSoftmax); }

// ---- Llama 4: experts in every n-th layer, whose weights have inputs as rows; chunks that its architecture
// knows

void translate_llama4(Translation& t) {
  constexpr std::int64_t kChunk = 8'192, kExpertsWithoutHeadNorms = 128;
  t.copy_sizes(kRmsEpsilonKey, {"rms_norm_eps"});
  t.copy_whole("feed_forward_length", {"intermediate_size_mlp"});
  t.copy_rope(500'000.0);
  require_whole(t, "attention_chunk_size", kChunk, kChunk);
  require_whole(t, "floor_scale", kChunk, kChunk);
  require_flag(t, "attn_temperature_tuning", true, true);
  const std::int64_t count = t.config.whole({"num_local_experts"});
  require_flag(t, "use_qk_norm", true, count != kExpertsWithoutHeadNorms);
  copy_expert_counts(t, "num_local_experts");
  t.copy_whole("expert_feed_forward_length", {"intermediate_size"});
  t.copy_whole_or("interleave_moe_layer_step", {"interleave_moe_layer_step"}, 1);
  add_layers_without_feed_forward(t, /*rows_of_neighbours=*/false, "ffn_norm");
  for (std::int64_t i = 0; i < t.num_layers(); ++i) {
    const std::string here = layer_here(i), block = layer_there(t, i) + "feed_forward.";
    t.add_gated_feed_forward(i, "feed_forward");
    t.add(here + "ffn_gate_inp.weight", block + "router.weight");
    t.add(here + "ffn_gate_up_exps.weight", block + "experts.gate_up_proj").is_transposed = true;
    t.add(here + "ffn_down_exps.weight", block + "experts.down_proj").is_transposed = true;
    add_shared_expert(t, i, block + "shared_expert");
  }
}

// Ministral 3: as llama, with YaRN that need not scale, and queries that are scaled by their position.
void translate_ministral3(Translation& t) {
  copy_usual_keys(t);
  t.copy_window();
  const FolderConfig rope = t.config.object("rope_parameters");
  if (rope.has("llama_4_scaling_beta")) {
    t.add_number("attention.temperature_scale", rope.number({"llama_4_scaling_beta"}),
                 "rope_parameters.llama_4_scaling_beta");
  }
  add_usual_layers(t, /*rows_of_neighbours=*/true);
}

// Its multipliers say how they follow from sizes.
void translate_minicpm(Translation& t) {
  copy_usual_keys(t);
  t.copy_number_or("embedding_scale", {"scale_emb"}, 1.0);
  const double depth = t.config.number_or({"scale_depth"}, 0.0);
  if (depth != 0.0)
    t.add_number("residual_scale", depth / std::sqrt(static_cast<double>(t.num_layers())), "scale_depth");
  const double base = t.config.number_or({"dim_model_base"}, 0.0);
  t.add_number("logit_scale", base != 0.0 ? t.config.number({"hidden_size"}) / base : 1.0, "dim_model_base");
  add_usual_layers(t, /*rows_of_neighbours=*/true);
}

constexpr Family kExpertFamilies[] = {
    {"deepseek_v2", "deepseek2", translate_deepseek_v2},
    {"deepseek_v3", "deepseek2", translate_deepseek_v3},
    {"glm4_moe", "glm4moe", translate_glm4_moe},
    {"glm4_moe_lite", "deepseek2", translate_deepseek_v3},
    {"gpt_oss", "gpt-oss", translate_gpt_oss},
    {"granitemoe", "granitemoe", translate_granitemoe},
    {"granitemoeshared", "granitemoe", translate_granitemoe},
    {"llama4_text", "llama4", translate_llama4},
    {"minicpm", "minicpm", translate_minicpm},
    {"ministral3", "mistral3", translate_ministral3},
    {"mistral4", "mistral4", translate_mistral4},
    {"mixtral", "llama", translate_mixtral},
    {"olmoe", "olmoe", translate_olmoe},
    {"qwen3_moe", "qwen3moe", translate_qwen3_moe},
};

}  // namespace

std::span<const Family> expert_families() { return kExpertFamilies; }

}  // namespace octavo::model
