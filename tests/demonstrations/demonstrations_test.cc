// What no other engine can show, each as a test on the default model. (The comparison with the paper's memory
// managers is tests/experiments, the one with llama.cpp tests/bench.)

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "tests/demonstrations/mixed_requests.h"
#include "tests/engine/default_model.h"

namespace octavo {
namespace {

TokenPrompt random_prompt(std::uint64_t seed, int length) {
  simulation::Random random(seed);
  TokenPrompt prompt;
  for (int i = 0; i < length; ++i) prompt.token_ids.push_back(random.between(1000, 40000));
  return prompt;
}

SamplingParams greedy(std::int32_t max_tokens) {
  return {.temperature = 0.0, .max_tokens = max_tokens, .ignore_eos = true};
}

std::int64_t num_prefilled_tokens(const Engine& engine) {
  std::int64_t num_tokens = 0;
  for (const StepRecord& step : engine.trace_since(0, 0).steps) num_tokens += step.num_prefill_tokens;
  return num_tokens;
}

// Polls until `done` says so; what came is added to the collector.
template <class Predicate>
void poll_until(Engine& engine, OutputCollector& collector, const Predicate& done) {
  for (bool is_done = false; !is_done;) {
    for (const EngineEvent& event : engine.poll(std::chrono::seconds(1))) {
      collector.add(event);
      is_done = is_done || done(event);
    }
  }
}

BlockDetail look_at(Engine& engine, BlockId block) {
  engine.watch_block(block);
  for (;; engine.poll(std::chrono::milliseconds(1))) {
    const auto snapshot = engine.kv_snapshot(SnapshotScope::kPool);
    if (snapshot && snapshot->watched && snapshot->watched->block == block) return *snapshot->watched;
  }
}

class Demonstration : public testing::Test {
 protected:
  void SetUp() override { OCTAVO_NEEDS_DEFAULT_MODEL(); }
};

TEST_F(Demonstration, Number2TwelveChatsFinishOnAPoolForThree) {
  std::vector<GenerationRequest> chats;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    chats.push_back({.prompt = random_prompt(seed, 60), .sampling = greedy(68)});  // 8 blocks each
  }
  const auto roomy = open_default_model({.num_kv_blocks = 1000, .enable_prefix_caching = false});
  std::vector<RequestOutput> alone;
  for (const GenerationRequest& chat : chats) alone.push_back(run_alone(*roomy, chat));
  for (const PreemptionPolicy mode : {PreemptionPolicy::kSwap, PreemptionPolicy::kRecompute}) {
    const auto tight = open_default_model({.num_kv_blocks = 3 * 8,
                                           .preemption_mode = mode,
                                           .admission_reserve = AdmissionReserve::kOnePercent});
    EXPECT_EQ(first_difference(run_together(*tight, chats), alone), "");
    const KvTotals totals = tight->kv_totals();
    EXPECT_GT(totals.preempted_swap + totals.preempted_recompute, 0);
    EXPECT_LE(totals.peak_used_blocks, 3 * 8);
  }
}

TEST_F(Demonstration, Number3ASecondChatComputesOnlyTheDifferenceWhileTheFirstStillGenerates) {
  const auto engine = open_default_model({.num_kv_blocks = 200});
  const TokenPrompt system = random_prompt(7, 500);
  GenerationRequest first{.prompt = system, .sampling = greedy(200)};
  TokenPrompt longer = system;
  for (const TokenId token : random_prompt(8, 9).token_ids) longer.token_ids.push_back(token);
  GenerationRequest second{.prompt = longer, .sampling = greedy(4)};

  const RequestId first_id = engine->submit(first);
  OutputCollector collector;
  collector.expect(first_id, 1);
  poll_until(*engine, collector,
             [](const EngineEvent& event) { return std::holds_alternative<TokensGenerated>(event); });
  const RequestId second_id = engine->submit(second);
  collector.expect(second_id, 1);
  poll_until(*engine, collector, [&](const EngineEvent& event) {
    const auto* finished = std::get_if<RequestFinished>(&event);
    return finished && finished->request_id == second_id;
  });
  EXPECT_FALSE(collector.done()) << "the first still generates";
  engine->cancel(first_id);
  poll_until(*engine, collector, [&](const EngineEvent&) { return collector.done(); });
  const std::vector<RequestOutput> outputs = collector.take();
  const PromptAccount& account = outputs[1].metrics.prompt;
  EXPECT_EQ(account.num_hit_live, 500 / 16 * 16);
  EXPECT_EQ(account.num_hit_live + account.num_hit_cached + account.num_copied_partial + account.num_computed,
            509);
  EXPECT_LE(account.num_computed, 509 - 496);
  EXPECT_EQ(num_prefilled_tokens(*engine), 500 + account.num_computed);
}

TEST_F(Demonstration, Number4ANewChatThatSharesTheFirstTenthOfALongOneHits) {
  const auto engine = open_default_model({.num_kv_blocks = 200});
  const TokenPrompt old = random_prompt(11, 1000);
  run_alone(*engine, {.prompt = old, .sampling = greedy(1)});
  TokenPrompt fresh = random_prompt(12, 900);
  fresh.token_ids.insert(fresh.token_ids.begin(), old.token_ids.begin(), old.token_ids.begin() + 100);
  const RequestOutput output = run_alone(*engine, {.prompt = fresh, .sampling = greedy(1)});
  // Six full blocks, and the four tokens that the seventh shares.
  EXPECT_EQ(output.num_cached_tokens, 100);
  EXPECT_EQ(output.metrics.prompt.num_copied_partial, 4);
  EXPECT_EQ(output.metrics.prefix_miss.cause, MissCause::kDifferingToken);
  EXPECT_EQ(output.metrics.prefix_miss.position, 100);
}

TEST_F(Demonstration, Number5SixSamplesOfSevenTokensComputeSevenPromptTokens) {
  const auto engine = open_default_model({.num_kv_blocks = 100});
  SamplingParams sampling{.n = 6, .seed = 5, .max_tokens = 8, .ignore_eos = true};
  run_alone(*engine, {.prompt = random_prompt(1, 7), .sampling = sampling});
  EXPECT_EQ(num_prefilled_tokens(*engine), 7);
}

TEST_F(Demonstration, Number6BeamsWithPenaltiesAndSampledChatsShareTheirSteps) {
  SamplingParams beams{.frequency_penalty = 1.5,
                       .repetition_penalty = 1.3,
                       .max_tokens = 24,
                       .ignore_eos = true,
                       .beam_width = 4};
  SamplingParams sampled{.temperature = 0.9, .top_p = 0.9, .seed = 3, .max_tokens = 24, .ignore_eos = true};
  const std::vector<GenerationRequest> requests = {text_request("The best way to learn is", beams),
                                                   text_request("Once upon a time", sampled),
                                                   text_request("In the year 3000,", sampled)};
  const auto engine = open_default_model({.num_kv_blocks = 200});
  std::vector<RequestOutput> alone;
  for (const GenerationRequest& request : requests) alone.push_back(run_alone(*engine, request));
  const std::size_t num_steps_alone = engine->trace_since(0, 0).steps.size();
  const auto together = run_together(*engine, requests);
  EXPECT_EQ(first_difference(together, alone), "");
  const auto steps = engine->trace_since(0, 0).steps;
  const auto num_full_steps =
      std::count_if(steps.begin() + static_cast<std::ptrdiff_t>(num_steps_alone), steps.end(),
                    [](const StepRecord& step) { return step.num_decode_tokens == 4 + 1 + 1; });
  EXPECT_GE(num_full_steps, 20);
  beams.frequency_penalty = 0.0;
  beams.repetition_penalty = 1.0;
  const RequestOutput without = run_alone(*engine, text_request("The best way to learn is", beams));
  EXPECT_NE(without.outputs[0].token_ids, alone[0].outputs[0].token_ids) << "the penalty is felt";
}

TEST_F(Demonstration, Number7SwappingOutAndInDoesNotBreakAStream) {
  const GenerationRequest older{.prompt = random_prompt(21, 100), .sampling = greedy(120)};
  SamplingParams samples{.n = 2, .seed = 9, .max_tokens = 60, .ignore_eos = true};
  const GenerationRequest younger{.prompt = random_prompt(22, 40), .sampling = samples};
  const auto roomy = open_default_model({.num_kv_blocks = 1000});
  const std::vector<RequestOutput> alone = {run_alone(*roomy, older), run_alone(*roomy, younger)};

  const auto tight = open_default_model({.num_kv_blocks = 19,
                                         .enable_prefix_caching = false,
                                         .preemption_mode = PreemptionPolicy::kSwap,
                                         .admission_reserve = AdmissionReserve::kOnePercent});
  const auto outputs = run_together(*tight, {older, younger});
  EXPECT_EQ(first_difference(outputs, alone), "");
  const KvTotals totals = tight->kv_totals();
  EXPECT_GE(totals.preempted_swap, 1);
  EXPECT_GT(totals.swapped_out_blocks, 0);
  EXPECT_EQ(totals.swapped_in_blocks, totals.swapped_out_blocks) << "nothing was recomputed";
  EXPECT_EQ(num_prefilled_tokens(*tight), 140);
}

TEST_F(Demonstration, Number8AnyBlockTellsItsTokensOwnersParentAgeAndWhyItIsHere) {
  const auto engine = open_default_model({.num_kv_blocks = 64});
  const TokenPrompt prompt = random_prompt(31, 40);
  run_alone(*engine, {.prompt = prompt, .sampling = greedy(1)});
  int num_cached = 0;
  for (std::int32_t id = 0; id < 64; ++id) {
    const BlockDetail detail = look_at(*engine, BlockId{id});
    if (detail.state.state == BlockState::kFree) {
      EXPECT_TRUE(detail.why.starts_with("free: ")) << detail.why;
      EXPECT_TRUE(detail.token_ids.empty());
      continue;
    }
    ++num_cached;
    EXPECT_TRUE(detail.owners.empty());
    const auto begin = prompt.token_ids.begin() + detail.first_position;
    const std::size_t num_tokens = detail.first_position == 32 ? 8 : 16;
    EXPECT_EQ(detail.token_ids, std::vector<TokenId>(begin, begin + static_cast<std::ptrdiff_t>(num_tokens)));
    EXPECT_EQ(detail.chain.size(), static_cast<std::size_t>(detail.first_position / 16));
    EXPECT_EQ(detail.num_children, detail.first_position == 32 ? 0 : 1);
    EXPECT_TRUE(detail.why.starts_with("cached as ")) << detail.why;
    const bool is_kept_by_another = detail.why.find("the 1 cached block that continue") != std::string::npos;
    EXPECT_EQ(is_kept_by_another, detail.first_position != 32) << detail.why;
    EXPECT_GT(detail.state.last_step, 0);
  }
  EXPECT_EQ(num_cached, 3) << "two full blocks, and the start of a third";
}

// ceil(512 / 16) blocks of prompt, and for each sample its own: the last of the prompt and what it generates.
TEST_F(Demonstration, EightSamplesShareTheirPrompt) {
  const auto engine = open_default_model({.num_kv_blocks = 400});
  SamplingParams sampling{.n = 8, .seed = 4, .max_tokens = 40, .ignore_eos = true};
  for (const int length : {512, 505}) {
    const std::int64_t copies_before = engine->kv_totals().cow_copies;
    run_alone(*engine,
              {.prompt = random_prompt(static_cast<std::uint64_t>(length), length), .sampling = sampling});
    const KvTotals totals = engine->kv_totals();
    const std::int32_t num_generated_blocks = (40 + 15) / 16;
    EXPECT_LE(totals.peak_used_blocks, 32 + 8 * (1 + num_generated_blocks));
    EXPECT_GE(totals.peak_logical_blocks, 8 * (32 + 2));
    // A prompt that fills its blocks is never written to; else all but the last sample copy its last block.
    EXPECT_EQ(totals.cow_copies - copies_before, length == 512 ? 0 : 7);
  }
  std::int64_t num_copies = 0;
  for (const StepRecord& step : engine->trace_since(0, 0).steps) num_copies += step.num_block_copies;
  EXPECT_EQ(num_copies, engine->kv_totals().cow_copies);
}

TEST_F(Demonstration, ARunWithoutAHostPoolFinishes) {
  const auto requests = mixed_requests(5, 24, 60);
  const auto roomy = open_default_model({.num_kv_blocks = 2000});
  const auto tight = open_default_model({.num_kv_blocks = 44,
                                         .swap_space = 0.0,
                                         .preemption_mode = PreemptionPolicy::kSwap,
                                         .admission_reserve = AdmissionReserve::kOnePercent});
  EXPECT_EQ(first_difference(run_together(*tight, requests), run_together(*roomy, requests)), "");
  EXPECT_EQ(tight->kv_totals().num_host_blocks, 0);
  EXPECT_EQ(tight->kv_totals().preempted_swap, 0);
  EXPECT_GT(tight->kv_totals().preempted_recompute, 0);
}

TEST_F(Demonstration, SmallBlocksWasteAtMostThreeSlotsASequence) {
  const auto engine = open_default_model({.block_size = 4, .num_kv_blocks = 600});
  std::vector<GenerationRequest> requests;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    requests.push_back({.prompt = random_prompt(seed, 30 + static_cast<int>(seed)), .sampling = greedy(64)});
  }
  const std::vector<RequestId> ids = engine->submit_all(requests);
  OutputCollector collector;
  for (const RequestId id : ids) collector.expect(id, 1);
  int num_snapshots = 0;
  while (!collector.done()) {
    for (const EngineEvent& event : engine->poll(std::chrono::milliseconds(2))) collector.add(event);
    const auto snapshot = engine->kv_snapshot(SnapshotScope::kPool);
    if (!snapshot || snapshot->sequences.empty()) continue;
    ++num_snapshots;
    EXPECT_LE(snapshot->figures.unfilled_slots, 3 * static_cast<int>(snapshot->sequences.size()));
  }
  EXPECT_GT(num_snapshots, 5);
}

}  // namespace
}  // namespace octavo
