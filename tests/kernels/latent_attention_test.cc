// Latent attention: what is kept of a token is its key, whose first numbers are its value. On every
// instruction set; the claims that hold of all attention are in paged_attention_test.cc.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "kernels/backends.h"
#include "kernels/step_memory.h"
#include "tests/kernels/operation_runs.h"
#include "tests/support/sweep.h"

namespace octavo::kernels::testing {
namespace {

class LatentAttention : public ::testing::TestWithParam<cpu::InstructionSet> {};

INSTANTIATE_TEST_SUITE_P(EveryInstructionSet, LatentAttention,
                         ::testing::ValuesIn(cpu::usable_instruction_sets()),
                         [](const auto& info) { return std::string(cpu::instruction_set_name(info.param)); });

// ---- what is kept

TEST(LatentLayout, HoldsEveryNumberOnceAndOneScaleForEachToken) {
  for (const KvType type : kEveryKvType) {
    for (const std::int32_t block_size : {1, 3, 8, 16, 256}) {
      const KvHeads layers[] = {{1, 576, 512}, {2, 8}, {1, 27, 21}};
      const KvLayout layout(type, block_size, layers);
      ASSERT_EQ(layout.num_layers(), 3);
      const std::int64_t element = kv_element_bytes(type), scale = type == KvType::kInt8 ? 4 : 0;
      EXPECT_EQ(layout.layer(0).bytes(), block_size * (576 * element + scale)) << name_of(type);
      const std::int64_t gap = type == KvType::kInt8 ? (4 - 27 * block_size % 4) % 4 : 0;
      EXPECT_EQ(layout.layer(2).bytes(), block_size * (27 * element + scale) + gap) << name_of(type);
      EXPECT_EQ(layout.layer(0).value_scale_offset(block_size - 1),
                layout.layer(0).key_scale_offset(block_size - 1));
      EXPECT_NE(layout.layer(1).value_scale_offset(0), layout.layer(1).key_scale_offset(0));
    }
  }
  const KvHeads more_values_than_keys[] = {{1, 8, 9}}, negative[] = {{1, 8, -1}};
  EXPECT_EQ(KvLayout(KvType::kF16, 16, more_values_than_keys).num_layers(), 0);
  EXPECT_EQ(KvLayout(KvType::kF16, 16, negative).num_layers(), 0);
}

// ---- attention

// The same step in a layout where values stand apart, and are the keys.
PagedProblem with_copied_values(PagedProblem latent) {
  const Shape shape = latent.shape;
  Shape apart = shape;
  apart.attention.latent_dim = 0;
  PagedProblem copy = make_problem(apart, latent.sequences,
                                   {.type = latent.layout.type, .block_size = latent.layout.block_size});
  for (std::int32_t s = 0; s < static_cast<std::int32_t>(latent.sequences.size()); ++s) {
    for (std::int32_t position = 0; position < latent.context_lens[static_cast<std::size_t>(s)]; ++position) {
      const std::int64_t bytes = kv_element_bytes(copy.layout.type);
      for (std::int32_t d = 0; d < shape.attention.head_dim; ++d) {
        const std::byte* const number = latent.key(s, position, 1, 0, d);
        std::copy_n(number, bytes, copy.key(s, position, 1, 0, d));
        std::copy_n(number, bytes, copy.value(s, position, 1, 0, d));
      }
      if (!copy.layout.has_scales()) continue;
      const std::byte* const scale = latent.key_scale(s, position, 1, 0);
      std::copy_n(scale, kKvScaleBytes, copy.key_scale(s, position, 1, 0));
      std::copy_n(scale, kKvScaleBytes, copy.value_scale(s, position, 1, 0));
    }
  }
  return copy;
}

TEST_P(LatentAttention, GivesTheBitsOfAttentionToCopiesOfItsKeys) {
  const std::vector<SequenceSpec> sequences = {{1, 0, 70}, {2, 600, 1}, {3, 250, 20}};
  struct Case {
    Shape shape;
    ProblemOptions options;
  };
  std::vector<Case> cases;
  for (const Shape& shape : {latent_shape(), odd_latent_shape()}) {
    for (const KvType type : kEveryKvType)
      for (const std::int32_t block_size : {3, 8, 16, 32})
        cases.push_back({shape, {.type = type, .block_size = block_size}});
  }
  for (const auto& [shape, options] : test::some_of(cases, 3)) {
    const PagedProblem problem = make_problem(shape, sequences, options);
    const auto backend = cpu_backend(GetParam());
    const std::vector<float> got = run_attention(*backend, problem),
                             copied = run_attention(*backend, with_copied_values(problem));
    const std::int64_t key = shape.attention.head_dim, value = shape.attention.latent_dim;
    for (std::int64_t i = 0; i < problem.num_rows() * shape.attention.num_heads; ++i) {
      ASSERT_TRUE(same_bits(got.data() + i * value, copied.data() + i * key, value))
          << shape.name << " " << name_of(options.type) << " block size " << options.block_size << ", query "
          << i;
    }
  }
}

TEST_P(LatentAttention, EqualsTheReferenceForEveryTypeBlockSizeAndNumberOfHeads) {
  struct Case {
    std::int32_t heads;
    ProblemOptions options;
  };
  std::vector<Case> cases;
  for (const std::int32_t heads : {1, 4, 16, 128}) {
    for (const KvType type : kEveryKvType)
      for (const std::int32_t block_size : {1, 8, 16, 21, 24})
        cases.push_back({heads, {.type = type, .block_size = block_size}});
  }
  for (const auto& [heads, options] : test::some_of(cases, 7)) {
    Shape shape = latent_shape();
    shape.attention.num_heads = heads;
    const PagedProblem problem = make_problem(shape, {{1, 0, 1}, {2, 0, 37}, {3, 300, 2}}, options);
    EXPECT_LE(relative_difference(run_attention(*cpu_backend(GetParam()), problem),
                                  run_attention(*reference_backend(), problem)),
              5e-6)
        << heads << " heads, " << name_of(options.type) << " block size " << options.block_size;
  }
}

TEST_P(LatentAttention, ASequenceKeepsWhatIsNotFiniteToItself) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const KvType type : kEveryKvType) {
    PagedProblem problem =
        make_problem(latent_shape(), {{1, 40, 40}, {2, 30, 1}, {3, 0, 40}}, {.type = type});
    const auto backend = cpu_backend(GetParam());
    const std::vector<float> before = run_attention(*backend, problem);
    problem.spoil(1, 12, 1, kNan, kNan);
    const std::vector<float> after = run_attention(*backend, problem);
    const std::int64_t width = problem.shape.output_width();
    EXPECT_TRUE(same_bits(after.data(), before.data(), 40 * width)) << name_of(type);
    EXPECT_TRUE(same_bits(after.data() + 41 * width, before.data() + 41 * width, 40 * width))
        << name_of(type);
    for (std::int64_t i = 40 * width; i < 41 * width; ++i)
      ASSERT_TRUE(std::isnan(after[static_cast<std::size_t>(i)])) << name_of(type) << ": a NaN was lost";
  }
}

