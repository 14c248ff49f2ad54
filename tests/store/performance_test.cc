// How long it takes until chats are there: processor time of the reading thread, from files that the system
// has in its cache. The bars leave room for a slower machine.

#include <gtest/gtest.h>
#include <time.h>

#include <cstdio>

#include "tests/store/worker_fixture.h"

namespace octavo::testing {
namespace {

double thread_ms() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

using StorePerformance = WorkerTest;

TEST_F(StorePerformance, FiftyChatsAreThereAtTheStart) {
  open();
  fill(50, 20);
  close();
  reset_reports();
  const double before = thread_ms();
  open();
  const double elapsed = thread_ms() - before;
  ASSERT_EQ(contents_->chats.size(), 50u);
  ASSERT_EQ(loaded_.size(), 50u);
  std::printf("50 chats, 2,000 messages: opened, checked and read in %.1f ms\n", elapsed);
  EXPECT_LT(elapsed, 100);
}

TEST_F(StorePerformance, AChatOfAMillionCharactersIsReadInTime) {
  open();
  app::Chat tree;
  for (int i = 0; i < 1000; ++i) {
    tree.append(tree.active_leaf(), Role::kUser, std::string(100, 'q'));
    const auto answer = tree.append(tree.active_leaf(), Role::kAssistant, std::string(900, 'a'));
    tree.find(answer)->token_ids.resize(225);
    tree.find(answer)->finish_reason = FinishReason::kStop;
  }
  push_all(changes_for(some_head(1), tree));
  wait_ms(200);
  close();
  reset_reports();
  open();
  const double before = thread_ms();
  const auto loaded = load(1);
  const double elapsed = thread_ms() - before;
  ASSERT_TRUE(loaded.has_value());
  ASSERT_EQ(loaded->messages().size(), 2000u);
  std::printf("2,000 messages, 1,000,000 characters: read in %.1f ms\n", elapsed);
  EXPECT_LT(elapsed, 50);
}

TEST_F(StorePerformance, StreamingWritesLittle) {
  open();
  for (std::uint64_t id = 1; id <= 8; ++id) {
    app::Chat tree;
    const auto question = tree.append(app::kRootMessage, Role::kUser, "q");
    tree.append(question, Role::kAssistant, "");
    push_all(changes_for(some_head(id), tree));
  }
  wait_ms(200);
  const auto size = [this] { return std::filesystem::file_size(database_path().string() + "-wal"); };
  const auto before = size();
  constexpr int kSeconds = 5;
  for (std::uint64_t tick = 0; tick < kSeconds * 50; ++tick) {
    for (std::uint64_t id = 1; id <= 8; ++id)
      push(app::changes::AppendToAnswer{ChatId{id}, MessageId{2}, tick * 4, "four", tick, {1}});
    now_us_ += 20'000;
    step_until_idle();
  }
  const double rate = static_cast<double>(size() - before) / kSeconds / 1024;
  std::printf("8 answers of 50 tokens a second: %.0f KiB/s in all\n", rate);
  EXPECT_LT(rate, 8 * 64);
}

}  // namespace
}  // namespace octavo::testing
