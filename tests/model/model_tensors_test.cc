#include "engine/model/model_tensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <string>

#include "engine/model/gguf_file.h"
#include "kernels/dequantize.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/temporary_folder.h"

namespace octavo::model {
namespace {

using test::GgufWriter;
using test::TemporaryFolder;
using test::TensorType;
using test::TinyLlamaOptions;

struct Opened {
  GgufFile file;
  ModelConfig config;
};

Result<Opened> open(const TemporaryFolder& folder, const GgufWriter& writer) {
  writer.write(folder / "m.gguf");
  OCTAVO_TRY(GgufFile file, GgufFile::open(folder / "m.gguf"));
  OCTAVO_TRY(ModelConfig config, read_model_config(file.header()));
  return Opened{std::move(file), std::move(config)};
}

TEST(ModelTensors, FindsEveryWeightOfEveryType) {
  for (const TensorType type :
       {TensorType::kF32,    TensorType::kF16,    TensorType::kBF16,    TensorType::kQ4_0,
        TensorType::kQ4_1,   TensorType::kQ5_0,   TensorType::kQ5_1,    TensorType::kQ8_0,
        TensorType::kQ2_K,   TensorType::kQ3_K,   TensorType::kQ4_K,    TensorType::kQ5_K,
        TensorType::kQ6_K,   TensorType::kIQ4_NL, TensorType::kIQ4_XS,  TensorType::kMXFP4,
        TensorType::kNVFP4,  TensorType::kIQ1_S,  TensorType::kIQ1_M,   TensorType::kIQ2_XXS,
        TensorType::kIQ2_XS, TensorType::kIQ2_S,  TensorType::kIQ3_XXS, TensorType::kIQ3_S,
        TensorType::kTQ1_0,  TensorType::kTQ2_0,  TensorType::kQ1_0,    TensorType::kQ2_0}) {
    SCOPED_TRACE(kernels::traits_of(type).name);
    const TemporaryFolder folder;
    const bool wide = kernels::traits_of(type).block_elements > 64;
    TinyLlamaOptions options{.weight_type = type, .tied_output = false, .biases = true};
    if (wide) options.embedding_length = options.feed_forward_length = 256;
    const auto opened = open(folder, test::make_tiny_llama(5, options));
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    const auto model = find_model_tensors(opened->file, opened->config);
    ASSERT_TRUE(model.has_value()) << model.error().message;
    const std::int64_t width = options.embedding_length, hidden = options.feed_forward_length;
    ASSERT_EQ(model->layers.size(), 2u);
    const auto expect_matrix = [&](const kernels::MatrixSource& matrix, const std::string& name,
                                   std::int64_t rows, std::int64_t columns) {
      EXPECT_EQ(matrix.type, type);
      EXPECT_EQ(matrix.rows, rows);
      EXPECT_EQ(matrix.columns, columns);
      EXPECT_EQ(matrix.scale, type == TensorType::kNVFP4 ? 1.0f / test::kNvfp4Scale : 1.0f);
      EXPECT_EQ(matrix.bytes.data(), opened->file.bytes_of(*opened->file.find_tensor(name)).data());
      EXPECT_EQ(
          static_cast<std::int64_t>(matrix.bytes.size()),
          rows * columns / kernels::traits_of(type).block_elements * kernels::traits_of(type).block_bytes);
    };
    for (std::size_t i = 0; i < 2; ++i) {
      const std::string prefix = "blk." + std::to_string(i) + ".";
      const LayerTensors& layer = model->layers[i];
      const std::int64_t key = width / 2;  // two KV heads of four
      expect_matrix(layer.query.weight, prefix + "attn_q.weight", width, width);
      expect_matrix(layer.key.weight, prefix + "attn_k.weight", key, width);
      expect_matrix(layer.value.weight, prefix + "attn_v.weight", key, width);
      expect_matrix(layer.attention_output.weight, prefix + "attn_output.weight", width, width);
      expect_matrix(layer.gate.weight, prefix + "ffn_gate.weight", hidden, width);
      expect_matrix(layer.up.weight, prefix + "ffn_up.weight", hidden, width);
      expect_matrix(layer.down.weight, prefix + "ffn_down.weight", width, hidden);
      EXPECT_EQ(layer.query.bias.size(), static_cast<std::size_t>(width));
      EXPECT_EQ(layer.key.bias.size(), static_cast<std::size_t>(key));
      EXPECT_EQ(layer.down.bias.size(), static_cast<std::size_t>(width));
      EXPECT_EQ(layer.up.bias.size(), static_cast<std::size_t>(hidden));
      const auto* norm = opened->file.find_tensor(prefix + "ffn_norm.weight");
      EXPECT_EQ(std::memcmp(layer.feed_forward_norm.weight.data(), opened->file.bytes_of(*norm).data(),
                            norm->num_bytes),
                0);
    }
    expect_matrix(model->token_embedding, "token_embd.weight", test::kTinyVocabularySize, width);
    EXPECT_FALSE(model->output_is_tied);
    expect_matrix(model->output.weight, "output.weight", test::kTinyVocabularySize, width);
    EXPECT_EQ(model->output_norm.weight.size(), static_cast<std::size_t>(width));
  }
}

TEST(ModelTensors, AModelWithoutOutputWeightsUsesItsEmbeddings) {
  const TemporaryFolder folder;
  const auto opened = open(folder, test::make_tiny_llama(1));
  const auto model = find_model_tensors(opened->file, opened->config);
  ASSERT_TRUE(model.has_value());
  EXPECT_TRUE(model->output_is_tied);
  EXPECT_EQ(model->output.weight.bytes.data(), model->token_embedding.bytes.data());
  EXPECT_TRUE(model->layers[0].query.bias.empty());
  EXPECT_TRUE(model->output.bias.empty());
}

TEST(ModelTensors, HeadsMayBeOfAnotherSizeThanTheWidthSays) {
  const TemporaryFolder folder;
  const auto opened =
      open(folder, test::make_tiny_llama(1, {.num_heads = 3, .num_kv_heads = 1, .head_dim = 32}));
  ASSERT_TRUE(opened.has_value()) << opened.error().message;
  const auto model = find_model_tensors(opened->file, opened->config);
  ASSERT_TRUE(model.has_value()) << model.error().message;
  EXPECT_EQ(model->layers[1].query.weight.rows, 96);
  EXPECT_EQ(model->layers[1].attention_output.weight.columns, 96);
  EXPECT_EQ(model->layers[1].key.weight.rows, 32);
  EXPECT_EQ(model->rope.inverse_frequencies.size(), 16u);
}

TEST(ModelTensors, VectorsMayBeStoredInAnyType) {
  const TemporaryFolder folder;
  GgufWriter writer;
  test::add_tiny_llama_keys(writer, {.num_layers = 1});
  std::mt19937_64 random(3);
  GgufWriter weights = writer;
  test::add_tiny_llama_tensors(weights, {.num_layers = 1}, random);
  const auto norm = test::random_weights(TensorType::kQ8_0, 64, 1.0, random);
  weights.add_tensor("output.bias", TensorType::kF16, {test::kTinyVocabularySize},
                     test::random_weights(TensorType::kF16, test::kTinyVocabularySize, 1.0, random));
  weights.add_tensor("blk.0.attn_q.bias", TensorType::kQ8_0, {64}, norm);
  const auto opened = open(folder, weights);
  const auto model = find_model_tensors(opened->file, opened->config);
  ASSERT_TRUE(model.has_value()) << model.error().message;
  std::vector<float> expected(64);
  kernels::dequantize(TensorType::kQ8_0, norm.data(), 64, expected.data());
  EXPECT_EQ(model->layers[0].query.bias, expected);
  EXPECT_EQ(model->output.bias.size(), test::kTinyVocabularySize);
}

// What they would do to the results nobody knows, or everybody: a scale, a bias of RMSNorm, a layer too many.
TEST(ModelTensors, ATensorThatNobodyUsesIsRefusedByItsName) {
  for (const std::string name : {"blk.0.something.weight", "blk.0.attn_q.scale", "blk.1.attn_norm.bias",
                                 "blk.2.attn_norm.weight", "output.scale", "position_embd.weight"}) {
    const TemporaryFolder folder;
    GgufWriter writer = test::make_tiny_llama(1);
    writer.add_raw_tensor(name, 17, {256}, std::vector<std::byte>(74));
    const auto opened = open(folder, writer);
    const auto model = find_model_tensors(opened->file, opened->config);
    ASSERT_FALSE(model.has_value()) << name;
    EXPECT_EQ(model.error().code, ErrorCode::kUnsupported);
    EXPECT_EQ(model.error().subject, name);
    EXPECT_NE(model.error().message.find("tensor \"" + name + "\" is not used"), std::string::npos)
        << model.error().message;
  }
}

TEST(ModelTensors, RopeFactorsFromTheFileAreApplied) {
  const TemporaryFolder folder;
  GgufWriter writer = test::make_tiny_llama(1);
  writer.add_tensor_f32("rope_freqs.weight", {8}, {1, 1, 1, 1, 2, 4, 8, 8});
  const auto opened = open(folder, writer);
  const auto model = find_model_tensors(opened->file, opened->config);
  ASSERT_TRUE(model.has_value()) << model.error().message;
  EXPECT_EQ(model->rope.inverse_frequencies[0], 1.0);
  EXPECT_NEAR(model->rope.inverse_frequencies[5], std::pow(10'000.0, -10.0 / 16) / 4, 1e-15);
}

// A tiny model of one layer in which one tensor is replaced, or left out when `type` is 0xffff.
GgufWriter with_tensor(const std::string& changed, std::uint32_t type,
                       const std::vector<std::uint64_t>& dimensions, std::vector<std::byte> bytes) {
  GgufWriter writer;
  test::add_tiny_llama_keys(writer, {.num_layers = 1});
  const auto add = [&](const std::string& name, std::vector<std::uint64_t> shape) {
    if (name == changed) {
      if (type != 0xffff) writer.add_raw_tensor(name, type, dimensions, bytes);
      return;
    }
    std::size_t count = 1;
    for (const std::uint64_t dimension : shape) count *= dimension;
    writer.add_tensor(name, TensorType::kF32, std::move(shape), std::vector<std::byte>(4 * count));
  };
  add("token_embd.weight", {64, test::kTinyVocabularySize});
  add("output_norm.weight", {64});
  add("blk.0.attn_norm.weight", {64});
  add("blk.0.attn_q.weight", {64, 64});
  add("blk.0.attn_k.weight", {64, 32});
  add("blk.0.attn_v.weight", {64, 32});
  add("blk.0.attn_output.weight", {64, 64});
  add("blk.0.ffn_norm.weight", {64});
  add("blk.0.ffn_gate.weight", {64, 128});
  add("blk.0.ffn_up.weight", {64, 128});
  add("blk.0.ffn_down.weight", {128, 64});
  return writer;
}

Error refusal(const GgufWriter& writer) {
  const TemporaryFolder folder;
  const auto opened = open(folder, writer);
  EXPECT_TRUE(opened.has_value()) << opened.error().message;
  const auto model = find_model_tensors(opened->file, opened->config);
  EXPECT_FALSE(model.has_value());
  return model.has_value() ? Error{} : model.error();
}

constexpr const char* kNeeded[] = {
    "token_embd.weight",     "output_norm.weight",  "blk.0.attn_norm.weight",   "blk.0.attn_q.weight",
    "blk.0.attn_k.weight",   "blk.0.attn_v.weight", "blk.0.attn_output.weight", "blk.0.ffn_norm.weight",
    "blk.0.ffn_gate.weight", "blk.0.ffn_up.weight", "blk.0.ffn_down.weight"};

TEST(ModelTensors, EveryNeededTensorIsNamedWhenItIsMissing) {
  for (const char* name : kNeeded) {
    const Error error = refusal(with_tensor(name, 0xffff, {}, {}));
    EXPECT_EQ(error.code, ErrorCode::kDamagedFile);
    EXPECT_EQ(error.subject, name);
    EXPECT_NE(error.message.find("tensor \"" + std::string(name) + "\" is missing"), std::string::npos)
        << error.message;
  }
}

TEST(ModelTensors, EveryShapeIsHeldAgainstTheMetadata) {
  for (const char* name : kNeeded) {
    const Error error = refusal(with_tensor(name, 0, {32, 3}, std::vector<std::byte>(384)));
    EXPECT_EQ(error.code, ErrorCode::kDamagedFile);
    EXPECT_EQ(error.subject, name);
    EXPECT_NE(error.message.find("has the shape 32 x 3, but the metadata says"), std::string::npos)
        << error.message;
  }
  const Error turned =
      refusal(with_tensor("blk.0.ffn_down.weight", 0, {64, 128}, std::vector<std::byte>(4 * 64 * 128)));
  EXPECT_NE(turned.message.find("has the shape 64 x 128, but the metadata says 128 x 64"), std::string::npos)
      << turned.message;
  const Error third =
      refusal(with_tensor("blk.0.attn_k.weight", 0, {64, 32, 2}, std::vector<std::byte>(4 * 64 * 64)));
  EXPECT_NE(third.message.find("has the shape 64 x 32 x 2"), std::string::npos) << third.message;
}

TEST(ModelTensors, TypesWithoutKernelsAreNamedWithWhatIsSupported) {
  for (const char* name : kNeeded) {
    const bool is_vector = std::string_view(name).find("norm") != std::string_view::npos;
    const TemporaryFolder folder;
    const Error error =
        refusal(is_vector ? with_tensor(name, 28, {64}, std::vector<std::byte>(512))
                          : with_tensor(name, 28, {64, 64}, std::vector<std::byte>(8 * 64 * 64)));
    EXPECT_EQ(error.subject, name);
  }
  const Error error =
      refusal(with_tensor("blk.0.attn_q.weight", 28, {64, 64}, std::vector<std::byte>(8 * 64 * 64)));
  EXPECT_EQ(error.code, ErrorCode::kUnsupported);
  EXPECT_NE(error.message.find("has type F64; supported are F32, F16, BF16, Q1_0"), std::string::npos)
      << error.message;
}

// Converters leave out a scale of 1.
TEST(ModelTensors, OnlyWeightsOfTypeNvfp4HaveASecondScale) {
  const std::vector<std::byte> bytes(36 * 64);
  const TemporaryFolder folder;
  const auto without = open(folder, with_tensor("blk.0.attn_q.weight", 40, {64, 64}, bytes));
  ASSERT_TRUE(without.has_value()) << without.error().message;
  const auto model = find_model_tensors(without->file, without->config);
  ASSERT_TRUE(model.has_value()) << model.error().message;
  EXPECT_EQ(model->layers[0].query.weight.scale, 1.0f);
  GgufWriter two = with_tensor("blk.0.attn_q.weight", 40, {64, 64}, bytes);
  two.add_tensor_f32("blk.0.attn_q.scale", {2}, {1.0f, 2.0f});
  EXPECT_NE(refusal(two).message.find("has the shape 2, but the metadata says 1"), std::string::npos);
  GgufWriter other = test::make_tiny_llama(1);
  other.add_tensor_f32("blk.0.attn_q.scale", {1}, {2.0f});
  EXPECT_EQ(refusal(other).subject, "blk.0.attn_q.scale");
}

TEST(ModelTensors, EveryPartOfAPackedMatrixOfNvfp4HasItsSecondScale) {
  GgufWriter writer;
  test::add_tiny_llama_keys(writer, {.num_layers = 1});
  writer.add_u32("llama.expert_count", 2).add_u32("llama.expert_used_count", 1);
  const auto add = [&](const std::string& name, std::vector<std::uint64_t> shape,
                       const std::vector<float>& scales) {
    std::size_t count = 1;
    for (const std::uint64_t dimension : shape) count *= dimension;
    if (scales.empty()) {
      writer.add_tensor(name + ".weight", TensorType::kF32, std::move(shape),
                        std::vector<std::byte>(4 * count));
      return;
    }
    writer.add_tensor(name + ".weight", TensorType::kNVFP4, std::move(shape),
                      std::vector<std::byte>(count / 64 * 36));
    writer.add_tensor_f32(name + ".scale", {scales.size()}, scales);
  };
  add("token_embd", {64, test::kTinyVocabularySize}, {});
  add("output_norm", {64}, {});
  add("blk.0.attn_norm", {64}, {});
  add("blk.0.attn_qkv", {64, 128}, {0.5f});
  add("blk.0.attn_output", {64, 64}, {0.25f});
  add("blk.0.ffn_norm", {64}, {});
  add("blk.0.ffn_gate_inp", {64, 2}, {});
  add("blk.0.ffn_gate_up_exps", {64, 256, 2}, {2.0f, 3.0f});
  add("blk.0.ffn_down_exps", {128, 64, 2}, {4.0f, 5.0f});
  const TemporaryFolder folder;
  const auto opened = open(folder, writer);
  ASSERT_TRUE(opened.has_value()) << opened.error().message;
  const auto model = find_model_tensors(opened->file, opened->config);
  ASSERT_TRUE(model.has_value()) << model.error().message;
  const LayerTensors& layer = model->layers[0];
  for (const Projection* part : {&layer.query, &layer.key, &layer.value}) EXPECT_EQ(part->weight.scale, 0.5f);
  EXPECT_EQ(layer.attention_output.weight.scale, 0.25f);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(layer.experts.gate[i].scale, i == 0 ? 2.0f : 3.0f);
    EXPECT_EQ(layer.experts.up[i].scale, i == 0 ? 2.0f : 3.0f);
    EXPECT_EQ(layer.experts.down[i].scale, i == 0 ? 4.0f : 5.0f);
  }
  EXPECT_EQ(model->matrix_types(), (std::vector{TensorType::kF32, TensorType::kNVFP4}));
}

TEST(ModelTensors, WeightsThatAreNotFiniteAreFound) {
  for (const float wrong :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    std::vector<std::byte> bytes(256);
    std::memcpy(&bytes[100], &wrong, 4);
    const TemporaryFolder folder;
    with_tensor("blk.0.ffn_norm.weight", 0, {64}, bytes).write(folder / "m.gguf");
    const auto file = GgufFile::open(folder / "m.gguf");
    const auto config = read_model_config(file->header());
    EXPECT_TRUE(find_model_tensors(*file, *config).has_value());
  }
}

TEST(ModelTensors, RopeFactorsByWhichNothingCanBeDividedAreRefused) {
  const float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const float wrong : {0.0f, -1.0f, 1e9f, kNan}) {
    GgufWriter writer = test::make_tiny_llama(1);
    writer.add_tensor_f32("rope_freqs.weight", {8}, {1, 1, 1, wrong, 1, 1, 1, 1});
    EXPECT_EQ(refusal(writer).subject, "rope_freqs.weight");
  }
}

}  // namespace
}  // namespace octavo::model
