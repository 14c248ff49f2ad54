// Which messages are sent: against every property that the header promises, on random chats.

#include "app/chat/context_window.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <vector>

namespace octavo::app {
namespace {

std::vector<ContextMessage> turns(std::size_t count, std::int32_t question, std::int32_t answer) {
  std::vector<ContextMessage> path;
  for (std::size_t i = 0; i < count; ++i) {
    path.push_back({Role::kUser, question});
    path.push_back({Role::kAssistant, answer});
  }
  return path;
}

std::int64_t sum_from(std::span<const ContextMessage> path, std::size_t begin) {
  return std::accumulate(path.begin() + static_cast<std::ptrdiff_t>(begin), path.end(), std::int64_t{0},
                         [](std::int64_t sum, const ContextMessage& m) { return sum + m.num_tokens; });
}

TEST(ContextWindow, WhatFitsIsSentWhole) {
  const auto path = turns(3, 10, 20);
  const ContextWindow window = context_window(path, {.context_len = 140, .answer = 30, .fixed = 20});
  EXPECT_EQ(window.begin, 0u);
  EXPECT_EQ(window.num_tokens, 110);
  EXPECT_TRUE(window.fits);
}

TEST(ContextWindow, OneCutMakesRoomForSeveralTurns) {
  auto path = turns(3, 10, 20);
  path.push_back({Role::kUser, 10});  // 120 of 110
  const ContextWindow window = context_window(path, {.context_len = 140, .answer = 30, .fixed = 20});
  EXPECT_EQ(window.begin, 4u);  // 40 beside the system prompt: at most half of 90
  EXPECT_EQ(window.num_tokens, 60);
}

TEST(ContextWindow, ASummaryTakesItsRoomOnceSomethingHasLeft) {
  auto path = turns(3, 10, 20);
  const ContextRoom room{.context_len = 140, .answer = 30, .fixed = 20, .summary = 15};
  EXPECT_EQ(context_window(path, room).num_tokens, 110);
  path.push_back({Role::kUser, 10});
  const ContextWindow window = context_window(path, room);
  EXPECT_EQ(window.begin, 6u);  // with the turn before it would be more than half
  EXPECT_EQ(window.num_tokens, 45);
}

TEST(ContextWindow, WhatFitsInNoWaySaysSo) {
  auto path = turns(3, 10, 20);
  path.push_back({Role::kUser, 100});
  const ContextWindow window = context_window(path, {.context_len = 140, .answer = 30, .fixed = 20});
  EXPECT_FALSE(window.fits);
  EXPECT_EQ(window.begin, 6u);
  EXPECT_EQ(window.num_tokens, 120);
}

TEST(ContextWindow, TheRoomForAnAnswerIsAQuarterAtMost) {
  EXPECT_EQ(room_for_answer(1024, 512), 128);
  EXPECT_EQ(room_for_answer(16, 512), 16);
  EXPECT_EQ(room_for_answer(0, 512), 1);
}

TEST(ContextWindow, RandomChatsKeepEveryPromise) {
  std::mt19937 random(5);
  for (int round = 0; round < 500; ++round) {
    const ContextRoom room{.context_len = 200 + static_cast<std::int32_t>(random() % 200),
                           .answer = 40,
                           .fixed = static_cast<std::int32_t>(random() % 60),
                           .summary = static_cast<std::int32_t>(random() % 2 * 20)};
    std::vector<ContextMessage> path;
    std::size_t before = 0;
    int num_cuts = 0, num_questions = 0;
    for (int turn = 0; turn < 60; ++turn) {
      path.push_back({Role::kUser, 1 + static_cast<std::int32_t>(random() % 20)});
      ++num_questions;
      const ContextWindow window = context_window(path, room);
      EXPECT_TRUE(window.fits);
      EXPECT_LE(window.num_tokens, room.most_prompt_tokens());
      EXPECT_EQ(window.num_tokens,
                room.fixed + (window.begin > 0 ? room.summary : 0) + sum_from(path, window.begin));
      EXPECT_GE(window.begin, before) << "what has left does not come back";
      EXPECT_EQ(path[window.begin].role, Role::kUser) << "a cut stands before a turn";
      if (window.begin != before) {
        ++num_cuts;
        const bool alone = window.begin + 1 == path.size();
        EXPECT_TRUE(alone || window.num_tokens <= room.fixed + (room.most_prompt_tokens() - room.fixed) / 2)
            << "a cut makes room for more than the next turn";
      }
      before = window.begin;
      path.push_back({Role::kAssistant, 1 + static_cast<std::int32_t>(random() % 40)});
    }
    EXPECT_GT(num_cuts, 1);
    EXPECT_LT(num_cuts, num_questions / 2);
  }
}

}  // namespace
}  // namespace octavo::app