// ---- what stands before and behind it

struct InputCase {
  Shape shape;
  std::int32_t unrotated = 0, rank = 0;
  TensorType type = TensorType::kF32;
  bool scales_queries = false;
};

std::vector<std::unique_ptr<Matrix>> head_matrices(Backend& backend, TensorType type, std::int32_t count,
                                                   std::int64_t rows, std::int64_t columns) {
  std::vector<std::unique_ptr<Matrix>> matrices;
  for (std::int32_t i = 0; i < count; ++i) {
    const auto seed = 60 + static_cast<std::uint64_t>(i);
    matrices.push_back(backend.prepare_matrix(random_matrix(type, rows, columns, seed).source).value());
  }
  return matrices;
}

std::vector<const Matrix*> pointers(const std::vector<std::unique_ptr<Matrix>>& matrices) {
  std::vector<const Matrix*> result;
  for (const auto& matrix : matrices) result.push_back(matrix.get());
  return result;
}

// The queries of rows first_row and up, then what their slots of the pool hold as floats.
std::vector<float> run_input(Backend& backend, const InputCase& c, std::int64_t first_row,
                             std::int32_t num_rows) {
  constexpr std::int32_t kBlockSize = 4, kBlocks = 12;
  const AttentionShape& heads = c.shape.attention;
  const std::int64_t width = c.shape.embedding_length, inner = c.rank > 0 ? c.rank : width;
  const auto prepare = [&](std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
    return backend.prepare_matrix(random_matrix(c.type, rows, columns, seed).source).value();
  };
  const auto down = prepare(std::max(c.rank, 1), width, 1);
  const auto query = prepare(std::int64_t{heads.num_heads} * (c.unrotated + heads.rotary_dim), inner, 2);
  const auto key_value = prepare(heads.head_dim, width, 3);
  const auto keys = head_matrices(backend, c.type, heads.num_heads, heads.latent_dim, c.unrotated);
  const std::vector<const Matrix*> key_pointers = pointers(keys);
  const std::vector<float> norm = norm_weight(4, width), query_norm = norm_weight(5, inner),
                           latent_norm = norm_weight(6, heads.latent_dim);
  LatentInputWeights weights{.norm = {norm, 1e-6f},
                             .query = query.get(),
                             .key_value = key_value.get(),
                             .latent_norm = {latent_norm, 1e-6f},
                             .keys = key_pointers};
  if (c.rank > 0) {
    weights.query_down = down.get();
    weights.query_norm = {query_norm, 1e-6f};
  }
  std::vector<std::int32_t> positions, slots, tables;
  for (std::int32_t i = 0; i < kBlocks; ++i) tables.push_back(kBlocks - 1 - i);
  for (std::int32_t i = 0; i < num_rows; ++i) {
    const auto position = static_cast<std::int32_t>(first_row) + i;
    positions.push_back(position);
    slots.push_back(tables[static_cast<std::size_t>(position / kBlockSize)] * kBlockSize +
                    position % kBlockSize);
  }
  const std::vector<std::int32_t> query_start = {0, num_rows},
                                  contexts = {static_cast<std::int32_t>(first_row) + num_rows};
  const std::vector<float> rotations = some_rows(7, num_rows, heads.rotary_dim, 1.0f, 0.0f, first_row),
                           scales = some_rows(8, num_rows, 1, 2.0f, 0.0f, first_row);
  const PagedBatch batch{.num_tokens = num_rows,
                         .num_sequences = 1,
                         .positions = positions,
                         .slot_mapping = slots,
                         .query_start = query_start,
                         .context_lens = contexts,
                         .block_tables = tables,
                         .max_blocks = kBlocks,
                         .rotations = rotations,
                         .query_scales = c.scales_queries ? scales : std::span<const float>()};
  const KvHeads layers[] = {{1, 8}, {1, heads.head_dim, heads.latent_dim}};
  const auto kv = backend.allocate_kv_cache({KvType::kF32, kBlockSize, layers}, kBlocks).value();
  auto* const pool = reinterpret_cast<float*>(pool_bytes(backend, *kv));
  const auto num_floats = static_cast<std::size_t>(kBlocks * kv->layout().block_bytes() / 4);
  std::fill_n(pool, num_floats, 0.25f);
  const std::vector<float> x = some_rows(9, num_rows, width, 2.0f, 0.0f, first_row);
  std::vector<float> result(static_cast<std::size_t>(num_rows * c.shape.query_width()));
  backend.begin_step(batch, {});
  backend.latent_attention_input(weights, heads, batch, /*layer=*/1, view(x, width), *kv,
                                 view(result, c.shape.query_width()));
  const KvLayer& layer = kv->layout().layer(1);
  float untouched = 0.0f;
  for (std::size_t i = 0; i < num_floats; ++i) untouched += pool[i] == 0.25f ? 1.0f : 0.0f;
  EXPECT_EQ(untouched, static_cast<float>(num_floats) - static_cast<float>(num_rows * heads.head_dim));
  for (const std::int32_t slot : slots) {
    const float* const start = pool + kv->layout().head_offset(slot / kBlockSize, 1, 0) / 4;
    for (std::int32_t d = 0; d < heads.head_dim; ++d)
      result.push_back(start[layer.key_index(d, slot % kBlockSize)]);
  }
  return result;
}

