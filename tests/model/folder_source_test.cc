#include "engine/model/hugging_face/folder_source.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/half.h"
#include "engine/model/gguf_file.h"
#include "engine/model/hugging_face/families.h"
#include "engine/model/model_config.h"
#include "engine/model/model_tensors.h"
#include "engine/model/weights.h"
#include "kernels/dequantize.h"
#include "tests/model/one_sequence.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/temporary_folder.h"

namespace octavo::model {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::GgufWriter;
using test::SafetensorsWriter;
using test::TemporaryFolder;
using test::write_text;

// A tensor of floats with rows, as it is or with rows and columns the other way round.
struct Floats {
  std::int64_t rows = 0, columns = 0;  // no rows: a list
  std::vector<float> values;
};

std::map<std::string, Floats> floats_of(const GgufFile& file) {
  std::map<std::string, Floats> all;
  for (const SourceTensor& tensor : file.tensors()) {
    Floats& floats = all[tensor.name];
    floats.columns = tensor.dimensions[0];
    floats.rows = tensor.num_dimensions > 1 ? tensor.num_elements / tensor.dimensions[0] : 0;
    floats.values.resize(static_cast<std::size_t>(tensor.num_elements));
    kernels::dequantize(*tensor.type(), file.bytes_of(tensor).data(), tensor.num_elements,
                        floats.values.data());
  }
  return all;
}

// The other way round of what a folder's rows go through: neighbours become halves of a head.
Floats halves_of_neighbours(const Floats& given, std::int64_t heads) {
  Floats turned = given;
  const std::int64_t rows = given.rows, size = rows / heads;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t in_head = row % size, target = row - in_head + in_head % 2 * (size / 2) + in_head / 2;
    for (std::int64_t column = 0; column < given.columns; ++column) {
      turned.values[static_cast<std::size_t>(target * given.columns + column)] =
          given.values[static_cast<std::size_t>(row * given.columns + column)];
    }
  }
  return turned;
}

Floats turned(const Floats& given) {
  Floats result{given.columns, given.rows, std::vector<float>(given.values.size())};
  for (std::int64_t row = 0; row < given.rows; ++row) {
    for (std::int64_t column = 0; column < given.columns; ++column) {
      result.values[static_cast<std::size_t>(column * given.rows + row)] =
          given.values[static_cast<std::size_t>(row * given.columns + column)];
    }
  }
  return result;
}

std::vector<std::int64_t> shape_of(const Floats& floats) {
  if (floats.rows == 0) return {floats.columns};
  return {floats.rows, floats.columns};
}

void add(SafetensorsWriter& writer, const std::string& name, const Floats& floats) {
  writer.add_floats(name, shape_of(floats), floats.values);
}

