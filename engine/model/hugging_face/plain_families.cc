// Dense models. Names of values and weights: the configurations and models of Hugging Face transformers.
#include <string>

#include "engine/model/hugging_face/families.h"
#include "engine/model/hugging_face/layer_helpers.h"

namespace octavo::model {
namespace {

// Old folders hold tables that follow from the configuration.
void ignore_rotation_tables(Translation& t) {
  for (std::int64_t i = 0; i < t.num_layers(); ++i)
    t.ignored.push_back(layer_there(t, i) + "self_attn.rotary_emb.inv_freq");
  t.ignored.push_back(t.stem("rotary_emb.inv_freq"));
}

void translate_llama(Translation& t) {
  require_text(t, "hidden_act", {"silu", "swish"});
  copy_usual_keys(t);
  t.copy_window();
  add_usual_layers(t, /*rows_of_neighbours=*/true);
  ignore_rotation_tables(t);
}

void translate_qwen2(Translation& t) {
  copy_usual_keys(t);
  if (t.config.flag_or("use_sliding_window", false)) t.copy_window();
  add_usual_layers(t, /*rows_of_neighbours=*/false);
  ignore_rotation_tables(t);
}

void translate_qwen3(Translation& t) {
  translate_qwen2(t);
  add_head_norms(t);
}

void translate_ernie4_5(Translation& t) {
  copy_usual_keys(t, 500'000.0);
  add_usual_layers(t, /*rows_of_neighbours=*/false);
}

void translate_seed_oss(Translation& t) {
  copy_usual_keys(t);
  add_usual_layers(t, /*rows_of_neighbours=*/false, "post_attention_norm");
}

// Every fourth layer does not rotate, which its architecture knows.
void translate_smollm3(Translation& t) {
  copy_usual_keys(t, 2'000'000.0);
  const std::vector<std::int64_t> rotate = t.config.wholes("no_rope_layers");
  for (std::size_t i = 0; i < rotate.size(); ++i) {
    if ((rotate[i] != 0) == ((i + 1) % 4 != 0)) continue;
    t.config.refuse("no_rope_layers", ErrorCode::kUnsupported,
                    "names other layers than every fourth, which is not computed here; choose another model");
  }
  add_usual_layers(t, /*rows_of_neighbours=*/true);
}

void copy_multipliers(Translation& t) {
  t.copy_number_or("embedding_scale", {"embedding_multiplier"}, 1.0);
  t.copy_number_or("residual_scale", {"residual_multiplier"}, 1.0);
  t.copy_number_or("logit_scale", {"logits_scaling"}, 1.0);
  t.copy_number_or("attention.scale", {"attention_multiplier"}, 1.0);
}

void translate_granite(Translation& t) {
  copy_usual_keys(t);
  copy_multipliers(t);
  add_usual_layers(t, /*rows_of_neighbours=*/true);
}

void translate_phi3(Translation& t) {
  require_text(t, "hidden_act", {"silu"});
  copy_usual_keys(t);
  t.copy_window();
  t.add_ends();
  for (std::int64_t i = 0; i < t.num_layers(); ++i) {
    t.add_norm(layer_here(i) + "attn_norm", layer_there(t, i) + "input_layernorm");
    t.add_linear(layer_here(i) + "attn_qkv", layer_there(t, i) + "self_attn.qkv_proj");
    t.add_linear(layer_here(i) + "attn_output", layer_there(t, i) + "self_attn.o_proj");
    t.add_norm(layer_here(i) + "ffn_norm", layer_there(t, i) + "post_attention_layernorm");
    t.add_linear(layer_here(i) + "ffn_up", layer_there(t, i) + "mlp.gate_up_proj");
    t.add_linear(layer_here(i) + "ffn_down", layer_there(t, i) + "mlp.down_proj");
  }
  ignore_rotation_tables(t);
}

void translate_glm4(Translation& t) {
  copy_usual_keys(t);
  t.add_ends();
  for (std::int64_t i = 0; i < t.num_layers(); ++i) {
    t.add_norm(layer_here(i) + "attn_norm", layer_there(t, i) + "input_layernorm");
    t.add_attention(i, /*rows_of_neighbours=*/false);
    t.add_norm(layer_here(i) + "post_attention_norm", layer_there(t, i) + "post_self_attn_layernorm");
    t.add_norm(layer_here(i) + "ffn_norm", layer_there(t, i) + "post_attention_layernorm");
    t.add_linear(layer_here(i) + "ffn_up", layer_there(t, i) + "mlp.gate_up_proj");
    t.add_linear(layer_here(i) + "ffn_down", layer_there(t, i) + "mlp.down_proj");
    t.add_norm(layer_here(i) + "post_ffw_norm", layer_there(t, i) + "post_mlp_layernorm");
  }
}

// Norms behind the branches only.
void add_layers_with_post_norms(Translation& t) {
  t.add_ends();
  for (std::int64_t i = 0; i < t.num_layers(); ++i) {
    t.add_attention(i, /*rows_of_neighbours=*/false);
    t.add_norm(layer_here(i) + "post_attention_norm", layer_there(t, i) + "post_attention_layernorm");
    t.add_gated_feed_forward(i);
    t.add_norm(layer_here(i) + "post_ffw_norm", layer_there(t, i) + "post_feedforward_layernorm");
  }
  add_head_norms(t);
}

void translate_olmo2(Translation& t) {
  copy_usual_keys(t, 500'000.0);
  t.copy_window();
  add_layers_with_post_norms(t);
}

void translate_exaone4(Translation& t) {
  copy_usual_keys(t);
  t.copy_window();
  add_layers_with_post_norms(t);
}

void translate_hunyuan(Translation& t) {
  t.copy_sizes(kRmsEpsilonKey, {"rms_norm_eps"});
  t.copy_whole("feed_forward_length", {"intermediate_size"});
  const FolderConfig old = t.config.object("rope_scaling"), current = t.config.object("rope_parameters");
  const double theta = current.number_or({"rope_theta"}, t.config.number_or({"rope_theta"}, 10'000.0));
  t.add_number("rope.freq_base", theta, "rope_theta");
  for (const FolderConfig* rope : {&old, &current}) {
    if (rope->has("alpha")) {
      t.add_number("rope.scaling.alpha", rope->number({"alpha"}), "rope_scaling.alpha");
      break;
    }
  }
  add_usual_layers(t, /*rows_of_neighbours=*/false);
  add_head_norms(t, "query_layernorm", "key_layernorm");
}

void translate_cohere(Translation& t) {
  t.copy_sizes(kLayerEpsilonKey, {"layer_norm_eps"});
  t.copy_whole("feed_forward_length", {"intermediate_size"});
  t.copy_rope(10'000.0);
  t.copy_number_or("logit_scale", {"logit_scale"}, 0.0625);
  t.add_ends();
  for (std::int64_t i = 0; i < t.num_layers(); ++i) {
    t.add_norm(layer_here(i) + "attn_norm", layer_there(t, i) + "input_layernorm");
    t.add_attention(i, /*rows_of_neighbours=*/false);
    t.add_gated_feed_forward(i);
  }
  add_head_norms(t);
}

void translate_cohere2(Translation& t) {
  translate_cohere(t);
  t.copy_window();
}

void translate_starcoder2(Translation& t) {
  require_text(t, "hidden_act", {"gelu_pytorch_tanh"});
  t.copy_sizes(kLayerEpsilonKey, {"norm_epsilon"});
  t.copy_whole("feed_forward_length", {"intermediate_size"});
  t.copy_rope(10'000.0);
  t.add_ends();
  for (std::int64_t i = 0; i < t.num_layers(); ++i) {
    t.add_norm(layer_here(i) + "attn_norm", layer_there(t, i) + "input_layernorm");
    t.add_attention(i, /*rows_of_neighbours=*/false);
    t.add_norm(layer_here(i) + "ffn_norm", layer_there(t, i) + "post_attention_layernorm");
    t.add_linear(layer_here(i) + "ffn_up", layer_there(t, i) + "mlp.c_fc");
    t.add_linear(layer_here(i) + "ffn_down", layer_there(t, i) + "mlp.c_proj");
  }
}

// Norms of heads are one weight for each head there, one matrix here.
void translate_stablelm(Translation& t) {
  t.copy_sizes(kLayerEpsilonKey, {"layer_norm_eps", "norm_eps"});
  t.copy_whole("feed_forward_length", {"intermediate_size"});
  t.copy_rope(10'000.0);
  t.add_ends();
  for (std::int64_t i = 0; i < t.num_layers(); ++i) {
    t.add_norm(layer_here(i) + "attn_norm", layer_there(t, i) + "input_layernorm");
    t.add_attention(i, /*rows_of_neighbours=*/false);
    t.add_norm(layer_here(i) + "ffn_norm", layer_there(t, i) + "post_attention_layernorm");
    t.add_gated_feed_forward(i);
    for (const auto& [name, heads] : {std::pair("q", t.num_heads()), std::pair("k", t.num_kv_heads())}) {
      std::vector<std::string> norms;
      for (std::int64_t head = 0; head < heads; ++head) {
        norms.push_back(layer_there(t, i) + "self_attn." + name + "_layernorm.norms." + std::to_string(head) +
                        ".weight");
      }
      t.add_stack(layer_here(i) + "attn_" + name + "_norm.weight", std::move(norms));
    }
  }
}

// Norms around the branches are stored less one; heads are normalised and their queries scaled by one factor,
// which is a norm's weight here.
void translate_muse_glimmer(Translation& t) {
  copy_usual_keys(t);
  t.copy_window();
  t.copy_number_or("logit_scale", {"output_multiplier"}, 1.0);
  t.copy_number_or("final_logit_softcapping", {"final_logit_softcapping"}, 0.0);
  const auto factor = static_cast<float>(t.config.number({"qk_scale_factor"}));
  const auto size = static_cast<std::size_t>(t.head_dim());
  t.add_ends();
  t.set_norms_less_one();
  for (std::int64_t i = 0; i < t.num_layers(); ++i) {
    const std::string here = layer_here(i), there = layer_there(t, i);
    t.add_norm(here + "attn_norm", there + "input_layernorm");
    t.add_attention(i, /*rows_of_neighbours=*/true);
    t.add_constants(here + "attn_q_norm.weight", std::vector<float>(size, factor));
    t.add_constants(here + "attn_k_norm.weight", std::vector<float>(size, 1.0f));
    t.add(here + "attn_gate.weight", there + "self_attn.gate_proj.weight");
    t.add_norm(here + "post_attention_norm", there + "post_attention_layernorm");
    t.add_norm(here + "ffn_norm", there + "pre_feedforward_layernorm");
    t.add_gated_feed_forward(i);
    t.add_norm(here + "post_ffw_norm", there + "post_feedforward_layernorm");
  }
}

// Radford et al.'s layers are Conv1D: their inputs are rows.
void translate_gpt2(Translation& t) {
  require_text(t, "activation_function", {"gelu_new", "gelu_pytorch_tanh"});
  for (const char* name : {"scale_attn_by_inverse_layer_idx", "reorder_and_upcast_attn"}) {
    if (t.config.flag_or(name, false) && std::string_view(name).starts_with("scale"))
      t.config.refuse(name, ErrorCode::kUnsupported,
                      "is true, which is not computed here; choose another model");
  }
  t.copy_sizes(kLayerEpsilonKey, {"layer_norm_epsilon"});
  const std::int64_t width = t.config.whole({"n_embd", "hidden_size"});
  t.add_whole("feed_forward_length",
              t.config.whole_or({"n_inner"}, width > 0 && width < (1 << 20) ? 4 * width : 0), "n_inner");
  t.add("token_embd.weight", t.stem("wte.weight"));
  t.add("position_embd.weight", t.stem("wpe.weight"));
  t.add_norm("output_norm", t.stem("ln_f"));
  t.ignored.push_back("lm_head.weight");  // a copy of the embedding
  const auto add_turned = [&](const std::string& name, const std::string& part) {
    t.add_linear(name, part);
    t.recipes[t.recipes.size() - 2].is_transposed = true;
  };
  for (std::int64_t i = 0; i < t.num_layers(); ++i) {
    const std::string layer = layer_there(t, i, "h.");
    t.add_norm(layer_here(i) + "attn_norm", layer + "ln_1");
    add_turned(layer_here(i) + "attn_qkv", layer + "attn.c_attn");
    add_turned(layer_here(i) + "attn_output", layer + "attn.c_proj");
    t.add_norm(layer_here(i) + "ffn_norm", layer + "ln_2");
    add_turned(layer_here(i) + "ffn_up", layer + "mlp.c_fc");
    add_turned(layer_here(i) + "ffn_down", layer + "mlp.c_proj");
    t.ignored.push_back(layer + "attn.bias");  // the causal mask
    t.ignored.push_back(layer + "attn.masked_bias");
  }
}

// Positions count from 2 in the file.
void translate_opt(Translation& t) {
  constexpr std::int64_t kPositionOffset = 2;
  require_text(t, "activation_function", {"relu"});
  const auto refuse = [&](std::string_view name, std::string_view why) {
    t.config.refuse(name, ErrorCode::kUnsupported, std::string(why) + "; choose another model");
  };
  if (!t.config.flag_or("do_layer_norm_before", true))
    refuse("do_layer_norm_before", "is false, as in OPT-350m, which is not computed here");
  if (t.config.whole_or({"word_embed_proj_dim"}, 0) != 0 &&
      t.config.whole({"word_embed_proj_dim"}) != t.config.whole({"hidden_size"}))
    refuse("word_embed_proj_dim", "is not hidden_size, as in OPT-350m, which is not computed here");
  if (t.config.flag_or("_remove_final_layer_norm", false))
    refuse("_remove_final_layer_norm", "is true, which is not computed here");
  t.copy_sizes(kLayerEpsilonKey, {"layer_norm_eps"}, 1e-5);
  t.copy_whole("feed_forward_length", {"ffn_dim"});
  t.add_ends("embed_tokens", "final_layer_norm");
  t.add("position_embd.weight", t.stem("embed_positions.weight")).rows.first = kPositionOffset;
  for (std::int64_t i = 0; i < t.num_layers(); ++i) {
    t.add_norm(layer_here(i) + "attn_norm", layer_there(t, i) + "self_attn_layer_norm");
    t.add_linear(layer_here(i) + "attn_q", layer_there(t, i) + "self_attn.q_proj");
    t.add_linear(layer_here(i) + "attn_k", layer_there(t, i) + "self_attn.k_proj");
    t.add_linear(layer_here(i) + "attn_v", layer_there(t, i) + "self_attn.v_proj");
    t.add_linear(layer_here(i) + "attn_output", layer_there(t, i) + "self_attn.out_proj");
    t.add_norm(layer_here(i) + "ffn_norm", layer_there(t, i) + "final_layer_norm");
    t.add_linear(layer_here(i) + "ffn_up", layer_there(t, i) + "fc1");
    t.add_linear(layer_here(i) + "ffn_down", layer_there(t, i) + "fc2");
  }
}

constexpr Family kPlainFamilies[] = {
    {"cohere", "command-r", translate_cohere},
    {"cohere2", "cohere2", translate_cohere2},
    {"ernie4_5", "ernie4_5", translate_ernie4_5},
    {"exaone4", "exaone4", translate_exaone4},
    {"glm4", "glm4", translate_glm4},
    {"gpt2", "gpt2", translate_gpt2, "wte.weight"},
    {"granite", "granite", translate_granite},
    {"hunyuan_v1_dense", "hunyuan-dense", translate_hunyuan},
    {"llama", "llama", translate_llama},
    {"mistral", "llama", translate_llama},
    {"muse_glimmer_text", "muse-glimmer", translate_muse_glimmer},
    {"olmo2", "olmo2", translate_olmo2},
    {"olmo3", "olmo2", translate_olmo2},
    {"opt", "opt", translate_opt},
    {"phi3", "phi3", translate_phi3},
    {"qwen2", "qwen2", translate_qwen2},
    {"qwen3", "qwen3", translate_qwen3},
    {"seed_oss", "seed_oss", translate_seed_oss},
    {"smollm3", "smollm3", translate_smollm3},
    {"stablelm", "stablelm", translate_stablelm},
    {"starcoder2", "starcoder2", translate_starcoder2},
};

}  // namespace

std::span<const Family> plain_families() { return kPlainFamilies; }

}  // namespace octavo::model
