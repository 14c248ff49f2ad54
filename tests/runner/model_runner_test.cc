#include "engine/runner/model_runner.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <fstream>
#include <map>
#include <set>

#include "engine/model/gguf_file.h"
#include "tests/runner/direct_steps.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_models.h"

namespace octavo::runner {
namespace {

using test::kTinyVocabularySize;
using test::TinyLlamaOptions;

std::vector<TokenId> random_token_ids(std::size_t count, std::mt19937_64& random) {
  std::vector<TokenId> token_ids(count);
  for (TokenId& id : token_ids) id = static_cast<TokenId>(3 + random() % (kTinyVocabularySize - 3));
  return token_ids;
}

// All that a runner told about one sequence: every number as its bits, so that a NaN equals itself.
struct Told {
  std::map<std::int32_t, std::uint32_t> prompt_logprobs;  // by position
  std::vector<TokenId> token_ids;
  std::vector<std::vector<std::uint32_t>> distributions;  // log-probability of every token, at each drawn one
  bool operator==(const Told&) const = default;
};

std::uint32_t bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }

std::vector<std::uint32_t> distribution_of(const SampledToken& token) {
  std::vector<std::uint32_t> distribution(kTinyVocabularySize);
  for (const TokenLogprob& entry : token.top_logprobs) {
    distribution[static_cast<std::size_t>(entry.token_id)] = bits_of(entry.logprob);
  }
  return distribution;
}

struct Work {
  std::vector<TokenId> prompt;
  std::uint64_t seed;
};

constexpr std::size_t kNumGenerated = 6;

SamplingParams watched_sampling() {
  return {.temperature = 0.8,
          .top_p = 0.95,
          .repetition_penalty = 1.1,
          .logprobs = kTinyVocabularySize,
          .prompt_logprobs = 0};
}

// Runs all of `works` together, in random chunks of at most `max_chunk` rows and random company, and draws
// kNumGenerated tokens for each.
std::vector<Told> run_together(ModelRunner& runner, const std::vector<Work>& works, std::int32_t block_size,
                               std::size_t max_chunk, std::mt19937_64& random) {
  BlockDealer dealer(4096 / block_size, block_size, random());
  std::vector<DirectSequence> sequences(works.size());
  std::vector<Told> told(works.size());
  for (std::size_t i = 0; i < works.size(); ++i) {
    sequences[i] = {.sequence_id = {i},
                    .token_ids = works[i].prompt,
                    .num_prompt_tokens = works[i].prompt.size(),
                    .sampling = watched_sampling(),
                    .seed = works[i].seed,
                    .block_table = dealer.take_for(works[i].prompt.size() + kNumGenerated)};
  }
  const auto is_done = [](const Told& t) { return t.token_ids.size() == kNumGenerated; };
  while (!std::all_of(told.begin(), told.end(), is_done)) {
    scheduler::SchedulerOutput step;
    for (std::size_t i = 0; i < works.size(); ++i) {
      if (is_done(told[i]) || (works.size() > 1 && random() % 4 == 0)) continue;
      const std::size_t left = sequences[i].token_ids.size() - sequences[i].num_computed_tokens;
      step.sequences.push_back(scheduled(sequences[i], 1 + random() % std::min(left, max_chunk)));
    }
    const RunnerOutput output = execute(runner, step);
    for (const PromptLogprob& value : output.prompt_logprobs) {
      told[value.sequence_id.value].prompt_logprobs[value.position] = bits_of(value.logprob);
    }
    for (const scheduler::ScheduledSequence& scheduled : step.sequences) {
      sequences[scheduled.sequence_id.value].num_computed_tokens += scheduled.token_ids.size();
    }
    for (const SampledToken& token : output.tokens) {
      Told& mine = told[token.sequence_id.value];
      mine.token_ids.push_back(token.token_id);
      mine.distributions.push_back(distribution_of(token));
      sequences[token.sequence_id.value].token_ids.push_back(token.token_id);
    }
  }
  return told;
}

class TinyModel : public ::testing::Test {
 protected:
  void write(const TinyLlamaOptions& options, std::uint64_t seed = 1) {
    test::make_tiny_llama(seed, options).write(path());
  }
  std::filesystem::path path() const { return folder_ / "model.gguf"; }

