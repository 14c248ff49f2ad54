#include "engine/model/inspection.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "engine/model/gguf_file.h"
#include "engine/model/model_files.h"
#include "engine/model/sampling_advice.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_models.h"

namespace octavo::model {
namespace {

using test::TensorType;

TEST(Inspection, DescribesTheDefaultModel) {
  if (!std::filesystem::exists(default_model_path())) GTEST_SKIP() << "the default model is not here";
  std::ifstream golden(test::source_folder() / "tests/golden/gguf.json");
  const auto num_parameters = nlohmann::json::parse(golden)["num_parameters"].get<std::int64_t>();
  const auto file = GgufFile::open(default_model_path());
  ASSERT_TRUE(file.has_value()) << file.error().message;
  const auto config = read_model_config(file->header());
  ASSERT_TRUE(config.has_value()) << config.error().message;
  const ModelDescription model = describe_model(*file, *config);
  EXPECT_EQ(model.path, default_model_path().string());
  EXPECT_EQ(model.architecture, "llama");
  EXPECT_EQ(model.quantisation, "Q4_1");
  EXPECT_EQ(model.num_parameters, num_parameters);
  EXPECT_EQ(model.num_parameters, find_shape("smollm2-135m")->num_parameters);
  EXPECT_EQ(model.num_layer_parameters,
            num_parameters - 49'152 * 576 - 576);  // embedding and head in one; the last norm
  EXPECT_EQ(model.file_bytes, static_cast<std::int64_t>(std::filesystem::file_size(default_model_path())));
  EXPECT_EQ(model.num_layers, 30);
  ASSERT_EQ(model.kv_layers.size(), 1u);
  EXPECT_EQ(model.kv_layers[0].num_layers, 30);
  EXPECT_EQ(model.kv_layers[0].num_kv_heads, 3);
  EXPECT_EQ(model.kv_layers[0].head_dim, 64);
  EXPECT_EQ(heads_text(model), "9 heads and 3 KV heads of 64");
  EXPECT_EQ(model.context_length, 8192);
  EXPECT_EQ(model.vocabulary_size, 49'152);
  EXPECT_TRUE(model.has_chat_template);
  EXPECT_EQ(kv_bytes_per_token(kv_shape(*config), 2), 23'040u);
}

TEST(Inspection, TakesTheAdviceForSamplingThatCanBeFollowed) {
  const test::TemporaryFolder folder;
  const auto advice_of = [&](const auto& add) {
    test::GgufWriter writer = test::make_tiny_llama(1, {.chat_template = ""});
    add(writer);
    writer.write(folder / "m.gguf");
    const auto file = GgufFile::open(folder / "m.gguf");
    return describe_model(*file, *read_model_config(file->header())).sampling_advice;
  };
  EXPECT_TRUE(advice_of([](test::GgufWriter&) {}).empty());
  const SamplingAdvice whole = advice_of([](test::GgufWriter& writer) {
    writer.add_f32("general.sampling.temp", 0.6f);
    writer.add_f32("general.sampling.top_p", 0.95f);
    writer.add_i32("general.sampling.top_k", 20);
    writer.add_f32("general.sampling.min_p", 0.0f);
    writer.add_f32("general.sampling.penalty_repeat", 1.05f);
  });
  EXPECT_EQ(whole,
            (SamplingAdvice{
                .temperature = 0.6, .top_p = 0.95, .top_k = 20, .min_p = 0.0, .repetition_penalty = 1.05}));
  const SamplingAdvice wrong = advice_of([](test::GgufWriter& writer) {
    writer.add_f32("general.sampling.temp", -1.0f);
    writer.add_f32("general.sampling.top_p", std::numeric_limits<float>::quiet_NaN());
    writer.add_string("general.sampling.top_k", "many");
    writer.add_f32("general.sampling.min_p", 0.1f);
  });
  EXPECT_EQ(wrong, SamplingAdvice{.min_p = 0.1});
}

// Where the file says nothing: by its name, as different converters write it.
TEST(Inspection, FollowsTheModelCardOfAKnownModel) {
  EXPECT_EQ(published_advice("Qwen3 30B A3B Instruct 2507"),
            (SamplingAdvice{.temperature = 0.7, .top_p = 0.8, .top_k = 20, .min_p = 0.0}));
  EXPECT_EQ(published_advice("qwen3-8b"),
            (SamplingAdvice{.temperature = 0.6, .top_p = 0.95, .top_k = 20, .min_p = 0.0}));
  EXPECT_EQ(published_advice("Qwen3-Coder-30B-A3B-Instruct").repetition_penalty, 1.05);
  EXPECT_EQ(published_advice("Qwen/Qwen3.5-4B").presence_penalty, 1.5);
  EXPECT_EQ(published_advice("Gemma 4 E2B It").top_k, 64);
  EXPECT_EQ(published_advice("gpt_oss_20b"), (SamplingAdvice{.temperature = 1.0, .top_p = 1.0, .top_k = 0}));
  for (const char* other :
       {"", "DeepSeek R1 0528 Qwen3 8B", "Qwen3.8 27B", "Qwen30", "Gemma 3n", "SmolLM2 135M Instruct"})
    EXPECT_TRUE(published_advice(other).empty()) << other;

  const test::TemporaryFolder folder;
  const auto advice_of_named = [&](const char* name, std::optional<float> temperature) {
    test::ModelDraft draft = test::make_tiny_llama(1, {.chat_template = ""}).draft();
    draft.set_string("general.name", name);
    if (temperature) draft.set_f32("general.sampling.temp", *temperature);
    draft.write((folder / "named.gguf").string());
    const auto file = GgufFile::open(folder / "named.gguf");
    return describe_model(*file, *read_model_config(file->header())).sampling_advice;
  };
  EXPECT_EQ(advice_of_named("Qwen3 8B", std::nullopt), published_advice("Qwen3 8B"));
  EXPECT_EQ(advice_of_named("Qwen3 8B", 0.3f), SamplingAdvice{.temperature = 0.3}) << "the file comes first";
}

// By the rule of PyPI's gguf: 67,808 elements with one expert of eight in each layer; 5,888.
TEST(Inspection, SizesAreLabelledAsConvertersDo) {
  const test::TemporaryFolder folder;
  test::make_tiny_model(test::tiny_model("qwen3moe")).write(folder / "experts.gguf");
  const auto experts = GgufFile::open(folder / "experts.gguf");
  ASSERT_TRUE(experts) << experts.error().message;
  EXPECT_EQ(size_label(*experts, *read_model_config(experts->header())), "8x68K");
  test::make_tiny_llama(1, {.num_layers = 1, .embedding_length = 16, .feed_forward_length = 16})
      .write(folder / "m.gguf");
  const auto small = GgufFile::open(folder / "m.gguf");
  ASSERT_TRUE(small) << small.error().message;
  EXPECT_EQ(size_label(*small, *read_model_config(small->header())), "5.9K");
}

TEST(Inspection, CountsTypesOverAllTensors) {
  const test::TemporaryFolder folder;
  test::GgufWriter writer = test::make_tiny_llama(1, {.weight_type = TensorType::kQ8_0, .chat_template = ""});
  writer.add_tensor_f32("rope_freqs.weight", {8}, std::vector<float>(8, 1.0f));
  writer.write(folder / "m.gguf");
  const auto file = GgufFile::open(folder / "m.gguf");
  const auto types = count_types(*file);
  ASSERT_EQ(types.size(), 2u);
  EXPECT_EQ(types[0].type, "Q8_0");
  EXPECT_EQ(types[0].num_tensors, 15);
  EXPECT_EQ(types[1].type, "F32");
  EXPECT_EQ(types[1].num_tensors, 6);
  EXPECT_EQ(types[1].num_elements, 5u * 64 + 8);
  EXPECT_EQ(types[0].num_bytes, types[0].num_elements / 32 * 34);
  EXPECT_EQ(count_parameters(*file), types[0].num_elements + 5 * 64);
  const ModelDescription model = describe_model(*file, *read_model_config(file->header()));
  EXPECT_EQ(model.quantisation, "Q8_0");
  EXPECT_FALSE(model.has_chat_template);
}

}  // namespace
}  // namespace octavo::model
