// What is said of a model before it is loaded is what loading it then does.

#include "engine/model_preview.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "engine/engine.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/temporary_folder.h"

namespace octavo {
namespace {

class ModelPreviewTest : public ::testing::Test {
 protected:
  std::filesystem::path write_model(const std::string& name, const test::TinyLlamaOptions& options = {}) {
    const std::filesystem::path path = folder_ / name;
    auto writer = test::make_tiny_llama(7, options);
    writer.add_string("general.license", "apache-2.0").add_string("general.organization", "Somebody");
    writer.add_u32("general.author", 7);  // no text: nothing that people wrote
    writer.write(path);
    return path;
  }

  test::TemporaryFolder folder_;
};

TEST_F(ModelPreviewTest, SaysWhatTheFileSays) {
  const auto preview = ModelPreview::open(write_model("tiny.gguf"));
  ASSERT_TRUE(preview) << preview.error().message;
  const ModelDescription description = preview->describe();
  EXPECT_EQ(description.name, "tiny llama");
  EXPECT_EQ(description.num_layers, 2);
  EXPECT_EQ(preview->origin().licence, "apache-2.0");
  EXPECT_EQ(preview->origin().organisation, "Somebody");
  EXPECT_EQ(preview->origin().author, "");
  EXPECT_FALSE(preview->has_quantised_weights());
}

TEST_F(ModelPreviewTest, PlansExactlyWhatTheEngineThenHas) {
  const auto path = write_model("tiny.gguf");
  const auto preview = ModelPreview::open(path);
  ASSERT_TRUE(preview) << preview.error().message;
  for (const KvCacheType type : {KvCacheType::kF16, KvCacheType::kInt8, KvCacheType::kF32}) {
    EngineOptions options;
    options.model = path.string();
    options.kv_cache_dtype = type;
    options.max_model_len = 200;
    options.num_kv_blocks = 37;
    const auto plan = preview->plan(options, std::int64_t{1} << 30);
    ASSERT_TRUE(plan) << plan.error().message;
    EXPECT_FALSE(plan->refusal);
    const auto engine = Engine::create(options);
    ASSERT_TRUE(engine) << engine.error().message;
    const EngineDescription& description = (*engine)->description();
    EXPECT_EQ(plan->num_blocks, description.num_blocks);
    EXPECT_EQ(plan->num_host_blocks, description.num_host_blocks);
    EXPECT_EQ(plan->bytes_per_block, description.bytes_per_block);
    EXPECT_EQ(plan->max_model_len, description.max_model_len);
    EXPECT_EQ(plan->kv_bytes(), description.num_blocks * description.bytes_per_block);
    EXPECT_GE(plan->weight_bytes, description.weight_bytes * 9 / 10);
    EXPECT_LE(plan->weight_bytes, description.weight_bytes) << "a backend may pad";
  }
}

TEST_F(ModelPreviewTest, WhatDoesNotFitIsPlannedAllTheSameAndRefused) {
  const auto preview = ModelPreview::open(write_model("tiny.gguf"));
  ASSERT_TRUE(preview);
  const auto plan = preview->plan(EngineOptions{}, 1000);
  ASSERT_TRUE(plan) << plan.error().message;
  ASSERT_TRUE(plan->refusal);
  EXPECT_EQ(plan->refusal->code, ErrorCode::kOutOfMemory);
  EXPECT_EQ(plan->num_blocks, 512 / 16) << "one full context";
  EXPECT_GT(plan->weight_bytes, 1000);
  EngineOptions large;
  large.num_kv_blocks = 1'000'000;
  const auto wanted = preview->plan(large, std::int64_t{64} << 20);
  ASSERT_TRUE(wanted && wanted->refusal);
  EXPECT_EQ(wanted->num_blocks, 1'000'000);
}

TEST_F(ModelPreviewTest, OptionsThatNoMemoryCanMeetAreAnError) {
  const auto preview = ModelPreview::open(write_model("tiny.gguf"));
  ASSERT_TRUE(preview);
  EngineOptions options;
  options.max_model_len = 513;
  const auto plan = preview->plan(options, std::int64_t{1} << 40);
  ASSERT_FALSE(plan);
  EXPECT_NE(plan.error().message.find("512"), std::string::npos);
}

TEST_F(ModelPreviewTest, ADamagedFileIsRefusedWithTheEnginesSentence) {
  const auto path = write_model("cut.gguf");
  std::filesystem::resize_file(path, 5'000);
  const auto preview = ModelPreview::open(path);
  ASSERT_FALSE(preview);
  EngineOptions options;
  options.model = path.string();
  const auto engine = Engine::create(options);
  ASSERT_FALSE(engine);
  EXPECT_EQ(preview.error().message, engine.error().message);
  EXPECT_EQ(read_model_description(path).error().message, engine.error().message);
}

TEST_F(ModelPreviewTest, RequestsOfTwoEnginesHaveDifferentIds) {
  EngineOptions options;
  options.model = write_model("tiny.gguf").string();
  options.num_kv_blocks = 8;
  const auto one = Engine::create(options), two = Engine::create(options);
  ASSERT_TRUE(one && two);
  const auto request = [] {
    return GenerationRequest{.prompt = TextPrompt{"a"}, .sampling = {}, .cache_salt = {}};
  };
  const RequestId a = (*one)->submit(request()), b = (*two)->submit(request()), c = (*one)->submit(request());
  EXPECT_LT(a, b);
  EXPECT_LT(b, c);
}

}  // namespace
}  // namespace octavo