  static EngineOptions options(std::int32_t block_size = 16, std::int32_t threads = 1,
                               ActivationType activation = ActivationType::kAuto) {
    return {.threads = threads,
            .activation_dtype = activation,
            .block_size = block_size,
            .num_kv_blocks = 4096 / block_size};
  }

  test::TemporaryFolder folder_;
};

using ModelRunnerTest = TinyModel;

TEST_F(ModelRunnerTest, GivesTheSameBitsInAnyChunksCompanyBlockSizeAndThreads) {
  constexpr std::pair<ActivationType, KvCacheType> kCases[] = {{ActivationType::kF32, KvCacheType::kF16},
                                                               {ActivationType::kInt16, KvCacheType::kF16},
                                                               {ActivationType::kInt8, KvCacheType::kF16},
                                                               {ActivationType::kInt8, KvCacheType::kInt8},
                                                               {ActivationType::kF32, KvCacheType::kFp8E4m3}};
  for (const auto& [activation, kv_type] : kCases) {
    write({.weight_type = kernels::TensorType::kQ4_1, .biases = true});
    const auto with = [&, activation = activation, kv_type = kv_type](std::int32_t block_size,
                                                                      std::int32_t threads) {
      EngineOptions chosen = options(block_size, threads, activation);
      chosen.kv_cache_dtype = kv_type;
      return chosen;
    };
    std::mt19937_64 random(17);
    std::vector<Work> works;
    for (const std::size_t length : {1u, 2u, 15u, 16u, 17u, 70u, 200u}) {
      works.push_back({random_token_ids(length, random), random()});
    }
    std::vector<Told> alone;
    const auto plain = load_runner(path(), with(16, 1));
    for (const Work& work : works) alone.push_back(run_together(*plain, {work}, 16, 1000, random).front());

    struct Variation {
      std::int32_t block_size, threads;
      std::size_t max_chunk;
    };
    for (const Variation& variation :
         {Variation{16, 1, 1000}, Variation{16, 2, 7}, Variation{1, 2, 40}, Variation{8, 3, 1},
          Variation{32, 2, 33}, Variation{7, 1, 16}, Variation{256, 2, 64}}) {
      const auto runner = load_runner(path(), with(variation.block_size, variation.threads));
      const std::vector<Told> together =
          run_together(*runner, works, variation.block_size, variation.max_chunk, random);
      for (std::size_t i = 0; i < works.size(); ++i) {
        ASSERT_EQ(alone[i].prompt_logprobs.size(), works[i].prompt.size() - 1);
        EXPECT_EQ(alone[i].token_ids, together[i].token_ids)
            << "prompt of " << works[i].prompt.size() << ", blocks of " << variation.block_size
            << ", threads " << variation.threads << ", chunks of " << variation.max_chunk;
        EXPECT_TRUE(alone[i] == together[i]) << "log-probabilities, prompt of " << works[i].prompt.size()
                                             << ", blocks of " << variation.block_size;
      }
    }
  }
}

TEST_F(ModelRunnerTest, WithTheCacheEqualsRecomputingEverythingAtEveryStep) {
  write({.weight_type = kernels::TensorType::kQ8_0});
  std::mt19937_64 random(23);
  const auto runner = load_runner(path(), options());
  const Work work{random_token_ids(30, random), 5};
  const Told cached = run_together(*runner, {work}, 16, 1000, random).front();
  DirectSequence again{.sequence_id = {0},
                       .token_ids = work.prompt,
                       .num_prompt_tokens = work.prompt.size(),
                       .sampling = watched_sampling(),
                       .seed = 5};
  for (std::size_t i = 0; i < kNumGenerated; ++i) {
    again.block_table = BlockDealer(256, 16, i).take_for(again.token_ids.size());
    scheduler::SchedulerOutput step;
    step.sequences.push_back(scheduled(again, again.token_ids.size()));
    const RunnerOutput output = execute(*runner, step);
    ASSERT_EQ(output.tokens.size(), 1u);
    EXPECT_EQ(output.tokens[0].token_id, cached.token_ids[i]);
    EXPECT_EQ(distribution_of(output.tokens[0]), cached.distributions[i]) << "token " << i;
    again.token_ids.push_back(output.tokens[0].token_id);
  }
}

TEST_F(ModelRunnerTest, DrawsEveryTargetOfASharedRowFromItsOwnStream) {
  write({});
  std::mt19937_64 random(29);
  const auto runner = load_runner(path(), options());
  DirectSequence sequence{.sequence_id = {100},
                          .token_ids = random_token_ids(20, random),
                          .num_prompt_tokens = 20,
                          .sampling = {.n = 16, .temperature = 30.0},
                          .seed = 77};
  sequence.block_table = BlockDealer(256, 16, 1).take_for(20);
  scheduler::SchedulerOutput step;
  step.sequences.push_back(scheduled(sequence, 20, 16));
  const RunnerOutput together = execute(*runner, step);
  ASSERT_EQ(together.tokens.size(), 16u);
  std::set<TokenId> different;
  for (std::uint32_t index = 0; index < 16; ++index) {
    scheduler::SchedulerOutput single;
    single.sequences.push_back(scheduled(sequence, 20, 16));
    const scheduler::SampleTarget target = single.sequences[0].samples[index];
    single.sequences[0].samples = {target};
    const RunnerOutput alone = execute(*runner, single);
    EXPECT_EQ(alone.tokens.at(0).token_id, together.tokens[index].token_id);
    EXPECT_EQ(together.tokens[index].sequence_id, SequenceId{100 + index});
    different.insert(together.tokens[index].token_id);
  }
  EXPECT_GT(different.size(), 4u) << "at this temperature, sixteen streams do not agree";
}

TEST_F(ModelRunnerTest, ADraftDrawsWhatStepsOfOneTokenDrawUpToItsFirstWrongGuess) {
  write({});
  std::mt19937_64 random(31);
  const auto runner = load_runner(path(), options());
  DirectSequence sequence{.sequence_id = {7},
                          .token_ids = random_token_ids(20, random),
                          .num_prompt_tokens = 20,
                          .sampling = watched_sampling(),
                          .seed = 5};
  sequence.sampling.prompt_logprobs.reset();
  sequence.block_table = BlockDealer(256, 16, 1).take_for(32);
  std::vector<SampledToken> alone;
  while (alone.size() < kNumGenerated) {
    scheduler::SchedulerOutput step;
    step.sequences.push_back(scheduled(sequence, sequence.token_ids.size() - sequence.num_computed_tokens));
    alone.push_back(execute(*runner, step).tokens.at(0));
    sequence.num_computed_tokens = sequence.token_ids.size();
    sequence.token_ids.push_back(alone.back().token_id);
  }
  // Behind the first drawn token: all others as guesses, one of them wrong, or none.
  const std::size_t num_drafted = kNumGenerated - 1;
  for (std::size_t wrong = 0; wrong <= num_drafted; ++wrong) {
    DirectSequence guessed = sequence;
    if (wrong < num_drafted) guessed.token_ids[21 + wrong] ^= 1;
    scheduler::SchedulerOutput step;
    step.sequences.push_back(draft_of(guessed, 21, num_drafted));
    const RunnerOutput output = execute(*runner, step);
    ASSERT_EQ(output.tokens.size(), wrong + 1);
    for (std::size_t i = 0; i < std::min(output.tokens.size(), num_drafted); ++i) {
      EXPECT_EQ(output.tokens[i].token_id, alone[1 + i].token_id);
      EXPECT_EQ(distribution_of(output.tokens[i]), distribution_of(alone[1 + i]));
    }
  }
}

TEST_F(ModelRunnerTest, GivesPromptLogprobsOnlyWhenAskedAndOnlyWithinThePrompt) {
  write({});
  std::mt19937_64 random(31);
  const auto runner = load_runner(path(), options());
  BlockDealer dealer(256, 16, 1);
  for (const bool asked : {false, true}) {
    // As after a preemption: prompt and output are computed again, as one.
    DirectSequence sequence{.sequence_id = {1},
                            .token_ids = random_token_ids(90, random),
                            .num_prompt_tokens = 81,
                            .sampling = {}};
    if (asked) sequence.sampling.prompt_logprobs = 0;
    sequence.block_table = dealer.take_for(90);
    std::vector<std::int32_t> positions;
    for (const std::size_t chunk : {33u, 31u, 26u}) {
      scheduler::SchedulerOutput step;
      step.sequences.push_back(scheduled(sequence, chunk));
      for (const PromptLogprob& value : execute(*runner, step).prompt_logprobs) {
        positions.push_back(value.position);
        EXPECT_LT(value.logprob, 0.0f);
      }
      sequence.num_computed_tokens += chunk;
    }
    std::vector<std::int32_t> expected;
    for (std::int32_t position = 1; asked && position < 81; ++position) expected.push_back(position);
    EXPECT_EQ(positions, expected);
  }
}

TEST_F(ModelRunnerTest, CopiesBlocksBeforeItWritesAndLeavesTheSourceAlone) {
  write({});
  std::mt19937_64 random(37);
  const auto runner = load_runner(path(), options());
  const std::vector<TokenId> prompt = random_token_ids(24, random);
  const auto continued = [&](TokenId next, std::vector<BlockId> table,
                             std::vector<scheduler::BlockCopyOp> copies) {
    DirectSequence sequence{.sequence_id = {1},
                            .token_ids = prompt,
                            .num_prompt_tokens = 24,
                            .sampling = watched_sampling(),
                            .block_table = std::move(table)};
    sequence.num_computed_tokens = 24;
    sequence.token_ids.push_back(next);
    scheduler::SchedulerOutput step;
    step.block_copies = std::move(copies);
    step.sequences.push_back(scheduled(sequence, 1));
    return distribution_of(execute(*runner, step).tokens.at(0));
  };
  DirectSequence first{
      .sequence_id = {1}, .token_ids = prompt, .num_prompt_tokens = 24, .block_table = {{5}, {9}}};
  scheduler::SchedulerOutput step;
  step.sequences.push_back(scheduled(first, 24));
  execute(*runner, step);

  // The second block is half full. One continuation writes into a copy of it, the other into the block
  // itself.
  const auto in_copy = continued(50, {{5}, {3}}, {{.source = {9}, .target = {3}}});
  const auto in_place = continued(60, {{5}, {9}}, {});
  EXPECT_EQ(continued(50, {{5}, {9}}, {}), in_copy) << "the copy had what the block holds";
  EXPECT_EQ(continued(60, {{5}, {3}}, {}), in_place) << "writing beside it did not change the shared part";
  EXPECT_NE(in_copy, in_place);
}

// One prompt in the pool of a runner, and what comes after it.
class SwappedPrompt {
 public:
  SwappedPrompt(ModelRunner& runner, std::uint64_t seed)
      : runner_(runner), random_(seed), prompt_(random_token_ids(24, random_)) {}

