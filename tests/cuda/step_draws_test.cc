// Draws that are told before a step: sent with its inputs, recorded where every row of a decode step draws,
// and the same as those that are told when they are drawn.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "tests/cuda/device_problem.h"

namespace octavo::kernels::cuda {
namespace {

using testing::OwnedMatrix;
using testing::PagedProblem;
using testing::random_matrix;
using testing::SequenceSpec;
using testing::Shape;

constexpr std::int64_t kVocabulary = 333;

struct Starts {
  std::int64_t graphs, kernels, copies_to_device, copies_to_host;

  static Starts now() {
    return {emulation::num_graph_launches(), emulation::num_single_launches(),
            emulation::copies_to_device().count, emulation::copies_to_host().count};
  }
  Starts operator-(const Starts& other) const {
    return {graphs - other.graphs, kernels - other.kernels, copies_to_device - other.copies_to_device,
            copies_to_host - other.copies_to_host};
  }
};

// A model of an embedding and an output head, which finds many tokens likely: a step's rows are its tokens'.
class TinyModel {
 public:
  TinyModel(TensorType type, const CudaOptions& options)
      : shape_(testing::odd_shape()),
        source_(random_matrix(type, kVocabulary, shape_.embedding_length, 4)),
        head_source_(random_matrix(type, kVocabulary, shape_.embedding_length, 5)),
        backend_(create_cuda_backend(options, testing::reference_backend()).value()),
        matrix_(backend_->prepare_matrix(source_.source).value()),
        head_(backend_->prepare_matrix(head_source_.source).value()),
        norm_(*backend_, std::vector<float>(static_cast<std::size_t>(shape_.embedding_length), 0.2f),
              shape_.embedding_length),
        x_(*backend_, std::vector<float>(static_cast<std::size_t>(kMostRows * shape_.embedding_length)),
           shape_.embedding_length) {
    StepShape step = step_shape(shape_, static_cast<std::int32_t>(kVocabulary));
    step.num_adjusted_tokens = 10;
    EXPECT_TRUE(backend_->reserve_step(step));
  }

  void record() {
    for (const SampleStep& each : backend_->steps_to_record()) {
      const SampleBatch sample(each, 0, kBlockSize, shape_.attention.rotary_dim);
      ASSERT_TRUE(backend_->record_step(sample.batch(), sample.token_ids(), body()));
    }
    ASSERT_TRUE(backend_->record_draws(head(), x_.view()));
  }

  // Sequences with so many rows each. `told`: the draws that are told before.
  std::vector<DrawnToken> draw(const std::vector<std::int32_t>& rows_of_sequences, const StepDraws& told,
                               const StepDraws& draws, const LogitAdjustments& adjustments = {}) {
    std::vector<SequenceSpec> sequences;
    for (const std::int32_t rows : rows_of_sequences) sequences.push_back({sequences.size() + 1, 4, rows});
    const PagedProblem problem = make_problem(shape_, sequences, {.num_layers = 1});
    std::vector<DrawnToken> drawn(draws.draws.size());
    const std::vector<std::int32_t> token_ids = ids(static_cast<std::int32_t>(problem.num_rows()));
    const Starts before = Starts::now();
    backend_->run_step(problem.batch(), token_ids, body(), told);
    backend_->draw_tokens(head(), x_.view(), draws.rows, draws.draws, drawn, adjustments);
    starts_ = Starts::now() - before;
    EXPECT_TRUE(backend_->status());
    return drawn;
  }

  // Of the last draw().
  const Starts& starts() const { return starts_; }

 private:
  static constexpr std::int64_t kMostRows = 256;
  static constexpr std::int32_t kBlockSize = 16;

  static std::vector<std::int32_t> ids(std::int32_t count) {
    std::vector<std::int32_t> ids;
    for (std::int32_t i = 0; i < count; ++i) ids.push_back(i * 31 % static_cast<std::int32_t>(kVocabulary));
    return ids;
  }
  OutputHead head() const { return {.norm = {norm_.span(), 1e-5f}, .matrix = head_.get()}; }
  StepBody body() {
    return [this](const PagedBatch& batch, std::span<const std::int32_t> token_ids) {
      MatrixView rows = x_.view();
      rows.rows = batch.num_tokens;
      backend_->embed({.tokens = matrix_.get()}, token_ids, batch.positions, rows);
    };
  }

