// Tokens drawn by the backend, alone and in whole engines: those that the host draws from the logits that the
// same device gives, and nothing else comes back.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "tests/cuda/device_problem.h"
#include "tests/cuda/device_sampler.h"
#include "tests/cuda/tiny_engines.h"
#include "tests/kernels/attention_claims.h"
#include "tests/kernels/operation_claims.h"
#include "tests/runner/direct_steps.h"
#include "tests/runner/sampler_comparison.h"

// Linked with the helpers; octavo_cuda_tests makes them of the emulated device.
namespace octavo::kernels::testing {
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(AttentionClaims);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(OperationClaims);
}  // namespace octavo::kernels::testing

namespace octavo {
namespace {

using kernels::DrawnToken;
using kernels::TokenDraw;

constexpr std::int64_t kWidth = 64, kVocabulary = 333, kRows = 20, kRowsTogether = 8, kMostDraws = 24;
constexpr std::int32_t kMostAdjusted = 2000;

// An output head and the rows that it is asked about.
class Head {
 public:
  Head()
      : source_(kernels::testing::random_matrix(kernels::TensorType::kF16, kVocabulary, kWidth, 4)),
        backend_(kernels::cuda::create_cuda_backend({}, kernels::testing::reference_backend()).value()),
        matrix_(backend_->prepare_matrix(source_.source).value()),
        norm_(*backend_, std::vector<float>(kWidth, 2.0f), kWidth),
        x_(*backend_, kernels::testing::noise_row(5, 0, kRows * kWidth), kWidth) {
    kernels::StepShape shape = kernels::cuda::step_shape(kernels::testing::one_tiny_head(), kVocabulary);
    shape.embedding_length = kWidth;
    shape.num_rows = kMostDraws;
    shape.num_logits_rows = shape.max_num_sequences = kRowsTogether;
    shape.num_adjusted_tokens = kMostAdjusted;
    EXPECT_TRUE(backend_->reserve_step(shape));
  }

  kernels::Backend& backend() { return *backend_; }

  std::vector<DrawnToken> draw(std::span<const std::int32_t> rows, std::span<const TokenDraw> draws,
                               const kernels::LogitAdjustments& adjustments = {}) {
    std::vector<DrawnToken> drawn(draws.size());
    backend_->draw_tokens(head(), x_.view(), rows, draws, drawn, adjustments);
    return drawn;
  }

  // Gives the sampler a row, from logits in the groups in which draw_tokens() computes them.
  void show_row(std::span<const std::int32_t> rows, std::size_t row, runner::Sampler& sampler) {
    const std::size_t first = row / kRowsTogether * kRowsTogether,
                      count = std::min<std::size_t>(kRowsTogether, rows.size() - first);
    logits_.resize(count * kVocabulary), sums_.resize(count), maxima_.resize(count * kPieces);
    backend_->logits(head(), x_.view(), rows.subspan(first, count),
                     {logits_.data(), static_cast<std::int64_t>(count), kVocabulary, kVocabulary},
                     {.log_sum_exp = sums_, .piece_maxima = maxima_});
    sampler.set_row(std::span(logits_).subspan((row - first) * kVocabulary, kVocabulary),
                    std::span(maxima_).subspan((row - first) * kPieces, kPieces), sums_[row - first]);
  }

 private:
  static constexpr auto kPieces = static_cast<std::size_t>(kernels::num_logits_pieces(kVocabulary));
  kernels::OutputHead head() const { return {.norm = {norm_.span(), 1e-5f}, .matrix = matrix_.get()}; }