std::vector<InputCase> input_cases() {
  Shape whole = latent_shape();  // of sizes that quantised types can have
  whole.attention.num_heads = 3;
  return {{whole, 32, 64},
          {whole, 32, 0},
          {whole, 32, 64, TensorType::kF32, true},
          {whole, 32, 64, TensorType::kQ8_0},
          {whole, 32, 0, TensorType::kQ4_1},
          {whole, 32, 64, TensorType::kBF16, true},
          {odd_latent_shape(), 5, 13},
          {odd_latent_shape(), 1, 0}};
}

TEST_P(LatentAttention, InputsAreThoseOfTheReferenceForEveryTypeAndActivation) {
  for (const InputCase& c : input_cases()) {
    for (const Activation activation : {Activation::kF32, Activation::kInt8, Activation::kInt16}) {
      const bool is_rounded = traits_of(c.type).quantised && activation != Activation::kF32;
      const double bound = !is_rounded ? 2e-5 : activation == Activation::kInt8 ? 3e-2 : 2e-4;
      SCOPED_TRACE(c.shape.name + ", rank " + std::to_string(c.rank) + ", " +
                   std::string(traits_of(c.type).name) + ", activation " +
                   std::to_string(static_cast<int>(activation)));
      const std::vector<float> got = run_input(*cpu_backend(GetParam(), 2, activation), c, 0, 11);
      EXPECT_LE(relative_difference(got, run_input(*reference_backend(activation), c, 0, 11)), bound);
      const std::vector<float> twin =
          run_input(*cpu_backend(cpu::InstructionSet::kPortable, 1, activation), c, 0, 11);
      EXPECT_TRUE(same_bits(got.data(), twin.data(), static_cast<std::int64_t>(got.size())));
    }
  }
}