  // Computes the prompt (or another one of its length) into these blocks.
  void fill(std::vector<BlockId> table, bool with_another = false) {
    DirectSequence sequence{.sequence_id = {1},
                            .token_ids = with_another ? random_token_ids(24, random_) : prompt_,
                            .num_prompt_tokens = 24,
                            .block_table = std::move(table)};
    scheduler::SchedulerOutput step;
    step.sequences.push_back(scheduled(sequence, 24));
    execute(runner_, step);
  }

  // Distribution after one more token, the prompt's KV being in these blocks when `step` has made its moves.
  std::vector<std::uint32_t> go_on(std::vector<BlockId> table, scheduler::SchedulerOutput step = {}) {
    DirectSequence sequence{.sequence_id = {1},
                            .token_ids = prompt_,
                            .num_prompt_tokens = 24,
                            .sampling = watched_sampling(),
                            .block_table = std::move(table),
                            .num_computed_tokens = 24};
    sequence.token_ids.push_back(50);
    step.sequences.push_back(scheduled(sequence, 1));
    return distribution_of(execute(runner_, step).tokens.at(0));
  }

 private:
  ModelRunner& runner_;
  std::mt19937_64 random_;
  std::vector<TokenId> prompt_;
};

constexpr KvCacheType kEveryKvCacheType[] = {KvCacheType::kF32,     KvCacheType::kF16,
                                             KvCacheType::kBf16,    KvCacheType::kInt8,
                                             KvCacheType::kFp8E4m3, KvCacheType::kFp8E5m2};

TEST_F(ModelRunnerTest, WhatWasSwappedOutComesBackToTheLastBit) {
  write({});
  for (const BackendChoice backend : {BackendChoice::kCpu, BackendChoice::kReference}) {
    for (const KvCacheType type : kEveryKvCacheType) {
      EngineOptions with_type = options();
      with_type.kv_cache_dtype = type;
      const auto runner = load_runner(path(), with_type, backend);
      SwappedPrompt prompt(*runner, 37);
      prompt.fill({{5}, {9}});
      const auto expected = prompt.go_on({{5}, {9}});

      scheduler::SchedulerOutput out;  // no rows: the moves are made all the same
      out.swap_outs = {{.device_block = {5}, .host_block = {2}}, {.device_block = {9}, .host_block = {0}}};
      execute(*runner, out);
      prompt.fill({{5}, {9}}, /*with_another=*/true);
      EXPECT_NE(prompt.go_on({{5}, {9}}), expected);

      scheduler::SchedulerOutput in;  // the first block to two places, the second back to its own
      in.swap_ins = {{.device_block = {7}, .host_block = {2}},
                     {.device_block = {9}, .host_block = {0}},
                     {.device_block = {3}, .host_block = {2}}};
      EXPECT_EQ(prompt.go_on({{7}, {9}}, in), expected);
      EXPECT_EQ(prompt.go_on({{3}, {9}}), expected);
    }
  }
}

TEST_F(ModelRunnerTest, SwapsOutThenInThenCopiesThenWrites) {
  write({});
  const auto runner = load_runner(path(), options());
  SwappedPrompt prompt(*runner, 41);
  prompt.fill({{5}, {9}});
  const auto expected = prompt.go_on({{5}, {9}});
  prompt.fill({{20}, {21}}, /*with_another=*/true);
  // Each move reads what the one before wrote, and the row writes into a block that is swapped out before.
  scheduler::SchedulerOutput step;
  step.swap_outs = {{.device_block = {5}, .host_block = {1}}, {.device_block = {9}, .host_block = {3}}};
  step.swap_ins = {{.device_block = {20}, .host_block = {1}}, {.device_block = {21}, .host_block = {3}}};
  step.block_copies = {{.source = {20}, .target = {11}}, {.source = {21}, .target = {9}}};
  EXPECT_EQ(prompt.go_on({{11}, {9}}, step), expected);
}

// A microsecond passes whenever somebody looks.
class TickingClock final : public Clock {
 public:
  std::int64_t now_us() const override { return now_us_++; }