  kernels::testing::OwnedMatrix source_;
  std::unique_ptr<kernels::Backend> backend_;
  std::unique_ptr<kernels::Matrix> matrix_;
  kernels::cuda::Rows norm_, x_;
  std::vector<float> logits_, sums_, maxima_;
};

class CudaDraws : public ::testing::Test {
 protected:
  void SetUp() override { emulation::settings().finds_races = false; }
};

// More rows than fit at once, some with several draws, one with more than are taken at once, some with none.
TEST_F(CudaDraws, OfTheBackendAreTheSamplers) {
  Head head;
  std::mt19937_64 random(3);
  const std::vector<std::int32_t> rows = {19, 0, 1, 2, 3, 17, 5, 6, 7, 8, 9, 10, 11, 12, 4, 4, 4, 18};
  std::vector<SamplingParams> params;
  std::vector<scheduler::SampleTarget> targets;
  std::vector<TokenDraw> draws;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const std::size_t count = row == 9 ? 60 : row % 5;
    for (std::size_t i = 0; i < count; ++i) {
      const SamplingParams all = runner::random_params(kVocabulary, random);
      params.push_back(
          {.temperature = all.temperature, .top_p = all.top_p, .top_k = all.top_k, .min_p = all.min_p});
      targets.push_back(
          {.sequence_id = {1}, .output_index = static_cast<std::uint32_t>(i), .seed = random()});
      draws.push_back(*runner::Sampler::backend_draw(params.back(), targets.back()));
      draws.back().row = static_cast<std::int32_t>(row);
    }
  }
  const std::vector<DrawnToken> drawn = head.draw(rows, draws);
  const auto host = kernels::create_backend({.threads = 1}).value();
  runner::Sampler sampler(kVocabulary, {}, *host);
  for (std::size_t i = 0; i < draws.size(); ++i) {
    head.show_row(rows, static_cast<std::size_t>(draws[i].row), sampler);
    const runner::SampledToken expected = sampler.sample(params[i], {}, targets[i]);
    EXPECT_EQ(drawn[i].token_id, expected.token_id) << i;
    EXPECT_EQ(drawn[i].logprob, expected.logprob) << i;
  }
  EXPECT_TRUE(head.backend().status());
}

// As many rows and draws as above; every third row is left as it is, the others have lists of their own, one
// of the whole vocabulary. The same call twice: nothing of the first is left.
TEST_F(CudaDraws, FromAdjustedRowsAreTheSamplers) {
  Head head;
  std::mt19937_64 random(6);
  const std::vector<std::int32_t> rows = {19, 0, 1, 2, 3, 17, 5, 6, 7, 8, 9, 10, 11, 12, 4, 4, 4, 18};
  const auto host = kernels::create_backend({.threads = 1}).value();
  runner::Sampler sampler(kVocabulary, runner::kEndTokens, *host);
  std::vector<runner::History> histories;
  std::vector<SamplingParams> params;
  std::vector<scheduler::SampleTarget> targets;
  std::vector<TokenDraw> draws;
  std::vector<kernels::RowAdjustment> row_adjustments;
  std::vector<kernels::LogitAdjustment> tokens;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const std::vector<float> any(kVocabulary, 0.0f);
    histories.push_back(runner::random_history(any, random));
    if (row == 12) {
      for (TokenId id = 0; id < kVocabulary; ++id) histories.back().prompt.push_back(id);
    }
  }
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const std::size_t first_token = tokens.size();
    SamplingParams each = runner::random_params(kVocabulary, random);
    each.repetition_penalty = row % 3 == 0 ? 1.0 : 1.3;
    if (row % 3 == 0)
      each.frequency_penalty = each.presence_penalty = each.min_tokens = 0, each.logit_bias.clear();
    for (std::size_t i = 0; i < (row == 9 ? 60 : 1 + row % 4); ++i) {
      const SamplingParams filters = runner::random_params(kVocabulary, random);
      each.temperature = filters.temperature, each.top_p = filters.top_p;
      each.top_k = filters.top_k, each.min_p = filters.min_p;
      params.push_back(each);
      targets.push_back(histories[row].target(random));
      draws.push_back(*runner::Sampler::backend_draw(each, targets.back()));
      draws.back().row = static_cast<std::int32_t>(row);
    }
    sampler.append_adjustments(each, histories[row].prompt, targets.back(), tokens);
    if (tokens.size() == first_token) continue;
    row_adjustments.push_back({.row = static_cast<std::int32_t>(row),
                               .first_token = static_cast<std::int32_t>(first_token),
                               .num_tokens = static_cast<std::int32_t>(tokens.size() - first_token),
                               .penalties = runner::Sampler::penalties_of(each)});
  }
  ASSERT_EQ(row_adjustments.size(), 12u);
  ASSERT_LE(tokens.size(), static_cast<std::size_t>(kMostAdjusted));
  std::vector<std::vector<DrawnToken>> drawn;
  for (int call = 0; call < 2; ++call)
    drawn.push_back(head.draw(rows, draws, {.rows = row_adjustments, .tokens = tokens}));
  for (std::size_t i = 0; i < draws.size(); ++i) {
    const auto row = static_cast<std::size_t>(draws[i].row);
    if (i == 0 || draws[i].row != draws[i - 1].row) head.show_row(rows, row, sampler);
    const runner::SampledToken expected = sampler.sample(params[i], histories[row].prompt, targets[i]);
    for (const std::vector<DrawnToken>& each : drawn) {
      EXPECT_EQ(each[i].token_id, expected.token_id) << i;
      EXPECT_EQ(each[i].logprob, expected.logprob) << i;
    }
  }
  EXPECT_TRUE(head.backend().status());
}

