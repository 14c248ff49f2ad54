// Gemma 1 to 3. Names of values and weights: Hugging Face transformers.
#include <cmath>
#include <string>

#include "engine/model/hugging_face/families.h"

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

void translate_gemma3(Translation& t) {
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

constexpr Family kGemmaFamilies[] = {
    {"gemma", "gemma", translate_gemma},
    {"gemma2", "gemma2", translate_gemma2},
    {"gemma3_text", "gemma3", translate_gemma3},
};

}  // namespace

std::span<const Family> gemma_families() { return kGemmaFamilies; }

}  // namespace octavo::model