 private:
  mutable std::int64_t now_us_ = 0;
};

TEST_F(ModelRunnerTest, TellsHowLongItsSwapsTook) {
  write({});
  RunnerParts parts = make_parts(path(), options(), BackendChoice::kCpu);
  parts.clock = std::make_unique<TickingClock>();
  const auto runner = *ModelRunner::load(std::move(parts));
  const auto times = [&](const scheduler::SchedulerOutput& step) {
    RunnerOutput output;
    output.swap_out_us = output.swap_in_us = 99;  // of a step before
    EXPECT_TRUE(runner->execute(step, output));
    return std::pair(output.swap_out_us, output.swap_in_us);
  };
  const scheduler::BlockSwap swap{.device_block = {1}, .host_block = {1}};
  scheduler::SchedulerOutput out, in;
  out.swap_outs = {swap};
  in.swap_ins = {swap};
  EXPECT_EQ(times({}), std::pair(std::int64_t{0}, std::int64_t{0}));
  EXPECT_EQ(times(out), std::pair(std::int64_t{1}, std::int64_t{0}));
  EXPECT_EQ(times(in), std::pair(std::int64_t{0}, std::int64_t{1}));
}

TEST_F(ModelRunnerTest, GivesABeamItsCandidatesBesideDrawnTokens) {
  write({});
  const auto runner = load_runner(path(), options());
  DirectSequence sequence{.sequence_id = {1},
                          .token_ids = {7, 8, 9},
                          .num_prompt_tokens = 3,
                          .sampling = {.temperature = 0.0, .logprobs = 6},
                          .block_table = {{4}}};
  scheduler::SchedulerOutput step;
  step.sequences.push_back(scheduled(sequence, 3, 2));
  step.sequences[0].samples[1].num_candidates = 6;
  const RunnerOutput output = execute(*runner, step);
  const SampledToken &drawn = output.tokens.at(0), &beam = output.tokens.at(1);
  EXPECT_TRUE(drawn.candidates.empty());
  EXPECT_EQ(beam.token_id, -1);
  ASSERT_EQ(beam.candidates.size(), 6u);
  EXPECT_EQ(beam.candidates[0].token_id, drawn.token_id);
  ASSERT_EQ(beam.top_logprobs.size(), 6u);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(beam.candidates[i].token_id, drawn.top_logprobs[i].token_id);
    EXPECT_EQ(beam.candidates[i].logprob, drawn.top_logprobs[i].logprob);
    EXPECT_EQ(beam.candidates[i].search_logprob, double{drawn.top_logprobs[i].logprob});
    EXPECT_EQ(beam.top_logprobs[i].token_id, drawn.top_logprobs[i].token_id);
  }
}