TEST_P(LatentAttention, ARowsInputIsTheSameBitsInAnyBatchOnAnyNumberOfThreads) {
  for (const InputCase& c : input_cases()) {
    const std::int64_t width = c.shape.query_width(), key = c.shape.attention.head_dim;
    const std::vector<float> all = run_input(*cpu_backend(GetParam(), 1, Activation::kInt16), c, 0, 40);
    for (const std::int32_t threads : {1, 3}) {
      for (const std::int32_t together : {1, 7}) {
        for (std::int64_t first = 0; first + together <= 40; first += 11) {
          const std::vector<float> some =
              run_input(*cpu_backend(GetParam(), threads, Activation::kInt16), c, first, together);
          ASSERT_TRUE(same_bits(some.data(), all.data() + first * width, together * width));
          ASSERT_TRUE(same_bits(some.data() + together * width, all.data() + 40 * width + first * key,
                                together * key));
        }
      }
    }
  }
}

// Each head's part by its own matrix; what stands behind the part stays.
TEST_P(LatentAttention, HeadsAreProjectedByTheirOwnMatrices) {
  constexpr std::int32_t kHeads = 3, kRows = 9;
  for (const TensorType type : {TensorType::kF32, TensorType::kF16, TensorType::kQ8_0, TensorType::kQ5_0}) {
    SCOPED_TRACE(traits_of(type).name);
    const std::int64_t columns = 64, rows = 23, input_part = 70, out_part = 29;
    const std::vector<float> input = some_rows(11, kRows, kHeads * input_part, 2.0f);
    const auto run = [&](Backend& backend) {
      const auto matrices = head_matrices(backend, type, kHeads, rows, columns);
      std::vector<float> out(static_cast<std::size_t>(kRows * kHeads * out_part), -7.0f);
      backend.project_heads(pointers(matrices), view(input, kHeads * input_part),
                            view(out, kHeads * out_part));
      return out;
    };
    const std::vector<float> got = run(*cpu_backend(GetParam(), 2, Activation::kInt16));
    const std::vector<float> expected = run(*reference_backend(Activation::kInt16));
    EXPECT_LE(relative_difference(got, expected), 5e-5);
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (static_cast<std::int64_t>(i) % out_part < rows) continue;
      ASSERT_EQ(got[i], -7.0f) << i;
    }
    const auto backend = reference_backend(Activation::kInt16);
    const auto matrices = head_matrices(*backend, type, kHeads, rows, columns);
    const Matrix* const alone[] = {matrices[1].get()};
    std::vector<float> one(static_cast<std::size_t>(rows));
    const std::vector<float> part(input.begin() + input_part, input.begin() + 2 * input_part);
    backend->project_heads(alone, view(part, input_part), view(one, rows));
    EXPECT_TRUE(same_bits(one.data(), expected.data() + out_part, rows))
        << "the second head of the first row";
  }
}

TEST(LatentAttentionMemory, IsWhatWasPlanned) {
  StepShape shape;
  shape.num_rows = 40;
  shape.num_logits_rows = 1;
  shape.max_context_len = 48;
  shape.embedding_length = 96;
  shape.num_heads = 3;
  shape.num_kv_heads = 1;
  shape.head_dim = 72;
  shape.latent_dim = 64;
  shape.latent_query_dim = 40;
  shape.latent_value_dim = 24;
  shape.latent_query_rank = 160;  // wider than everything else
  shape.vocabulary_size = 100;
  shape.has_quantised_weights = true;
  for (const std::int32_t threads : {1, 2}) {
    const auto backend =
        create_backend({.device = "cpu", .threads = threads, .activation = Activation::kInt16}).value();
    ASSERT_TRUE(backend->reserve_step(shape));
    const std::int64_t planned = backend->scratch_bytes();
    EXPECT_EQ(planned, *planned_scratch_bytes(shape, Activation::kInt16, threads));
    Shape heads = latent_shape();
    heads.attention.num_heads = 3;
    run_input(*backend, {heads, 32, 160, TensorType::kQ8_0}, 0, 40);
    const auto values = head_matrices(*backend, TensorType::kQ8_0, 3, 24, 64);
    const std::vector<float> attention = some_rows(12, 40, 3 * 64, 1.0f);
    std::vector<float> out(40 * 3 * 24);
    backend->project_heads(pointers(values), view(attention, 3 * 64), view(out, 3 * 24));
    EXPECT_EQ(backend->scratch_bytes(), planned);
  }
}

}  // namespace
}  // namespace octavo::kernels::testing
