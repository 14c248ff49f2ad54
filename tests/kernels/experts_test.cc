// Layers of routed experts: what a row chooses, how rows are sorted by expert, and the operation itself on
// every instruction set against the reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "kernels/backends.h"
#include "kernels/cpu/expert_choice.h"
#include "kernels/cpu/expert_rows.h"
#include "kernels/cpu/isa.h"
#include "kernels/step_memory.h"
#include "tests/kernels/operation_runs.h"

namespace octavo::kernels::testing {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Chosen {
  std::vector<std::int32_t> experts;
  std::vector<float> weights;
};

Chosen choose(const Routing& routing, const std::vector<float>& scores) {
  const cpu::KernelTable& kernels = cpu::kernel_table(cpu::InstructionSet::kPortable);
  cpu::ChoiceRoom room;
  const auto count = static_cast<std::size_t>(routing.num_used);
  Chosen chosen{std::vector<std::int32_t>(count), std::vector<float>(count)};
  cpu::choose_experts(kernels, routing, scores, room, chosen.experts.data(), chosen.weights.data());
  return chosen;
}

using Numbers = std::vector<std::int32_t>;

TEST(ExpertChoice, TakesTheLargestFirstAndOfEqualsTheLowerNumber) {
  EXPECT_EQ(choose({.num_used = 3}, {0, 2, 5, 2, 2, -1}).experts, (Numbers{2, 1, 3}));
  EXPECT_EQ(choose({.num_used = 4}, {1, 1, 1, 1}).experts, (Numbers{0, 1, 2, 3}));
}

TEST(ExpertChoice, SoftmaxOverAllGivesTheirShareAndNormalisedOnesAddUpToOne) {
  const std::vector<float> scores = {std::log(1.0f), std::log(2.0f), std::log(5.0f), std::log(8.0f)};
  const Chosen shares = choose({.num_used = 2}, scores);
  EXPECT_EQ(shares.experts, (Numbers{3, 2}));
  EXPECT_NEAR(shares.weights[0], 8.0 / 16.0, 1e-6);
  EXPECT_NEAR(shares.weights[1], 5.0 / 16.0, 1e-6);
  const Chosen normalised = choose({.num_used = 2, .normalises = true, .scale = 3.0f}, scores);
  EXPECT_NEAR(normalised.weights[0], 3.0 * 8.0 / 13.0, 1e-6);
  const Chosen of_selected = choose({.num_used = 2, .scoring = RouterScoring::kSoftmaxOfSelected}, scores);
  EXPECT_NEAR(of_selected.weights[0], 8.0 / 13.0, 1e-6);
  EXPECT_NEAR(of_selected.weights[1], 5.0 / 13.0, 1e-6);
}

TEST(ExpertChoice, ABiasOfTheSelectionIsInNoWeight) {
  const std::vector<float> bias = {10.0f, 0.0f, 0.0f};
  const Chosen chosen = choose({.num_used = 2, .scoring = RouterScoring::kSigmoid, .selection_bias = bias},
                               {-1.0f, 0.0f, 1.0f});
  EXPECT_EQ(chosen.experts, (Numbers{0, 2}));
  EXPECT_NEAR(chosen.weights[0], 1.0 / (1.0 + std::exp(1.0)), 1e-7);
  EXPECT_NEAR(chosen.weights[1], 1.0 / (1.0 + std::exp(-1.0)), 1e-7);
}

// Scores of which float's sigmoid is 1 are still told apart.
TEST(ExpertChoice, ScoresChooseAndTheirSigmoidsAreTheWeights) {
  const Chosen chosen =
      choose({.num_used = 2, .scoring = RouterScoring::kSigmoidOfSelected}, {90.0f, 1.0f, 91.0f, -2.0f});
  EXPECT_EQ(chosen.experts, (Numbers{2, 0}));
  EXPECT_EQ(chosen.weights, (std::vector<float>{1.0f, 1.0f}));
  const Chosen low =
      choose({.num_used = 2, .scoring = RouterScoring::kSigmoidOfSelected}, {-1.0f, -3.0f, -2.0f});
  EXPECT_EQ(low.experts, (Numbers{0, 2}));
  EXPECT_NEAR(low.weights[1], 1.0 / (1.0 + std::exp(2.0)), 1e-7);
}

TEST(ExpertChoice, ASumNearZeroIsNotDividedBy) {
  const Chosen chosen =
      choose({.num_used = 1, .scoring = RouterScoring::kSigmoid, .normalises = true}, {-20.0f, -30.0f});
  EXPECT_NEAR(chosen.weights[0], std::exp(-20.0) / double{kLeastWeightSum}, 1e-9);
}

// Groups {0, 1, 2}, {3, 4, 5}, {6, 7, 8}: worth 9, 10 and 8; the largest of all is in the last one.
TEST(ExpertChoice, GroupsAreWorthTheirTwoBest) {
  const std::vector<float> scores = {4, 5, 0, 5, 5, -3, 7, 1, 0};
  const Routing routing{
      .num_used = 3, .scoring = RouterScoring::kSoftmaxOfSelected, .num_groups = 3, .num_used_groups = 2};
  EXPECT_EQ(choose(routing, scores).experts, (Numbers{1, 3, 4}));
  Routing one = routing;
  one.num_used_groups = 1;
  EXPECT_EQ(choose(one, scores).experts, (Numbers{3, 4, 5}));
  // Equal groups: the first.
  EXPECT_EQ(choose({.num_used = 2,
                    .scoring = RouterScoring::kSoftmaxOfSelected,
                    .num_groups = 2,
                    .num_used_groups = 1},
                   {1, 2, 2, 1})
                .experts,
            (Numbers{1, 0}));
}

TEST(ExpertChoice, WhatIsNotANumberIsSeenInTheWeights) {
  for (const RouterScoring scoring : {RouterScoring::kSoftmax, RouterScoring::kSigmoid,
                                      RouterScoring::kSoftmaxOfSelected, RouterScoring::kSigmoidOfSelected}) {
    const Chosen chosen = choose({.num_used = 2, .scoring = scoring}, {1.0f, 2.0f, kNan, 3.0f});
    EXPECT_TRUE(std::isnan(chosen.weights[0])) << static_cast<int>(scoring);
  }
  EXPECT_TRUE(std::isnan(choose({.num_used = 1}, {1.0f, kInfinity}).weights[0]));
  EXPECT_TRUE(std::isnan(choose({.num_used = 1}, {-kInfinity, -kInfinity}).weights[0]));
  const Chosen low = choose({.num_used = 2}, {-kInfinity, 0.0f});
  EXPECT_EQ(low.experts, (Numbers{1, 0}));
  EXPECT_EQ(low.weights, (std::vector<float>{1.0f, 0.0f}));
}

TEST(ExpertChoice, TheSigmoidIsRightAtBothEnds) {
  const cpu::KernelTable& kernels = cpu::kernel_table(cpu::InstructionSet::kPortable);
  for (const double x : {-800.0, -30.0, -1.0, -0.0, 0.0, 0.5, 40.0, 800.0})
    EXPECT_NEAR(cpu::sigmoid(kernels, x), 1.0 / (1.0 + std::exp(-x)), 1e-15) << x;
}

TEST(ExpertRows, AnExpertsRowsAreNeighboursInTheirOrder) {
  const std::vector<Numbers> chosen = {{3, 0}, {0, 1}, {3, 1}, {3, 4}};
  cpu::ExpertRows rows;
  rows.reserve(4, 6, 2);
  rows.begin(4, 6, 2);
  for (std::size_t i = 0; i < chosen.size(); ++i)
    std::copy(chosen[i].begin(), chosen[i].end(), rows.experts_of(static_cast<std::int64_t>(i)));
  rows.sort();
  ASSERT_EQ(rows.num_slots(), 8);
  Numbers order;
  for (const cpu::ExpertRows::Expert& expert : rows.used()) {
    order.push_back(expert.index);
    for (std::int32_t slot = expert.first_slot; slot < expert.end_slot; ++slot) {
      const auto& row = chosen[static_cast<std::size_t>(rows.row_of(slot))];
      EXPECT_NE(std::find(row.begin(), row.end(), expert.index), row.end());
      if (slot == expert.first_slot) continue;
      EXPECT_LT(rows.row_of(slot - 1), rows.row_of(slot));
    }
  }
  EXPECT_EQ(order, (Numbers{3, 0, 1, 4})) << "most rows first, then by number; 2 and 5 are not used";
  for (std::int64_t row = 0; row < 4; ++row) {
    for (std::int32_t i = 0; i < 2; ++i) EXPECT_EQ(rows.row_of(rows.slot_of(row, i)), row);
  }
}

// ---- the operation

struct LayerKind {
  TensorType gate = TensorType::kF32, up = TensorType::kF32, down = TensorType::kF32;
  std::int32_t num_experts = 7, num_used = 3;
  std::int64_t width = 256, hidden = 256, shared = 0;
  bool has_biases = false, has_output_scale = false, gates_shared = false;
  bool has_own_norms = false;  // of router, experts and the shared one, before and behind
  bool has_gates = true, weighs_inputs = false;
  std::int64_t latent = 0;  // columns of what experts read and give; 0: as the rows
  float residual_scale = 1.0f;
  FeedForwardActivation activation = FeedForwardActivation::kSilu;
  Routing routing = {};
};

// Weights as the file has them.
struct LayerSources {
  explicit LayerSources(const LayerKind& kind_) : kind(kind_), norm(norm_weight(70, kind_.width)) {
    const auto count = static_cast<std::size_t>(kind.num_experts);
    router = random_matrix(TensorType::kF32, kind.num_experts, kind.width, 71);
    const std::int64_t columns = kind.latent > 0 ? kind.latent : kind.width;
    for (std::size_t i = 0; i < count; ++i) {
      if (kind.has_gates) gate.push_back(random_matrix(kind.gate, kind.hidden, columns, 100 + i));
      up.push_back(random_matrix(kind.up, kind.hidden, columns, 200 + i));
      down.push_back(random_matrix(kind.down, columns, kind.hidden, 300 + i));
    }
    if (kind.latent > 0) {
      latent_down = random_matrix(kind.up, kind.latent, kind.width, 92);
      latent_up = random_matrix(kind.down, kind.width, kind.latent, 93);
    }
    if (kind.has_biases) {
      norm_bias = noise_row(69, 0, kind.width);
      router_bias = noise_row(72, 0, kind.num_experts);
      gate_bias = noise_row(73, 0, kind.num_experts * kind.hidden);
      up_bias = noise_row(74, 0, kind.num_experts * kind.hidden);
      down_bias = noise_row(75, 0, kind.num_experts * kind.width);
    }
    if (kind.has_output_scale) output_scale = some_rows(76, 1, kind.num_experts, 0.5f, 1.0f);
    if (kind.has_own_norms) {
      for (std::size_t i = 0; i < 5; ++i) own_norms.push_back(norm_weight(81 + i, kind.width));
      for (float& weight : own_norms[0]) weight *= 0.25f;
    }
    if (kind.shared > 0) {
      if (kind.has_gates) shared_gate = random_matrix(kind.gate, kind.shared, kind.width, 77);
      shared_up = random_matrix(kind.up, kind.shared, kind.width, 78);
      shared_down = random_matrix(kind.down, kind.width, kind.shared, 79);
      shared_router = random_matrix(TensorType::kF32, 1, kind.width, 80);
    }
  }