TEST_F(ModelRunnerTest, FailsOnlyTheTargetsWhoseLogitsAreNotFinite) {
  // The embedding of token 5 holds a NaN; everything else is as it should be.
  write({.tied_output = false});
  {
    const auto file = model::GgufFile::open(path());
    ASSERT_TRUE(file);
    const std::uint64_t offset =
        file->find_tensor("token_embd.weight")->byte_offset + (5 * 64 + 10) * sizeof(float);
    std::fstream raw(path(), std::ios::binary | std::ios::in | std::ios::out);
    const float nan = std::nanf("");
    raw.seekp(static_cast<std::streamoff>(offset)).write(reinterpret_cast<const char*>(&nan), sizeof(nan));
  }
  const auto runner = load_runner(path(), options());
  const auto run = [&](bool with_bad) {
    BlockDealer dealer(256, 16, 3);
    DirectSequence good{.sequence_id = {1},
                        .token_ids = {7, 8, 9, 10},
                        .num_prompt_tokens = 4,
                        .sampling = watched_sampling(),
                        .block_table = dealer.take_for(4)};
    DirectSequence bad = good;
    bad.sequence_id = {2};
    bad.token_ids = {7, 5, 9, 10};
    bad.block_table = dealer.take_for(4);
    scheduler::SchedulerOutput step;
    if (with_bad) step.sequences.push_back(scheduled(bad, 4, 2));
    step.sequences.push_back(scheduled(good, 4));
    return execute(*runner, step);
  };
  const RunnerOutput alone = run(false), mixed = run(true);
  ASSERT_EQ(mixed.tokens.size(), 3u);
  EXPECT_TRUE(mixed.tokens[0].invalid_logits);
  EXPECT_TRUE(mixed.tokens[1].invalid_logits);
  EXPECT_FALSE(mixed.tokens[2].invalid_logits);
  EXPECT_EQ(mixed.tokens[2].token_id, alone.tokens.at(0).token_id);
  EXPECT_EQ(distribution_of(mixed.tokens[2]), distribution_of(alone.tokens[0]));
}

