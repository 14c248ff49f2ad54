#include "engine/model/hugging_face/translation.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/base/text.h"
#include "engine/model/limits.h"

namespace octavo::model {
namespace {

std::string block_prefix(std::int64_t layer) { return "blk." + std::to_string(layer) + "."; }

}  // namespace

Translation::Translation(FolderConfig& given, const SafetensorsFiles& files, std::string_view architecture,
                         std::string stem, std::string head_stem)
    : config(given),
      metadata(given.file_name()),
      files_(files),
      architecture_(architecture),
      stem_(std::move(stem)),
      head_stem_(std::move(head_stem)) {
  metadata.add_text("general.architecture", architecture, "model_type");
}

void Translation::add_whole(std::string_view suffix, std::int64_t value, std::string_view origin) {
  metadata.add(key(suffix), value, origin);
}

void Translation::add_number(std::string_view suffix, double value, std::string_view origin) {
  metadata.add(key(suffix), value, origin);
}

void Translation::add_flag(std::string_view suffix, bool value, std::string_view origin) {
  metadata.add_flag(key(suffix), value, origin);
}

void Translation::copy_whole(std::string_view suffix, ConfigNames names) {
  add_whole(suffix, config.whole(names), *names.begin());
}

void Translation::copy_whole_or(std::string_view suffix, ConfigNames names, std::int64_t otherwise) {
  add_whole(suffix, config.whole_or(names, otherwise), *names.begin());
}

void Translation::copy_number(std::string_view suffix, ConfigNames names) {
  add_number(suffix, config.number(names), *names.begin());
}

void Translation::copy_number_or(std::string_view suffix, ConfigNames names, double otherwise) {
  add_number(suffix, config.number_or(names, otherwise), *names.begin());
}

void Translation::copy_sizes(std::string_view epsilon_suffix, ConfigNames epsilon_names,
                             std::optional<double> usual_epsilon) {
  const auto within = [&](std::int64_t value, std::int64_t most, std::string_view name) {
    if (value >= 1 && value <= most) return value;
    config.refuse(name, ErrorCode::kDamagedFile,
                  "is " + std::to_string(value) + "; 1 to " + std::to_string(most) +
                      " is allowed: download the repository again");
    return std::int64_t{1};
  };
  num_layers_ = within(config.whole({"num_hidden_layers", "n_layer"}), kMaxLayers, "num_hidden_layers");
  num_heads_ = within(config.whole({"num_attention_heads", "n_head"}), kMaxHeads, "num_attention_heads");
  num_kv_heads_ =
      within(config.whole_or({"num_key_value_heads"}, num_heads_), kMaxHeads, "num_key_value_heads");
  const std::int64_t width =
      within(config.whole({"hidden_size", "n_embd"}), kMaxEmbeddingLength, "hidden_size");
  head_dim_ = within(config.whole_or({"head_dim"}, std::max<std::int64_t>(width / num_heads_, 1)),
                     kMaxHeadDim, "head_dim");
  layer_types_ = config.texts("layer_types");
  if (!layer_types_.empty() && std::cmp_not_equal(layer_types_.size(), num_layers_)) {
    config.refuse("layer_types", ErrorCode::kDamagedFile,
                  "has " + std::to_string(layer_types_.size()) + " entries for " +
                      std::to_string(num_layers_) + " layers: download the repository again");
    layer_types_.clear();
  }
  add_whole("block_count", num_layers_, "num_hidden_layers");
  copy_whole("context_length", {"max_position_embeddings", "n_positions", "n_ctx"});
  add_whole("embedding_length", width, "hidden_size");
  add_whole("attention.head_count", num_heads_, "num_attention_heads");
  copy_whole("vocab_size", {"vocab_size"});
  metadata.set_origin("tokenizer.ggml.tokens", "vocab_size");
  if (usual_epsilon) {
    copy_number_or(epsilon_suffix, epsilon_names, *usual_epsilon);
  } else {
    copy_number(epsilon_suffix, epsilon_names);
  }
  metadata.set_origin(key("feed_forward_length"), "intermediate_size");
}

void Translation::finish() {
  if (config.has("head_dim") && !metadata.contains(key("attention.key_length"))) {
    add_whole("attention.key_length", head_dim_, "head_dim");
    add_whole("attention.value_length", head_dim_, "head_dim");
  }
  if (kv_heads_of_layers_.empty()) {
    add_whole("attention.head_count_kv", num_kv_heads_, "num_key_value_heads");
  } else {
    metadata.add_list(key("attention.head_count_kv"), kv_heads_of_layers_, "layer_types");
  }
}

bool Translation::has_layer_type(std::int64_t layer, std::string_view type) const {
  return !layer_types_.empty() && layer_types_[static_cast<std::size_t>(layer)] == type;
}

// ---- positions

void Translation::copy_rope(double usual_base, std::optional<std::int64_t> rotary_dim) {
  const bool is_new = config.has("rope_parameters");
  FolderConfig rope = config.object(is_new ? "rope_parameters" : "rope_scaling");
  if (rope.has("full_attention") || rope.has("sliding_attention")) {  // of each kind of layers its own
    const FolderConfig local = rope.object("sliding_attention");
    if (local.has("rope_theta")) add_number("rope.freq_base_swa", local.number({"rope_theta"}));
    rope = rope.object("full_attention");
  }
  const double base = config.number_or({"rope_theta", "rotary_emb_base", "default_theta"}, usual_base);
  add_number("rope.freq_base", rope.number_or({"rope_theta"}, base), "rope_theta");
  const double part =
      rope.number_or({"partial_rotary_factor"}, config.number_or({"partial_rotary_factor", "rope_pct"}, 1.0));
  // As Python rounds it.
  const double dimensions =
      rotary_dim ? static_cast<double>(*rotary_dim) : std::trunc(static_cast<double>(head_dim_) * part);
  if (!(dimensions >= 0.0 && dimensions <= kMaxHeadDim)) {
    config.refuse("partial_rotary_factor", ErrorCode::kDamagedFile,
                  "is out of range: download the repository again");
    return;
  }
  add_whole("rope.dimension_count", static_cast<std::int64_t>(dimensions), "partial_rotary_factor");
  copy_scaling(rope);
}

void Translation::copy_scaling(const FolderConfig& rope) {
  std::string type = rope.text_or("rope_type", "");
  if (type.empty()) type = rope.text_or("type", "default");
  // Parts of the angles turn by a picture's rows and columns: all the same for text.
  if (type == "default" || type == "mrope") return;
  if (type == "su") type = "longrope";
  metadata.add_text(key("rope.scaling.type"), type, "rope_scaling.rope_type");
  const auto original = [&] {
    const std::int64_t context =
        config.whole_or({"original_max_position_embeddings"}, config.whole({"max_position_embeddings"}));
    return rope.whole_or({"original_max_position_embeddings"}, context);
  };
  if (type == "linear") {
    add_number("rope.scaling.factor", rope.number({"factor"}));
  } else if (type == "llama3") {
    add_number("rope.scaling.factor", rope.number({"factor"}));
    add_number("rope.scaling.low_freq_factor", rope.number({"low_freq_factor"}));
    add_number("rope.scaling.high_freq_factor", rope.number({"high_freq_factor"}));
    add_whole("rope.scaling.original_context_length", original());
  } else if (type == "yarn") {
    const double factor = rope.number({"factor"});
    add_number("rope.scaling.factor", factor);
    add_whole("rope.scaling.original_context_length", original());
    add_number("rope.scaling.yarn_beta_fast", rope.number_or({"beta_fast"}, 32.0));
    add_number("rope.scaling.yarn_beta_slow", rope.number_or({"beta_slow"}, 1.0));
    if (rope.has("truncate")) add_flag("rope.scaling.yarn_rounds_borders", rope.flag_or("truncate", true));
    const double growth = factor > 1.0 ? 0.1 * std::log(factor) : 0.0;
    const double scale = rope.number_or({"mscale"}, 0.0), all = rope.number_or({"mscale_all_dim"}, 0.0);
    if (rope.has("attention_factor")) {
      add_number("rope.scaling.yarn_attn_factor", rope.number({"attention_factor"}));
    } else if (scale != 0.0 && all != 0.0) {
      add_number("rope.scaling.yarn_attn_factor", (scale * growth + 1.0) / (all * growth + 1.0));
    }
  } else if (type == "longrope") {
    const double trained = static_cast<double>(original());
    const double context = static_cast<double>(config.whole({"max_position_embeddings"}));
    const double factor = rope.number_or({"factor"}, trained > 0.0 ? context / trained : 1.0);
    add_whole("rope.scaling.original_context_length", static_cast<std::int64_t>(trained));
    const double usual =
        factor > 1.0 && trained > 1.0 ? std::sqrt(1.0 + std::log(factor) / std::log(trained)) : 1.0;
    add_number("rope.scaling.attn_factor", rope.number_or({"attention_factor"}, usual));
    add_constants("rope_factors_long.weight", rope.numbers("long_factor"));
    add_constants("rope_factors_short.weight", rope.numbers("short_factor"));
  }
}

void Translation::copy_window() {
  if (!config.has("sliding_window") || !config.flag_or("use_sliding_window", true)) return;
  copy_whole("attention.sliding_window", {"sliding_window"});
  add_window_pattern();
}

void Translation::add_window_pattern() {
  if (layer_types_.empty()) return;
  std::vector<bool> windows;
  for (const std::string& type : layer_types_) windows.push_back(type == "sliding_attention");
  metadata.add_flags(key("attention.sliding_window_pattern"), windows, "layer_types");
}

// ---- weights

TensorRecipe& Translation::add(std::string name, std::string part) {
  return add_stack(std::move(name), {std::move(part)});
}

TensorRecipe& Translation::add_stack(std::string name, std::vector<std::string> parts) {
  TensorRecipe recipe;
  recipe.name = std::move(name);
  recipe.parts = std::move(parts);
  recipes.push_back(std::move(recipe));
  return recipes.back();
}

void Translation::add_constants(std::string name, std::vector<float> constants) {
  if (constants.empty()) return;
  TensorRecipe recipe;
  recipe.name = std::move(name);
  recipe.constants = std::move(constants);
  recipes.push_back(std::move(recipe));
}

void Translation::add_linear(const std::string& name, const std::string& part, const RowOrder& rows) {
  add(name + ".weight", part + ".weight").rows = rows;
  add(name + ".bias", part + ".bias").rows = rows;
}

void Translation::add_norm(const std::string& name, const std::string& part) {
  TensorRecipe& weight = add(name + ".weight", part + ".weight");
  if (norms_are_less_one_) weight.change = NumberChange::kPlusOne;
  add(name + ".bias", part + ".bias");
}

void Translation::add_ends(std::string_view embedding, std::string_view norm) {
  add("token_embd.weight", stem(embedding) + ".weight");
  add_norm("output_norm", stem(norm));
  const std::string head = head_stem_ + "lm_head";
  if (config.flag_or("tie_word_embeddings", false)) {
    ignored.push_back(head + ".weight");  // a copy
  } else {
    add("output.weight", head + ".weight");
  }
  add("output.bias", head + ".bias");
}

void Translation::add_attention(std::int64_t layer, bool rows_of_neighbours, std::string_view block) {
  const std::string here = block_prefix(layer),
                    there = stem("layers." + std::to_string(layer) + "." + std::string(block) + ".");
  RowOrder query, key_rows;
  if (rows_of_neighbours) {
    query.heads_of_neighbours = num_heads_;
    key_rows.heads_of_neighbours = num_kv_heads_;
  }
  add_linear(here + "attn_q", there + "q_proj", query);
  add_linear(here + "attn_k", there + "k_proj", key_rows);
  add_linear(here + "attn_v", there + "v_proj");
  add_linear(here + "attn_output", there + "o_proj");
}

void Translation::add_gated_feed_forward(std::int64_t layer, std::string_view block) {
  const std::string here = block_prefix(layer),
                    there = stem("layers." + std::to_string(layer) + "." + std::string(block) + ".");
  add_linear(here + "ffn_gate", there + "gate_proj");
  add_linear(here + "ffn_up", there + "up_proj");
  add_linear(here + "ffn_down", there + "down_proj");
}

void Translation::add_experts(std::int64_t layer, const std::string& base, std::int64_t num_experts,
                              std::string_view gate, std::string_view up, std::string_view down) {
  const std::string here = block_prefix(layer);
  const auto each_of = [&](std::string_view name) {
    std::vector<std::string> parts;
    for (std::int64_t i = 0; i < num_experts; ++i) {
      const std::string expert = base + "." + std::to_string(i) + "." + std::string(name);
      parts.push_back(expert + ".weight");
      if (!files_.holds(expert + ".")) break;  // it will be missed, whatever follows
    }
    return parts;
  };
  if (num_experts > 0) {
    if (!gate.empty()) add_stack(here + "ffn_gate_exps.weight", each_of(gate));
    add_stack(here + "ffn_up_exps.weight", each_of(up));
    add_stack(here + "ffn_down_exps.weight", each_of(down));
  }
  // As newer folders have them.
  if (gate.empty()) {
    add(here + "ffn_up_exps.weight", base + ".up_proj");
  } else {
    add(here + "ffn_gate_up_exps.weight", base + ".gate_up_proj");
  }
  add(here + "ffn_down_exps.weight", base + ".down_proj");
}

}  // namespace octavo::model