  LayerKind kind;
  std::vector<float> norm, norm_bias, router_bias, gate_bias, up_bias, down_bias, output_scale;
  OwnedMatrix router, shared_gate, shared_up, shared_down, shared_router, latent_down, latent_up;
  std::vector<OwnedMatrix> gate, up, down;
  std::vector<std::vector<float>> own_norms;  // router, shared, behind the experts, the shared one and both
};

// What the rows become. `chosen`: which experts each row used; null: nobody asks.
std::vector<float> run_experts(Backend& backend, const LayerSources& layer, std::vector<float> rows,
                               std::vector<std::int32_t>* chosen = nullptr) {
  std::vector<std::unique_ptr<Matrix>> owned;
  const auto prepare = [&](const OwnedMatrix& matrix) -> const Matrix* {
    if (matrix.source.rows == 0) return nullptr;
    owned.push_back(backend.prepare_matrix(matrix.source).value());
    return owned.back().get();
  };
  const auto prepare_all = [&](const std::vector<OwnedMatrix>& matrices) {
    std::vector<const Matrix*> prepared;
    for (const OwnedMatrix& matrix : matrices) prepared.push_back(prepare(matrix));
    return prepared;
  };
  const std::vector<const Matrix*> gate = prepare_all(layer.gate), up = prepare_all(layer.up),
                                   down = prepare_all(layer.down);
  Routing routing = layer.kind.routing;
  routing.num_used = layer.kind.num_used;
  ExpertWeights weights{.norm = {.weight = layer.norm, .epsilon = 1e-6f, .bias = layer.norm_bias},
                        .router = prepare(layer.router),
                        .router_bias = layer.router_bias,
                        .routing = routing,
                        .gate = gate,
                        .up = up,
                        .down = down,
                        .gate_bias = layer.gate_bias,
                        .up_bias = layer.up_bias,
                        .down_bias = layer.down_bias,
                        .output_scale = layer.output_scale,
                        .activation = layer.kind.activation,
                        .weighs_inputs = layer.kind.weighs_inputs,
                        .latent_down = prepare(layer.latent_down),
                        .latent_up = prepare(layer.latent_up),
                        .shared_gate = prepare(layer.shared_gate),
                        .shared_up = prepare(layer.shared_up),
                        .shared_down = prepare(layer.shared_down),
                        .shared_router = layer.kind.gates_shared ? prepare(layer.shared_router) : nullptr,
                        .residual_scale = layer.kind.residual_scale};
  if (layer.kind.has_own_norms) {
    NormWeights* const norms[] = {&weights.router_norm, &weights.shared_norm, &weights.routed_post_norm,
                                  &weights.shared_post_norm, &weights.post_norm};
    for (std::size_t i = 0; i < std::size(norms); ++i) *norms[i] = {layer.own_norms[i], 1e-6f};
  }
  const MatrixView residual = view(rows, layer.kind.width);
  if (chosen != nullptr) chosen->assign(static_cast<std::size_t>(residual.rows * layer.kind.num_used), -1);
  backend.feed_forward_experts(weights, residual,
                               chosen == nullptr ? std::span<std::int32_t>() : std::span(*chosen));
  return rows;
}

std::vector<float> layer_rows(const LayerKind& kind, std::int64_t num_rows, std::int64_t first = 0) {
  return some_rows(90, num_rows, kind.width, 1.0f, 0.0f, first);
}

class Experts : public ::testing::TestWithParam<cpu::InstructionSet> {};

INSTANTIATE_TEST_SUITE_P(EveryInstructionSet, Experts, ::testing::ValuesIn(cpu::usable_instruction_sets()),
                         [](const auto& info) { return std::string(cpu::instruction_set_name(info.param)); });

// On this instruction set within `bound` of the reference, and the bits of portable code on one thread.
void expect_right(cpu::InstructionSet isa, const LayerKind& kind, Activation activation,
                  std::int64_t num_rows, double bound) {
  const LayerSources layer(kind);
  const std::vector<float> rows = layer_rows(kind, num_rows);
  const auto added = [&](std::vector<float> result) {
    for (std::size_t i = 0; i < result.size(); ++i) result[i] -= rows[i];
    return result;
  };
  const auto backend = cpu_backend(isa, 2, activation);
  const std::vector<float> got = run_experts(*backend, layer, rows);
  const std::vector<float> expected = run_experts(*reference_backend(activation), layer, rows);
  EXPECT_LE(relative_difference(added(got), added(expected)), bound);
  const std::vector<float> twin =
      run_experts(*cpu_backend(cpu::InstructionSet::kPortable, 1, activation), layer, rows);
  EXPECT_TRUE(same_bits(got.data(), twin.data(), static_cast<std::int64_t>(got.size())));
}

// Three sums one after the other: those of float activations differ by their rounding.
double bound_of(Activation activation, TensorType type) {
  if (!traits_of(type).quantised || activation == Activation::kF32) return 3e-4;
  return activation == Activation::kInt8 ? 4e-2 : 5e-4;
}

TEST_P(Experts, AreThoseOfTheReferenceForEveryTypeAndActivation) {
  for (const TensorType type : kEveryTensorType) {
    for (const Activation activation : {Activation::kF32, Activation::kInt8, Activation::kInt16}) {
      SCOPED_TRACE(std::string(traits_of(type).name) + ", activation " +
                   std::to_string(static_cast<int>(activation)));
      expect_right(GetParam(), {.gate = type, .up = type, .down = type}, activation, 9,
                   bound_of(activation, type));
    }
  }
}

TEST_P(Experts, AreThoseOfTheReferenceForEveryKind) {
  const std::vector<float> selection_bias = noise_row(91, 0, 8);
  const LayerKind plain{.num_experts = 8, .width = 57, .hidden = 23};
  std::vector<LayerKind> kinds(20, plain);
  kinds[1].has_biases = true;
  kinds[1].activation = FeedForwardActivation::kClampedSwiglu;
  kinds[1].routing.scoring = RouterScoring::kSoftmaxOfSelected;
  kinds[2].shared = 41;
  kinds[3].shared = 41;
  kinds[3].gates_shared = true;
  kinds[4].routing = {.scoring = RouterScoring::kSigmoid,
                      .selection_bias = selection_bias,
                      .normalises = true,
                      .scale = 2.5f};
  kinds[5].routing = {.scoring = RouterScoring::kSigmoid, .num_groups = 4, .num_used_groups = 2};
  kinds[6].has_output_scale = true;
  kinds[6].activation = FeedForwardActivation::kGelu;
  kinds[7].num_used = 8;
  kinds[8].num_used = 1;
  kinds[8].activation = FeedForwardActivation::kSquaredRelu;
  kinds[9] = {.gate = TensorType::kQ4_K, .up = TensorType::kQ6_K, .down = TensorType::kF16, .shared = 256};
  kinds[10].has_own_norms = true;  // as gemma4's
  kinds[10].shared = 41;
  kinds[10].has_output_scale = true;
  kinds[10].activation = FeedForwardActivation::kGelu;
  kinds[10].routing.normalises = true;
  kinds[10].residual_scale = 0.625f;
  kinds[11].has_own_norms = true;
  kinds[12] = kinds[9];
  kinds[12].has_own_norms = true;
  kinds[13].weighs_inputs = true;  // as llama4's
  kinds[13].num_used = 1;
  kinds[13].shared = 41;
  kinds[13].routing.scoring = RouterScoring::kSigmoidOfSelected;
  kinds[14] = kinds[13];
  kinds[14].num_used = 3;
  kinds[14].has_output_scale = true;
  kinds[15] = kinds[9];
  kinds[15].weighs_inputs = true;
  kinds[16].has_gates = false;  // as nemotron_h_moe's
  kinds[16].activation = FeedForwardActivation::kSquaredRelu;
  kinds[16].shared = 41;
  kinds[16].has_biases = true;
  kinds[17] = kinds[16];
  kinds[17].has_biases = false;
  kinds[17].latent = 31;
  kinds[17].routing = kinds[4].routing;
  kinds[18] = kinds[17];
  kinds[18].latent = 77;  // wider than the rows
  kinds[18].shared = 0;
  kinds[19] = kinds[9];
  kinds[19].latent = 512;
  kinds[19].has_gates = false;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    for (const std::int64_t num_rows : {1, 2, 33}) {
      SCOPED_TRACE("kind " + std::to_string(i) + ", rows " + std::to_string(num_rows));
      expect_right(GetParam(), kinds[i], Activation::kInt16, num_rows, 5e-4);
    }
  }
}