json llama_config(const test::TinyLlamaOptions& options) {
  json config = {{"model_type", "llama"},
                 {"vocab_size", test::kTinyVocabularySize},
                 {"hidden_size", options.embedding_length},
                 {"intermediate_size", options.feed_forward_length},
                 {"num_hidden_layers", options.num_layers},
                 {"num_attention_heads", options.num_heads},
                 {"num_key_value_heads", options.num_kv_heads},
                 {"max_position_embeddings", options.context_length},
                 {"rms_norm_eps", 1e-5},
                 {"rope_theta", 10'000.0},
                 {"tie_word_embeddings", options.tied_output}};
  if (options.head_dim != 0) config["head_dim"] = options.head_dim;
  return config;
}

// A llama of a GGUF file as a folder of floats.
SafetensorsWriter llama_weights(const std::map<std::string, Floats>& tensors, std::int64_t heads,
                                std::int64_t kv_heads) {
  static const std::map<std::string, std::string> kNames = {
      {"attn_norm", "input_layernorm"},    {"attn_q", "self_attn.q_proj"},
      {"attn_k", "self_attn.k_proj"},      {"attn_v", "self_attn.v_proj"},
      {"attn_output", "self_attn.o_proj"}, {"ffn_norm", "post_attention_layernorm"},
      {"ffn_gate", "mlp.gate_proj"},       {"ffn_up", "mlp.up_proj"},
      {"ffn_down", "mlp.down_proj"}};
  SafetensorsWriter writer;
  for (const auto& [name, floats] : tensors) {
    if (name == "token_embd.weight") add(writer, "model.embed_tokens.weight", floats);
    if (name == "output_norm.weight") add(writer, "model.norm.weight", floats);
    if (name == "output.weight") add(writer, "lm_head.weight", floats);
    if (!name.starts_with("blk.")) continue;
    const std::size_t dot = name.find('.', 4), last = name.rfind('.');
    const std::string part = name.substr(dot + 1, last - dot - 1);
    const bool turns = part == "attn_q" || part == "attn_k";
    Floats stored = floats;
    const bool is_list = stored.rows == 0;
    if (turns && is_list) std::swap(stored.rows, stored.columns), stored.columns = 1;
    if (turns) stored = halves_of_neighbours(stored, part == "attn_q" ? heads : kv_heads);
    if (turns && is_list) stored.columns = std::exchange(stored.rows, 0);
    add(writer, "model.layers." + name.substr(4, dot - 4) + "." + kNames.at(part) + name.substr(last),
        stored);
  }
  return writer;
}

std::vector<std::int32_t> some_tokens() {
  std::vector<std::int32_t> tokens;
  for (std::int32_t i = 0; i < 40; ++i) tokens.push_back((i * 37 + 11) % 269);
  return tokens;
}

std::vector<float> logits(const fs::path& path) {
  OneSequence sequence(path, cpu_backend(kernels::Activation::kF32), 64);
  return sequence.logits_of(some_tokens(), 7);
}

TEST(FolderSource, ALlamaHasTheSameBitsAsItsFile) {
  for (const bool has_more : {false, true}) {
    test::TinyLlamaOptions options{.weight_type = kernels::TensorType::kF32};
    options.biases = has_more;
    options.tied_output = !has_more;
    if (has_more) options.head_dim = 24;
    const TemporaryFolder folder;
    test::make_tiny_llama(5, options).write(folder / "m.gguf");
    const GgufFile file = *GgufFile::open(folder / "m.gguf");
    fs::create_directory(folder / "hf");
    llama_weights(floats_of(file), options.num_heads, options.num_kv_heads)
        .write(folder / "hf" / "model.safetensors");
    write_text(folder / "hf" / "config.json", llama_config(options).dump());
    const std::vector<float> expected = logits(folder / "m.gguf"), found = logits(folder / "hf");
    ASSERT_EQ(found.size(), expected.size());
    EXPECT_EQ(std::memcmp(found.data(), expected.data(), found.size() * sizeof(float)), 0)
        << worst_difference(found, expected);
  }
}

// A layer of random integers of 4 bits in groups, as GPTQ keeps it, and what it stands for as floats.
struct GptqLayer {
  std::vector<std::int32_t> words, zeros, groups;
  std::vector<std::uint16_t> scales;
  std::vector<float> floats;
};

GptqLayer random_gptq_layer(std::int64_t rows, std::int64_t columns, std::int64_t group_size, bool is_ordered,
                            std::mt19937_64& random) {
  GptqLayer layer;
  const std::int64_t num_groups = columns / group_size;
  for (std::int64_t i = 0; i < columns / 8 * rows; ++i)
    layer.words.push_back(static_cast<std::int32_t>(random()));
  // Zero points about the middle, less one.
  for (std::int64_t i = 0; i < num_groups * rows / 8; ++i)
    layer.zeros.push_back(static_cast<std::int32_t>((random() & 0x11111111u) + 0x66666666u));
  for (std::int64_t i = 0; i < num_groups * rows; ++i)
    layer.scales.push_back(static_cast<std::uint16_t>(0x2000 + random() % 0x400));
  for (std::int64_t i = 0; i < columns; ++i)
    layer.groups.push_back(static_cast<std::int32_t>(i / group_size));
  if (is_ordered) std::ranges::shuffle(layer.groups, random);
  const auto nibble = [](std::int32_t word, std::int64_t index) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(word) >> (4 * (index % 8)) & 15);
  };
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      const std::int64_t group = layer.groups[static_cast<std::size_t>(column)];
      const std::int32_t zero =
          nibble(layer.zeros[static_cast<std::size_t>(group * (rows / 8) + row / 8)], row) + 1;
      const std::int32_t stored =
          nibble(layer.words[static_cast<std::size_t>(column / 8 * rows + row)], column);
      const float scale = half_to_float(layer.scales[static_cast<std::size_t>(group * rows + row)]);
      layer.floats.push_back(scale * static_cast<float>(stored - zero));
    }
  }
  return layer;
}

