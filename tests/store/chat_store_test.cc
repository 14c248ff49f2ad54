// The store with its thread: values in, values out, and nobody waits.

#include "app/store/chat_store.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <thread>

#include "tests/store/plain_store.h"
#include "tests/support/temporary_folder.h"

namespace octavo::testing {
namespace {

using app::ChatStore;
using app::Urgency;

class ChatStoreTest : public ::testing::Test {
 protected:
  app::StoreOptions options() {
    app::StoreOptions options;
    options.paths.database = folder_ / "chats.db";
    options.unix_time_ms = [] { return std::int64_t{1'800'000'000'000}; };
    return options;
  }
  bool until(const std::function<bool()>& done) {
    for (int i = 0; i < 5'000 && !done(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return done();
  }

  test::TemporaryFolder folder_;
  SteadyClock clock_;
  std::atomic<int> num_wake_ups_ = 0;
};

TEST_F(ChatStoreTest, UrgentChangesAreCommittedAtOnceAndWakeTheWindow) {
  ChatStore store(options(), clock_, [this] { ++num_wake_ups_; });
  ASSERT_TRUE(until([this] { return num_wake_ups_ > 0; }));
  const auto started = clock_.now_us();
  const auto ticket = store.push(app::changes::SaveChat{some_head(1)}, Urgency::kNow);
  ASSERT_TRUE(until([&] { return store.committed(ticket); }));
  EXPECT_LT(clock_.now_us() - started, 2'000'000);
  EXPECT_TRUE(until([this] { return num_wake_ups_ > 1; }));
}

TEST_F(ChatStoreTest, ManyChangesFromTheWindowAreAllThereAfterTheEnd) {
  constexpr std::uint64_t kChats = 100;
  {
    ChatStore store(options(), clock_, [this] { ++num_wake_ups_; });
    for (std::uint64_t id = 1; id <= kChats; ++id) {
      for (auto& change : changes_for(some_head(id), some_chat(id, 5)))
        store.push(std::move(change), id % 7 == 0 ? Urgency::kNow : Urgency::kSoon);
      if (id % 10 == 0) store.search(id, "answer");
      if (id % 10 == 5) store.load(ChatId{id});
      for (const auto& report : store.take_reports())
        EXPECT_FALSE(std::holds_alternative<app::StoreNotice>(report));
    }
  }
  ChatStore store(options(), clock_, [this] { ++num_wake_ups_; });
  std::size_t num_loaded = 0;
  ASSERT_TRUE(until([&] {
    for (const auto& report : store.take_reports()) {
      if (const auto* chat = std::get_if<app::ChatLoaded>(&report)) {
        EXPECT_EQ(chat->chat.messages().size(), 10u);
        ++num_loaded;
      }
    }
    return num_loaded == kChats;
  }));
}

TEST_F(ChatStoreTest, AnIdleStoreSleeps) {
  ChatStore store(options(), clock_, [this] { ++num_wake_ups_; });
  store.push(app::changes::SaveChat{some_head(1)}, Urgency::kNow);
  std::this_thread::sleep_for(std::chrono::milliseconds(400));
  const int before = num_wake_ups_;
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  EXPECT_EQ(num_wake_ups_, before);
}

}  // namespace
}  // namespace octavo::testing