// One that nobody would take for a choice of this router: the biases alone decide, so the order is known.
TEST_P(Experts, WhoAsksIsToldWhichWereChosenAndNothingElseChanges) {
  LayerKind kind{.num_experts = 6, .num_used = 3, .width = 32, .hidden = 16};
  LayerSources layer(kind);
  std::fill(layer.router.bytes.begin(), layer.router.bytes.end(), std::byte{0});
  layer.router_bias = {0.0f, 4.0f, -1.0f, 9.0f, 2.0f, 1.0f};
  const std::vector<float> rows = layer_rows(kind, 5);
  for (const bool is_reference : {false, true}) {
    const auto backend = is_reference ? reference_backend(Activation::kF32) : cpu_backend(GetParam(), 2);
    std::vector<std::int32_t> chosen;
    const std::vector<float> asked = run_experts(*backend, layer, rows, &chosen);
    const std::vector<float> unasked = run_experts(*backend, layer, rows);
    EXPECT_TRUE(same_bits(asked.data(), unasked.data(), static_cast<std::int64_t>(asked.size())));
    ASSERT_EQ(chosen.size(), 15u);
    for (std::size_t row = 0; row < 5; ++row) {
      EXPECT_EQ(std::vector(chosen.begin() + static_cast<std::ptrdiff_t>(row * 3),
                            chosen.begin() + static_cast<std::ptrdiff_t>(row * 3 + 3)),
                (std::vector<std::int32_t>{3, 1, 4}));
    }
  }
}