// What the host has to draw is what a token alone does not say.
TEST_F(CudaDraws, AreLeftToTheHostWhereTheyNeedMore) {
  const scheduler::SampleTarget target{.sequence_id = {1}, .seed = 9};
  const auto is_left = [&](const SamplingParams& params) {
    return !runner::Sampler::backend_draw(params, target).has_value();
  };
  EXPECT_FALSE(is_left({}));
  EXPECT_FALSE(is_left({.temperature = 0.0, .stop_token_ids = {3}}));
  EXPECT_FALSE(is_left({.top_p = 0.5, .top_k = 7, .min_p = 0.1}));
  EXPECT_FALSE(is_left({.presence_penalty = 0.5, .repetition_penalty = 1.1, .min_tokens = 1}));
  EXPECT_FALSE(is_left({.logit_bias = {{4, 1.0}}}));
  EXPECT_TRUE(is_left({.logprobs = 1}));
  EXPECT_FALSE(runner::Sampler::backend_draw({}, {.sequence_id = {1}, .num_candidates = 4}).has_value());
}

// Each call of a draw fails once: no token, and an error that stays.
TEST_F(CudaDraws, OfADeviceThatFailsAreNone) {
  const std::vector<std::int32_t> rows = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  const std::vector<TokenDraw> draws = {{.row = 0, .temperature = 0.0},
                                        {.row = 1, .top_p = 0.9, .uniform = 0.5},
                                        {.row = 9, .top_k = 5, .uniform = 0.2}};
  const std::vector<kernels::LogitAdjustment> tokens = {{.token_id = 3, .bias = -4.0}, {.token_id = 7}};
  const std::vector<kernels::RowAdjustment> adjusted = {{.row = 1, .num_tokens = 2}};
  const kernels::LogitAdjustments adjustments = {.rows = adjusted, .tokens = tokens};
  std::int64_t num_calls = 0;
  {
    Head head;
    const std::int64_t begin = emulation::num_calls();
    for (const DrawnToken& each : head.draw(rows, draws, adjustments)) EXPECT_GE(each.token_id, 0);
    num_calls = emulation::num_calls() - begin;
  }
  ASSERT_GT(num_calls, 21);
  for (std::int64_t call = 0; call < num_calls; ++call) {
    Head head;
    emulation::fail_call(call, cudaErrorLaunchFailure);
    for (const DrawnToken& each : head.draw(rows, draws, adjustments)) {
      EXPECT_EQ(each.token_id, -1) << call;
      EXPECT_TRUE(std::isnan(each.logprob)) << call;
    }
    const auto status = head.backend().status();
    ASSERT_FALSE(status.has_value()) << call;
    EXPECT_EQ(status.error().code, ErrorCode::kDeviceLost);
    emulation::heal();
    SetUp();
  }
}