std::int64_t planned_bytes(const FolderSource& source) {
  return planned_weight_bytes(*find_model_tensors(source, *read_model_config(source.metadata())),
                              WeightType::kAuto);
}

// Every linear layer quantised by itself, so that queries, keys and values have orders of their own, beside
// the same model in floats.
TEST(FolderSource, AGptqModelGivesTheLogitsOfItsFloats) {
  struct Case {
    std::int64_t group_size;
    bool is_ordered;
  };
  for (const auto [group_size, is_ordered] : {Case{32, false}, Case{32, true}, Case{16, false}}) {
    std::mt19937_64 random(12);
    const test::TinyLlamaOptions options{.num_kv_heads = 2};
    const std::int64_t width = options.embedding_length, hidden = options.feed_forward_length;
    const std::int64_t keys = width / options.num_heads * options.num_kv_heads;
    SafetensorsWriter floats, quantised;
    const auto plain = [&](const std::string& name, std::int64_t rows, std::int64_t columns, float centre) {
      Floats made{rows, columns, {}};
      for (std::int64_t i = 0; i < std::max<std::int64_t>(rows, 1) * columns; ++i)
        made.values.push_back(centre + 0.2f * (static_cast<float>(random() >> 40) * 0x1p-23f - 1.0f));
      add(floats, name, made);
      add(quantised, name, made);
    };
    const auto linear = [&](const std::string& name, std::int64_t rows, std::int64_t columns) {
      const GptqLayer layer = random_gptq_layer(rows, columns, group_size, is_ordered, random);
      add(floats, name + ".weight", {rows, columns, layer.floats});
      const std::int64_t groups = columns / group_size;
      quantised.add(name + ".qweight", "I32", {columns / 8, rows}, std::as_bytes(std::span(layer.words)));
      quantised.add(name + ".qzeros", "I32", {groups, rows / 8}, std::as_bytes(std::span(layer.zeros)));
      quantised.add(name + ".scales", "F16", {groups, rows}, std::as_bytes(std::span(layer.scales)));
      quantised.add(name + ".g_idx", "I32", {columns}, std::as_bytes(std::span(layer.groups)));
    };
    plain("model.embed_tokens.weight", test::kTinyVocabularySize, width, 0.0f);
    for (std::int64_t i = 0; i < options.num_layers; ++i) {
      const std::string layer = "model.layers." + std::to_string(i) + ".";
      plain(layer + "input_layernorm.weight", 0, width, 1.0f);
      linear(layer + "self_attn.q_proj", width, width);
      linear(layer + "self_attn.k_proj", keys, width);
      linear(layer + "self_attn.v_proj", keys, width);
      linear(layer + "self_attn.o_proj", width, width);
      plain(layer + "post_attention_layernorm.weight", 0, width, 1.0f);
      linear(layer + "mlp.gate_proj", hidden, width);
      linear(layer + "mlp.up_proj", hidden, width);
      linear(layer + "mlp.down_proj", width, hidden);
    }
    plain("model.norm.weight", 0, width, 1.0f);
    plain("lm_head.weight", test::kTinyVocabularySize, width, 0.0f);
    const TemporaryFolder folder;
    json config = llama_config(options);
    config["tie_word_embeddings"] = false;
    fs::create_directory(folder / "floats");
    fs::create_directory(folder / "gptq");
    floats.write(folder / "floats" / "model.safetensors");
    quantised.write(folder / "gptq" / "model.safetensors");
    write_text(folder / "floats" / "config.json", config.dump());
    config["quantization_config"] = {{"quant_method", "gptq"},
                                     {"bits", 4},
                                     {"group_size", group_size},
                                     {"desc_act", is_ordered},
                                     {"sym", false}};
    write_text(folder / "gptq" / "config.json", config.dump());
    const std::vector<float> expected = logits(folder / "floats"), found = logits(folder / "gptq");
    ASSERT_EQ(found.size(), expected.size());
    EXPECT_LT(worst_difference(found, expected), 2e-5) << is_ordered;
    // With rounded activations, whose groups are those of the order.
    OneSequence rounded(folder / "gptq", cpu_backend(kernels::Activation::kInt16), 64);
    EXPECT_LT(worst_difference(rounded.logits_of(some_tokens(), 7), expected), 2e-2) << is_ordered;
    // What no kernel multiplies with is counted as what it becomes, and told.
    const auto as_floats = FolderSource::open(folder / "floats"),
               packed = FolderSource::open(folder / "gptq");
    EXPECT_EQ(as_floats->notice(), "");
    const bool is_unpacked = group_size < 32;
    EXPECT_EQ(packed->notice().starts_with("14 packed weights become floats, 288 KiB instead of 51.2 KiB,"),
              is_unpacked)
        << packed->notice();
    EXPECT_EQ(packed->notice().empty(), !is_unpacked);
    EXPECT_EQ(planned_bytes(*packed) == planned_bytes(*as_floats), is_unpacked);
  }
}