TEST_P(Experts, ARowIsTheSameBitsWhoeverSharesItsExperts) {
  for (const Activation activation : {Activation::kF32, Activation::kInt8}) {
    for (const TensorType type :
         {TensorType::kQ4_K, TensorType::kQ6_K, TensorType::kMXFP4, TensorType::kF16}) {
      LayerKind kind{
          .gate = type, .up = type, .down = type, .num_experts = 5, .num_used = 2, .shared = 32 * 8};
      kind.has_own_norms = type == TensorType::kQ4_K || type == TensorType::kF16;
      kind.weighs_inputs = type == TensorType::kQ6_K;
      if (type == TensorType::kMXFP4) kind.latent = 128;
      const LayerSources layer(kind);
      const auto backend = cpu_backend(GetParam(), 3, activation);
      constexpr std::int64_t kRows = 61;
      const std::vector<float> all = run_experts(*backend, layer, layer_rows(kind, kRows));
      for (const std::int64_t together : {1, 3, 16, 30}) {
        for (std::int64_t first = 0; first < kRows; first += together) {
          const std::int64_t count = std::min(together, kRows - first);
          const std::vector<float> some = run_experts(*backend, layer, layer_rows(kind, count, first));
          ASSERT_TRUE(same_bits(some.data(), all.data() + first * kind.width, count * kind.width))
              << "rows " << first << " and " << count - 1 << " more of " << traits_of(type).name;
          if (together == 1) first += 6;  // some of them
        }
      }
    }
  }
}

