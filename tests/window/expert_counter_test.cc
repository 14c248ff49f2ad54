// Which experts were chosen, added up beside the window and the engine.
#include "app/window/memory/expert_counter.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "tests/simulation/random.h"

namespace octavo::app {
namespace {

constexpr ChatId kAlan{7}, kAda{9};

// Two sequences: two tokens of the one, one of the other, in two layers of four experts.
ExpertChoices some_choices() {
  return {.step = 1,
          .num_experts = 4,
          .num_used = 2,
          .layers = {1, 3},
          .rows = {{.request_id = RequestId{1}, .num_rows = 2}, {.request_id = RequestId{2}, .num_rows = 1}},
          .chosen = {0, 1, 0, 2, 3, 0,    // layer 1: three tokens
                     2, 3, 2, 3, 1, 0}};  // layer 3
}

std::optional<ChatId> chat_of(RequestId request) {
  return request == RequestId{1} ? std::optional(kAlan) : std::optional(kAda);
}

TEST(ExpertBook, CountsEachChatAndAllOfThem) {
  ExpertBook book;
  book.add(some_choices(), {kAlan, kAda});
  const ui::ExpertHeat all = book.heat_of({});
  EXPECT_EQ(all.num_tokens, 3);
  EXPECT_EQ(all.layers, (std::vector<std::int32_t>{1, 3}));
  EXPECT_EQ(all.counts, (std::vector<std::uint32_t>{3, 1, 1, 1, 1, 1, 2, 2}));
  EXPECT_EQ(all.most, 3u);
  EXPECT_EQ(all.num_for_half, (std::vector<std::int32_t>{1, 2}));
  EXPECT_EQ(all.chats, (std::vector<ChatId>{kAlan, kAda}));
  EXPECT_EQ(book.heat_of(kAlan).counts, (std::vector<std::uint32_t>{2, 1, 1, 0, 0, 0, 2, 2}));
  EXPECT_EQ(book.heat_of(kAda).counts, (std::vector<std::uint32_t>{1, 0, 0, 1, 1, 1, 0, 0}));
  EXPECT_EQ(book.heat_of(kAda).num_tokens, 1);
  EXPECT_EQ(book.heat_of(ChatId{99}).num_tokens, 0);
}

TEST(ExpertBook, WhatIsOfNoChatCountsForAllOnly) {
  ExpertBook book;
  book.add(some_choices(), {ChatId{}, kAda});
  EXPECT_EQ(book.heat_of({}).num_tokens, 3);
  EXPECT_EQ(book.heat_of({}).chats, (std::vector<ChatId>{kAda}));
}

TEST(ExpertBook, AnotherModelBeginsAnew) {
  ExpertBook book;
  book.add(some_choices(), {kAlan, kAda});
  ExpertChoices other = some_choices();
  other.num_experts = 8;
  book.add(other, {kAlan, kAda});
  EXPECT_EQ(book.heat_of({}).num_tokens, 3);
  EXPECT_EQ(book.heat_of({}).counts.size(), 16u);
}

// Of every layer, all choices are somewhere; and the summary is what trying every number of experts gives.
TEST(ExpertBook, AddsUpAndSummarisesRandomChoices) {
  simulation::Random random(5);
  ExpertBook book;
  std::int64_t num_tokens = 0;
  for (int step = 0; step < 50; ++step) {
    ExpertChoices choices{.num_experts = 16, .num_used = 3, .layers = {0, 1, 2}};
    choices.rows.push_back({.request_id = RequestId{1}, .num_rows = random.between(1, 9)});
    num_tokens += choices.rows[0].num_rows;
    for (int i = 0; i < 3 * choices.rows[0].num_rows * 3; ++i)
      choices.chosen.push_back(std::min(random.between(0, 15), random.between(0, 15)));
    book.add(choices, {kAlan});
  }
  const ui::ExpertHeat heat = book.heat_of(kAlan);
  EXPECT_EQ(heat.num_tokens, num_tokens);
  for (std::size_t layer = 0; layer < 3; ++layer) {
    std::vector<std::uint32_t> counts(heat.counts.begin() + static_cast<std::ptrdiff_t>(layer) * 16,
                                      heat.counts.begin() + static_cast<std::ptrdiff_t>(layer + 1) * 16);
    std::uint64_t sum = 0;
    for (const std::uint32_t count : counts) sum += count;
    EXPECT_EQ(sum, static_cast<std::uint64_t>(num_tokens) * 3);
    std::ranges::sort(counts);
    std::uint64_t best = 0, before = 0;
    for (std::int32_t i = 0; i < heat.num_for_half[layer]; ++i) {
      before = best;
      best += counts[15 - static_cast<std::size_t>(i)];
    }
    EXPECT_GE(2 * best, sum);
    EXPECT_LT(2 * before, sum) << "one fewer is not enough";
  }
}

std::shared_ptr<const ui::ExpertHeat> wait_for(ExpertCounter& counter) {
  std::shared_ptr<const ui::ExpertHeat> newest;
  for (int i = 0; i < 2'000 && counter.is_busy(); ++i) {
    if (auto heat = counter.take()) newest = std::move(heat);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return newest;
}

TEST(ExpertCounter, CountsOnAThreadOfItsOwnAndTellsOfTheChosenChat) {
  ExpertCounter counter;
  EXPECT_FALSE(counter.is_busy());
  counter.add({}, chat_of);
  EXPECT_FALSE(counter.is_busy()) << "nothing to count, and no thread for it";
  counter.add({some_choices(), some_choices()}, chat_of);
  EXPECT_TRUE(counter.is_busy());
  auto heat = wait_for(counter);
  ASSERT_NE(heat, nullptr);
  EXPECT_EQ(heat->num_tokens, 6);
  EXPECT_FALSE(counter.is_busy());
  counter.choose(kAda);
  heat = wait_for(counter);
  ASSERT_NE(heat, nullptr);
  EXPECT_EQ(heat->chat, kAda);
  EXPECT_EQ(heat->num_tokens, 2);
  counter.restart();
  heat = wait_for(counter);
  ASSERT_NE(heat, nullptr);
  EXPECT_EQ(heat->num_tokens, 0);
}

}  // namespace
}  // namespace octavo::app
