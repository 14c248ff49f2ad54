#include "engine/model/transformer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/model/gguf_file.h"
#include "tests/model/one_sequence.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_models.h"

namespace octavo::model {
namespace {

using kernels::Activation;
using kernels::TensorType;
using test::GgufWriter;
using test::golden_values;
using test::TinyLlamaOptions;

std::vector<std::int32_t> random_token_ids(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::int32_t> token_ids(count);
  for (std::int32_t& id : token_ids) id = static_cast<std::int32_t>(random() % test::kTinyVocabularySize);
  return token_ids;
}

// ---- against tests/golden/make_tiny_llama.py

TEST(Transformer, GivesTheLogProbabilitiesOfAnIndependentProgram) {
  std::ifstream file(test::source_folder() / "tests/golden/tiny_llama.json");
  const nlohmann::json variants = nlohmann::json::parse(file);
  ASSERT_EQ(variants.size(), 6u);
  const test::TemporaryFolder folder;
  for (const nlohmann::json& variant : variants) {
    const std::string name = variant["name"];
    const std::vector<std::int32_t> token_ids = variant["token_ids"];
    test::make_golden_llama(variant).write(folder / name);
    for (const bool is_reference : {true, false}) {
      OneSequence model(folder / name,
                        is_reference ? reference_backend(Activation::kF32) : cpu_backend(Activation::kF32),
                        64);
      const std::vector<float> logits = model.logits_of(token_ids);
      double worst = 0.0;
      for (std::size_t row = 0; row < token_ids.size(); ++row) {
        const std::vector<double> found =
            log_softmax(std::span(logits).subspan(row * model.vocabulary_size(), model.vocabulary_size()));
        if (row + 1 < token_ids.size()) {
          const double expected = variant["prompt_logprobs"][row];
          worst = std::max(worst, std::abs(found[static_cast<std::size_t>(token_ids[row + 1])] - expected));
          continue;
        }
        for (std::size_t id = 0; id < model.vocabulary_size(); ++id) {
          worst = std::max(worst, std::abs(found[id] - variant["last_logprobs"][id].get<double>()));
        }
      }
      EXPECT_LT(worst, 1e-4) << name << (is_reference ? " reference" : " cpu");
    }
  }
}

// ---- cpu against reference

TEST(Transformer, IsTheSameOnEveryBackendForEveryWeightType) {
  const test::TemporaryFolder folder;
  for (const TensorType type :
       {TensorType::kF32,    TensorType::kF16,    TensorType::kBF16,    TensorType::kQ4_0,
        TensorType::kQ4_1,   TensorType::kQ5_0,   TensorType::kQ5_1,    TensorType::kQ8_0,
        TensorType::kQ2_K,   TensorType::kQ3_K,   TensorType::kQ4_K,    TensorType::kQ5_K,
        TensorType::kQ6_K,   TensorType::kIQ4_NL, TensorType::kIQ4_XS,  TensorType::kMXFP4,
        TensorType::kNVFP4,  TensorType::kIQ1_S,  TensorType::kIQ1_M,   TensorType::kIQ2_XXS,
        TensorType::kIQ2_XS, TensorType::kIQ2_S,  TensorType::kIQ3_XXS, TensorType::kIQ3_S,
        TensorType::kTQ1_0,  TensorType::kTQ2_0,  TensorType::kQ1_0,    TensorType::kQ2_0}) {
    const TinyLlamaOptions options{
        .weight_type = type, .embedding_length = 256, .feed_forward_length = 256, .num_heads = 8};
    test::make_tiny_llama(7, options).write(folder / "model.gguf");
    const std::vector<std::int32_t> token_ids = random_token_ids(37, 9);
    for (const Activation activation : {Activation::kF32, Activation::kInt8, Activation::kInt16}) {
      OneSequence reference(folder / "model.gguf", reference_backend(activation), 64);
      OneSequence cpu(folder / "model.gguf", cpu_backend(activation), 64);
      const std::vector<float> expected = reference.logits_of(token_ids), found = cpu.logits_of(token_ids);
      // Logits have a deviation of about 16. A tie in rounding an activation to 8 bits can fall either way,
      // and moves everything after it by about one part in 127 of one input; 16 bits, one in 32639.
      const bool rounds = activation != Activation::kF32 && kernels::traits_of(type).quantised;
      const double bound = !rounds ? 2e-3 : activation == Activation::kInt8 ? 1.0 : 1e-2;
      EXPECT_LT(worst_difference(expected, found), bound) << kernels::traits_of(type).name;
    }
  }
}

TEST(Transformer, TakesBiasesOwnOutputAndHeadsApartFromTheWidth) {
  const test::TemporaryFolder folder;
  for (const std::uint32_t head_dim : {16u, 24u, 40u, 64u}) {
    const TinyLlamaOptions options{.head_dim = head_dim, .tied_output = false, .biases = true};
    test::make_tiny_llama(head_dim, options).write(folder / "model.gguf");
    OneSequence reference(folder / "model.gguf", reference_backend(Activation::kF32), 64);
    OneSequence cpu(folder / "model.gguf", cpu_backend(Activation::kF32), 64);
    const std::vector<std::int32_t> token_ids = random_token_ids(50, head_dim);
    EXPECT_LT(worst_difference(reference.logits_of(token_ids), cpu.logits_of(token_ids)), 1e-3) << head_dim;
  }
}

// ---- weights

struct OpenModel {
  explicit OpenModel(const std::filesystem::path& path)
      : file(*GgufFile::open(path)), config(*read_model_config(file.header())) {}
  ModelTensors tensors() const { return *find_model_tensors(file, config); }
  GgufFile file;
  ModelConfig config;
};

TEST(Weights, ReportProgressAndStopWhenAskedTo) {
  const test::TemporaryFolder folder;
  test::make_tiny_llama(1).write(folder / "model.gguf");
  const OpenModel model(folder / "model.gguf");
  const auto backend = reference_backend(Activation::kF32);
  std::vector<double> fractions;
  const auto note = [&](double fraction) {
    fractions.push_back(fraction);
    return true;
  };
  ASSERT_TRUE(prepare_weights(model.tensors(), WeightType::kAuto, *backend, note));
  ASSERT_EQ(fractions.size(), 2u * 7u + 1u + 1u) << "before each matrix, and at the end";
  EXPECT_EQ(fractions.front(), 0.0);
  EXPECT_EQ(fractions.back(), 1.0);
  EXPECT_TRUE(std::is_sorted(fractions.begin(), fractions.end()));
  for (std::size_t last = 0; last < fractions.size(); ++last) {
    std::size_t calls = 0;
    const auto cancelled =
        prepare_weights(model.tensors(), WeightType::kAuto, *backend, [&](double) { return calls++ < last; });
    ASSERT_FALSE(cancelled);
    EXPECT_EQ(cancelled.error().code, ErrorCode::kCancelled);
    EXPECT_EQ(calls, last + 1) << "and nothing is prepared after that";
  }
}

TEST(Weights, AreConvertedOnlyWhenUnquantised) {
  const test::TemporaryFolder folder;
  const std::vector<std::int32_t> token_ids = random_token_ids(20, 3);
  for (const TensorType type : {TensorType::kF32, TensorType::kQ8_0}) {
    const TinyLlamaOptions options{.weight_type = type, .tied_output = false};
    test::make_tiny_llama(1, options).write(folder / "model.gguf");
    const OpenModel model(folder / "model.gguf");
    const std::int64_t own_bytes = planned_weight_bytes(model.tensors(), WeightType::kAuto);
    const auto plain = cpu_backend(Activation::kF32);
    const std::int64_t whole_bytes =
        prepare_weights(model.tensors(), WeightType::kAuto, *plain, {})->memory_bytes();
    for (const WeightType dtype : {WeightType::kFloat16, WeightType::kBfloat16, WeightType::kFloat32}) {
      const auto backend = cpu_backend(Activation::kF32);
      auto weights = prepare_weights(model.tensors(), dtype, *backend, {});
      ASSERT_TRUE(weights);
      const bool halves = type == TensorType::kF32 && dtype != WeightType::kFloat32;
      EXPECT_EQ(planned_weight_bytes(model.tensors(), dtype), halves ? own_bytes / 2 : own_bytes);
      EXPECT_EQ(weights->memory_bytes(), halves ? whole_bytes / 2 : whole_bytes);
    }
  }
}

TEST(Weights, RefuseNumbersThatFloat16CannotHold) {
  const test::TemporaryFolder folder;
  const TinyLlamaOptions options{.num_layers = 1};
  GgufWriter writer;
  add_tiny_llama_keys(writer, options);
  std::mt19937_64 random(1);
  add_tiny_llama_tensors(writer, options, random);
  std::vector<float> values(64 * test::kTinyVocabularySize, 0.5f);
  values[1000] = 70000.0f;
  writer.add_tensor_f32("output.weight", {64, test::kTinyVocabularySize}, values)
      .write(folder / "model.gguf");
  const OpenModel model(folder / "model.gguf");
  const auto backend = reference_backend(Activation::kF32);
  const auto refused = prepare_weights(model.tensors(), WeightType::kFloat16, *backend, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(refused.error().subject, "dtype");
  EXPECT_TRUE(prepare_weights(model.tensors(), WeightType::kBfloat16, *backend, {}));
}

}  // namespace
}  // namespace octavo::model