// Two outputs that take each other away, and a small one: what is left of it shows in which order they were
// added. The best is the last in number.
TEST_P(Experts, OutputsAreAddedInTheOrderOfChoosing) {
  LayerKind kind{.num_experts = 3, .num_used = 3, .width = 16, .hidden = 16};
  kind.routing.scoring = RouterScoring::kSigmoid;
  LayerSources layer(kind);
  for (OwnedMatrix* matrix : {&layer.router, &layer.down[0], &layer.down[1], &layer.down[2]})
    std::fill(matrix->bytes.begin(), matrix->bytes.end(), std::byte{0});
  layer.router_bias = {31.0f, 30.0f, 32.0f};  // weights of 1, in float
  layer.down_bias.resize(48);
  std::fill_n(layer.down_bias.begin(), 16, -1e8f);
  std::fill_n(layer.down_bias.begin() + 16, 16, 1.0f);
  std::fill_n(layer.down_bias.begin() + 32, 16, 1e8f);
  layer.gate_bias.resize(48);
  layer.up_bias.resize(48);
  const std::vector<float> rows(32, 0.0f);
  EXPECT_EQ(run_experts(*cpu_backend(GetParam(), 2), layer, rows), std::vector<float>(32, 1.0f));
}

// With 8-bit activations, a router that met them would choose others.
TEST_P(Experts, TheRouterMeetsRowsThatAreNotRounded) {
  LayerKind kind{.gate = TensorType::kQ8_0, .up = TensorType::kQ8_0, .down = TensorType::kQ8_0};
  kind.num_experts = 64;
  kind.num_used = 1;
  const LayerSources layer(kind);
  const std::vector<float> rows = layer_rows(kind, 40);
  const std::vector<float> rounded = run_experts(*cpu_backend(GetParam(), 2, Activation::kInt8), layer, rows);
  const std::vector<float> exact = run_experts(*cpu_backend(GetParam(), 2, Activation::kF32), layer, rows);
  for (std::int64_t row = 0; row < 40; ++row) {
    const auto begin = static_cast<std::ptrdiff_t>(row * kind.width), end = begin + kind.width;
    EXPECT_LT(relative_difference({rounded.begin() + begin, rounded.begin() + end},
                                  {exact.begin() + begin, exact.begin() + end}),
              0.05)
        << "row " << row;
  }
}

