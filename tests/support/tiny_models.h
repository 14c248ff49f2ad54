// Tiny models whose weights the scripts of tests/golden compute again, so that other programs can say what
// comes of them: llamas (make_tiny_llama.py), and every architecture, from tests/golden/tiny_models.json:
// their metadata and tensors as a converter writes them, and the log-probabilities that an independent
// program found for them (make_tiny_models.py).
#pragma once

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/hash.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/paths.h"

namespace octavo::test {

inline std::uint32_t crc32(std::string_view text) {
  std::uint32_t crc = 0xffffffffu;
  for (const char c : text) {
    crc ^= static_cast<std::uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1u) != 0 ? 0xedb88320u : 0u);
  }
  return ~crc;
}

// The numbers that the scripts give a tensor of this name.
inline std::vector<float> golden_values(const std::string& name, std::size_t count, float centre,
                                        float scale) {
  std::vector<float> values(count);
  const std::uint64_t start = std::uint64_t{crc32(name)} << 32;
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = centre + scale * (static_cast<float>(mix64(start + i) >> 48) / 32768.0f - 1.0f);
  }
  return values;
}

// A variant of make_tiny_llama.py: keys as its entry says, weights as the script makes them. The rows of the
// output that belong to `end_token_ids` are `ends_by` times as long, so that the model ends its texts.
inline GgufWriter make_golden_llama(const nlohmann::json& variant,
                                    const std::vector<std::size_t>& end_token_ids = {},
                                    float ends_by = 1.0f) {
  constexpr std::uint32_t kWidth = 64, kHidden = 96, kHeads = 4, kKvHeads = 2;
  const std::uint32_t head_dim = variant["head_dim"], rotary_dim = variant["rotary_dim"];
  GgufWriter writer;
  add_tiny_llama_keys(writer, {.embedding_length = kWidth,
                               .feed_forward_length = kHidden,
                               .num_heads = kHeads,
                               .num_kv_heads = kKvHeads,
                               .head_dim = head_dim});
  writer.add_u32("llama.rope.dimension_count", rotary_dim);
  if (variant.contains("linear")) {
    writer.add_string("llama.rope.scaling.type", "linear")
        .add_f32("llama.rope.scaling.factor", variant["linear"]);
  }
  if (variant.contains("yarn")) {
    writer.add_string("llama.rope.scaling.type", "yarn")
        .add_f32("llama.rope.scaling.factor", variant["yarn"]);
    writer.add_u32("llama.rope.scaling.original_context_length", variant["original_context"]);
  }
  const auto vector = [&](const std::string& name, std::uint64_t size, float centre, float scale) {
    writer.add_tensor_f32(name, {size}, golden_values(name, size, centre, scale));
  };
  const auto matrix = [&](const std::string& name, std::uint64_t columns, std::uint64_t rows, float scale) {
    writer.add_tensor_f32(name, {columns, rows}, golden_values(name, columns * rows, 0.0f, scale));
  };
  const auto projection = [&](const std::string& name, std::uint64_t columns, std::uint64_t rows) {
    matrix(name + ".weight", columns, rows, 0.25f);
    if (variant.value("biases", false)) vector(name + ".bias", rows, 0.0f, 0.25f);
  };
  const auto output = [&](const std::string& name, float scale) {
    std::vector<float> values = golden_values(name, kWidth * kTinyVocabularySize, 0.0f, scale);
    for (const std::size_t id : end_token_ids) {
      for (std::size_t column = 0; column < kWidth; ++column) values[id * kWidth + column] *= ends_by;
    }
    writer.add_tensor_f32(name, {kWidth, kTinyVocabularySize}, values);
  };
  const bool untied = variant.value("untied", false);
  untied ? matrix("token_embd.weight", kWidth, kTinyVocabularySize, 1.0f) : output("token_embd.weight", 1.0f);
  for (const std::string prefix : {"blk.0.", "blk.1."}) {
    vector(prefix + "attn_norm.weight", kWidth, 1.0f, 0.125f);
    projection(prefix + "attn_q", kWidth, kHeads * head_dim);
    projection(prefix + "attn_k", kWidth, kKvHeads * head_dim);
    projection(prefix + "attn_v", kWidth, kKvHeads * head_dim);
    projection(prefix + "attn_output", kHeads * head_dim, kWidth);
    vector(prefix + "ffn_norm.weight", kWidth, 1.0f, 0.125f);
    projection(prefix + "ffn_gate", kWidth, kHidden);
    projection(prefix + "ffn_up", kWidth, kHidden);
    projection(prefix + "ffn_down", kHidden, kWidth);
  }
  vector("output_norm.weight", kWidth, 1.0f, 0.125f);
  if (untied) output("output.weight", 0.25f);
  const std::vector<float> factors = variant["rope_factors"];
  if (!factors.empty()) writer.add_tensor_f32("rope_freqs.weight", {factors.size()}, factors);
  return writer;
}

inline nlohmann::json tiny_models() {
  std::ifstream file(test::source_folder() / "tests/golden/tiny_models.json");
  return nlohmann::json::parse(file);
}