TEST(FolderSource, WhatStandsInTheFileIsNotCopied) {
  const test::TinyLlamaOptions options{.weight_type = kernels::TensorType::kF32};
  const TemporaryFolder folder;
  test::make_tiny_llama(5, options).write(folder / "m.gguf");
  llama_weights(floats_of(*GgufFile::open(folder / "m.gguf")), options.num_heads, options.num_kv_heads)
      .write(folder / "model.safetensors");
  write_text(folder / "config.json", llama_config(options).dump());
  const auto source = FolderSource::open(folder.path());
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_EQ(source->format(), "safetensors");
  EXPECT_FALSE(source->bytes_of(*source->find_tensor("blk.0.ffn_up.weight")).empty());
  EXPECT_EQ(source->reader_of(*source->find_tensor("blk.0.ffn_up.weight")), nullptr);
  EXPECT_NE(source->reader_of(*source->find_tensor("blk.0.attn_q.weight")), nullptr);
  EXPECT_EQ(source->stored_name("blk.0.attn_q.weight"), "model.layers.0.self_attn.q_proj.weight");
}

// GPT-2's layers have inputs as rows.
TEST(FolderSource, AGpt2HasTheSameBitsAsItsFile) {
  const std::int64_t width = 64, hidden = 96, context = 64, vocabulary = test::kTinyVocabularySize;
  std::mt19937_64 random(9);
  GgufWriter writer;
  SafetensorsWriter weights;
  writer.add_string("general.architecture", "gpt2");
  writer.add_u32("gpt2.block_count", 2).add_u32("gpt2.context_length", context);
  writer.add_u32("gpt2.embedding_length", width).add_u32("gpt2.feed_forward_length", hidden);
  writer.add_u32("gpt2.attention.head_count", 4).add_f32("gpt2.attention.layer_norm_epsilon", 1e-5f);
  test::add_tiny_vocabulary(writer, "");
  const auto make = [&](const std::string& here, const std::string& there, std::int64_t rows,
                        std::int64_t columns, float centre, bool turns) {
    Floats floats{rows, columns, {}};
    for (std::int64_t i = 0; i < std::max<std::int64_t>(rows, 1) * columns; ++i)
      floats.values.push_back(centre + 0.2f * (static_cast<float>(random() >> 40) * 0x1p-23f - 1.0f));
    std::vector<std::uint64_t> dimensions = {static_cast<std::uint64_t>(columns)};
    if (rows > 0) dimensions.push_back(static_cast<std::uint64_t>(rows));
    writer.add_tensor_f32(here, dimensions, floats.values);
    add(weights, there, turns ? turned(floats) : floats);
  };
  make("token_embd.weight", "wte.weight", vocabulary, width, 0.0f, false);
  make("position_embd.weight", "wpe.weight", context, width, 0.0f, false);
  const auto norm = [&](const std::string& here, const std::string& there) {
    make(here + ".weight", there + ".weight", 0, width, 1.0f, false);
    make(here + ".bias", there + ".bias", 0, width, 0.0f, false);
  };
  const auto linear = [&](const std::string& here, const std::string& there, std::int64_t rows,
                          std::int64_t columns) {
    make(here + ".weight", there + ".weight", rows, columns, 0.0f, true);
    make(here + ".bias", there + ".bias", 0, rows, 0.0f, false);
  };
  for (int i = 0; i < 2; ++i) {
    const std::string here = "blk." + std::to_string(i) + ".", there = "h." + std::to_string(i) + ".";
    norm(here + "attn_norm", there + "ln_1");
    linear(here + "attn_qkv", there + "attn.c_attn", 3 * width, width);
    linear(here + "attn_output", there + "attn.c_proj", width, width);
    norm(here + "ffn_norm", there + "ln_2");
    linear(here + "ffn_up", there + "mlp.c_fc", hidden, width);
    linear(here + "ffn_down", there + "mlp.c_proj", width, hidden);
    weights.add_floats(there + "attn.bias", {1, 1}, std::vector<float>{1.0f});  // the causal mask
  }
  norm("output_norm", "ln_f");
  const TemporaryFolder folder;
  fs::create_directory(folder / "hf");
  weights.write(folder / "hf" / "model.safetensors");
  write_text(folder / "hf" / "config.json", json({{"model_type", "gpt2"},
                                                  {"vocab_size", vocabulary},
                                                  {"n_embd", width},
                                                  {"n_layer", 2},
                                                  {"n_head", 4},
                                                  {"n_positions", context},
                                                  {"n_inner", hidden},
                                                  {"layer_norm_epsilon", 1e-5},
                                                  {"activation_function", "gelu_new"}})
                                                .dump());
  const auto source = FolderSource::open(folder / "hf");
  ASSERT_TRUE(source) << source.error().message;
  writer.write(folder / "m.gguf");
  const std::vector<float> expected = logits(folder / "m.gguf"), found = logits(folder / "hf");
  ASSERT_EQ(found.size(), expected.size());
  EXPECT_EQ(std::memcmp(found.data(), expected.data(), found.size() * sizeof(float)), 0)
      << worst_difference(found, expected);
}

