#include "engine/model/shapes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <string>

#include "engine/base/format.h"

namespace octavo::model {
namespace {

std::string kv_text(std::string_view name, std::uint64_t precision, std::uint64_t tokens,
                    std::uint64_t batch) {
  const NamedShape* shape = find_shape(name);
  return shape == nullptr ? "unknown"
                          : exact_bytes_text(kv_bytes(shape->kv(), precision, tokens, batch).value_or(0));
}

TEST(Shapes, KeysAndValuesOfKnownModels) {
  EXPECT_EQ(kv_text("opt-30b", 2, 1024, 128), "168 GiB");
  EXPECT_EQ(kv_text("gpt2-xl", 4, 6, 1), "3.515625 MiB");
  EXPECT_EQ(kv_text("opt-13b", 2, 1, 1), "800 KiB");  // the example of the PagedAttention paper
  EXPECT_EQ(kv_text("opt-13b", 2, 2048, 1), "1.5625 GiB");
  EXPECT_EQ(kv_text("llama-13b", 2, 1, 1), "800 KiB");
  EXPECT_EQ(kv_text("llama-3-8b", 2, 8192, 1), "1 GiB");
  EXPECT_EQ(kv_text("llama-2-70b", 2, 4096, 1), "1.25 GiB");
  EXPECT_EQ(kv_text("opt-175b", 2, 2048, 1), "9 GiB");
  EXPECT_EQ(kv_text("smollm2-135m", 2, 1, 1), "22.5 KiB");
  EXPECT_EQ(kv_bytes(find_shape("opt-30b")->kv(), 2, 1024, 128), 180'388'626'432u);
  EXPECT_EQ(find_shape("OPT-30B"), nullptr);
  EXPECT_EQ(find_shape(""), nullptr);
}

TEST(Shapes, HeadsAddUpInEveryShape) {
  std::set<std::string_view> names;
  for (const NamedShape& shape : named_shapes()) {
    SCOPED_TRACE(shape.name);
    EXPECT_TRUE(names.insert(shape.name).second);
    const bool has_heads_apart = shape.name.starts_with("gemma-") || shape.name.starts_with("qwen3-");
    if (!has_heads_apart) {
      EXPECT_EQ(shape.num_heads * shape.head_dim, shape.embedding_length);
    }
    EXPECT_EQ(shape.num_heads % shape.num_kv_heads, 0);
  }
}

// Parameters from the architecture alone. OPT and GPT-2: learnt positions, biases, two norms a
// layer, feed-forward of four widths.
std::int64_t gpt_parameters(const NamedShape& shape, std::int64_t vocabulary, std::int64_t positions) {
  const std::int64_t d = shape.embedding_length;
  return (vocabulary + positions) * d + shape.num_layers * (12 * d * d + 13 * d) + 2 * d;
}

struct LlamaSizes {
  std::int64_t vocabulary, hidden;
  bool tied;
  std::int64_t layer_vectors = 0;  // numbers of biases, norms of heads and further norms of a layer
};
std::int64_t llama_parameters(const NamedShape& shape, const LlamaSizes& sizes) {
  const std::int64_t d = shape.embedding_length;
  const std::int64_t kv = std::int64_t{shape.num_kv_heads} * shape.head_dim;
  const std::int64_t query = std::int64_t{shape.num_heads} * shape.head_dim;
  const std::int64_t layer = 2 * d * query + 2 * d * kv + 3 * d * sizes.hidden + 2 * d + sizes.layer_vectors;
  return (sizes.tied ? 1 : 2) * sizes.vocabulary * d + shape.num_layers * layer + d;
}

TEST(Shapes, ParametersAreThoseOfTheArchitecture) {
  const std::map<std::string_view, LlamaSizes> llamas = {
      {"llama-7b", {32000, 11008, false}},
      {"llama-13b", {32000, 13824, false}},
      {"llama-30b", {32000, 17920, false}},
      {"llama-65b", {32000, 22016, false}},
      {"llama-2-7b", {32000, 11008, false}},
      {"llama-2-13b", {32000, 13824, false}},
      {"llama-2-70b", {32000, 28672, false}},
      {"llama-3-8b", {128256, 14336, false}},
      {"llama-3-70b", {128256, 28672, false}},
      {"llama-3.1-405b", {128256, 53248, false}},
      {"llama-3.2-1b", {128256, 8192, true}},
      {"llama-3.2-3b", {128256, 8192, true}},
      {"mistral-7b", {32000, 14336, false}},
      {"tinyllama-1.1b", {32000, 5632, false}},
      {"smollm2-135m", {49152, 1536, true}},
      {"smollm2-360m", {49152, 2560, true}},
      {"smollm2-1.7b", {49152, 8192, true}},
      {"gemma-2-2b", {256000, 9216, true, 2 * 2304}},
      {"gemma-2-9b", {256000, 14336, true, 2 * 3584}},
      {"gemma-2-27b", {256000, 36864, true, 2 * 4608}},
      {"gemma-3-1b", {262144, 6912, true, 2 * 1152 + 2 * 256}},
      {"phi-3-mini", {32064, 8192, false}},
      {"phi-3-medium", {32064, 17920, false}},
      {"qwen2.5-0.5b", {151936, 4864, true, 896 + 2 * 128}},
      {"qwen2.5-1.5b", {151936, 8960, true, 1536 + 2 * 256}},
      {"qwen2.5-3b", {151936, 11008, true, 2048 + 2 * 256}},
      {"qwen2.5-7b", {152064, 18944, false, 3584 + 2 * 512}},
      {"qwen3-0.6b", {151936, 3072, true, 2 * 128}},
      {"qwen3-1.7b", {151936, 6144, true, 2 * 128}},
      {"qwen3-4b", {151936, 9728, true, 2 * 128}},
      {"qwen3-8b", {151936, 12288, false, 2 * 128}},
  };
  std::size_t num_checked = 0;
  for (const NamedShape& shape : named_shapes()) {
    SCOPED_TRACE(shape.name);
    if (llamas.contains(shape.name)) {
      EXPECT_EQ(shape.num_parameters, llama_parameters(shape, llamas.at(shape.name)));
    } else if (shape.name.starts_with("gpt2")) {
      EXPECT_EQ(shape.num_parameters, gpt_parameters(shape, 50257, 1024));
    } else if (shape.name != "opt-350m") {  // that one embeds in another width
      EXPECT_EQ(shape.num_parameters, gpt_parameters(shape, 50272, 2050));
    }
    ++num_checked;
  }
  EXPECT_EQ(num_checked, llamas.size() + 4 + 9);
}

TEST(Shapes, LatentLayersKeepOneVectorOfATokenAndNoValues) {
  const KvShape glm_flash({{47, 1, 576, 512}});
  EXPECT_EQ(kv_bytes_per_token(glm_flash, 2), 47u * 576 * 2);
  const KvShape mixed({{2, 1, 24, 16}, {3, 2, 8}});
  EXPECT_EQ(kv_bytes_per_token(mixed, 2), 2u * 24 * 2 + 2 * 3 * 2 * 8 * 2);
}

TEST(Shapes, SizesThatDoNotFit64BitsAreNone) {
  const KvShape shape{1024, 1024, 4096};
  EXPECT_TRUE(kv_bytes(shape, 8, 1 << 20, 1).has_value());
  EXPECT_FALSE(kv_bytes(shape, 8, std::uint64_t{1} << 28, 1).has_value());
  EXPECT_FALSE(kv_bytes(shape, 8, std::uint64_t{1} << 20, std::uint64_t{1} << 20).has_value());
  EXPECT_FALSE(kv_bytes_per_token(shape, std::uint64_t{1} << 40).has_value());
  EXPECT_FALSE(kv_capacity(shape, std::uint64_t{1} << 40, 16, 1, 0).has_value());
}

TEST(Shapes, CapacityCountsWholeBlocksBesideTheWeights) {
  const KvShape shape{2, 2, 8};  // 128 bytes a token, 2,048 a block of 16
  const auto capacity = [&](std::uint64_t memory, std::uint64_t weights) {
    return *kv_capacity(shape, 2, 16, memory, weights);
  };
  EXPECT_EQ(capacity(10'000, 1'000).bytes, 9'000u);
  EXPECT_EQ(capacity(10'000, 1'000).num_blocks, 4u);
  EXPECT_EQ(capacity(10'000, 1'000).num_tokens, 64u);
  EXPECT_EQ(capacity(2'048, 0).num_blocks, 1u);
  EXPECT_EQ(capacity(2'047, 0).num_blocks, 0u);
  EXPECT_EQ(capacity(1'000, 1'000).bytes, 0u);
  EXPECT_EQ(capacity(1'000, 2'000).num_blocks, 0u);
}

}  // namespace
}  // namespace octavo::model