TEST_F(ModelRunnerTest, NeedsItsFileNoMoreOnceItIsLoaded) {
  for (const bool tied : {true, false}) {
    write({.embedding_length = 256, .num_heads = 4, .tied_output = tied});
    const auto runner = load_runner(path(), options());
    DirectSequence sequence{
        .sequence_id = {1}, .token_ids = {200, 201}, .num_prompt_tokens = 2, .block_table = {{0}}};
    scheduler::SchedulerOutput step;
    step.sequences.push_back(scheduled(sequence, 2));
    const auto before = distribution_of(execute(*runner, step).tokens.at(0));
    std::filesystem::resize_file(path(), 4096);
    EXPECT_EQ(distribution_of(execute(*runner, step).tokens.at(0)), before);
    std::filesystem::remove(path());
    EXPECT_EQ(distribution_of(execute(*runner, step).tokens.at(0)), before);
  }
}

// What the plan said before loading, and what a step that fills it does not go beyond.
TEST_F(ModelRunnerTest, WorksInTheMemoryThatWasPlanned) {
  for (const auto type : {kernels::TensorType::kQ4_0, kernels::TensorType::kF32}) {
    write({.weight_type = type, .context_length = 512});
    RunnerParts parts = make_parts(path(), {.threads = 2, .num_kv_blocks = 64, .max_num_batched_tokens = 300},
                                   BackendChoice::kCpu);
    const std::int64_t planned = parts.plan.working_bytes;
    auto runner = *ModelRunner::load(std::move(parts));
    EXPECT_EQ(runner->working_bytes(), planned);
    EngineDescription description;
    runner->describe(description);
    EXPECT_EQ(description.working_bytes, planned);

    std::mt19937_64 random(3);
    BlockDealer dealer(64, 16, 1);
    DirectSequence sequence{.sequence_id = {1},
                            .token_ids = random_token_ids(300, random),
                            .num_prompt_tokens = 300,
                            .sampling = watched_sampling(),
                            .block_table = dealer.take_for(301)};
    scheduler::SchedulerOutput step;
    step.sequences = {scheduled(sequence, 300)};
    RunnerOutput output;
    ASSERT_TRUE(runner->execute(step, output));
    EXPECT_EQ(output.prompt_logprobs.size(), 299u);
    EXPECT_EQ(runner->working_bytes(), planned) << "nothing grew in a step";
  }
}

