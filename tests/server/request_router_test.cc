#include "app/server/request_router.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tests/server/http_client.h"
#include "tests/server/scripted_engine.h"

namespace octavo::app {
namespace {

using octavo::testing::ScriptedEngine;

std::vector<GenerationRequest> several(std::size_t count) { return std::vector<GenerationRequest>(count); }

TEST(RequestRouter, EachSinkGetsItsOwnEventsInOrder) {
  ScriptedEngine engine;
  std::atomic<int> num_seen = 0, num_ended = 0;
  RequestRouter router(engine, [&](const EngineEvent&) { ++num_seen; });
  constexpr std::size_t kSubmitters = 8, kEach = 50, kTogether = 3;
  engine.on_submit = [&](RequestId id, const GenerationRequest&) {
    engine.admit(id);
    engine.say(id, "a");
    engine.end(id);
  };
  std::vector<std::thread> submitters;
  for (std::size_t s = 0; s < kSubmitters; ++s) {
    submitters.emplace_back([&] {
      for (std::size_t i = 0; i < kEach; ++i) {
        const auto ids = std::make_shared<std::vector<RequestId>>();
        const auto stages = std::make_shared<std::vector<int>>(kTogether, 0);
        router.submit(
            several(kTogether),
            [&num_ended, ids, stages](std::size_t request, const EngineEvent& event) {
              EXPECT_EQ(request_id_of(event), ids->at(request));
              int& stage = stages->at(request);
              if (std::holds_alternative<OutputFinished>(event)) return;
              const int expected = std::holds_alternative<RequestAdmitted>(event)   ? 0
                                   : std::holds_alternative<TokensGenerated>(event) ? 1
                                                                                    : 2;
              EXPECT_EQ(stage++, expected);
              num_ended += std::holds_alternative<RequestFinished>(event) ? 1 : 0;
            },
            [&](const std::vector<RequestId>& submitted) { *ids = submitted; });
      }
    });
  }
  for (std::thread& submitter : submitters) submitter.join();
  constexpr int kRequests = kSubmitters * kEach * kTogether;
  EXPECT_TRUE(http::becomes_true([&] { return num_ended == kRequests; })) << num_ended;
  EXPECT_EQ(num_seen, 4 * kRequests);
  EXPECT_EQ(router.num_open(), 0u);
  EXPECT_EQ(router.num_waiting(), 0u);
}

TEST(RequestRouter, CountsWhatWaitsUntilItHasBlocksOrEnds) {
  ScriptedEngine engine;
  RequestRouter router(engine, {});
  const auto nothing = [](const std::vector<RequestId>&) {};
  const std::vector<RequestId> ids = router.submit(
      several(3), [](std::size_t, const EngineEvent&) {}, nothing);
  EXPECT_EQ(router.num_waiting(), 3u);
  engine.admit(ids[0]);
  EXPECT_TRUE(http::becomes_true([&] { return router.num_waiting() == 2; }));
  engine.fail(ids[1], ErrorCode::kTooLong, "too long");
  EXPECT_TRUE(http::becomes_true([&] { return router.num_waiting() == 1; }));
  EXPECT_EQ(router.num_open(), 2u);
  router.cancel_all();
  EXPECT_TRUE(http::becomes_true([&] { return router.num_open() == 0; }));
  EXPECT_EQ(router.num_waiting(), 0u);
}

TEST(RequestRouter, ItsEndCancelsWhatRunsAndSinksHearOfIt) {
  ScriptedEngine engine;
  int num_ended = 0;
  {
    RequestRouter router(engine, {});
    router.submit(
        several(5),
        [&](std::size_t, const EngineEvent& event) {
          num_ended += std::holds_alternative<RequestFinished>(event) ? 1 : 0;
        },
        [](const std::vector<RequestId>&) {});
  }
  EXPECT_EQ(num_ended, 5);
  EXPECT_EQ(engine.cancelled().size(), 5u);
}

}  // namespace
}  // namespace octavo::app
