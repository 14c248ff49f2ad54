// Layers with a state, on every instruction set: against the reference, and bit for bit however a sequence is
// cut, whoever runs beside it, on any number of threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "kernels/backends.h"
#include "kernels/step_memory.h"
#include "tests/kernels/operation_runs.h"
#include "tests/kernels/recurrent_layers.h"

namespace octavo::kernels::testing {
namespace {

using Chunks = std::vector<std::int32_t>;

bool same(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && same_bits(a.data(), b.data(), static_cast<std::int64_t>(a.size()));
}

class RecurrentLayers : public ::testing::TestWithParam<cpu::InstructionSet> {
 protected:
  static RunningLayer running(const RecurrentLayer& layer, std::int32_t threads = 2,
                              Activation activation = Activation::kF32, std::int32_t num_states = 1) {
    return {layer, cpu_backend(GetParam(), threads, activation), num_states};
  }
};

INSTANTIATE_TEST_SUITE_P(EveryInstructionSet, RecurrentLayers,
                         ::testing::ValuesIn(cpu::usable_instruction_sets()),
                         [](const auto& info) { return std::string(cpu::instruction_set_name(info.param)); });

// A head's output is small where its key and query are nearly at right angles, and then normed: what was lost
// in its sums shows. Rounded activations may go the other way, as everywhere.
double bound_of(Activation activation, TensorType type) {
  if (!traits_of(type).quantised || activation == Activation::kF32) return 5e-6;
  return activation == Activation::kInt8 ? 1e-2 : 5e-5;
}

// Rows and states within `bound` of the reference's.
void expect_right(const RecurrentLayer& layer, cpu::InstructionSet isa, Activation activation,
                  const Chunks& chunks, double bound) {
  RunningLayer got(layer, cpu_backend(isa, 2, activation), 1);
  RunningLayer expected(layer, reference_backend(activation), 1);
  EXPECT_LE(relative_difference(got.run(1, chunks), expected.run(1, chunks)), bound) << layer.name;
  EXPECT_LE(relative_difference(got.recurrent(0), expected.recurrent(0)), bound) << layer.name;
  EXPECT_LE(relative_difference(got.convolution(0), expected.convolution(0)), bound) << layer.name;
}

TEST_P(RecurrentLayers, AreThoseOfTheReferenceForEveryTypeAndActivation) {
  for (const TensorType type : kEveryTensorType) {
    for (const RecurrentLayer& layer : usual_layers(type)) {
      for (const Activation activation : {Activation::kF32, Activation::kInt8, Activation::kInt16}) {
        if (!traits_of(type).quantised && activation != Activation::kF32) continue;
        SCOPED_TRACE(std::string(traits_of(type).name) + ", activation " +
                     std::to_string(static_cast<int>(activation)));
        expect_right(layer, GetParam(), activation, {5, 1}, bound_of(activation, type));
      }
    }
  }
}

TEST_P(RecurrentLayers, AreThoseOfTheReferenceForEverySize) {
  for (const RecurrentLayer& layer : small_layers())
    expect_right(layer, GetParam(), Activation::kF32, {40, 1, 1, 3}, 5e-6);
}

TEST_P(RecurrentLayers, GiveTheSameBitsAsPortableCode) {
  for (const RecurrentLayer& layer : small_layers()) {
    RunningLayer got = running(layer), portable(layer, cpu_backend(cpu::InstructionSet::kPortable, 1), 1);
    EXPECT_TRUE(same(got.run(1, {33}), portable.run(1, {33}))) << layer.name;
    EXPECT_TRUE(same(got.state(0), portable.state(0))) << layer.name;
  }
  for (const RecurrentLayer& layer : usual_layers(TensorType::kQ4_K)) {
    for (const Activation activation : {Activation::kF32, Activation::kInt8, Activation::kInt16}) {
      RunningLayer got = running(layer, 2, activation),
                   portable(layer, cpu_backend(cpu::InstructionSet::kPortable, 1, activation), 1);
      EXPECT_TRUE(same(got.run(1, {9}), portable.run(1, {9}))) << layer.name;
      EXPECT_TRUE(same(got.state(0), portable.state(0))) << layer.name;
    }
  }
}

TEST_P(RecurrentLayers, GiveTheSameBitsHoweverASequenceIsCut) {
  for (const RecurrentLayer& layer : small_layers()) {
    RunningLayer cut = running(layer);
    const std::vector<float> whole = cut.run(1, {47});
    const std::vector<float> state = cut.state(0);
    for (const Chunks& chunks :
         {Chunks(47, 1), Chunks{46, 1}, Chunks{1, 46}, Chunks{3, 2, 1, 17, 24}, Chunks{2, 2, 2, 2, 39}}) {
      EXPECT_TRUE(same(cut.run(1, chunks), whole)) << layer.name << ", " << chunks.size() << " chunks";
      EXPECT_TRUE(same(cut.state(0), state)) << layer.name << ", " << chunks.size() << " chunks";
    }
  }
}

TEST_P(RecurrentLayers, GiveTheSameBitsOnAnyNumberOfThreads) {
  for (const RecurrentLayer& layer : small_layers()) {
    RunningLayer one = running(layer, 1);
    const std::vector<float> rows = one.run(1, {21, 1});
    for (const std::int32_t threads : {2, 3, 8}) {
      RunningLayer several = running(layer, threads);
      EXPECT_TRUE(same(several.run(1, {21, 1}), rows)) << layer.name << ", " << threads << " threads";
      EXPECT_TRUE(same(several.state(0), one.state(0))) << layer.name << ", " << threads << " threads";
    }
  }
}

// Five sequences, in states of any order, step by step with different numbers of rows, some of them none.
TEST_P(RecurrentLayers, GiveTheSameBitsWhoeverRunsBeside) {
  const std::vector<Chunks> counts = {
      {4, 1, 0, 9, 1, 1}, {1, 1, 1, 1, 1, 1}, {13, 0, 0, 0, 2, 1}, {0, 0, 0, 7, 3, 6}, {2, 20, 1, 0, 0, 1}};
  const Chunks states = {3, 0, 5, 1, 4};
  for (const RecurrentLayer& layer : small_layers()) {
    RunningLayer together = running(layer, 3, Activation::kF32, 6), alone = running(layer);
    together.clear(states);
    std::vector<std::vector<float>> got(counts.size());
    Chunks done(counts.size(), 0);
    for (std::size_t step = 0; step < counts[0].size(); ++step) {
      std::vector<Chunk> chunks;
      for (std::size_t i = 0; i < counts.size(); ++i)
        chunks.push_back({i, done[i], counts[i][step], states[i]});
      const std::vector<float> rows = together.step(chunks);
      auto row = rows.begin();
      for (std::size_t i = 0; i < counts.size(); ++i) {
        const auto end = row + counts[i][step] * layer.output_width;
        got[i].insert(got[i].end(), row, end);
        row = end;
        done[i] += counts[i][step];
      }
    }
    for (std::size_t i = 0; i < counts.size(); ++i) {
      EXPECT_TRUE(same(got[i], alone.run(i, {done[i]}))) << layer.name << ", sequence " << i;
      EXPECT_TRUE(same(together.state(states[i]), alone.state(0))) << layer.name << ", sequence " << i;
    }
  }
}

// Three sequences, two of which guess ahead: a draft of 4 rows and one of 3 behind chunks of 2 and 1.
const std::vector<Chunk> kDrafting = {{1, 9, 6, 2, 4}, {2, 5, 3, 0}, {3, 12, 4, 1, 3}};

void run_before_drafts(RunningLayer& layers) {
  layers.clear({0, 1, 2});
  layers.step({{1, 0, 9, 2}, {2, 0, 5, 0}, {3, 0, 12, 1}});
}

TEST_P(RecurrentLayers, RowsOfADraftAreThoseOfItsTokensAndLeaveTheStateBeforeThem) {
  for (const RecurrentLayer& layer : small_layers()) {
    RunningLayer drafting = running(layer, 3, Activation::kF32, 3),
                 plain = running(layer, 2, Activation::kF32, 3);
    run_before_drafts(drafting);
    run_before_drafts(plain);
    EXPECT_TRUE(same(drafting.step(kDrafting), plain.step({{1, 9, 6, 2}, {2, 5, 3, 0}, {3, 12, 4, 1}})))
        << layer.name;
    run_before_drafts(plain);
    plain.step({{1, 9, 2, 2}, {2, 5, 3, 0}, {3, 12, 1, 1}});
    for (const std::int32_t state : {0, 1, 2})
      EXPECT_TRUE(same(drafting.state(state), plain.state(state))) << layer.name << ", state " << state;
  }
}

TEST_P(RecurrentLayers, AStateTakesUpWhatIsAcceptedAsIfItHadBeenNoDraft) {
  for (const RecurrentLayer& layer : small_layers()) {
    RunningLayer drafting = running(layer, 3, Activation::kF32, 3),
                 plain = running(layer, 2, Activation::kF32, 3);
    for (const Chunks& accepted :
         {Chunks{0, 0, 0}, Chunks{4, 0, 3}, Chunks{1, 0, 2}, Chunks{3, 0, 0}, Chunks{0, 0, 1}}) {
      run_before_drafts(drafting);
      drafting.step(kDrafting);
      drafting.accept(kDrafting, accepted);
      run_before_drafts(plain);
      plain.step({{1, 9, 2 + accepted[0], 2}, {2, 5, 3, 0}, {3, 12, 1 + accepted[2], 1}});
      for (const std::int32_t state : {0, 1, 2})
        EXPECT_TRUE(same(drafting.state(state), plain.state(state)))
            << layer.name << ", " << accepted[0] << " and " << accepted[2] << " rows, state " << state;
    }
  }
}

// As models have them, with rounded activations: bits against this backend's own plain rows, numbers against
// the reference's drafts.
TEST_P(RecurrentLayers, DraftsAreThoseOfTheReference) {
  for (const RecurrentLayer& layer : usual_layers(TensorType::kQ4_K)) {
    for (const Activation activation : {Activation::kF32, Activation::kInt16}) {
      RunningLayer got = running(layer, 2, activation, 3), expected(layer, reference_backend(activation), 3);
      for (RunningLayer* const layers : {&got, &expected}) run_before_drafts(*layers);
      const double bound = bound_of(activation, TensorType::kQ4_K);
      EXPECT_LE(relative_difference(got.step(kDrafting), expected.step(kDrafting)), bound) << layer.name;
      for (RunningLayer* const layers : {&got, &expected}) layers->accept(kDrafting, {2, 0, 3});
      for (const std::int32_t state : {1, 2}) {
        EXPECT_LE(relative_difference(got.recurrent(state), expected.recurrent(state)), bound) << layer.name;
        EXPECT_LE(relative_difference(got.convolution(state), expected.convolution(state)), bound)
            << layer.name;
      }
    }
  }
}

TEST_P(RecurrentLayers, ADraftThatIsNotFiniteSpoilsNoStateUnlessItIsAccepted) {
  for (const RecurrentLayer& layer : small_layers()) {
    RunningLayer layers = running(layer, 2, Activation::kF32, 3);
    run_before_drafts(layers);
    layers.step(kDrafting);
    layers.accept(kDrafting, {1, 0, 3});
    const std::vector<float> first = layers.state(2), other = layers.state(1);
    layers.spoil(1, 12, std::numeric_limits<float>::infinity());  // the second guess
    run_before_drafts(layers);
    layers.step(kDrafting);
    layers.accept(kDrafting, {1, 0, 3});
    EXPECT_TRUE(same(layers.state(2), first) && same(layers.state(1), other)) << layer.name;
  }
}

TEST_P(RecurrentLayers, ACopyOfAStateContinuesAsTheOriginal) {
  for (const RecurrentLayer& layer : small_layers()) {
    RunningLayer layers = running(layer, 2, Activation::kF32, 3);
    layers.clear({0});
    layers.step({{1, 0, 11, 0}});
    layers.copy(0, 2);
    const std::vector<float> original = layers.step({{1, 11, 6, 0}});
    EXPECT_TRUE(same(layers.step({{1, 11, 6, 2}}), original)) << layer.name;
    EXPECT_TRUE(same(layers.state(2), layers.state(0))) << layer.name;
    const std::vector<float> after = layers.state(0);
    layers.copy(2, 1);
    layers.step({{5, 17, 4, 2}});  // the copy goes another way
    EXPECT_TRUE(same(layers.state(0), after)) << layer.name;
    EXPECT_TRUE(same(layers.state(1), after)) << layer.name;
  }
}

TEST_P(RecurrentLayers, ATokenThatIsNotFiniteSpoilsNoOtherSequence) {
  for (const RecurrentLayer& layer : small_layers()) {
    RunningLayer layers = running(layer, 2, Activation::kF32, 3);
    const std::vector<Chunk> chunks = {{1, 0, 5, 0}, {2, 0, 6, 1}, {3, 0, 4, 2}};
    layers.clear({0, 1, 2});
    const std::vector<float> healthy = layers.step(chunks);
    const std::vector<float> first = layers.state(0), last = layers.state(2);
    layers.spoil(2, 3, std::numeric_limits<float>::quiet_NaN());
    layers.clear({0, 1, 2});
    const std::vector<float> spoilt = layers.step(chunks);
    const std::int64_t width = layer.output_width;
    EXPECT_TRUE(same_bits(spoilt.data(), healthy.data(), (5 + 3) * width)) << layer.name;
    EXPECT_TRUE(same_bits(spoilt.data() + 11 * width, healthy.data() + 11 * width, 4 * width)) << layer.name;
    EXPECT_TRUE(std::all_of(spoilt.begin() + 8 * width, spoilt.begin() + 9 * width,
                            [](float number) { return std::isnan(number); }))
        << layer.name << ": what is not finite must not look like an answer";
    EXPECT_TRUE(same(layers.state(0), first) && same(layers.state(2), last)) << layer.name;
    // A cleared state has forgotten it.
    layers.clear({1});
    const std::vector<float> again = layers.step({{2, 0, 3, 1}});
    EXPECT_TRUE(same_bits(again.data(), healthy.data() + 5 * width, 3 * width)) << layer.name;
  }
}

TEST_P(RecurrentLayers, ALayerTouchesItsOwnNumbersOnly) {
  for (const RecurrentLayer& layer : small_layers()) {
    RunningLayer layers = running(layer, 2, Activation::kF32, 3);
    const std::vector<float> before = layers.state(0);
    layers.clear({1});
    layers.step({{1, 0, 3, 1}});
    const std::vector<float> after = layers.state(1);
    EXPECT_TRUE(same(layers.state(0), before) && same(layers.state(2), before)) << layer.name;
    const StateLayout layout = layer.layout();
    const auto begin = layout.layer_offset(0, RecurrentLayer::kRunLayer);
    const auto is_own = [&](std::int64_t i) {
      const std::int64_t in_layer = i - begin, in_convolution = in_layer - layout.convolution_offset();
      return (in_layer >= 0 && in_layer < layout.recurrent_floats) ||
             (in_convolution >= 0 && in_convolution < layout.convolution_floats);
    };
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(after.size()); ++i) {
      if (!is_own(i)) {
        ASSERT_EQ(after[static_cast<std::size_t>(i)], 0.0f) << layer.name << ", number " << i;
      }
    }
  }
}

TEST_P(RecurrentLayers, MemoryIsWhatWasPlannedAndNoStepTakesMore) {
  for (const TensorType type : {TensorType::kF32, TensorType::kQ4_K}) {
    for (const RecurrentLayer& layer : usual_layers(type)) {
      for (const Activation activation : {Activation::kF32, Activation::kInt8, Activation::kInt16}) {
        StepShape shape;
        shape.num_rows = 70;
        shape.num_logits_rows = 4;
        shape.max_context_len = 256;
        shape.embedding_length = static_cast<std::int32_t>(layer.input_width);
        shape.num_heads = shape.num_kv_heads = 2;
        shape.head_dim = 16;
        shape.vocabulary_size = 100;
        shape.has_quantised_weights = shape.has_unquantised_weights = true;
        const std::int64_t without = *planned_scratch_bytes(shape, activation, 2);
        layer.add_to_step(shape);
        RunningLayer layers(
            layer, create_backend({.device = "cpu", .threads = 2, .activation = activation}).value(), 1);
        ASSERT_TRUE(layers.backend().reserve_step(shape));
        const std::int64_t planned = layers.backend().scratch_bytes();
        EXPECT_EQ(planned, *planned_scratch_bytes(shape, activation, 2));
        EXPECT_LT(without, planned);
        layers.run(1, {70, 1});
        EXPECT_EQ(layers.backend().scratch_bytes(), planned) << layer.name;
        shape.has_drafts = true;
        ASSERT_TRUE(layers.backend().reserve_step(shape));
        const std::int64_t planned_with_drafts = layers.backend().scratch_bytes();
        EXPECT_EQ(planned_with_drafts, *planned_scratch_bytes(shape, activation, 2));
        EXPECT_LT(planned, planned_with_drafts);
        const std::vector<Chunk> drafting = {{1, 71, 8, 0, 7}};
        layers.step(drafting);
        layers.accept(drafting, {5});
        EXPECT_EQ(layers.backend().scratch_bytes(), planned_with_drafts) << layer.name;
      }
    }
  }
}

// Close to the reference, and not much larger in the end than after the first tokens: with keys of length 1
// what is written for a key replaces what was there, and a state space forgets.
TEST_P(RecurrentLayers, AStateStaysBoundedAndRightForThousandsOfTokens) {
  const auto delta_net = [](float slowness) {
    return delta_net_layer(
        {.shape = {1, 2, 32, 32, 4, KeyHeadOrder::kTiled}, .width = 64, .slowness = slowness});
  };
  for (const RecurrentLayer& layer : {delta_net(0.0f), delta_net(0.999f), delta_net(1.0f),
                                      state_space_layer({.shape = {2, 32, 1, 32, 4}, .width = 64})}) {
    RunningLayer got = running(layer), expected(layer, reference_backend(), 1);
    got.clear({0});
    expected.clear({0});
    float early = 0.0f;
    for (std::int32_t first = 0; first < 4'000; first += 500) {
      SCOPED_TRACE(layer.name + ", from token " + std::to_string(first));
      const std::vector<Chunk> chunk = {{1, first, 500, 0}};
      EXPECT_LE(relative_difference(got.step(chunk), expected.step(chunk)), 1e-5);
      EXPECT_LE(relative_difference(got.recurrent(0), expected.recurrent(0)), 1e-5);
      float largest = 0.0f;
      for (const float number : got.recurrent(0)) largest = std::max(largest, std::fabs(number));
      if (first == 0) early = largest;
      EXPECT_LE(largest, 3.0f * early);
    }
  }
}

}  // namespace
}  // namespace octavo::kernels::testing
