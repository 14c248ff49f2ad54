// One engine for several readers.

#include "engine/shared_engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "tests/server/scripted_engine.h"

namespace octavo {
namespace {

using testing::ScriptedEngine;
using namespace std::chrono_literals;

class SharedEngineTest : public ::testing::Test {
 protected:
  SharedEngineTest() {
    auto scripted = std::make_unique<ScriptedEngine>();
    scripted_ = scripted.get();
    shared_ = std::make_unique<SharedEngine>(
        std::move(scripted), [this](const EngineEvent& event) { seen_.push_back(request_id_of(event)); });
  }

  static GenerationRequest asked(const std::string& text) {
    GenerationRequest request;
    request.prompt = TextPrompt{text};
    return request;
  }

  ScriptedEngine* scripted_ = nullptr;
  std::vector<RequestId> seen_;  // by the observer
  std::unique_ptr<SharedEngine> shared_;
};

TEST_F(SharedEngineTest, EachReaderIsToldOfItsOwnRequestsAlone) {
  const auto other = shared_->open_reader();
  const RequestId mine = shared_->submit(asked("a")), theirs = other->submit(asked("b"));
  scripted_->accept(mine, {1});
  scripted_->accept(theirs, {2});
  scripted_->end(mine);
  scripted_->end(theirs);
  const auto my_events = shared_->poll(0us), their_events = other->poll(0us);
  ASSERT_EQ(my_events.size(), 3u);
  ASSERT_EQ(their_events.size(), 3u);
  for (const EngineEvent& event : my_events) EXPECT_EQ(request_id_of(event), mine);
  for (const EngineEvent& event : their_events) EXPECT_EQ(request_id_of(event), theirs);
  EXPECT_TRUE(shared_->poll(0us).empty());
  EXPECT_EQ(seen_, (std::vector<RequestId>{mine, theirs, mine, mine, theirs, theirs}))
      << "the observer sees all of them once, as they came";
}

TEST_F(SharedEngineTest, CancelsOfRequestsAndOfOutputsReachTheEngine) {
  const auto other = shared_->open_reader();
  const RequestId theirs = other->submit(asked("b"));
  other->cancel_output(theirs, 2);
  shared_->cancel_output(theirs, 3);
  other->cancel(theirs);
  EXPECT_EQ(scripted_->cancelled_outputs(),
            (std::vector<std::pair<RequestId, std::int32_t>>{{theirs, 2}, {theirs, 3}}));
  EXPECT_EQ(scripted_->cancelled(), std::vector<RequestId>{theirs});
}

TEST_F(SharedEngineTest, AReaderThatWaitsIsWokenWhoeverTakesTheEventsOut) {
  const auto other = shared_->open_reader();
  const RequestId theirs = other->submit(asked("b"));
  std::atomic<bool> polls_on = true;
  std::thread busy([&] {
    while (polls_on) shared_->poll(0us);
  });
  std::vector<EngineEvent> events;
  std::thread waiting([&] {
    while (events.empty()) events = other->poll(10s);
  });
  scripted_->accept(theirs, {2});
  waiting.join();
  polls_on = false;
  busy.join();
  EXPECT_EQ(request_id_of(events.front()), theirs);
}

TEST_F(SharedEngineTest, EveryReaderIsWokenByWhateverHappens) {
  const auto other = shared_->open_reader();
  std::atomic<int> num_mine = 0, num_theirs = 0;
  shared_->set_wake_up([&] { ++num_mine; });
  other->set_wake_up([&] { ++num_theirs; });
  scripted_->accept(shared_->submit(asked("a")), {1});
  EXPECT_EQ(num_mine, 1);
  EXPECT_EQ(num_theirs, 1);
}

TEST_F(SharedEngineTest, AReaderThatHasGoneLeavesTheOthersTheirs) {
  auto other = shared_->open_reader();
  const RequestId theirs = other->submit(asked("b")), mine = shared_->submit(asked("a"));
  other.reset();
  scripted_->accept(theirs, {2});
  scripted_->accept(mine, {1});
  const auto events = shared_->poll(0us);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(request_id_of(events.front()), mine);
}

TEST_F(SharedEngineTest, NothingIsLostOrDoubledHoweverManyAskAtOnce) {
  const std::uint64_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  constexpr int kReaders = 4, kRequests = 200;
  scripted_->on_submit = [this](RequestId id, const GenerationRequest&) {
    scripted_->accept(id, {1});
    scripted_->end(id);
  };
  std::vector<std::unique_ptr<Engine>> readers;
  for (int i = 0; i < kReaders; ++i) readers.push_back(shared_->open_reader());
  std::vector<std::map<RequestId, int>> told(kReaders);
  std::vector<std::vector<RequestId>> asked_for(kReaders);
  std::vector<std::thread> threads;
  for (int i = 0; i < kReaders; ++i) {
    threads.emplace_back([&, i] {
      std::mt19937_64 random(seed + static_cast<std::uint64_t>(i));
      Engine& reader = *readers[static_cast<std::size_t>(i)];
      auto& mine = asked_for[static_cast<std::size_t>(i)];
      auto& events_of = told[static_cast<std::size_t>(i)];
      const auto take = [&] {
        for (const EngineEvent& event : reader.poll(0us)) ++events_of[request_id_of(event)];
      };
      for (int request = 0; request < kRequests; ++request) {
        mine.push_back(reader.submit(asked("x")));
        if (random() % 3 == 0) take();
      }
      take();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < kReaders; ++i) {
    for (const EngineEvent& event : readers[i]->poll(0us)) ++told[i][request_id_of(event)];
    EXPECT_EQ(told[i].size(), asked_for[i].size());
    for (const RequestId id : asked_for[i]) EXPECT_EQ(told[i][id], 3);
  }
  EXPECT_EQ(seen_.size(), std::size_t{3} * kReaders * kRequests);
}

}  // namespace
}  // namespace octavo
