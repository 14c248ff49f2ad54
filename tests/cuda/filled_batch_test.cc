// Steps that are filled up to a few shapes, and recorded: the rows that fill up touch nothing, and a recorded
// step gives the bits of one that is not.
#include "kernels/cuda/runtime/filled_batch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "tests/cuda/device_problem.h"

namespace octavo::kernels::cuda {
namespace {

using testing::OwnedMatrix;
using testing::PagedProblem;
using testing::random_matrix;
using testing::SequenceSpec;
using testing::Shape;

TEST(FilledRows, ArePowersOfTwoThenMultiplesOf64UpToTheMost) {
  EXPECT_EQ(filled_rows(0), std::vector<std::int32_t>());
  EXPECT_EQ(filled_rows(1), std::vector<std::int32_t>({1}));
  EXPECT_EQ(filled_rows(8), std::vector<std::int32_t>({1, 2, 4, 8}));
  EXPECT_EQ(filled_rows(11), std::vector<std::int32_t>({1, 2, 4, 8, 11}));
  EXPECT_EQ(filled_rows(200), std::vector<std::int32_t>({1, 2, 4, 8, 16, 32, 64, 128, 192, 200}));
  EXPECT_EQ(filled_rows(100'000).back(), kMostFilledRows);
}

std::vector<std::int32_t> values(std::span<const std::int32_t> span) { return {span.begin(), span.end()}; }

TEST(FilledBatch, RowsThatFillUpADecodeStepAreASequenceEach) {
  const std::vector<std::int32_t> ids = {7, 8, 9}, positions = {3, 0, 12}, slots = {35, 16, 60},
                                  start = {0, 1, 2, 3}, contexts = {4, 1, 13}, tables = {2, 0, 1, 0, 3, 3};
  const std::vector<float> rotations = {1, 2, 3, 4, 5, 6};
  FilledBatch filled;
  for (const std::int32_t num_rows : {8, 4})  // the second time over what the first left
    filled.fill({3, 3, positions, slots, start, contexts, tables, 2, rotations}, ids, num_rows, num_rows);
  const PagedBatch& batch = filled.batch();
  EXPECT_EQ(batch.num_tokens, 4);
  EXPECT_EQ(batch.num_sequences, 4);
  EXPECT_EQ(values(filled.token_ids()), std::vector<std::int32_t>({7, 8, 9, 0}));
  EXPECT_EQ(values(batch.positions), std::vector<std::int32_t>({3, 0, 12, 0}));
  EXPECT_EQ(values(batch.slot_mapping), std::vector<std::int32_t>({35, 16, 60, -1}));
  EXPECT_EQ(values(batch.query_start), std::vector<std::int32_t>({0, 1, 2, 3, 4}));
  EXPECT_EQ(values(batch.block_tables), tables);
  EXPECT_TRUE(std::ranges::equal(batch.rotations, std::vector<float>({1, 2, 3, 4, 5, 6, 0, 0})));
  EXPECT_TRUE(batch.local_rotations.empty());
}

TEST(FilledBatch, RowsThatFillUpAnotherStepAreOneSequenceAndTheOtherSequencesHaveNone) {
  const std::vector<std::int32_t> ids = {7, 8, 9, 10, 11}, positions = {3, 0, 1, 2, 3},
                                  slots = {35, 16, 17, 18, 19}, start = {0, 1, 5}, contexts = {4, 4},
                                  tables = {2, 1};
  FilledBatch filled;
  filled.fill({5, 2, positions, slots, start, contexts, tables, 1, {}}, ids, 8, 4);
  EXPECT_EQ(filled.batch().num_tokens, 8);
  EXPECT_EQ(filled.batch().num_sequences, 4);
  EXPECT_EQ(values(filled.token_ids()), std::vector<std::int32_t>({7, 8, 9, 10, 11, 0, 0, 0}));
  EXPECT_EQ(values(filled.batch().slot_mapping), std::vector<std::int32_t>({35, 16, 17, 18, 19, -1, -1, -1}));
  EXPECT_EQ(values(filled.batch().query_start), std::vector<std::int32_t>({0, 1, 5, 8, 8}));
  EXPECT_EQ(values(filled.batch().context_lens), std::vector<std::int32_t>({4, 4, 1, 1}));
  EXPECT_EQ(values(filled.batch().block_tables), tables);
  filled.fill({5, 2, positions, slots, start, contexts, tables, 1, {}}, ids, 5, 2);
  EXPECT_EQ(values(filled.batch().query_start), start);
}

// The attention of one layer, from its input to its output; whatever is not a row's stays -7.
class OneLayer {
 public:
  struct Outcome {
    std::vector<float> q, out;
    std::vector<std::byte> pool;
  };

  OneLayer(Backend& backend, const Shape& shape, TensorType type)
      : backend_(backend),
        shape_(shape),
        query_(random_matrix(type, shape.query_width(), shape.embedding_length, 1)),
        key_(random_matrix(type, shape.kv_width(), shape.embedding_length, 2)),
        value_(random_matrix(type, shape.kv_width(), shape.embedding_length, 3)),
        matrices_{backend.prepare_matrix(query_.source).value(), backend.prepare_matrix(key_.source).value(),
                  backend.prepare_matrix(value_.source).value()},
        norm_(backend, testing::noise_row(4, 0, shape.embedding_length), shape.embedding_length),
        x_(backend, constant(kRows * shape.embedding_length, 0.25f), shape.embedding_length),
        q_(backend, constant(kRows * shape.query_width(), -7.0f), shape.query_width()),
        out_(backend, constant(kRows * shape.query_width(), -7.0f), shape.query_width()) {}

  static constexpr std::int32_t kRows = 96;

  StepBody body(KvCache& kv) {
    return [this, &kv](const PagedBatch& batch, std::span<const std::int32_t>) {
      const auto first = [&](const Rows& rows) {
        const MatrixView all = rows.view();
        return MatrixView{all.data, batch.num_tokens, all.columns, all.stride};
      };
      backend_.attention_input(
          {{norm_.span(), 1e-5f}, matrices_[0].get(), matrices_[1].get(), matrices_[2].get()},
          shape_.attention, batch, 1, first(x_), kv, first(q_));
      backend_.paged_attention(shape_.attention, batch, 1, kv, first(q_), first(out_));
    };
  }

  Outcome outcome(const KvCache& kv) const { return {q_.read(), out_.read(), read_pool(kv)}; }
  void start_again() {
    for (const Rows* rows : {&q_, &out_}) {
      const std::vector<float> values = constant(kRows * shape_.query_width(), -7.0f);
      EXPECT_TRUE(upload_to(rows->view().data, values.data(), static_cast<std::int64_t>(values.size() * 4)));
    }
  }

 private:
  static std::vector<float> constant(std::int64_t size, float value) {
    return std::vector<float>(static_cast<std::size_t>(size), value);
  }

  Backend& backend_;
  const Shape shape_;
  const OwnedMatrix query_, key_, value_;
  const std::array<std::unique_ptr<Matrix>, 3> matrices_;
  const Rows norm_, x_, q_, out_;
};

std::vector<SequenceSpec> decodes(std::int32_t count, std::int32_t longest) {
  std::vector<SequenceSpec> sequences;
  for (std::int32_t i = 0; i < count; ++i) {
    sequences.push_back({static_cast<std::uint64_t>(i + 1), i == 0 ? longest - 1 : (i * 37) % longest, 1});
  }
  return sequences;
}

// Decodes, a draft of some rows, and prompts behind them.
std::vector<SequenceSpec> mixed(std::int32_t longest) {
  std::vector<SequenceSpec> sequences = decodes(3, longest);
  sequences.push_back({20, longest / 2, 5});
  sequences.push_back({21, 7, 9});
  sequences.push_back({22, 0, 40});
  return sequences;
}

bool same_first_rows(const std::vector<float>& a, const std::vector<float>& b, std::int64_t count) {
  return testing::same_bits(a.data(), b.data(), count);
}

class CudaFilledSteps : public ::testing::Test {
 protected:
  // Each launch once: what races is found where each kernel is tested.
  void SetUp() override { emulation::settings().finds_races = false; }
};

// Among the rows are 3 of 4, 9 of 16, 17 of 32 and 57 of 64, for which products take the same way filled up
// or not: whatever else differs is what a row that fills up did.
TEST_F(CudaFilledSteps, RowsThatFillUpTouchNothing) {
  const Shape shape = testing::odd_shape();
  for (const bool deterministic : {false, true}) {
    const auto backend = emulated_backend(shape, {.deterministic = deterministic});
    OneLayer layer(*backend, shape, TensorType::kQ4_1);
    std::vector<std::vector<SequenceSpec>> steps = {decodes(3, 60), decodes(9, 60), decodes(17, 60)};
    if (!deterministic) steps.push_back(mixed(60));
    for (const auto& [type, block_size] :
         {std::pair(KvType::kF16, 16), {KvType::kInt8, 3}, {KvType::kF32, 1}}) {
      for (const std::vector<SequenceSpec>& sequences : steps) {
        const PagedProblem problem = make_problem(
            shape, sequences, {.type = type, .block_size = block_size, .new_tokens_stored = false});
        const std::int64_t count = problem.num_rows();
        const std::vector<std::int32_t> ids(static_cast<std::size_t>(count));
        std::vector<OneLayer::Outcome> outcomes;
        for (const bool fills_up : {false, true}) {
          layer.start_again();
          const auto kv = device_pool(*backend, problem);
          if (fills_up) {
            backend->run_step(problem.batch(), ids, layer.body(*kv));
          } else {
            const PagedBatch batch = problem.batch();
            backend->begin_step(batch, ids);
            layer.body (*kv)(batch, ids);
          }
          outcomes.push_back(layer.outcome(*kv));
        }
        const std::int64_t width = shape.query_width();
        EXPECT_TRUE(outcomes[0].pool == outcomes[1].pool) << "written to the pool beside the rows' slots";
        EXPECT_TRUE(same_first_rows(outcomes[0].out, outcomes[1].out, count * width));
        EXPECT_TRUE(same_first_rows(outcomes[0].q, outcomes[1].q, count * width));
        for (std::size_t i = static_cast<std::size_t>(count * width); i < outcomes[1].out.size(); ++i)
          ASSERT_EQ(outcomes[1].out[i], -7.0f) << "attention of a row that fills up";
        EXPECT_NE(outcomes[1].q[static_cast<std::size_t>(count * width)], -7.0f) << "nothing was filled up";
      }
    }
    EXPECT_TRUE(backend->status());
  }
}

void record_all(Backend& backend, OneLayer& layer, KvCache& kv, std::int32_t rotary_dim) {
  for (const SampleStep& each : backend.steps_to_record()) {
    const SampleBatch sample(each, 0, kv.layout().block_size, rotary_dim);
    ASSERT_TRUE(backend.record_step(sample.batch(), sample.token_ids(), layer.body(kv)));
  }
}

// Contexts on both sides of where they are cut, tables of other widths, other blocks: what a launch would
// have as an argument reaches the graph through memory.
TEST_F(CudaFilledSteps, RecordedStepsGiveTheSameBits) {
  const Shape shape = testing::odd_shape();
  for (const bool deterministic : {false, true}) {
    const auto recording = emulated_backend(shape, {.deterministic = deterministic});
    const auto starting = emulated_backend(shape, {.deterministic = deterministic, .graphs = false});
    EXPECT_TRUE(starting->steps_to_record().empty());
    for (const auto& [type, block_size] : {std::pair(KvType::kF16, 16), {KvType::kFp8E4m3, 5}}) {
      if (deterministic && block_size == 5) continue;
      OneLayer recorded(*recording, shape, TensorType::kF16), started(*starting, shape, TensorType::kF16);
      const PagedProblem largest = make_problem(
          shape, decodes(32, 700), {.type = type, .block_size = block_size, .new_tokens_stored = false});
      const auto recorded_kv = device_pool(*recording, largest), started_kv = device_pool(*starting, largest);
      EXPECT_TRUE(recording->reserve_step(step_shape(shape)));  // forgets what was recorded for another pool
      const std::int64_t captures = emulation::num_captures();
      record_all(*recording, recorded, *recorded_kv, shape.attention.rotary_dim);
      EXPECT_EQ(emulation::num_captures() - captures, std::ssize(recording->steps_to_record()));
      EXPECT_GT(recording->steps_to_record().size(), 6u);
      EXPECT_TRUE(read_pool(*recorded_kv) == largest.pool) << "recording wrote to the pool";
      std::vector<std::vector<SequenceSpec>> steps;
      for (const std::int32_t count : {1, 3, 5, 20, 2}) {
        for (const std::int32_t longest : {1, 255, 256, 700}) steps.push_back(decodes(count, longest));
      }
      for (const std::int32_t longest : {20, 250, 256, 700}) {
        if (deterministic) break;
        steps.push_back(mixed(longest));
        steps.push_back({{1, longest - 4, 4}});
        steps.push_back({{1, 0, 2}, {2, longest - 1, 1}});
      }
      for (const std::vector<SequenceSpec>& sequences : steps) {
        const PagedProblem problem = make_problem(
            shape, sequences, {.type = type, .block_size = block_size, .new_tokens_stored = false});
        ASSERT_LE(problem.num_blocks, largest.num_blocks);
        const std::vector<std::int32_t> ids(static_cast<std::size_t>(problem.num_rows()));
        const auto place = [&](const KvCache& kv) {
          EXPECT_TRUE(upload_to(static_cast<const CudaKvCache&>(kv).data(), problem.pool.data(),
                                static_cast<std::int64_t>(problem.pool.size())));
        };
        place(*recorded_kv), place(*started_kv);
        recorded.start_again(), started.start_again();
        const std::int64_t graphs = emulation::num_graph_launches(),
                           singles = emulation::num_single_launches();
        recording->run_step(problem.batch(), ids, [](const PagedBatch&, std::span<const std::int32_t>) {
          ADD_FAILURE() << "the step was not recorded";
        });
        EXPECT_EQ(emulation::num_graph_launches() - graphs, 1);
        EXPECT_EQ(emulation::num_single_launches() - singles, 0);
        starting->run_step(problem.batch(), ids, started.body(*started_kv));
        const auto a = recorded.outcome(*recorded_kv), b = started.outcome(*started_kv);
        const std::int64_t numbers = problem.num_rows() * shape.query_width();
        EXPECT_TRUE(a.pool == b.pool && same_first_rows(a.out, b.out, numbers))
            << problem.num_rows() << " rows, context " << problem.context_lens[0]
            << (deterministic ? ", deterministic" : "");
        EXPECT_NE(a.out[0], -7.0f);
      }
    }
    EXPECT_TRUE(recording->status());
  }
}

// Where only one sequence has room for its table, and that is long.
TEST_F(CudaFilledSteps, SequencesThatFillUpTakeNoRoomForTables) {
  const Shape shape = testing::odd_shape();
  StepShape step = step_shape(shape);
  step.max_num_sequences = 1;
  step.max_context_len = 30'000;
  for (const bool graphs : {false, true}) {
    const auto backend = emulated_backend(shape, {.graphs = graphs});
    ASSERT_TRUE(backend->reserve_step(step));
    OneLayer layer(*backend, shape, TensorType::kQ4_1);
    const PagedProblem problem =
        make_problem(shape, {{1, 20'000, 5}}, {.block_size = 1, .new_tokens_stored = false});
    const auto kv = device_pool(*backend, problem);
    record_all(*backend, layer, *kv, shape.attention.rotary_dim);
    const std::vector<std::int32_t> ids(5);
    const std::int64_t started = emulation::num_graph_launches();
    backend->run_step(problem.batch(), ids, layer.body(*kv));
    EXPECT_EQ(emulation::num_graph_launches() - started, graphs ? 1 : 0);
    EXPECT_TRUE(backend->status());
    EXPECT_NE(layer.outcome(*kv).out[0], -7.0f);
  }
}

// Rehearsals, of prompts too: nothing is written, and nothing attended to.
TEST_F(CudaFilledSteps, RowsWithoutASlotTouchNothing) {
  const Shape shape = testing::odd_shape();
  const auto backend = emulated_backend(shape);
  OneLayer layer(*backend, shape, TensorType::kQ4_1);
  for (const auto& sequences : {std::vector<SequenceSpec>{{1, 8, 1}, {2, 0, 30}}, decodes(5, 40)}) {
    const PagedProblem problem = make_problem(shape, sequences, {.new_tokens_stored = false});
    PagedBatch batch = problem.batch();
    const std::vector<std::int32_t> slots(batch.slot_mapping.size(), -1), ids(slots.size());
    batch.slot_mapping = slots;
    layer.start_again();
    const auto kv = device_pool(*backend, problem);
    backend->run_step(batch, ids, layer.body(*kv));
    const OneLayer::Outcome outcome = layer.outcome(*kv);
    EXPECT_TRUE(outcome.pool == problem.pool);
    EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), -7.0f), std::ssize(outcome.out));
    EXPECT_NE(outcome.q[0], -7.0f);
  }
  EXPECT_TRUE(backend->status());
}

// Those of a batch, and those that the backend keeps of every position, of layers of both kinds.
TEST_F(CudaFilledSteps, KeptAnglesGiveTheSameBitsAndAreNotSent) {
  for (const Rotations rotations : {Rotations::kGlobal, Rotations::kLocal}) {
    Shape shape = testing::odd_shape();
    shape.attention.rotations = rotations;
    const auto backend = emulated_backend(shape);
    OneLayer layer(*backend, shape, TensorType::kQ4_1);
    const std::int32_t num_kept = backend->num_kept_rotations();
    ASSERT_EQ(num_kept, step_shape(shape).max_context_len);
    const std::vector<float> of_positions = make_problem(shape, {{1, 0, num_kept}}, {}).rotations;
    const std::vector<float> others(of_positions.size(), 0.5f);
    const bool is_local = rotations == Rotations::kLocal;
    for (const auto& sequences : {std::vector<SequenceSpec>{{1, 8, 2}, {2, 0, 30}}, decodes(3, 60)}) {
      const PagedProblem problem = make_problem(shape, sequences, {.new_tokens_stored = false});
      const std::vector<std::int32_t> ids(static_cast<std::size_t>(problem.num_rows()));
      std::vector<OneLayer::Outcome> outcomes;
      std::vector<std::int64_t> bytes;
      for (const bool are_kept : {false, true}) {
        ASSERT_TRUE(backend->reserve_step(step_shape(shape)));  // forgets them
        if (are_kept) {
          ASSERT_TRUE(
              backend->keep_rotations(is_local ? others : of_positions, is_local ? of_positions : others));
        }
        PagedBatch batch = problem.batch();
        const std::span<const float> of_rows = are_kept ? std::span<const float>() : batch.rotations;
        batch.rotations = is_local && !are_kept ? std::span(others).first(of_rows.size()) : of_rows;
        batch.local_rotations = of_rows;
        layer.start_again();
        const auto kv = device_pool(*backend, problem);
        const std::int64_t before = emulation::copies_to_device().bytes;
        backend->run_step(batch, ids, layer.body(*kv));
        outcomes.push_back(layer.outcome(*kv));
        bytes.push_back(emulation::copies_to_device().bytes - before);
      }
      EXPECT_TRUE(outcomes[0].pool == outcomes[1].pool);
      EXPECT_FALSE(outcomes[0].pool == problem.pool);
      EXPECT_TRUE(same_first_rows(outcomes[0].q, outcomes[1].q, problem.num_rows() * shape.query_width()));
      EXPECT_GE(bytes[0] - bytes[1], problem.num_rows() * 2 * shape.attention.rotary_dim * 4);
    }
    EXPECT_TRUE(backend->status());
  }
}

// More than 64 MiB of angles are not kept.
TEST_F(CudaFilledSteps, AnglesOfVeryManyPositionsAreNotKept) {
  StepShape shape = step_shape(testing::odd_shape());
  shape.has_local_rotations = false;
  const auto backend = emulated_backend(testing::odd_shape());
  for (const auto& [context, num_kept] : {std::pair(200'000, 200'000), {210'000, 0}}) {
    shape.max_context_len = context;
    ASSERT_TRUE(backend->reserve_step(shape));
    EXPECT_EQ(backend->num_kept_rotations(), num_kept);
  }
}

// Steps of more rows or sequences than are filled up, sequences of few rows far behind others, and where each
// row must not depend on the others prompts.
TEST_F(CudaFilledSteps, OtherStepsAreGivenAsTheyAre) {
  const Shape shape = testing::odd_shape();
  const auto usual = emulated_backend(shape, {}, 600),
             deterministic = emulated_backend(shape, {.deterministic = true}, 600);
  std::vector<SequenceSpec> many = decodes(16, 40);
  many.push_back({30, 0, 2});
  const std::vector<SequenceSpec> few_rows_last = {{1, 0, 400}, {2, 40, 1}}, small = {{1, 8, 2}, {2, 15, 1}};
  for (const auto& [backend, sequences] : {std::pair(usual.get(), decodes(33, 40)),
                                           {usual.get(), {{1, 0, 513}}},
                                           {usual.get(), many},
                                           {usual.get(), few_rows_last},
                                           {deterministic.get(), small}}) {
    const PagedProblem problem = make_problem(shape, sequences, {});
    const PagedBatch given = problem.batch();
    std::int32_t seen = 0;
    const std::vector<std::int32_t> ids(static_cast<std::size_t>(given.num_tokens));
    backend->run_step(given, ids, [&](const PagedBatch& batch, std::span<const std::int32_t> token_ids) {
      seen = batch.num_tokens;
      EXPECT_EQ(batch.slot_mapping.data(), given.slot_mapping.data());
      EXPECT_EQ(token_ids.data(), ids.data());
    });
    EXPECT_EQ(seen, given.num_tokens);
  }
}

}  // namespace
}  // namespace octavo::kernels::cuda
