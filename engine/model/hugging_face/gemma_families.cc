// Gemma 1 to 4. Names of values and weights: Hugging Face transformers.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "engine/model/hugging_face/families.h"
#include "engine/model/hugging_face/layer_helpers.h"
#include "engine/model/limits.h"
#include "engine/model/rope.h"

namespace octavo::model {
namespace {

void copy_gemma_keys(Translation& t) {
  t.copy_sizes("attention.layer_norm_rms_epsilon", {"rms_norm_eps"});
  t.copy_whole("feed_forward_length", {"intermediate_size"});
  t.set_norms_less_one();
}

void copy_score_scale(Translation& t) {
  if (!t.config.has("query_pre_attn_scalar")) return;
  t.add_number("attention.scale", 1.0 / std::sqrt(t.config.number({"query_pre_attn_scalar"})),
               "query_pre_attn_scalar");
}

void copy_caps(Translation& t) {
  t.copy_number_or("attn_logit_softcapping", {"attn_logit_softcapping"}, 0.0);
  t.copy_number_or("final_logit_softcapping", {"final_logit_softcapping"}, 0.0);
}

enum class GemmaNorms : std::uint8_t { kBefore, kBeforeAndBehind, kAlsoOfHeads };

void add_gemma_layers(Translation& t, GemmaNorms norms) {
  t.add_ends();
  t.ignored.push_back("lm_head.weight");
  for (std::int64_t i = 0; i < t.num_layers(); ++i) {
    const std::string name = "blk." + std::to_string(i) + ".",
                      layer = t.stem("layers.") + std::to_string(i) + ".";
    t.add_norm(name + "attn_norm", layer + "input_layernorm");
    t.add_attention(i, /*rows_of_neighbours=*/false);
    t.add_gated_feed_forward(i);
    t.ignored.push_back(layer + "self_attn.rotary_emb.inv_freq");
    if (norms == GemmaNorms::kBefore) {
      t.add_norm(name + "ffn_norm", layer + "post_attention_layernorm");
      continue;
    }
    t.add_norm(name + "post_attention_norm", layer + "post_attention_layernorm");
    t.add_norm(name + "ffn_norm", layer + "pre_feedforward_layernorm");
    t.add_norm(name + "post_ffw_norm", layer + "post_feedforward_layernorm");
    if (norms != GemmaNorms::kAlsoOfHeads) continue;
    t.add_norm(name + "attn_q_norm", layer + "self_attn.q_norm");
    t.add_norm(name + "attn_k_norm", layer + "self_attn.k_norm");
  }
}

void translate_gemma(Translation& t) {
  copy_gemma_keys(t);
  t.copy_rope(10'000.0);
  add_gemma_layers(t, GemmaNorms::kBefore);
}

void translate_gemma2(Translation& t) {
  copy_gemma_keys(t);
  t.copy_rope(10'000.0);
  t.copy_window();
  copy_score_scale(t);
  copy_caps(t);
  add_gemma_layers(t, GemmaNorms::kBeforeAndBehind);
}

// Published configurations say only what differs from this.
void assume_gemma3(FolderConfig& config) {
  const std::pair<const char*, double> kNumbers[] = {{"rms_norm_eps", 1e-6}, {"rope_theta", 1e6}};
  for (const auto& [name, value] : kNumbers) config.assume(name, value);
  const std::pair<const char*, std::int64_t> kWholes[] = {
      {"vocab_size", 262'208},   {"num_attention_heads", 8},           {"num_key_value_heads", 4},
      {"head_dim", 256},         {"max_position_embeddings", 131'072}, {"query_pre_attn_scalar", 256},
      {"sliding_window", 4'096},
  };
  for (const auto& [name, value] : kWholes) config.assume(name, value);
}

void translate_gemma3(Translation& t) {
  assume_gemma3(t.config);
  copy_gemma_keys(t);
  t.copy_rope(1'000'000.0);
  if (t.config.has("rope_local_base_freq") && !t.metadata.contains(t.key("rope.freq_base_swa")))
    t.copy_number("rope.freq_base_swa", {"rope_local_base_freq"});
  t.copy_window();
  if (t.layer_types().empty() && t.config.has("sliding_window_pattern"))
    t.copy_whole("attention.sliding_window_pattern", {"sliding_window_pattern"});
  copy_score_scale(t);
  copy_caps(t);
  add_gemma_layers(t, GemmaNorms::kAlsoOfHeads);
}

// Gemma 4: layers with a window and those without differ in the size and number of their heads, the last
// layers read others' keys and values, and norms are stored as they are.
void copy_gemma4_heads(Translation& t) {
  const std::int64_t local = t.head_dim();
  std::int64_t global = t.config.whole_or({"global_head_dim"}, 0);
  const FolderConfig by_layer = t.config.object("per_layer_config");
  std::vector<std::int32_t> heads;
  for (std::int64_t i = 0; i < t.num_layers(); ++i) {
    const bool is_global = t.has_layer_type(i, "full_attention");
    std::int64_t count = t.num_kv_heads();
    if (const std::string index = std::to_string(i); is_global && by_layer.has(index)) {
      const FolderConfig layer = by_layer.object(index);
      global = layer.whole_or({"head_dim"}, global);
      count = layer.whole_or({"num_key_value_heads"}, count);
    } else if (is_global && t.config.flag_or("attention_k_eq_v", false)) {
      count = t.config.whole_or({"num_global_key_value_heads"}, count);
    }
    heads.push_back(count < 1 || count > kMaxHeads ? 0 : static_cast<std::int32_t>(count));
  }
  t.set_kv_heads(std::move(heads));
  // What a configuration leaves out is as its class has it; one that says what layers have apart from the
  // others says this there.
  if (global == 0) global = t.config.has("per_layer_config") ? local : 512;
  for (const char* suffix : {"attention.key_length", "attention.value_length", "rope.dimension_count"})
    t.add_whole(suffix, global, "global_head_dim");
  for (const char* suffix :
       {"attention.key_length_swa", "attention.value_length_swa", "rope.dimension_count_swa"})
    t.add_whole(suffix, local, "head_dim");
  // Of layers that see all a part of each head turns, in pairs as far apart as if all of it did.
  const FolderConfig rope = t.config.object("rope_parameters");
  const FolderConfig full = rope.object("full_attention"), window = rope.object("sliding_attention");
  t.add_number("rope.freq_base", full.number_or({"rope_theta"}, 1'000'000.0), "rope_theta");
  t.add_number("rope.freq_base_swa", window.number_or({"rope_theta"}, 10'000.0), "rope_theta");
  const double part = full.number_or({"partial_rotary_factor"}, 0.25);
  if (global < 2 || global > kMaxHeadDim || !(part >= 0.0 && part <= 1.0)) return;  // refused by its range
  std::vector<float> divisors(static_cast<std::size_t>(global / 2), kVanishingDivisor);
  const auto num_turning = static_cast<std::size_t>(part * static_cast<double>(global)) / 2;
  std::fill_n(divisors.begin(), num_turning, 1.0f);
  t.add_constants("rope_freqs.weight", std::move(divisors));
}

void add_gemma4_layer(Translation& t, std::int64_t i) {
  const std::string name = "blk." + std::to_string(i) + ".",
                    layer = t.stem("layers.") + std::to_string(i) + ".";
  t.add_norm(name + "attn_norm", layer + "input_layernorm");
  t.add_attention(i, /*rows_of_neighbours=*/false);
  t.add_norm(name + "attn_q_norm", layer + "self_attn.q_norm");
  t.add_norm(name + "attn_k_norm", layer + "self_attn.k_norm");
  t.add_norm(name + "post_attention_norm", layer + "post_attention_layernorm");
  t.add_norm(name + "ffn_norm", layer + "pre_feedforward_layernorm");
  t.add_gated_feed_forward(i);
  t.add_norm(name + "post_ffw_norm", layer + "post_feedforward_layernorm");
  t.add(name + "layer_output_scale.weight", layer + "layer_scalar");
  t.add_linear(name + "inp_gate", layer + "per_layer_input_gate");
  t.add_linear(name + "proj", layer + "per_layer_projection");
  t.add_norm(name + "post_norm", layer + "post_per_layer_input_norm");
  // Beside the feed-forward layer, of models with experts.
  t.add(name + "ffn_gate_inp.weight", layer + "router.proj.weight");
  t.add(name + "ffn_gate_inp.scale", layer + "router.scale");
  t.add(name + "ffn_down_exps.scale", layer + "router.per_expert_scale");
  t.add(name + "ffn_gate_up_exps.weight", layer + "experts.gate_up_proj");
  t.add(name + "ffn_down_exps.weight", layer + "experts.down_proj");
  t.add_norm(name + "pre_ffw_norm_2", layer + "pre_feedforward_layernorm_2");
  t.add_norm(name + "post_ffw_norm_1", layer + "post_feedforward_layernorm_1");
  t.add_norm(name + "post_ffw_norm_2", layer + "post_feedforward_layernorm_2");
}

void translate_gemma4(Translation& t) {
  t.copy_sizes("attention.layer_norm_rms_epsilon", {"rms_norm_eps"});
  require_text(t, "use_bidirectional_attention", {"vision"});
  const std::int64_t num_shared = t.config.whole_or({"num_kv_shared_layers"}, 0),
                     hidden = t.config.whole({"intermediate_size"});
  if (t.layer_types().empty())
    t.config.refuse("layer_types", ErrorCode::kDamagedFile, "is missing: download the repository again");
  if (t.config.flag_or("use_double_wide_mlp", false) && hidden > 0 && hidden < kMaxFeedForwardLength) {
    std::vector<std::int32_t> lengths;
    for (std::int64_t i = 0; i < t.num_layers(); ++i)
      lengths.push_back(static_cast<std::int32_t>(i >= t.num_layers() - num_shared ? 2 * hidden : hidden));
    t.metadata.add_list(t.key("feed_forward_length"), lengths, "intermediate_size");
  } else {
    t.add_whole("feed_forward_length", hidden, "intermediate_size");
  }
  t.add_whole("attention.shared_kv_layers", num_shared, "num_kv_shared_layers");
  t.copy_whole_or("embedding_length_per_layer_input", {"hidden_size_per_layer_input"}, 0);
  copy_gemma4_heads(t);
  t.copy_window();
  t.copy_number_or("final_logit_softcapping", {"final_logit_softcapping"}, 0.0);
  if (t.config.flag_or("enable_moe_block", false)) {
    t.copy_whole("expert_count", {"num_experts"});
    t.copy_whole("expert_used_count", {"top_k_experts"});
    t.copy_whole("expert_feed_forward_length", {"moe_intermediate_size"});
  }
  t.add_ends();
  t.ignored.push_back("lm_head.weight");
  t.add("per_layer_token_embd.weight", t.stem("embed_tokens_per_layer.weight"));
  t.add("per_layer_model_proj.weight", t.stem("per_layer_model_projection.weight"));
  t.add_norm("per_layer_proj_norm", t.stem("per_layer_projection_norm"));
  for (std::int64_t i = 0; i < t.num_layers(); ++i) add_gemma4_layer(t, i);
}

constexpr Family kGemmaFamilies[] = {
    {"gemma", "gemma", translate_gemma},
    {"gemma2", "gemma2", translate_gemma2},
    {"gemma3_text", "gemma3", translate_gemma3},
    {"gemma4_text", "gemma4", translate_gemma4},
};

}  // namespace

std::span<const Family> gemma_families() { return kGemmaFamilies; }

}  // namespace octavo::model