// ---- what is refused

class Folder {
 public:
  Folder() {
    test::make_tiny_llama(5, options_).write(folder_ / "m.gguf");
    tensors_ = floats_of(*GgufFile::open(folder_ / "m.gguf"));
    config = llama_config(options_);
    fs::create_directory(folder_ / "hf");
  }
  // What opening a model says, up to its weights.
  std::string message(const SafetensorsWriter* weights = nullptr) {
    if (weights != nullptr) {
      weights->write(folder_ / "hf" / "model.safetensors");
    } else {
      llama_weights(tensors_, options_.num_heads, options_.num_kv_heads)
          .write(folder_ / "hf" / "model.safetensors");
    }
    write_text(folder_ / "hf" / "config.json", text.empty() ? config.dump() : text);
    const auto source = open_model_source(folder_ / "hf");
    if (!source) return source.error().message;
    const auto read = read_model_config((*source)->metadata());
    if (!read) return read.error().message;
    const auto found = find_model_tensors(**source, *read);
    return found ? "" : found.error().message;
  }
  json config;
  std::string text;  // instead of the configuration
  std::map<std::string, Floats>& tensors() { return tensors_; }
  const test::TinyLlamaOptions& options() const { return options_; }

 private:
  test::TinyLlamaOptions options_{.weight_type = kernels::TensorType::kF32};
  TemporaryFolder folder_;
  std::map<std::string, Floats> tensors_;
};

