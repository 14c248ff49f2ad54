// The parts of a layer of Gated DeltaNet on every instruction set, with numbers that can be checked by hand,
// and which key head a value head belongs to.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/cpu/simd/kernel_table.h"
#include "tests/kernels/operation_runs.h"
#include "tests/kernels/recurrent_layers.h"

namespace octavo::kernels::testing {
namespace {

class GatedDeltaNet : public ::testing::TestWithParam<cpu::InstructionSet> {
 protected:
  const cpu::KernelTable& kernels() const { return cpu::kernel_table(GetParam()); }
};

INSTANTIATE_TEST_SUITE_P(EveryInstructionSet, GatedDeltaNet,
                         ::testing::ValuesIn(cpu::usable_instruction_sets()),
                         [](const auto& info) { return std::string(cpu::instruction_set_name(info.param)); });

// Tokens of a head whose rows are [query | key | value].
struct Head {
  std::int32_t key_dim, value_dim;
  std::vector<float> state, rows = {}, decays, betas;

  void run(const cpu::KernelTable& kernels) {
    const std::int64_t width = 2 * std::int64_t{key_dim} + value_dim;
    kernels.delta_rule({.state = state.data(),
                        .key_dim = key_dim,
                        .value_dim = value_dim,
                        .num_rows = static_cast<std::int64_t>(decays.size()),
                        .queries = rows.data(),
                        .keys = rows.data() + key_dim,
                        .values = rows.data() + 2 * key_dim,
                        .row_stride = width,
                        .decays = decays.data(),
                        .betas = betas.data(),
                        .gate_stride = 1});
  }
};

// S = 4 halves to 2; what is known of key 1 is 2; half of 3 - 2 is written: 2.5; a query of 3 reads 7.5. Then
// S = 0.625, the error is -1.625, and what a beta of 2 writes for key -1 is in the output already.
TEST_P(GatedDeltaNet, DecaysThenReadsThenWritesThenAnswers) {
  Head head{.key_dim = 1,
            .value_dim = 1,
            .state = {4},
            .rows = {3, 1, 3, 1, -1, 1},
            .decays = {0.5f, 0.25f},
            .betas = {0.5f, 2}};
  head.run(kernels());
  EXPECT_EQ(head.rows[2], 7.5f);
  EXPECT_EQ(head.rows[5], 0.625f - 2 * (1 + 0.625f));
  EXPECT_EQ(head.state[0], head.rows[5]);
}

TEST_P(GatedDeltaNet, AValueCanBeReadBackByItsKeyAndReplaced) {
  for (const std::int32_t width : {1, 15, 16, 17, 24, 64, 80, 100, 128, 150}) {
    std::vector<float> first(static_cast<std::size_t>(width)), second(first.size());
    for (std::size_t i = 0; i < first.size(); ++i) {
      first[i] = static_cast<float>(i) + 1;
      second[i] = static_cast<float>(i) - 40;
    }
    // Keys: the second of three dimensions, the third, the second again. Each query asks for the second.
    Head head{.key_dim = 3,
              .value_dim = width,
              .state = std::vector<float>(3 * first.size()),
              .decays = {1, 1, 1},
              .betas = {1, 1, 1}};
    const auto add = [&](const std::vector<float>& key, const std::vector<float>& value) {
      head.rows.insert(head.rows.end(), {0, 1, 0});
      head.rows.insert(head.rows.end(), key.begin(), key.end());
      head.rows.insert(head.rows.end(), value.begin(), value.end());
    };
    add({0, 1, 0}, first);
    add({0, 0, 1}, second);
    add({0, 1, 0}, second);
    head.run(kernels());
    const auto output = [&](std::size_t row) {
      const float* const start = head.rows.data() + row * (6 + first.size()) + 6;
      return std::vector<float>(start, start + width);
    };
    EXPECT_EQ(output(0), first);
    EXPECT_EQ(output(1), first) << "another key's value changes nothing";
    EXPECT_EQ(output(2), second);
    std::vector<float> state(first.size(), 0.0f);
    state.insert(state.end(), second.begin(), second.end());
    state.insert(state.end(), second.begin(), second.end());
    EXPECT_EQ(head.state, state);
  }
}

TEST_P(GatedDeltaNet, AUnitVectorHasLengthOneAndEpsilonIsAddedToTheSum) {
  std::vector<float> vector = {3, 0, -4};
  kernels().unit_vector(vector.data(), 0.0f, 10.0f, 3);
  EXPECT_FLOAT_EQ(vector[0], 6.0f);
  EXPECT_FLOAT_EQ(vector[2], -8.0f);
  std::vector<float> short_one = {3, 0, 0};
  kernels().unit_vector(short_one.data(), 7.0f, 1.0f, 3);
  EXPECT_FLOAT_EQ(short_one[0], 0.75f) << "3 / sqrt(9 + 7)";
  std::vector<float> zeros(20, 0.0f);
  kernels().unit_vector(zeros.data(), 1e-6f, 1.0f, 20);
  EXPECT_EQ(zeros, std::vector<float>(20, 0.0f));
}

TEST_P(GatedDeltaNet, AConvolutionSeesTheNewestTokensOldestFirst) {
  for (const std::int64_t count : {1, 16, 21}) {
    const auto size = static_cast<std::size_t>(count);
    const std::int64_t stride = count + 3;
    std::vector<float> weights, scratch(3 * size), history(2 * static_cast<std::size_t>(stride), 0.0f),
        rows(history.size(), 0.0f);
    for (std::size_t i = 0; i < size; ++i) {
      weights.insert(weights.end(), {1.0f, 10.0f, 100.0f});
      const float base = static_cast<float>(i);
      history[i] = base + 1, history[static_cast<std::size_t>(stride) + i] = base + 2;
      rows[i] = base + 3, rows[static_cast<std::size_t>(stride) + i] = base + 4;
    }
    const std::vector<float> bias(size, 0.5f);
    kernels().convolve({.weights = weights.data(),
                        .bias = bias.data(),
                        .width = 3,
                        .history = history.data(),
                        .history_stride = stride,
                        .rows = rows.data(),
                        .row_stride = stride,
                        .num_rows = 2,
                        .count = count,
                        .applies_silu = false},
                       scratch.data());
    for (std::size_t i = 0; i < size; ++i) {
      const float base = static_cast<float>(i);
      EXPECT_EQ(rows[i], 111 * base + 321.5f);
      EXPECT_EQ(rows[static_cast<std::size_t>(stride) + i], 111 * base + 432.5f);
      EXPECT_EQ(history[i], base + 3);
      EXPECT_EQ(history[static_cast<std::size_t>(stride) + i], base + 4);
    }
    EXPECT_EQ(rows[size], 0.0f) << "what stands behind the channels is not theirs";
    EXPECT_EQ(history[size], 0.0f);
  }
}

// ---- key heads

// What a file holds of a layer, value head by value head, so that heads can change places.
struct FileOfLayer {
  DeltaNetShape shape;
  std::vector<float> query_key_value, gate, alpha, beta, convolution, time_bias, decay;
};
constexpr std::int64_t kWidth = 40;

FileOfLayer grouped_file() {
  FileOfLayer file;
  file.shape = {2, 6, 16, 8, 4, KeyHeadOrder::kGrouped};
  file.query_key_value = noise_row(1, 0, file.shape.channels() * kWidth);
  file.gate = noise_row(2, 0, file.shape.value_columns() * kWidth);
  file.alpha = noise_row(3, 0, 6 * kWidth);
  file.beta = noise_row(4, 0, 6 * kWidth);
  file.convolution = noise_row(5, 0, file.shape.channels() * 4);
  file.time_bias = noise_row(6, 0, 6);
  file.decay = {-0.1f, -0.2f, -0.3f, -0.4f, -0.5f, -0.6f};
  return file;
}

// Pieces of `size` behind `first`, piece i from place order[i].
void reorder(std::vector<float>& numbers, std::int64_t first, std::int64_t size,
             const std::vector<std::int64_t>& order) {
  const std::vector<float> before = numbers;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto from = before.begin() + first + order[i] * size;
    std::copy(from, from + size, numbers.begin() + first + static_cast<std::int64_t>(i) * size);
  }
}

// Value heads 0, 1 and 2 belong to key head 0, the others to 1; tiled, they take turns.
const std::vector<std::int64_t> kTiledOrder = {0, 3, 1, 4, 2, 5};

FileOfLayer tiled(FileOfLayer file) {
  const DeltaNetShape& shape = file.shape;
  reorder(file.query_key_value, 2 * shape.query_columns() * kWidth, shape.value_dim * kWidth, kTiledOrder);
  reorder(file.gate, 0, shape.value_dim * kWidth, kTiledOrder);
  reorder(file.alpha, 0, kWidth, kTiledOrder);
  reorder(file.beta, 0, kWidth, kTiledOrder);
  reorder(file.convolution, 2 * shape.query_columns() * 4, std::int64_t{shape.value_dim} * 4, kTiledOrder);
  reorder(file.time_bias, 0, 1, kTiledOrder);
  reorder(file.decay, 0, 1, kTiledOrder);
  file.shape.key_head_order = KeyHeadOrder::kTiled;
  return file;
}

// The rows of one sequence.
std::vector<float> run(Backend& backend, const FileOfLayer& file) {
  constexpr std::int32_t kRows = 5;
  const DeltaNetShape& shape = file.shape;
  const auto prepare = [&](const std::vector<float>& numbers) {
    return backend
        .prepare_matrix({TensorType::kF32, static_cast<std::int64_t>(numbers.size()) / kWidth, kWidth,
                         std::as_bytes(std::span(numbers))})
        .value();
  };
  const auto query_key_value = prepare(file.query_key_value), gate = prepare(file.gate),
             alpha = prepare(file.alpha), beta = prepare(file.beta);
  const std::vector<float> norm = norm_weight(7, kWidth), output_norm = norm_weight(8, shape.value_dim);
  const DeltaNetWeights weights{.norm = {.weight = norm, .epsilon = 1e-6f},
                                .query_key_value = query_key_value.get(),
                                .gate = gate.get(),
                                .alpha = alpha.get(),
                                .beta = beta.get(),
                                .convolution = file.convolution,
                                .time_bias = file.time_bias,
                                .decay = file.decay,
                                .output_norm = {.weight = output_norm, .epsilon = 1e-6f}};
  const auto states =
      backend.allocate_state_cache({1, shape.recurrent_floats(), shape.convolution_floats()}, 1).value();
  const std::vector<std::int32_t> query_start = {0, kRows}, state = {0};
  backend.clear_states(*states, state);
  PagedBatch batch;
  batch.num_tokens = kRows;
  batch.num_sequences = 1;
  batch.query_start = query_start;
  batch.states = state;
  const std::vector<float> x = some_rows(9, kRows, kWidth, 1.0f);
  std::vector<float> out(static_cast<std::size_t>(kRows * shape.value_columns()));
  backend.gated_delta_net(weights, shape, batch, 0, view(x, kWidth), *states,
                          view(out, shape.value_columns()));
  for (std::int32_t row = 0; shape.key_head_order == KeyHeadOrder::kTiled && row < kRows; ++row) {
    // Back in the order of groups: place 0 of kTiledOrder's inverse, and so on.
    reorder(out, row * shape.value_columns(), shape.value_dim, {0, 2, 4, 1, 3, 5});
  }
  return out;
}

TEST_P(GatedDeltaNet, TiledHeadsAreGroupedOnesInAnotherOrder) {
  const FileOfLayer grouped = grouped_file();
  const auto backend = cpu_backend(GetParam()), reference = reference_backend();
  for (Backend* const on : {backend.get(), reference.get()}) {
    const std::vector<float> expected = run(*on, grouped);
    EXPECT_EQ(run(*on, tiled(grouped)), expected) << on->name();
    FileOfLayer mistaken = tiled(grouped);
    mistaken.shape.key_head_order = KeyHeadOrder::kGrouped;
    EXPECT_NE(run(*on, mistaken), expected) << on->name();
  }
}

}  // namespace
}  // namespace octavo::kernels::testing
