// Parts that only some layers have: values that come from keys and have norms, keys and values of another
// layer, layers of unequal heads, scales of queries and of the residual, factors instead of products, and the
// embedding that every layer has a part of. On every instruction set against the reference, and the bits of
// portable code.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cpu/isa.h"
#include "tests/kernels/operation_runs.h"

namespace octavo::kernels::testing {
namespace {

constexpr double kBound = 5e-6;  // of sums in float

class LayerParts : public ::testing::TestWithParam<cpu::InstructionSet> {
 protected:
  // What `run` gives on the backend of this instruction set, held to the reference and to portable code.
  void expect_right(const std::function<std::vector<float>(Backend&)>& run, double bound = kBound,
                    Activation activation = Activation::kF32) const {
    const std::vector<float> got = run(*cpu_backend(GetParam(), 2, activation));
    EXPECT_LE(relative_difference(got, run(*reference_backend(activation))), bound);
    const std::vector<float> twin = run(*cpu_backend(cpu::InstructionSet::kPortable, 1, activation));
    EXPECT_TRUE(same_bits(got.data(), twin.data(), static_cast<std::int64_t>(got.size())));
  }
};

INSTANTIATE_TEST_SUITE_P(EveryInstructionSet, LayerParts, ::testing::ValuesIn(cpu::usable_instruction_sets()),
                         [](const auto& info) { return std::string(cpu::instruction_set_name(info.param)); });

// ---- attention

struct InputParts {
  bool has_own = true, values_are_keys = false, has_value_norm = false, scales_queries = false;
  bool has_input_norm = true, norms_follow_rotation = false;
  bool norms_are_apart = false;  // LayerNorm, each head with a weight of its own
};

// The heads of the layers of one model: the second layer is neither as large as the first nor as the third.
constexpr KvHeads kUnequal[] = {{4, 24}, {2, 40}, {1, 8}};

Shape shape_of(std::int32_t layer) {
  const KvHeads& heads = kUnequal[layer];
  return {"unequal",
          {4, heads.num_kv_heads, heads.head_dim, heads.head_dim / 2, RopePairing::kHalves, 1.0f},
          48,
          64};
}

// Of one layer of a pool of unequal layers: the queries, then all of the pool.
std::vector<float> run_input(Backend& backend, std::int32_t layer, const InputParts& parts) {
  constexpr std::int32_t kRows = 5, kBlockSize = 4, kBlocks = 3;
  const Shape shape = shape_of(layer);
  const AttentionShape& heads = shape.attention;
  const std::int64_t width = shape.embedding_length;
  const auto
      query = backend.prepare_matrix(random_matrix(TensorType::kF32, shape.query_width(), width, 1).source)
                  .value(),
      key =
          backend.prepare_matrix(random_matrix(TensorType::kF32, shape.kv_width(), width, 2).source).value(),
      value =
          backend.prepare_matrix(random_matrix(TensorType::kF32, shape.kv_width(), width, 3).source).value();
  const std::vector<float> norm = norm_weight(4, width), head_norm = norm_weight(5, heads.head_dim),
                           ones(static_cast<std::size_t>(heads.head_dim), 1.0f);
  const std::vector<float> query_norms = norm_weight(8, shape.query_width()),
                           key_norms = norm_weight(9, shape.kv_width());
  AttentionInputWeights weights{{norm, 0.125f}, query.get(), key.get(), value.get()};
  if (!parts.has_input_norm) weights.norm.weight = {};
  weights.query_norm = weights.key_norm = head_norm;
  if (parts.norms_are_apart) {
    weights.query_norm = query_norms, weights.key_norm = key_norms;
    weights.head_norm_kind = NormKind::kLayer;
  }
  weights.norms_follow_rotation = parts.norms_follow_rotation;
  if (parts.has_value_norm) weights.value_norm = ones;
  if (parts.values_are_keys) weights.value = nullptr;
  if (!parts.has_own) weights.key = weights.value = nullptr;

  const std::vector<std::int32_t> positions = {0, 1, 2, 3, 4}, slots = {8, 9, 10, 11, 0},
                                  query_start = {0, kRows}, contexts = {kRows}, tables = {2, 0};
  const std::vector<float> rotations = some_rows(6, kRows, heads.rotary_dim, 1.0f),
                           scales = {1.0f, 1.5f, -2.0f, 0.25f, 3.0f};
  const PagedBatch batch{.num_tokens = kRows,
                         .num_sequences = 1,
                         .positions = positions,
                         .slot_mapping = slots,
                         .query_start = query_start,
                         .context_lens = contexts,
                         .block_tables = tables,
                         .max_blocks = 2,
                         .rotations = rotations,
                         .query_scales = parts.scales_queries ? scales : std::span<const float>()};
  const auto kv = backend.allocate_kv_cache({KvType::kF32, kBlockSize, kUnequal}, kBlocks).value();
  auto* const pool = reinterpret_cast<float*>(pool_bytes(backend, *kv));
  const auto num_floats = static_cast<std::size_t>(kBlocks * kv->layout().block_bytes() / 4);
  std::fill_n(pool, num_floats, 0.25f);
  std::vector<float> x = some_rows(7, kRows, width, 2.0f),
                     q(static_cast<std::size_t>(kRows * shape.query_width())), out(q.size());
  backend.begin_step(batch, {});
  backend.attention_input(weights, heads, batch, layer, view(x, width), *kv, view(q, shape.query_width()));
  if (parts.has_own) {
    backend.paged_attention(heads, batch, layer, *kv, view(q, shape.query_width()),
                            view(out, shape.query_width()));
  }
  std::vector<float> result = q;
  result.insert(result.end(), out.begin(), out.end());
  result.insert(result.end(), pool, pool + num_floats);
  return result;
}

TEST_P(LayerParts, UnequalLayersStandApartInOnePool) {
  for (std::int32_t layer = 0; layer < 3; ++layer) {
    SCOPED_TRACE(layer);
    expect_right([&](Backend& backend) { return run_input(backend, layer, {}); });
  }
  // Nothing of the layers before and behind is touched.
  const KvLayout layout{KvType::kF32, 4, kUnequal};
  const std::vector<float> all = run_input(*cpu_backend(GetParam()), 1, {});
  const auto block_floats = static_cast<std::size_t>(layout.block_bytes() / 4);
  const float* const pool = all.data() + all.size() - 3 * block_floats;
  for (std::size_t block = 0; block < 3; ++block) {
    for (const std::int32_t other : {0, 2}) {
      const float* const begin = pool + block * block_floats + layout.layer(other).offset / 4;
      EXPECT_TRUE(
          std::all_of(begin, begin + layout.layer(other).bytes() / 4, [](float f) { return f == 0.25f; }));
    }
  }
}

TEST_P(LayerParts, ValuesMayBeWhatTheKeysWereBeforeTheirNorm) {
  for (const bool has_norm : {false, true}) {
    expect_right([&](Backend& backend) {
      return run_input(backend, 1, {.values_are_keys = true, .has_value_norm = has_norm});
    });
  }
  const auto pool_of = [&](const InputParts& parts) { return run_input(*cpu_backend(GetParam()), 1, parts); };
  EXPECT_NE(pool_of({.values_are_keys = true}), pool_of({}));
  EXPECT_NE(pool_of({.values_are_keys = true, .has_value_norm = true}), pool_of({.values_are_keys = true}));
}

TEST_P(LayerParts, ALayerWithoutKeysGivesQueriesAndLeavesThePool) {
  expect_right([&](Backend& backend) { return run_input(backend, 1, {.has_own = false}); });
  const std::vector<float> without = run_input(*cpu_backend(GetParam()), 1, {.has_own = false}),
                           with = run_input(*cpu_backend(GetParam()), 1, {});
  const auto num_queries = static_cast<std::int64_t>(5 * shape_of(1).query_width());
  EXPECT_TRUE(same_bits(without.data(), with.data(), num_queries));
  EXPECT_TRUE(
      std::all_of(without.begin() + 2 * num_queries, without.end(), [](float f) { return f == 0.25f; }));
}

TEST_P(LayerParts, QueriesAreScaledRowByRowAndKeysAreNot) {
  expect_right([&](Backend& backend) { return run_input(backend, 0, {.scales_queries = true}); });
  const std::vector<float> scaled = run_input(*cpu_backend(GetParam()), 0, {.scales_queries = true}),
                           plain = run_input(*cpu_backend(GetParam()), 0, {});
  const auto width = static_cast<std::size_t>(shape_of(0).query_width());
  const float factors[] = {1.0f, 1.5f, -2.0f, 0.25f, 3.0f};
  for (std::size_t i = 0; i < 5 * width; ++i) ASSERT_EQ(scaled[i], plain[i] * factors[i / width]) << i;
  EXPECT_TRUE(std::equal(scaled.begin() + static_cast<std::ptrdiff_t>(10 * width), scaled.end(),
                         plain.begin() + static_cast<std::ptrdiff_t>(10 * width)))
      << "what the pool holds";
}

TEST_P(LayerParts, NormsOfHeadsMayFollowTheRotationOrCentreEachHeadByItself) {
  for (const bool follows : {false, true}) {
    for (const bool is_apart : {false, true}) {
      const InputParts parts{.norms_follow_rotation = follows, .norms_are_apart = is_apart};
      for (std::int32_t layer = 0; layer < 3; ++layer)
        expect_right([&](Backend& backend) { return run_input(backend, layer, parts); });
      if (!follows && !is_apart) continue;
      EXPECT_NE(run_input(*cpu_backend(GetParam()), 1, parts), run_input(*cpu_backend(GetParam()), 1, {}));
    }
  }
}

TEST_P(LayerParts, AttentionMayReadRowsAsTheyAre) {
  const InputParts parts{.has_input_norm = false};
  expect_right([&](Backend& backend) { return run_input(backend, 1, parts); });
  EXPECT_NE(run_input(*cpu_backend(GetParam()), 1, parts), run_input(*cpu_backend(GetParam()), 1, {}));
}

TEST_P(LayerParts, RowsOfTheEmbeddingMayBeNormalised) {
  const std::vector<std::int32_t> token_ids = {0, 39, 17, 17}, positions = {0, 1, 2, 3};
  for (const std::int64_t width : {16, 57}) {
    const std::vector<float> ones(static_cast<std::size_t>(width), 1.0f);
    for (const bool has_positions : {false, true}) {
      const auto run = [&](Backend& backend, bool has_norm) {
        const auto tokens =
                       backend.prepare_matrix(random_matrix(TensorType::kF32, 40, width, 1).source).value(),
                   table =
                       backend.prepare_matrix(random_matrix(TensorType::kF32, 4, width, 2).source).value();
        std::vector<float> out(static_cast<std::size_t>(4 * width));
        EmbeddingWeights weights{
            .tokens = tokens.get(), .scale = 0.5f, .positions = has_positions ? table.get() : nullptr};
        if (has_norm) weights.norm = {ones, 0.25f};
        backend.embed(weights, token_ids, positions, view(out, width));
        return out;
      };
      expect_right([&](Backend& backend) { return run(backend, true); });
      std::vector<float> rows = run(*cpu_backend(GetParam()), false);
      const std::vector<float> got = run(*cpu_backend(GetParam()), true);
      for (std::int64_t row = 0; row < 4; ++row) {
        double sum = 0.0;
        for (std::int64_t i = 0; i < width; ++i) {
          const double number = rows[static_cast<std::size_t>(row * width + i)];
          sum += number * number;
        }
        const double expected = double{rows[static_cast<std::size_t>(row * width)]} /
                                std::sqrt(sum / static_cast<double>(width) + 0.25);
        EXPECT_NEAR(got[static_cast<std::size_t>(row * width)], expected, 1e-6);
      }
    }
  }
}

// ---- feed-forward parts and the residual

TEST_P(LayerParts, TheResidualIsScaledWithWhatIsAdded) {
  for (const std::int64_t width : {1, 16, 57, 80}) {
    for (const bool has_norm : {false, true}) {
      const std::vector<float> weight = norm_weight(3, width);
      const auto run = [&](Backend& backend, float scale) {
        const auto matrix =
            backend.prepare_matrix(random_matrix(TensorType::kF32, width, 33, 1).source).value();
        std::vector<float> input = some_rows(7, 6, 33, 2.0f), residual = some_rows(8, 6, width, 2.0f);
        ProjectionWeights weights{.matrix = matrix.get(), .residual_scale = scale};
        if (has_norm) weights.post_norm = {weight, 1e-6f};
        backend.project_residual(weights, view(input, 33), view(residual, width));
        return residual;
      };
      expect_right([&](Backend& backend) { return run(backend, 0.375f); });
      std::vector<float> expected = run(*cpu_backend(GetParam()), 1.0f);
      for (float& number : expected) number *= 0.375f;
      EXPECT_EQ(run(*cpu_backend(GetParam()), 0.375f), expected);
    }
  }
}

TEST_P(LayerParts, FactorsStandForProductsAndRowsMayBeTakenAsTheyAre) {
  constexpr std::int64_t kWidth = 57, kParts = 3;
  for (const std::int64_t hidden : {1, 16, 40}) {
    const auto run = [&](Backend& backend) {
      const auto gate =
          backend.prepare_matrix(random_matrix(TensorType::kF32, hidden, kWidth, 1).source).value();
      std::vector<float> x = some_rows(7, 9, kWidth, 2.0f), factors = some_rows(9, 9, kParts * hidden, 2.0f),
                         out(static_cast<std::size_t>(9 * hidden));
      // The second part of each row.
      const ConstMatrixView part{factors.data() + hidden, 9, hidden, kParts * hidden};
      backend.feed_forward_input(
          {.norm = {}, .gate = gate.get(), .activation = FeedForwardActivation::kGelu, .factors = part},
          view(x, kWidth), view(out, hidden));
      return out;
    };
    expect_right(run, 5e-5);
  }
}

TEST_P(LayerParts, EveryLayerGetsItsPartOfTheSecondEmbedding) {
  constexpr std::int64_t kWidth = 96, kSize = 32, kLayers = 5, kVocabulary = 40;
  const std::vector<std::int32_t> token_ids = {0, 39, 17, 16, 15, 17, 31};
  const auto rows = static_cast<std::int64_t>(token_ids.size());
  const std::vector<float> norm = norm_weight(3, kSize);
  for (const TensorType type : {TensorType::kF32, TensorType::kBF16, TensorType::kQ4_1, TensorType::kQ8_0}) {
    SCOPED_TRACE(traits_of(type).name);
    const auto run = [&](Backend& backend, std::int64_t first, std::int64_t count) {
      const auto tokens = backend.prepare_matrix(random_matrix(type, kVocabulary, kLayers * kSize, 1).source)
                              .value(),
                 projection =
                     backend
                         .prepare_matrix(random_matrix(TensorType::kBF16, kLayers * kSize, kWidth, 2).source)
                         .value();
      std::vector<float> x = some_rows(7, count, kWidth, 2.0f, 0.0f, first),
                         out(static_cast<std::size_t>(count * kLayers * kSize));
      backend.embed_layers(
          {.tokens = tokens.get(),
           .projection = projection.get(),
           .norm = {norm, 1e-6f},
           .token_scale = 4.0f,
           .projection_scale = 0.125f,
           .scale = 0.75f},
          std::span(token_ids).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)),
          view(x, kWidth), view(out, kLayers * kSize));
      return out;
    };
    expect_right([&](Backend& backend) { return run(backend, 0, rows); });
    const auto backend = cpu_backend(GetParam(), 3);
    const std::vector<float> all = run(*backend, 0, rows), some = run(*backend, 2, 3);
    EXPECT_TRUE(same_bits(some.data(), all.data() + 2 * kLayers * kSize, 3 * kLayers * kSize));
  }
}

}  // namespace
}  // namespace octavo::kernels::testing
