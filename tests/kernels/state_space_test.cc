// The recurrence of Mamba-2 and the gated short convolution with numbers that can be checked by hand, on
// every instruction set.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/cpu/simd/kernel_table.h"
#include "tests/kernels/operation_runs.h"
#include "tests/kernels/recurrent_layers.h"

namespace octavo::kernels::testing {
namespace {

class StateSpace : public ::testing::TestWithParam<cpu::InstructionSet> {
 protected:
  const cpu::KernelTable& kernels() const { return cpu::kernel_table(GetParam()); }
};

INSTANTIATE_TEST_SUITE_P(EveryInstructionSet, StateSpace, ::testing::ValuesIn(cpu::usable_instruction_sets()),
                         [](const auto& info) { return std::string(cpu::instruction_set_name(info.param)); });

// Columns of a head: x is the number of the column and the token. Two dimensions, of which the first is
// written with 1 and the second with 2; read are the first, then their sum.
TEST_P(StateSpace, DecaysThenWritesThenAnswersAndAddsTheSkippedPart) {
  for (const std::int32_t width : {1, 8, 16, 31, 64, 100, 128}) {
    const auto size = static_cast<std::size_t>(width);
    const std::int64_t stride = width + 4;
    std::vector<float> state(2 * size, 8.0f), rows;
    for (int token = 0; token < 2; ++token) {
      for (std::size_t i = 0; i < size; ++i)
        rows.push_back(static_cast<float>(i) + static_cast<float>(token));
      rows.insert(rows.end(), {1.0f, 2.0f, 1.0f, token == 0 ? 0.0f : 1.0f});
    }
    const std::vector<float> decays = {0.5f, 0.25f}, times = {4.0f, 1.0f};
    kernels().state_space({.state = state.data(),
                           .state_size = 2,
                           .head_dim = width,
                           .num_rows = 2,
                           .inputs = rows.data(),
                           .writes = rows.data() + width,
                           .reads = rows.data() + width + 2,
                           .row_stride = stride,
                           .decays = decays.data(),
                           .times = times.data(),
                           .time_stride = 1,
                           .skip = 10.0f});
    for (std::size_t i = 0; i < size; ++i) {
      const float x = static_cast<float>(i), first = 4 + 4 * x, second = 4 + 8 * x;
      EXPECT_EQ(rows[i], first + 10 * x);
      const float first_after = first / 4 + (x + 1), second_after = second / 4 + 2 * (x + 1);
      EXPECT_EQ(rows[static_cast<std::size_t>(stride) + i], first_after + second_after + 10 * (x + 1));
      EXPECT_EQ(state[i], first_after);
      EXPECT_EQ(state[size + i], second_after);
    }
  }
}

// ---- whole layers whose products are their biases' and weights' alone

// [rows, 1]: each row's product with a normed 1 is the number.
std::unique_ptr<Matrix> column(Backend& backend, const std::vector<float>& numbers) {
  return backend
      .prepare_matrix(
          {TensorType::kF32, static_cast<std::int64_t>(numbers.size()), 1, std::as_bytes(std::span(numbers))})
      .value();
}

struct OneSequence {
  explicit OneSequence(std::int32_t num_rows)
      : query_start{0, num_rows}, x(static_cast<std::size_t>(num_rows), 2.0f) {}
  PagedBatch batch() const {
    PagedBatch batch;
    batch.num_tokens = query_start[1];
    batch.num_sequences = 1;
    batch.query_start = query_start;
    batch.states = states;
    return batch;
  }
  std::vector<std::int32_t> query_start, states = {0};
  std::vector<float> x;  // every row normed: 1
};
const std::vector<float> kOne = {1.0f};

TEST_P(StateSpace, AShortConvolutionGatesItsInputsAndItsSums) {
  const auto cpu = cpu_backend(GetParam()), reference = reference_backend();
  for (Backend* const on : {cpu.get(), reference.get()}) {
    const auto input = column(*on, {3, 5}), input_gate = column(*on, {2, -1}),
               output_gate = column(*on, {7, 0.5f});
    const std::vector<float> taps = {100, 10, 1, 4, 2, 1};
    const auto states = on->allocate_state_cache({1, 0, 4}, 1).value();
    const OneSequence sequence(4);
    on->clear_states(*states, sequence.states);
    std::vector<float> out(8);
    on->short_convolution({.norm = {.weight = kOne},
                           .input = input.get(),
                           .input_gate = input_gate.get(),
                           .output_gate = output_gate.get(),
                           .convolution = taps},
                          {2, 3}, sequence.batch(), 0, view(sequence.x, 1), *states, view(out, 2));
    // 6 and -5 at every token, before the first token nothing.
    EXPECT_EQ(out, (std::vector<float>{42, -2.5f, 462, -7.5f, 4662, -17.5f, 4662, -17.5f})) << on->name();
    const float* const history = state_floats(*on, *states) + states->layout().convolution_offset();
    EXPECT_EQ(std::vector<float>(history, history + 4), (std::vector<float>{6, -5, 6, -5})) << on->name();
  }
}

// Six heads in three groups: heads 2 and 3 take the numbers of group 1. Times are log(1 + e^0).
TEST_P(StateSpace, NeighbouringHeadsShareTheirGroup) {
  const auto cpu = cpu_backend(GetParam()), reference = reference_backend();
  for (Backend* const on : {cpu.get(), reference.get()}) {
    const StateSpaceShape shape{6, 1, 3, 1, 1};
    // x of six heads, B and C of three groups; through SiLU, which is the same for all.
    const auto input = column(*on, {9, 9, 9, 9, 9, 9, 0, 8, 16, 9, 9, 9});
    const auto gate = column(*on, std::vector<float>(6, 20.0f)),
               time_step = column(*on, std::vector<float>(6, 0.0f));
    const std::vector<float> ones(12, 1.0f), zeros(6, 0.0f), decay(6, -1.0f);
    const auto states = on->allocate_state_cache({1, shape.recurrent_floats(), 0}, 1).value();
    const OneSequence sequence(1);
    on->clear_states(*states, sequence.states);
    std::vector<float> out(6);
    on->state_space({.norm = {.weight = kOne},
                     .input = input.get(),
                     .gate = gate.get(),
                     .time_step = time_step.get(),
                     .convolution = ones,
                     .time_bias = zeros,
                     .decay = decay,
                     .skip = zeros},
                    shape, sequence.batch(), 0, view(sequence.x, 1), *states, view(out, 6));
    EXPECT_EQ(out[0], 0.0f) << on->name();
    EXPECT_EQ(out[1], 0.0f) << on->name();
    const float nine = 9.0f / (1.0f + std::exp(-9.0f)), eight = 8.0f / (1.0f + std::exp(-8.0f));
    EXPECT_NEAR(out[2], 20 * std::log(2.0f) * nine * eight * nine, 0.02f) << on->name();
    EXPECT_EQ(out[3], out[2]) << on->name();
    EXPECT_NEAR(out[4] / out[3], 16 / eight, 1e-5) << on->name();
    EXPECT_EQ(out[5], out[4]) << on->name();
  }
}

}  // namespace
}  // namespace octavo::kernels::testing
