#include "engine/model/hugging_face/layer_helpers.h"

#include "engine/base/text.h"

namespace octavo::model {
namespace {

void refuse_value(const Translation& t, std::string_view name, const std::string& value) {
  t.config.refuse(name, ErrorCode::kUnsupported,
                  "is " + value + ", which is not computed here; choose another model");
}

}  // namespace

void require_text(const Translation& t, std::string_view name,
                  std::initializer_list<std::string_view> allowed) {
  if (!t.config.has(name)) return;
  const std::string value = t.config.text_or(name, "");
  for (const std::string_view each : allowed) {
    if (value == each) return;
  }
  refuse_value(t, name, "\"" + escape_for_message(value) + "\"");
}

void require_flag(const Translation& t, std::string_view name, bool usual, bool allowed) {
  const bool value = t.config.flag_or(name, usual);
  if (value != allowed) refuse_value(t, name, value ? "true" : "false");
}

void require_whole(const Translation& t, std::string_view name, std::int64_t usual, std::int64_t allowed) {
  const std::int64_t value = t.config.whole_or({name}, usual);
  if (value != allowed) refuse_value(t, name, std::to_string(value));
}

void copy_usual_keys(Translation& t, double rope_base) {
  t.copy_sizes(kRmsEpsilonKey, {"rms_norm_eps"});
  t.copy_whole("feed_forward_length", {"intermediate_size"});
  t.copy_rope(rope_base);
}

void add_usual_layers(Translation& t, bool rows_of_neighbours, std::string_view second_norm) {
  t.add_ends();
  for (std::int64_t i = 0; i < t.num_layers(); ++i) {
    t.add_norm(layer_here(i) + "attn_norm", layer_there(t, i) + "input_layernorm");
    t.add_attention(i, rows_of_neighbours);
    t.add_norm(layer_here(i) + std::string(second_norm), layer_there(t, i) + "post_attention_layernorm");
    t.add_gated_feed_forward(i);
  }
}

void add_head_norms(Translation& t, std::string_view query, std::string_view key) {
  for (std::int64_t i = 0; i < t.num_layers(); ++i) {
    t.add_norm(layer_here(i) + "attn_q_norm", layer_there(t, i) + "self_attn." + std::string(query));
    t.add_norm(layer_here(i) + "attn_k_norm", layer_there(t, i) + "self_attn." + std::string(key));
  }
}

}  // namespace octavo::model