TEST_P(Experts, ARowThatIsNotFiniteSpoilsNoOther) {
  const LayerKind kind{.gate = TensorType::kQ4_K, .up = TensorType::kQ4_K, .down = TensorType::kQ4_K};
  const LayerSources layer(kind);
  const auto backend = cpu_backend(GetParam(), 2, Activation::kInt8);
  std::vector<float> rows = layer_rows(kind, 9);
  const std::vector<float> healthy = run_experts(*backend, layer, rows);
  rows[static_cast<std::size_t>(4 * kind.width + 3)] = kNan;
  const std::vector<float> spoilt = run_experts(*backend, layer, rows);
  for (std::int64_t row = 0; row < 9; ++row) {
    const float* const found = spoilt.data() + row * kind.width;
    if (row == 4) {
      EXPECT_TRUE(std::isnan(found[0]) && std::isnan(found[kind.width - 1]));
    } else {
      EXPECT_TRUE(same_bits(found, healthy.data() + row * kind.width, kind.width)) << "row " << row;
    }
  }
}

TEST(ExpertMemory, IsWhatWasPlannedAndNoStepTakesMore) {
  const LayerKind kind{.gate = TensorType::kQ4_K,
                       .up = TensorType::kQ4_K,
                       .down = TensorType::kQ6_K,
                       .shared = 96 * 8,
                       .has_own_norms = true};
  StepShape shape;
  shape.num_rows = 70;
  shape.num_logits_rows = 4;
  shape.max_context_len = 256;
  shape.embedding_length = static_cast<std::int32_t>(kind.width);
  shape.num_experts = kind.num_experts;
  shape.num_used_experts = kind.num_used;
  shape.expert_length = static_cast<std::int32_t>(kind.hidden);
  shape.shared_expert_length = static_cast<std::int32_t>(kind.shared);
  shape.num_heads = shape.num_kv_heads = 2;
  shape.head_dim = 16;
  shape.vocabulary_size = 100;
  shape.has_quantised_weights = shape.has_unquantised_weights = true;
  shape.has_shared_expert_norms = true;
  for (const Activation activation : {Activation::kF32, Activation::kInt8, Activation::kInt16}) {
    auto backend = create_backend({.device = "cpu", .threads = 2, .activation = activation}).value();
    ASSERT_TRUE(backend->reserve_step(shape));
    const std::int64_t planned = backend->scratch_bytes();
    EXPECT_EQ(planned, *planned_scratch_bytes(shape, activation, 2));
    run_experts(*backend, LayerSources(kind), layer_rows(kind, shape.num_rows));
    EXPECT_EQ(backend->scratch_bytes(), planned);
    StepShape without = shape;
    without.num_experts = 0;
    EXPECT_LT(*planned_scratch_bytes(without, activation, 2), planned);
  }
}

}  // namespace
}  // namespace octavo::kernels::testing