TEST(FolderSource, WhatIsWrongWithAConfigurationIsOneSentence) {
  Folder good;
  ASSERT_EQ(good.message(), "");
  struct Case {
    const char* name;
    json value;
    std::string_view sentence;
  };
  const json kAbsent = "(absent)";
  const Case kCases[] = {
      {"model_type", kAbsent, "model_type is missing; supported are"},
      {"model_type", "bert", "model_type is \"bert\"; supported are"},
      {"model_type", "phimoe", "model_type is \"phimoe\"; supported are"},
      {"model_type", 7, "model_type is not a text"},
      {"model_type", "llama\x1b[0m", "model_type is \"llama\\x1b[0m\""},
      {"hidden_size", kAbsent, "hidden_size is missing"},
      {"hidden_size", "64", "hidden_size is not a whole number"},
      {"hidden_size", 64.5, "hidden_size is not a whole number"},
      {"hidden_size", 0, "hidden_size is 0; 1 to 65536 is allowed"},
      {"hidden_size", -64, "hidden_size is -64; 1 to 65536 is allowed"},
      {"hidden_size", 1ll << 40, "1 to 65536 is allowed"},
      {"num_hidden_layers", 0, "num_hidden_layers is 0; 1 to 1024 is allowed"},
      {"num_hidden_layers", 1ll << 62, "1 to 1024 is allowed"},
      {"num_hidden_layers", 18446744073709551615ull, "num_hidden_layers is not a whole number of this size"},
      {"num_hidden_layers", 3, "\"model.layers.2.input_layernorm.weight\" is missing"},
      {"num_hidden_layers", 1, "is not used by Octavo's llama models"},
      {"num_attention_heads", 0, "num_attention_heads is 0"},
      {"num_attention_heads", json::array({1}), "num_attention_heads is not a whole number"},
      {"num_key_value_heads", 3, "does not go with config.json"},
      {"head_dim", 5000, "head_dim is 5000; 1 to 4096 is allowed"},
      {"head_dim", 32, "has the shape"},
      {"intermediate_size", kAbsent, "intermediate_size is missing"},
      {"intermediate_size", 7, "has the shape"},
      {"vocab_size", kAbsent, "vocab_size is missing"},
      {"vocab_size", 0, "vocab_size"},
      {"vocab_size", 12, "has the shape"},
      {"max_position_embeddings", -1, "max_position_embeddings"},
      {"rms_norm_eps", kAbsent, "rms_norm_eps is missing"},
      {"rms_norm_eps", -1.0, "rms_norm_eps"},
      {"rms_norm_eps", "1e-5", "rms_norm_eps is not a number"},
      {"rope_theta", json::object(), "rope_theta is not a number"},
      {"rope_theta", -5.0, "rope_theta"},
      {"rope_scaling", 3, "rope_scaling is not an object"},
      {"rope_scaling", {{"rope_type", "dynamic"}, {"factor", 2.0}}, "is \"dynamic\"; supported are"},
      {"rope_scaling", {{"rope_type", "linear"}}, "rope_scaling.factor is missing"},
      {"rope_scaling", {{"rope_type", "llama3"}, {"factor", 8.0}}, "rope_scaling.low_freq_factor is missing"},
      {"rope_scaling", {{"rope_type", "linear"}, {"factor", "2"}}, "rope_scaling.factor is not a number"},
      {"rope_scaling", {{"type", 7}}, "rope_scaling.type is not a text"},
      {"tie_word_embeddings", "no", "tie_word_embeddings is not true or false"},
      {"hidden_act", "relu", "hidden_act is \"relu\", which is not computed here"},
      {"layer_types", json::array({"full_attention"}), "layer_types has 1 entries for 2 layers"},
      {"layer_types", "full_attention", "layer_types is not a list of texts"},
      {"layer_types", json::array({1, 2}), "layer_types is not a list of texts"},
      {"quantization_config", {{"quant_method", "bitsandbytes"}}, "bitsandbytes"},
      {"quantization_config", {{"quant_method", "aqlm"}}, "aqlm"},
      {"quantization_config", {{"bits", 4}}, "quantization_config.group_size is missing"},
      {"quantization_config", 4, "quantization_config is no list of names and values"},
  };
  for (const Case& each : kCases) {
    SCOPED_TRACE(std::string(each.name) + " " + each.value.dump());
    Folder folder;
    if (each.value == kAbsent) {
      folder.config.erase(each.name);
    } else {
      folder.config[each.name] = each.value;
    }
    const std::string message = folder.message();
    EXPECT_NE(message.find(each.sentence), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos);
  }
}