  const Shape shape_;
  OwnedMatrix source_, head_source_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Matrix> matrix_, head_;
  Rows norm_, x_;
  Starts starts_{};
};

enum class Way { kBest, kRandom, kBoth };

std::vector<TokenDraw> draws_of(std::int32_t count, Way way, std::mt19937_64& random) {
  std::vector<TokenDraw> draws;
  for (std::int32_t row = 0; row < count; ++row) {
    TokenDraw draw{.row = row, .temperature = 0.0};
    if (way == Way::kRandom || (way == Way::kBoth && row % 2 == 0)) {
      const std::vector<TokenDraw> ways = {{},
                                           {.top_k = 20},
                                           {.top_p = 0.8},
                                           {.min_p = 0.2},
                                           {.top_k = 100, .temperature = 1.5, .top_p = 0.9, .min_p = 0.01}};
      draw = ways[random() % ways.size()];
      draw.row = row;
      draw.uniform = static_cast<double>(random() % 1000) / 1000.0;
    }
    draws.push_back(draw);
  }
  return draws;
}

void expect_same(const std::vector<DrawnToken>& got, const std::vector<DrawnToken>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_GE(got[i].token_id, 0) << i;
    EXPECT_EQ(got[i].token_id, expected[i].token_id) << i;
    EXPECT_EQ(got[i].logprob, expected[i].logprob) << i;
  }
}

std::vector<std::int32_t> first_rows(std::int32_t count) {
  std::vector<std::int32_t> rows(static_cast<std::size_t>(count));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

class StepDrawsTest : public ::testing::Test {
 protected:
  void SetUp() override { emulation::settings().finds_races = false; }
};

// Three rows are filled up to four, in which quantised weights take the same way.
TEST_F(StepDrawsTest, OfADecodeStepAreOneCopyAndTwoGraphs) {
  for (const bool deterministic : {false, true}) {
    TinyModel recorded(TensorType::kQ4_1, {.deterministic = deterministic}),
        started(TensorType::kQ4_1, {.deterministic = deterministic, .graphs = false});
    recorded.record();
    std::mt19937_64 random(7);
    for (const std::int32_t count : {1, 3, 8, 32, 2}) {
      for (const Way way : {Way::kBest, Way::kRandom, Way::kBoth}) {
        SCOPED_TRACE(std::to_string(count) + " rows, way " + std::to_string(static_cast<int>(way)));
        const std::vector<std::int32_t> rows = first_rows(count), one_each(rows.size(), 1);
        const std::vector<TokenDraw> draws = draws_of(count, way, random);
        const StepDraws all{rows, draws};
        const std::vector<DrawnToken> expected = started.draw(one_each, {}, all);
        expect_same(started.draw(one_each, all, all), expected);
        EXPECT_EQ(started.starts().copies_to_device, 1);
        expect_same(recorded.draw(one_each, all, all), expected);
        EXPECT_EQ(recorded.starts().graphs, 2);
        EXPECT_EQ(recorded.starts().kernels, 0);
        EXPECT_EQ(recorded.starts().copies_to_device, 1);
        EXPECT_EQ(recorded.starts().copies_to_host, 1);
      }
    }
  }
}

// Rows of a prompt and of a draft beside decodes: whatever draws once each is recorded.
TEST_F(StepDrawsTest, OfAMixedStepAreOneCopyAndTwoGraphs) {
  TinyModel recorded(TensorType::kQ4_1, {}), started(TensorType::kQ4_1, {.graphs = false});
  recorded.record();
  std::mt19937_64 random(11);
  const std::vector<std::int32_t> sequences = {1, 5, 1, 30};
  for (const std::vector<std::int32_t>& rows :
       {std::vector<std::int32_t>{36}, {0, 6, 36}, {0, 1, 2, 3, 4, 5, 6, 36}, {2, 2, 4}}) {
    for (const Way way : {Way::kBest, Way::kRandom, Way::kBoth}) {
      const std::vector<TokenDraw> draws = draws_of(static_cast<std::int32_t>(rows.size()), way, random);
      const StepDraws all{rows, draws};
      const std::vector<DrawnToken> expected = started.draw(sequences, all, all);
      expect_same(recorded.draw(sequences, all, all), expected);
      EXPECT_EQ(recorded.starts().graphs, 2);
      EXPECT_EQ(recorded.starts().kernels, 0);
      EXPECT_EQ(recorded.starts().copies_to_device, 1);
      EXPECT_EQ(recorded.starts().copies_to_host, 1);
    }
  }
}

// Rows from here and there, some asked for more than once, in more than one group of logits.
TEST_F(StepDrawsTest, OfOtherStepsAreOneCopy) {
  TinyModel model(TensorType::kQ4_1, {.deterministic = true});
  std::mt19937_64 random(8);
  const std::vector<std::int32_t> sequences = {1, 20, 1, 40};
  std::vector<std::int32_t> rows = {0, 20, 21, 61, 61, 5, 7};
  for (std::int32_t row = 8; row < 50; ++row) rows.push_back(row);
  for (const Way way : {Way::kBest, Way::kRandom, Way::kBoth}) {
    std::vector<TokenDraw> draws = draws_of(static_cast<std::int32_t>(rows.size()), way, random);
    if (way != Way::kBest) draws.insert(draws.begin() + 3, draws[2]);
    const StepDraws all{rows, draws};
    const std::vector<DrawnToken> expected = model.draw(sequences, {}, all);
    EXPECT_GT(model.starts().copies_to_device, 1);
    expect_same(model.draw(sequences, all, all), expected);
    EXPECT_EQ(model.starts().copies_to_device, 1);
  }
}

// Of a decode step some rows are left to the host; of more draws than rows nothing is sent before.
TEST_F(StepDrawsTest, OfSomeRowsOfADecodeStepAreTheSame) {
  TinyModel model(TensorType::kQ4_1, {.deterministic = true});
  model.record();
  std::mt19937_64 random(9);
  const std::vector<std::int32_t> one_each(6, 1), first = first_rows(4), some = {1, 2, 5};
  for (const auto& rows : {first, some}) {
    const std::vector<TokenDraw> draws = draws_of(static_cast<std::int32_t>(rows.size()), Way::kBoth, random);
    const StepDraws all{rows, draws};
    expect_same(model.draw(one_each, all, all), model.draw(one_each, {}, all));
  }
}

// What was told is not what is asked for, or something is adjusted.
TEST_F(StepDrawsTest, AreThoseThatAreAskedForInTheEnd) {
  TinyModel model(TensorType::kQ4_1, {.deterministic = true});
  model.record();
  std::mt19937_64 random(10);
  const std::vector<std::int32_t> rows = first_rows(4), one_each(4, 1);
  const std::vector<TokenDraw> told = draws_of(4, Way::kRandom, random),
                               asked = draws_of(4, Way::kBoth, random);
  const std::vector<DrawnToken> expected = model.draw(one_each, {}, {rows, asked});
  expect_same(model.draw(one_each, {rows, told}, {rows, asked}), expected);
  const std::vector<DrawnToken> of_told = model.draw(one_each, {rows, told}, {rows, told});
  EXPECT_FALSE(std::ranges::equal(of_told, expected, {}, &DrawnToken::token_id, &DrawnToken::token_id));
  const std::vector<DrawnToken> usual = model.draw(one_each, {rows, asked}, {rows, asked});
  const std::vector<LogitAdjustment> tokens = {{.token_id = 17, .bias = 1000.0}};
  const std::vector<RowAdjustment> adjusted = {{.row = 1, .first_token = 0, .num_tokens = 1}};
  std::vector<DrawnToken> got =
      model.draw(one_each, {rows, asked}, {rows, asked}, {.rows = adjusted, .tokens = tokens});
  EXPECT_EQ(got[1].token_id, 17);
  got[1] = usual[1];
  expect_same(got, usual);
}

}  // namespace
}  // namespace octavo::kernels::cuda