std::vector<GenerationRequest> mixed_requests() {
  std::vector<GenerationRequest> requests;
  const auto add = [&](const SamplingParams& sampling) {
    GenerationRequest each = request(static_cast<std::int32_t>(requests.size()) + 1,
                                     5 + 7 * static_cast<std::int32_t>(requests.size()), 9);
    each.sampling = sampling;
    each.sampling.seed = 40 + requests.size();
    each.sampling.max_tokens = 9;
    each.sampling.ignore_eos = true;
    requests.push_back(each);
  };
  add({.temperature = 0.0});
  add({.n = 3});
  add({.temperature = 0.7, .top_p = 0.9});
  add({.temperature = 1.3, .top_k = 12});
  add({.min_p = 0.05});
  add({.temperature = 1.1, .top_p = 0.95, .top_k = 40, .min_p = 0.01});
  add({.repetition_penalty = 1.2, .min_tokens = 4});
  add({.n = 2, .temperature = 1.4, .top_p = 0.9, .presence_penalty = 1.5, .frequency_penalty = 0.75});
  add({.temperature = 0.0, .frequency_penalty = 2.0, .logit_bias = {{7, 8.0}, {9, 7.5}, {200, -100.0}}});
  return requests;
}

TEST_F(CudaDraws, OfEnginesAreWhatTheHostDrawsFromTheSameLogits) {
  EngineOptions options = small_options(kernels::TensorType::kQ4_1);
  options.deterministic = true;
  const auto engine = open_engine(options, Device::kCuda);
  ASSERT_NE(engine, nullptr);
  std::vector<GenerationRequest> by_host = mixed_requests();
  for (GenerationRequest& each : by_host) each.sampling.logprobs = 1;
  const auto drawn = run_together(*engine, mixed_requests()), expected = run_together(*engine, by_host);
  EXPECT_EQ(tokens_of(drawn), tokens_of(expected));
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    for (std::size_t k = 0; k < drawn[i].outputs.size(); ++k)
      EXPECT_EQ(drawn[i].outputs[k].logprobs, expected[i].outputs[k].logprobs) << i;
  }
}

TEST_F(CudaDraws, OfEnginesAreTheReferences) {
  const EngineOptions options = small_options(kernels::TensorType::kQ4_1);
  const auto device = open_engine(options, Device::kCuda), reference = open_reference(options);
  ASSERT_NE(device, nullptr);
  EXPECT_EQ(tokens_of(run_together(*device, mixed_requests())),
            tokens_of(run_together(*reference, mixed_requests())));
}

TEST_F(CudaDraws, OfDraftsAreThoseOfStepsOfOneToken) {
  EngineOptions options = small_options(kernels::TensorType::kQ4_1);
  options.deterministic = true;
  const auto one_by_one = open_engine(options, Device::kCuda);
  options.speculative = Speculation::kNgram;
  const auto with_drafts = open_engine(options, Device::kCuda);
  ASSERT_NE(one_by_one, nullptr);
  ASSERT_NE(with_drafts, nullptr);
  std::vector<GenerationRequest> requests;
  for (std::int32_t i = 0; i < 3; ++i) {
    GenerationRequest each = request(i, 12, 40);
    auto& ids = std::get<TokenPrompt>(each.prompt).token_ids;
    for (std::size_t k = 0; k < ids.size(); ++k)
      ids[k] = 5 + static_cast<TokenId>(k % 3);  // what repeats is guessed
    each.sampling.temperature = i == 0 ? 0.0 : 0.3;
    each.sampling.seed = static_cast<std::uint64_t>(i);
    if (i == 2) each.sampling.repetition_penalty = 0.8, each.sampling.frequency_penalty = -0.125;
    requests.push_back(each);
  }
  const auto expected = run_together(*one_by_one, requests), drawn = run_together(*with_drafts, requests);
  EXPECT_EQ(tokens_of(drawn), tokens_of(expected));
  std::int32_t num_accepted = 0;
  for (const RequestOutput& output : drawn) num_accepted += output.metrics.num_accepted_tokens;
  EXPECT_GT(num_accepted, 0);
  EXPECT_GT(drawn[2].metrics.num_accepted_tokens, 0) << "of the one with penalties";
}

runner::DirectSequence some_sequence(std::int64_t id, std::size_t num_tokens, const SamplingParams& sampling,
                                     runner::BlockDealer& dealer) {
  runner::DirectSequence sequence{
      .sequence_id = {static_cast<std::uint64_t>(id)},
      .token_ids =
          std::get<TokenPrompt>(
              request(static_cast<std::int32_t>(id), static_cast<std::int32_t>(num_tokens), 1).prompt)
              .token_ids,
      .num_prompt_tokens = num_tokens,
      .sampling = sampling,
      .seed = static_cast<std::uint64_t>(id)};
  sequence.block_table = dealer.take_for(32);
  return sequence;
}

