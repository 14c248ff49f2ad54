#include "engine/core/event_outbox.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

namespace octavo {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;

EngineEvent token(std::uint64_t request, std::int32_t output, TokenId id, std::string text) {
  return TokensGenerated{RequestId{request}, output, {id}, {-0.5f}, {{{id, -0.5f}}}, std::move(text)};
}

std::vector<EngineEvent> list(EngineEvent first, EngineEvent second) {
  std::vector<EngineEvent> events;
  events.push_back(std::move(first));
  events.push_back(std::move(second));
  return events;
}

TEST(EventOutbox, JoinsTokensOfAnOutputWhileNobodyReads) {
  EventOutbox outbox;
  for (TokenId id = 0; id < 1000; ++id) outbox.add(list(token(1, 0, id, "a"), token(1, 1, id, "b")));
  const auto events = outbox.take(microseconds(0));
  ASSERT_EQ(events.size(), 2u);
  const auto& first = std::get<TokensGenerated>(events[0]);
  EXPECT_EQ(first.output_index, 0);
  EXPECT_EQ(first.text, std::string(1000, 'a'));
  ASSERT_EQ(first.token_ids.size(), 1000u);
  EXPECT_EQ(first.token_ids.back(), 999);
  EXPECT_EQ(first.logprobs.size(), 1000u);
  ASSERT_EQ(first.top_logprobs.size(), 1000u);
  EXPECT_EQ(first.top_logprobs.back()[0].token_id, 999);
}

TEST(EventOutbox, AddsUpPreemptionsWhileNobodyReads) {
  EventOutbox outbox;
  for (std::int32_t count = 0; count < 10; ++count) {
    outbox.add(list(RequestPreempted{RequestId{1}, 0, 3}, RequestPreempted{RequestId{2}, 12 - count, 4}));
  }
  const auto events = outbox.take(microseconds(0));
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(std::get<RequestPreempted>(events[1]).num_tokens_dropped, 40);
  EXPECT_EQ(std::get<RequestPreempted>(events[1]).first_output_index, 3);
  outbox.add(list(RequestPreempted{RequestId{2}, 0, 5}, RequestPreempted{RequestId{1}, 0, 6}));
  const auto later = outbox.take(microseconds(0));
  ASSERT_EQ(later.size(), 2u) << "new ones after a poll";
  EXPECT_EQ(std::get<RequestPreempted>(later[0]).num_tokens_dropped, 5);
}

TEST(EventOutbox, KeepsTheNewestProgressOfAPromptWhileNobodyReads) {
  EventOutbox outbox;
  for (std::int32_t count = 1; count <= 10; ++count)
    outbox.add(list(PromptProgress{RequestId{1}, 100, 0, count, 7},
                    PromptProgress{RequestId{2}, 100, 0, 5 * count, 7}));
  const auto events = outbox.take(microseconds(0));
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(std::get<PromptProgress>(events[0]).num_computed_tokens, 10);
  EXPECT_EQ(std::get<PromptProgress>(events[1]).num_computed_tokens, 50);
}

BeamsAdvanced beam_step(std::uint64_t request, std::int32_t first_node) {
  BeamsAdvanced advanced{RequestId{request}, std::vector<BeamStep>(1)};
  advanced.steps[0].first_node = first_node;
  return advanced;
}

TEST(EventOutbox, JoinsTheStepsOfABeamSearchInTheirOrder) {
  EventOutbox outbox;
  for (std::int32_t step = 0; step < 10; ++step) {
    outbox.add(list(beam_step(1, step), beam_step(2, -step)));
  }
  const auto events = outbox.take(microseconds(0));
  ASSERT_EQ(events.size(), 2u);
  const auto& steps = std::get<BeamsAdvanced>(events[0]).steps;
  ASSERT_EQ(steps.size(), 10u);
  for (std::int32_t step = 0; step < 10; ++step)
    EXPECT_EQ(steps[static_cast<std::size_t>(step)].first_node, step);
  outbox.add(list(beam_step(1, 10), token(1, 0, 5, "a")));
  EXPECT_EQ(outbox.take(microseconds(0)).size(), 2u) << "a new piece after a poll";
}

TEST(EventOutbox, StartsANewPieceAfterAPoll) {
  EventOutbox outbox;
  outbox.add(list(token(1, 0, 5, "a"), token(2, 0, 6, "b")));
  EXPECT_EQ(outbox.take(microseconds(0)).size(), 2u);
  outbox.add(list(token(1, 0, 7, "c"), RequestFinished{RequestId{1}, {}, {}}));
  const auto events = outbox.take(microseconds(0));
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(std::get<TokensGenerated>(events[0]).text, "c");
  EXPECT_TRUE(std::holds_alternative<RequestFinished>(events[1]));
}

TEST(EventOutbox, WaitsForTheFirstEventButNotForever) {
  EventOutbox outbox;
  EXPECT_TRUE(outbox.take(microseconds(1000)).empty());
  std::thread writer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    outbox.add(list(token(1, 0, 5, "a"), token(1, 0, 6, "b")));
  });
  EXPECT_EQ(outbox.take(seconds(60)).size(), 1u);
  writer.join();
}

}  // namespace
}  // namespace octavo