TEST(FolderSource, WhatIsNoConfigurationIsOneSentence) {
  for (const auto& [text, sentence] :
       std::map<std::string, std::string>{{"{", "is no valid JSON"},
                                          {"[]", "holds no object"},
                                          {"null", "holds no object"},
                                          {std::string(5 << 20, ' '), "at most 4194304 are allowed"},
                                          {std::string(1'000, '['), "is nested more than 64 deep"}}) {
    Folder folder;
    folder.text = text;
    const std::string message = folder.message();
    EXPECT_NE(message.find(sentence), std::string::npos) << message;
    EXPECT_NE(message.find("config.json"), std::string::npos) << message;
  }
}

TEST(FolderSource, WhatIsWrongWithWeightsNamesThemAsTheFilesDo) {
  {
    Folder folder;
    folder.tensors().erase("blk.1.ffn_up.weight");
    EXPECT_NE(folder.message().find("\"model.layers.1.mlp.up_proj.weight\" is missing"), std::string::npos);
  }
  {
    Folder folder;
    SafetensorsWriter weights =
        llama_weights(folder.tensors(), folder.options().num_heads, folder.options().num_kv_heads);
    weights.add_floats("model.layers.0.self_attn.surprise", {1}, std::vector<float>{1.0f});
    EXPECT_NE(folder.message(&weights).find("\"model.layers.0.self_attn.surprise\" is not used"),
              std::string::npos);
  }
  {
    Folder folder;  // What a picture or a table needs is nothing that text needs.
    SafetensorsWriter weights =
        llama_weights(folder.tensors(), folder.options().num_heads, folder.options().num_kv_heads);
    weights.add_floats("vision_tower.patch.weight", {1}, std::vector<float>{1.0f});
    weights.add_floats("model.layers.0.self_attn.rotary_emb.inv_freq", {1}, std::vector<float>{1.0f});
    EXPECT_EQ(folder.message(&weights), "");
  }
}

TEST(FolderSource, AnUnreadTypeIsNamed) {
  Folder folder;
  folder.tensors().erase("output_norm.weight");
  SafetensorsWriter weights =
      llama_weights(folder.tensors(), folder.options().num_heads, folder.options().num_kv_heads);
  const std::vector<std::byte> bytes(folder.options().embedding_length * 8);
  weights.add("model.norm.weight", "F64", {static_cast<std::int64_t>(folder.options().embedding_length)},
              bytes);
  EXPECT_NE(folder.message(&weights).find("\"model.norm.weight\" has type F64, which is not read here"),
            std::string::npos);
}

// ---- orders of rows

TEST(RowOrder, EveryOrderIsAPermutation) {
  const RowOrder kOrders[] = {{.heads_of_neighbours = 3},
                              {.key_heads = 2, .value_heads = 6},
                              {.first_tiled = 12, .key_heads = 2, .value_heads = 4}};
  for (const RowOrder& order : kOrders) {
    constexpr std::int64_t kRows = 36;
    std::vector<bool> seen(kRows);
    for (std::int64_t row = 0; row < kRows; ++row) {
      const std::int64_t stored = order.stored_row(row, kRows);
      ASSERT_GE(stored, 0);
      ASSERT_LT(stored, kRows);
      EXPECT_FALSE(seen[static_cast<std::size_t>(stored)]);
      seen[static_cast<std::size_t>(stored)] = true;
    }
  }
  // Of a head of 4 rows: 0 and 2 are a pair in the folder.
  const RowOrder one_head{.heads_of_neighbours = 1};
  EXPECT_EQ(one_head.stored_row(0, 4), 0);
  EXPECT_EQ(one_head.stored_row(1, 4), 2);
  EXPECT_EQ(one_head.stored_row(2, 4), 1);
  EXPECT_EQ(one_head.stored_row(3, 4), 3);
  // Four value heads of two key heads: the first of each, then the second of each.
  const RowOrder heads{.key_heads = 2, .value_heads = 4};
  EXPECT_EQ(heads.stored_row(0, 4), 0);
  EXPECT_EQ(heads.stored_row(1, 4), 2);
  EXPECT_EQ(heads.stored_row(2, 4), 1);
  EXPECT_EQ(heads.stored_row(3, 4), 3);
}

TEST(Families, EveryOneHasAnArchitectureOfTheEngine) {
  for (const auto& some : {plain_families(), gemma_families(), expert_families(), recurrent_families()}) {
    for (const Family& family : some) {
      EXPECT_NE(find_architecture(family.architecture), nullptr) << family.model_type;
      EXPECT_EQ(find_family(family.model_type), &family);
    }
  }
  EXPECT_EQ(find_family("bert"), nullptr);
}

}  // namespace
}  // namespace octavo::model
