// What the translations of families share beside Translation: names of layers, and checks.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "engine/model/hugging_face/translation.h"

namespace octavo::model {

inline constexpr std::string_view kRmsEpsilonKey = "attention.layer_norm_rms_epsilon",
                                  kLayerEpsilonKey = "attention.layer_norm_epsilon";

// "blk.3."
inline std::string layer_here(std::int64_t layer) { return "blk." + std::to_string(layer) + "."; }

// "model.layers.3."
inline std::string layer_there(const Translation& t, std::int64_t layer, std::string_view block = "layers.") {
  return t.stem(block) + std::to_string(layer) + ".";
}

// Refuses a configuration whose value is not one of these; a missing one is.
void require_text(const Translation& t, std::string_view name,
                  std::initializer_list<std::string_view> allowed);
void require_flag(const Translation& t, std::string_view name, bool usual, bool allowed);
void require_whole(const Translation& t, std::string_view name, std::int64_t usual, std::int64_t allowed);

// Sizes, positions and feed_forward_length of llama and what came after it.
void copy_usual_keys(Translation& t, double rope_base = 10'000.0);
// Ends, and layers of two norms, attention and a gated feed-forward layer.
void add_usual_layers(Translation& t, bool rows_of_neighbours, std::string_view second_norm = "ffn_norm");
void add_head_norms(Translation& t, std::string_view query = "q_norm", std::string_view key = "k_norm");

}  // namespace octavo::model
