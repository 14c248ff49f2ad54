// From the words of a Hugging Face folder to those of the engine: its configuration becomes Metadata, its
// weights a list of TensorRecipes. What is the same in most families is here; each family adds what it has
// besides (families.h).
//
// One thread; lives as long as the folder is opened.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/model/hugging_face/folder_config.h"
#include "engine/model/hugging_face/tensor_recipe.h"
#include "engine/model/metadata.h"

namespace octavo::model {

class Translation {
 public:
  // `architecture`: the engine's. `stem`: what stands before "layers.0." in the names of the files;
  // `head_stem` before "lm_head.".
  Translation(FolderConfig& config, const SafetensorsFiles& files, std::string_view architecture,
              std::string stem, std::string head_stem);

  FolderConfig& config;
  Metadata metadata;
  std::vector<TensorRecipe> recipes;

  // ---- keys; `suffix` follows the architecture's name
  std::string key(std::string_view suffix) const { return architecture_ + "." + std::string(suffix); }
  void add_whole(std::string_view suffix, std::int64_t value, std::string_view origin = {});
  void add_number(std::string_view suffix, double value, std::string_view origin = {});
  void add_flag(std::string_view suffix, bool value, std::string_view origin = {});
  void copy_whole(std::string_view suffix, ConfigNames names);
  void copy_whole_or(std::string_view suffix, ConfigNames names, std::int64_t otherwise);
  void copy_number(std::string_view suffix, ConfigNames names);
  void copy_number_or(std::string_view suffix, ConfigNames names, double otherwise);

  // Sizes, heads and the norm's epsilon under their usual names; `epsilon` is the norm's key.
  void copy_sizes(std::string_view epsilon_suffix, ConfigNames epsilon_names,
                  std::optional<double> usual_epsilon = {});
  // Heads of keys and values of each layer, instead of their number.
  void set_kv_heads(std::vector<std::int32_t> of_layers) { kv_heads_of_layers_ = std::move(of_layers); }
  // Adds what is known last. Call once, when the family has said everything.
  void finish();
  // rope_theta, and rope_scaling or rope_parameters. `rotary_dim`: of a family whose heads have a part that
  // does not turn and is counted apart.
  void copy_rope(double usual_base, std::optional<std::int64_t> rotary_dim = {});
  // The window, and which layers have it where the configuration lists them.
  void copy_window();
  void add_window_pattern();

  // ---- sizes that translations need themselves; within the engine's ranges, or remembered as a problem
  std::int64_t num_layers() const { return num_layers_; }
  std::int64_t num_heads() const { return num_heads_; }
  std::int64_t num_kv_heads() const { return num_kv_heads_; }
  std::int64_t head_dim() const { return head_dim_; }
  // Of layer types: "sliding_attention", ...; empty where none are listed.
  const std::vector<std::string>& layer_types() const { return layer_types_; }
  bool has_layer_type(std::int64_t layer, std::string_view type) const;

  // ---- weights; parts are named from `stem` on
  std::string stem(std::string_view name) const { return stem_ + std::string(name); }
  TensorRecipe& add(std::string name, std::string part);
  TensorRecipe& add_stack(std::string name, std::vector<std::string> parts);
  void add_constants(std::string name, std::vector<float> constants);
  // name.weight and name.bias, both if they are there.
  void add_linear(const std::string& name, const std::string& part, const RowOrder& rows = {});
  void add_norm(const std::string& name, const std::string& part);
  // All norms are stored less one.
  void set_norms_less_one() { norms_are_less_one_ = true; }

  // Embedding, last norm and head.
  void add_ends(std::string_view embedding = "embed_tokens", std::string_view norm = "norm");
  // Of layer i: Q, K, V and output; rotated pairs become neighbours if `rows_of_neighbours`.
  void add_attention(std::int64_t layer, bool rows_of_neighbours, std::string_view block = "self_attn");
  void add_gated_feed_forward(std::int64_t layer, std::string_view block = "mlp");
  // Of each expert a weight, "{base}.{i}.{names}", or all in one; names: gate (empty: they have none), up,
  // down.
  void add_experts(std::int64_t layer, const std::string& base, std::int64_t num_experts,
                   std::string_view gate, std::string_view up, std::string_view down);

  // Prefixes of weights that text does not need.
  std::vector<std::string> ignored;

 private:
  const SafetensorsFiles& files_;
  std::string architecture_, stem_, head_stem_;
  std::int64_t num_layers_ = 0, num_heads_ = 0, num_kv_heads_ = 0, head_dim_ = 0;
  std::vector<std::string> layer_types_;
  std::vector<std::int32_t> kv_heads_of_layers_;
  bool norms_are_less_one_ = false;
  void copy_scaling(const FolderConfig& rope);
};

}  // namespace octavo::model