std::unique_ptr<runner::ModelRunner> open_runner(std::int32_t num_adjusted_tokens) {
  EngineOptions options = small_options(kernels::TensorType::kQ4_1);
  runner::RunnerParts parts = runner::make_parts(options.model, options, runner::BackendChoice::kReference);
  parts.plan.step_shape.num_adjusted_tokens = num_adjusted_tokens;
  parts.backend =
      kernels::cuda::create_cuda_backend({.activation = parts.plan.activation, .deterministic = true},
                                         kernels::testing::reference_backend())
          .value();
  return runner::ModelRunner::load(std::move(parts)).value();
}

constexpr std::int32_t kBlockSize = 8;  // small_options()

// A draft that goes wrong somewhere, which the device draws; rows that the host draws; one row with three
// targets: in one step, in the scheduler's order, each token that of a step of its own. The draft and the
// targets have penalties, of as many tokens as there is room for, or of more: then the host draws some of
// them.
void expect_order_of_targets(std::int32_t num_adjusted_tokens) {
  const auto runner = open_runner(num_adjusted_tokens);
  runner::BlockDealer dealer(64, kBlockSize, 1);
  runner::DirectSequence draft = some_sequence(
      10, 9, {.temperature = 1.2, .top_p = 0.95, .presence_penalty = 1.0, .frequency_penalty = 0.5}, dealer);
  const runner::DirectSequence watched = some_sequence(20, 12, {.logprobs = 2, .prompt_logprobs = 0}, dealer);
  const runner::DirectSequence parallel =
      some_sequence(30, 7, {.n = 3, .temperature = 1.5, .repetition_penalty = 1.2, .min_tokens = 3}, dealer);
  const auto run = [&](std::vector<scheduler::ScheduledSequence> sequences) {
    scheduler::SchedulerOutput step;
    step.sequences = std::move(sequences);
    return runner::execute(*runner, step);
  };
  constexpr std::size_t kDrawn = 5, kFirst = 10;  // the first is known, the others are guessed
  std::vector<TokenId> alone;
  while (alone.size() < kDrawn) {
    alone.push_back(run({runner::scheduled(draft, draft.token_ids.size() - draft.num_computed_tokens)})
                        .tokens.at(0)
                        .token_id);
    draft.num_computed_tokens = draft.token_ids.size();
    draft.token_ids.push_back(alone.back());
  }
  const runner::RunnerOutput watched_alone = run({runner::scheduled(watched, 12)});
  const runner::RunnerOutput parallel_alone = run({runner::scheduled(parallel, 7, 3)});
  ASSERT_EQ(watched_alone.prompt_logprobs.size(), 11u);
  for (std::size_t wrong = 0; wrong < kDrawn; ++wrong) {
    runner::DirectSequence guessed = draft;
    if (wrong + 1 < kDrawn) guessed.token_ids[kFirst + wrong] ^= 1;
    const runner::RunnerOutput output =
        run({runner::scheduled(watched, 12), runner::draft_of(guessed, kFirst, kDrawn - 1),
             runner::scheduled(parallel, 7, 3)});
    ASSERT_EQ(output.tokens.size(), 1 + (wrong + 1) + 3) << wrong;
    EXPECT_EQ(output.tokens[0].token_id, watched_alone.tokens[0].token_id);
    EXPECT_EQ(output.tokens[0].top_logprobs.size(), 2u);
    EXPECT_EQ(output.prompt_logprobs.size(), 11u);
    for (std::size_t i = 0; i <= wrong; ++i) {
      EXPECT_EQ(output.tokens[1 + i].sequence_id, draft.sequence_id);
      if (i + 1 == kDrawn) continue;  // nobody has drawn it before
      EXPECT_EQ(output.tokens[1 + i].token_id, alone[1 + i]) << wrong << " " << i;
    }
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(output.tokens[2 + wrong + i].sequence_id, parallel_alone.tokens[i].sequence_id);
      EXPECT_EQ(output.tokens[2 + wrong + i].token_id, parallel_alone.tokens[i].token_id);
      EXPECT_EQ(output.tokens[2 + wrong + i].logprob, parallel_alone.tokens[i].logprob);
    }
  }
}