// Room for what drafts bring to states, and the layer that guesses next tokens.
TEST_F(ModelRunnerTest, WorksInTheMemoryThatWasPlannedForGuessing) {
  for (const char* const name : {"qwen35_odd_sizes", "qwen35moe", "granitehybrid", "lfm2"}) {
    test::make_tiny_model(test::tiny_model(name)).write(path());
    std::int64_t planned_without = 0, uncounted = 0;
    for (const auto speculative : {Speculation::kOff, Speculation::kNgram, Speculation::kMtp}) {
      const bool predicts = std::string(name).starts_with("qwen35");
      if (speculative == Speculation::kMtp && !predicts) continue;
      RunnerParts parts = make_parts(
          path(),
          {.threads = 2, .num_kv_blocks = 16, .max_num_batched_tokens = 50, .speculative = speculative},
          BackendChoice::kCpu);
      const std::int64_t planned = parts.plan.working_bytes;
      const kernels::StateLayout layout = parts.plan.state_layout;
      EXPECT_EQ(layout.num_draft_rows, speculative == Speculation::kOff ? 0 : 7);
      EXPECT_GE(planned, planned_without + layout.draft_bytes()) << name;
      planned_without = planned;
      const auto runner = *ModelRunner::load(std::move(parts));
      // (Experts of few rows take a little less than is planned.)
      if (speculative == Speculation::kOff) uncounted = planned - runner->working_bytes();
      EXPECT_EQ(planned - runner->working_bytes(), uncounted) << name;
    }
    EXPECT_LT(uncounted, 1024) << name;
  }
}

TEST_F(ModelRunnerTest, DescribesWhatItResolved) {
  write({.weight_type = kernels::TensorType::kQ4_0});
  EngineDescription description;
  load_runner(path(), {.threads = 2, .block_size = 8, .num_kv_blocks = 12, .max_model_len = 100})
      ->describe(description);
  EXPECT_EQ(description.device, "cpu");
  EXPECT_EQ(description.threads, 2);
  EXPECT_EQ(description.activation_dtype, ActivationType::kInt16);
  EXPECT_EQ(description.kv_cache_dtype, KvCacheType::kF16);
  EXPECT_EQ(description.block_size, 8);
  EXPECT_EQ(description.num_blocks, 12);
  EXPECT_EQ(description.num_host_blocks, 12);
  EXPECT_EQ(description.notice, "");
  EXPECT_EQ(description.bytes_per_block, 2 * 2 * 2 * 2 * 16 * 8)
      << "K and V, bytes, layers, KV heads, head size, tokens";
  // Two layers and the embedding, tied, in blocks of 32 that take 18 bytes; a backend may keep norms, and pad
  // the vocabulary's rows.
  constexpr std::int64_t kMatrixBytes = (2 * (2 * 64 * 64 + 2 * 32 * 64 + 3 * 64 * 128) + 269 * 64) / 32 * 18;
  EXPECT_GE(description.weight_bytes, kMatrixBytes);
  EXPECT_LE(description.weight_bytes, kMatrixBytes + 5 * 64 * 4 + 8 * 36);
  EXPECT_EQ(description.max_model_len, 100);
  EXPECT_EQ(description.max_blocks_per_sequence(), 13);
  EXPECT_EQ(description.max_num_batched_tokens, 512);

  load_runner(path(), {.kv_cache_dtype = KvCacheType::kInt8, .num_kv_blocks = 12, .swap_space = 1.0})
      ->describe(description);
  EXPECT_EQ(description.kv_cache_dtype, KvCacheType::kInt8);
  EXPECT_EQ(description.bytes_per_block, 2 * 2 * 2 * (16 + 4) * 16)
      << "a scale of 4 bytes for each key and value";
  EXPECT_NE(description.notice.find("12 blocks"), std::string::npos) << description.notice;
}

}  // namespace
}  // namespace octavo::runner
