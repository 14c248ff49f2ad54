// Tiny models of every architecture, from tests/golden/tiny_models.json: their metadata and tensors as a
// converter writes them, and the log-probabilities that an independent program found for them
// (tests/golden/make_tiny_models.py).
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

inline nlohmann::json tiny_models() {
  std::ifstream file(std::string(OCTAVO_SOURCE_DIR) + "/tests/golden/tiny_models.json");
  return nlohmann::json::parse(file);
}

inline nlohmann::json tiny_model(std::string_view name) {
  for (const nlohmann::json& model : tiny_models()) {
    if (model["name"] == name) return model;
  }
  throw std::runtime_error("tests/golden/tiny_models.json has no model " + std::string(name));
}

struct TinyModelOptions {
  // Of matrices; with another the numbers are random, not the scripts'
  TensorType weight_type = TensorType::kF32;
  std::optional<std::uint32_t> context_length = {};
  std::optional<std::uint32_t> window = {};
};

inline GgufWriter make_tiny_model(nlohmann::json model, const TinyModelOptions& options = {}) {
  const std::string architecture = model["architecture"];
  if (options.context_length) model["keys"]["context_length"] = *options.context_length;
  if (options.window) model["keys"]["attention.sliding_window"] = *options.window;
  GgufWriter writer;
  writer.add_string("general.architecture", architecture).add_string("general.name", "tiny " + architecture);
  for (const auto& [suffix, value] : model["keys"].items()) {
    const std::string key = architecture + "." + suffix;
    if (value.is_string()) {
      writer.add_string(key, value.get<std::string>());
    } else if (value.is_number_float()) {
      writer.add_f32(key, value.get<float>());
    } else {
      writer.add_u32(key, value.get<std::uint32_t>());
    }
  }
  add_tiny_vocabulary(writer, TinyLlamaOptions().chat_template);
  std::mt19937_64 random(17);
  for (const nlohmann::json& tensor : model["tensors"]) {
    const std::string name = tensor[0];
    std::size_t rows = tensor[1];
    const std::size_t columns = tensor[2];
    const float centre = tensor[3], scale = tensor[4];
    if (name == "position_embd.weight") rows = model["keys"]["context_length"];
    if (rows == 0) {
      writer.add_tensor_f32(name, {columns}, golden_values(name, columns, centre, scale));
    } else if (options.weight_type == TensorType::kF32) {
      writer.add_tensor_f32(name, {columns, rows}, golden_values(name, rows * columns, centre, scale));
    } else {
      writer.add_tensor(name, options.weight_type, {columns, rows},
                        random_weights(options.weight_type, rows * columns,
                                       static_cast<double>(scale) / std::sqrt(3.0), random));
    }
  }
  for (const auto& [name, values] : model["long_rope"].items()) {
    const std::vector<float> numbers = values;
    writer.add_tensor_f32(name, {numbers.size()}, numbers);
  }
  return writer;
}

}  // namespace octavo::test
