#include "engine/metrics/eviction_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "engine/core/request_intake.h"
#include "tests/block/seed.h"
#include "tests/metrics/engine_traffic.h"

namespace octavo::metrics {
namespace {

BlockSnapshot cached(std::int32_t parent, std::int64_t last_step,
                     RetentionClass retention = RetentionClass::kChat) {
  BlockSnapshot block;
  block.state = BlockState::kCached;
  block.findable = true;
  block.parent = parent;
  block.last_step = last_step;
  block.retention = retention;
  return block;
}

TEST(EvictionOrder, LeavesGoBeforeParentsAndLowClassesFirst) {
  KvSnapshot snapshot;
  snapshot.blocks = {
      cached(-1, 1),  cached(0, 2), cached(1, 3), cached(1, 9), cached(-1, 20, RetentionClass::kScratch),
      BlockSnapshot{}};
  EXPECT_EQ(eviction_places(snapshot), (std::vector<std::int32_t>{4, 3, 1, 2, 0, -1}));
}

TEST(EvictionOrder, ParentsInACircleOrOutsideThePoolAreNoEndlessLoop) {
  KvSnapshot snapshot;
  snapshot.blocks = {cached(1, 1), cached(0, 2), cached(2, 3), cached(77, 4), cached(-9, 5)};
  const auto places = eviction_places(snapshot);
  EXPECT_EQ(places[0], -1);
  EXPECT_EQ(places[1], -1);
  EXPECT_EQ((std::vector<std::int32_t>(places.begin() + 2, places.end())),
            (std::vector<std::int32_t>{0, 1, 2}));
}

GenerationRequest request_of(std::uint64_t content, std::int32_t num_tokens) {
  GenerationRequest request;
  TokenPrompt prompt;
  for (std::int32_t i = 0; i < num_tokens; ++i)
    prompt.token_ids.push_back(
        static_cast<TokenId>(4 + hash_combine(content, static_cast<std::uint64_t>(i)) % 16));
  request.prompt = std::move(prompt);
  request.sampling.max_tokens = 2;
  request.sampling.ignore_eos = true;
  return request;
}

// What is told beforehand is what the engine then does: the evictions of one large request that finds
// nothing.
TEST(EvictionOrder, IsTheOneThatTheEngineKeepsTo) {
  const unsigned seed = octavo::test_seed();
  SCOPED_TRACE("--gtest_random_seed=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  int num_compared = 0;
  for (int round = 0; round < 40; ++round) {
    const simulation::ToyTokenizer tokenizer;
    ManualClock clock;
    CarelessRunner runner;
    const scheduler::SchedulerOptions options{.block_size = 4,
                                              .num_blocks = 48,
                                              .bytes_per_block = 64,
                                              .max_num_seqs = 4,
                                              .max_num_batched_tokens = 256,
                                              .max_model_len = 180,
                                              .num_host_blocks = 0};
    EngineCore core(options, {.runner = &runner, .clock = &clock, .tokenizer = &tokenizer});
    RequestIntake intake({.tokenizer = &tokenizer,
                          .draw_seed = [] { return std::uint64_t{1}; },
                          .unix_time_s = [] { return std::int64_t{0}; }});
    const auto run = [&](std::uint64_t id, GenerationRequest request) {
      clock.advance_us(1'000);
      core.step({intake.prepare({RequestId{id}, std::move(request), clock.now_us()})});
      while (core.has_work()) core.step({});
    };
    const int num_small = 6 + static_cast<int>(random() % 6);
    for (int i = 0; i < num_small; ++i)
      run(static_cast<std::uint64_t>(i) + 1,
          request_of(random() % 5, 8 + static_cast<std::int32_t>(random() % 30)));
    const KvSnapshot before = core.snapshot();
    const std::vector<std::int32_t> places = eviction_places(before);
    const Trace mark = core.recorder()->read_since(0, 0);
    run(100, request_of(1'000 + static_cast<std::uint64_t>(round), 150));
    std::int32_t last = -1;
    for (const BlockEvent& event :
         core.recorder()->read_since(mark.next_step_mark, mark.next_event_mark).block_events) {
      if (event.kind != BlockEventKind::kEvict) continue;
      const auto block = static_cast<std::size_t>(event.block);
      if (before.blocks[block].state != BlockState::kCached) continue;
      EXPECT_GT(places[block], last) << "block " << event.block;
      last = places[block];
      ++num_compared;
    }
  }
  EXPECT_GT(num_compared, 100);
}

}  // namespace
}  // namespace octavo::metrics