inline nlohmann::json tiny_model(std::string_view name) {
  for (const nlohmann::json& model : tiny_models()) {
    if (model["name"] == name) return model;
  }
  throw std::runtime_error("tests/golden/tiny_models.json has no model " + std::string(name));
}

inline bool has_experts(const nlohmann::json& model) { return model["keys"].contains("expert_count"); }
inline bool has_states(const nlohmann::json& model) {
  return model["keys"].contains("ssm.state_size") || model["keys"].contains("shortconv.l_cache");
}
inline bool has_latent_attention(const nlohmann::json& model) {
  return model["keys"].contains("attention.kv_lora_rank");
}
// Models that CUDA refuses: experts, recurrent layers, layers that differ in more than their window, queries
// scaled by position, latent attention, gates and norms at other places.
inline bool is_for_processors(const nlohmann::json& model) {
  const std::string architecture = model["architecture"];
  for (const std::string_view other : {"exaone4", "gemma4", "hunyuan-dense", "muse-glimmer", "olmo2"})
    if (architecture == other) return true;
  for (const nlohmann::json& tensor : model["tensors"]) {
    const bool has_norms_apart = tensor[0] == "blk.0.attn_q_norm.weight" && tensor[1] != 0;
    if (has_norms_apart) return true;
  }
  return has_experts(model) || has_states(model) || has_latent_attention(model) ||
         model["keys"].contains("attention.temperature_scale");
}
// What files keep as floats, whatever the type of their weights.
inline bool is_float_in_every_file(std::string_view name) {
  for (const std::string_view end :
       {"ssm_conv1d.weight", "shortconv.conv.weight", "ssm_norm.weight", "per_layer_model_proj.weight",
        "attn_q_norm.weight", "attn_k_norm.weight"})
    if (name.ends_with(end)) return true;
  return !name.ends_with(".weight");
}

struct TinyModelOptions {
  // Of matrices; with another the numbers are random, not the scripts'
  TensorType weight_type = TensorType::kF32;
  std::optional<std::uint32_t> context_length = {};
  std::optional<std::uint32_t> window = {};
  bool quantises_routers = false;  // which files keep as floats
};

inline void add_key(GgufWriter& writer, const std::string& key, const nlohmann::json& value) {
  if (value.is_string()) {
    writer.add_string(key, value.get<std::string>());
  } else if (value.is_boolean()) {
    writer.add_bool(key, value.get<bool>());
  } else if (value.is_number_float()) {
    writer.add_f32(key, value.get<float>());
  } else if (!value.is_array()) {
    writer.add_u32(key, value.get<std::uint32_t>());
  } else if (value[0].is_boolean()) {
    const std::vector<bool> flags = value;
    writer.add_bool_array(key, {flags.begin(), flags.end()});
  } else {
    writer.add_array(key, value.get<std::vector<std::int32_t>>());
  }
}

inline GgufWriter make_tiny_model(nlohmann::json model, const TinyModelOptions& options = {}) {
  const std::string architecture = model["architecture"];
  if (options.context_length) model["keys"]["context_length"] = *options.context_length;
  if (options.window) model["keys"]["attention.sliding_window"] = *options.window;
  GgufWriter writer;
  writer.add_string("general.architecture", architecture).add_string("general.name", "tiny " + architecture);
  for (const auto& [suffix, value] : model["keys"].items()) {
    add_key(writer, architecture + "." + suffix, value);
  }
  add_tiny_vocabulary(writer, TinyLlamaOptions().chat_template);
  std::mt19937_64 random(17);
  for (const nlohmann::json& tensor : model["tensors"]) {
    const std::string name = tensor[0];
    std::size_t rows = tensor[1];
    const std::size_t columns = tensor[2];
    const float centre = tensor[3], scale = tensor[4];
    const std::size_t experts = tensor.size() > 5 ? tensor[5].get<std::size_t>() : 0;  // 0: no matrix of each
    if (name == "position_embd.weight") rows = model["keys"]["context_length"];
    if (rows == 0) {
      writer.add_tensor_f32(name, {columns}, golden_values(name, columns, centre, scale));
      continue;
    }
    const bool has_matrices = experts > 1;
    const std::vector<std::uint64_t> dimensions =
        has_matrices ? std::vector<std::uint64_t>{columns, rows / experts, experts}
                     : std::vector<std::uint64_t>{columns, rows};
    const bool is_float =
        is_float_in_every_file(name) || (!options.quantises_routers && name.ends_with("ffn_gate_inp.weight"));
    if (options.weight_type == TensorType::kF32 || is_float) {
      writer.add_tensor_f32(name, dimensions, golden_values(name, rows * columns, centre, scale));
    } else {
      writer.add_tensor(name, options.weight_type, dimensions,
                        random_weights(options.weight_type, rows * columns,
                                       static_cast<double>(scale) / std::sqrt(3.0), random));
    }
  }
  for (const char* const tables : {"long_rope", "rope_freqs"}) {
    for (const auto& [name, values] : model[tables].items()) {
      const std::vector<float> numbers = values;
      writer.add_tensor_f32(name, {numbers.size()}, numbers);
    }
  }
  return writer;
}

}  // namespace octavo::test