TEST_F(CudaDraws, ComeInTheOrderOfTheTargetsWhoeverDraws) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const std::int32_t num_adjusted_tokens : {4096, 40, 12, 0}) {
    const std::int64_t begin = emulation::copies_to_host().bytes;
    expect_order_of_targets(num_adjusted_tokens);
    const std::int64_t bytes = emulation::copies_to_host().bytes - begin;
    EXPECT_GT(bytes, num_adjusted_tokens == 4096 ? 0 : least)
        << num_adjusted_tokens << ": the host draws more";
    least = bytes;
  }
}

// Each from a copy of the row, on the device as on the host.
TEST_F(CudaDraws, OfOneRowAfterDifferentTokensArePenalisedForTheirOwn) {
  std::vector<TokenId> by_device;
  for (const std::int32_t num_adjusted_tokens : {4096, 0}) {
    const auto runner = open_runner(num_adjusted_tokens);
    runner::BlockDealer dealer(64, kBlockSize, 1);
    const runner::DirectSequence sequence = some_sequence(
        30, 7, {.n = 4, .temperature = 0.0, .presence_penalty = 2.0, .frequency_penalty = 2.0}, dealer);
    scheduler::SchedulerOutput step;
    step.sequences = {runner::scheduled(sequence, 7, 1)};
    const TokenId best = runner::execute(*runner, step).tokens.at(0).token_id;
    const std::vector<TokenId> often(500, best), other = {best == 5 ? 6 : 5};
    step.sequences = {runner::scheduled(sequence, 7, 4)};
    std::vector<scheduler::SampleTarget>& targets = step.sequences[0].samples;
    targets[1].output_token_ids = often;
    targets[2].output_token_ids = often;
    targets[3].output_token_ids = other;
    const std::int64_t begin = emulation::copies_to_host().bytes;
    std::vector<TokenId> drawn;
    for (const runner::SampledToken& token : runner::execute(*runner, step).tokens)
      drawn.push_back(token.token_id);
    ASSERT_EQ(drawn.size(), 4u);
    EXPECT_EQ(drawn[0], best);
    EXPECT_NE(drawn[1], best);
    EXPECT_EQ(drawn[2], drawn[1]);
    EXPECT_EQ(drawn[3], best);
    if (num_adjusted_tokens == 0) {
      EXPECT_EQ(drawn, by_device);
      continue;
    }
    EXPECT_EQ(emulation::copies_to_host().bytes - begin, 4 * static_cast<std::int64_t>(sizeof(DrawnToken)));
    by_device = drawn;
  }
}

TEST_F(CudaDraws, BringNothingToTheHostButIdsAndLogProbabilities) {
  const EngineOptions options = small_options(kernels::TensorType::kQ4_1);
  const auto engine = open_engine(options, Device::kCuda);
  ASSERT_NE(engine, nullptr);
  std::vector<GenerationRequest> requests = mixed_requests();
  std::int64_t begin = emulation::copies_to_host().bytes;
  std::int64_t num_tokens = 0;
  for (const auto& tokens : tokens_of(run_together(*engine, requests))) num_tokens += std::ssize(tokens);
  EXPECT_EQ(num_tokens, 12 * 9);
  EXPECT_EQ(emulation::copies_to_host().bytes - begin,
            num_tokens * static_cast<std::int64_t>(sizeof(DrawnToken)));

  // Those rows that somebody asks for, and no others.
  requests[2].sampling.logprobs = 1;
  begin = emulation::copies_to_host().bytes;
  tokens_of(run_together(*engine, requests));
  constexpr auto kSize = static_cast<std::int64_t>(test::kTinyVocabularySize);
  const std::int64_t row_bytes =
      (kSize + 1 + kernels::num_logits_pieces(kSize)) * static_cast<std::int64_t>(sizeof(float));
  EXPECT_EQ(emulation::copies_to_host().bytes - begin,
            11 * 9 * static_cast<std::int64_t>(sizeof(DrawnToken)) + 9 * row_bytes);
}

}  // namespace
}  // namespace octavo
