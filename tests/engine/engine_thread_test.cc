#include "engine/core/engine_thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "engine/output_collector.h"
#include "tests/engine/scripted_runner.h"
#include "tests/engine/toy_tokens.h"

namespace octavo {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Encodes as the toy does, but "dd" only once somebody opens the gate, or nobody wants it any more.
class GatedTokenizer final : public simulation::ToyTokenizer {
 public:
  Result<std::vector<TokenId>> encode(std::string_view text, bool parse_special, bool add_bos,
                                      const tokenizer::EncodeLimits& limits) const override {
    while (text == "dd" && !is_open_ && !limits.stop.stop_requested()) std::this_thread::yield();
    if (limits.stop.stop_requested()) return Error{ErrorCode::kCancelled, "stopped"};
    return ToyTokenizer::encode(text, parse_special, add_bos);
  }
  void open() const { is_open_ = true; }

 private:
  mutable std::atomic<bool> is_open_ = false;
};

struct ScriptedEngine {
  ScriptedRunner* runner = nullptr;
  const GatedTokenizer* tokenizer = nullptr;
  std::unique_ptr<EngineThread> engine;
};

ScriptedEngine make_engine(ScriptedRunner::Script script = [](RequestId, std::size_t) { return kA; }) {
  auto runner = std::make_unique<ScriptedRunner>(std::move(script));
  ScriptedEngine made;
  made.runner = runner.get();
  EngineParts parts;
  parts.scheduler = {.block_size = 4,
                     .num_blocks = 256,
                     .bytes_per_block = 1,
                     .max_num_seqs = 8,
                     .max_num_batched_tokens = 64,
                     .max_model_len = 1'000'000};
  auto tokenizer = std::make_unique<GatedTokenizer>();
  made.tokenizer = tokenizer.get();
  parts.tokenizer = std::move(tokenizer);
  parts.runner = std::move(runner);
  made.engine = std::make_unique<EngineThread>(std::move(parts));
  return made;
}

GenerationRequest toy_request(std::int32_t max_tokens) {
  return {.prompt = TextPrompt{"ab"}, .sampling = {.max_tokens = max_tokens}, .cache_salt = {}};
}

std::vector<RequestOutput> collect(Engine& engine, const std::vector<RequestId>& request_ids) {
  OutputCollector collector;
  for (const RequestId request_id : request_ids) collector.expect(request_id, 1);
  while (!collector.done()) {
    for (const EngineEvent& event : engine.poll(seconds(10))) collector.add(event);
  }
  return collector.take();
}

TEST(EngineThread, AnswersManyThreads) {
  const ScriptedEngine made = make_engine();
  std::vector<std::thread> threads;
  std::mutex mutex;
  std::vector<RequestId> request_ids;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      for (int count = 0; count < 25; ++count) {
        const RequestId request_id = made.engine->submit(toy_request(5));
        std::lock_guard lock(mutex);
        request_ids.push_back(request_id);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const RequestOutput& answer : collect(*made.engine, request_ids)) {
    EXPECT_FALSE(answer.error);
    EXPECT_EQ(answer.outputs.at(0).text, "aaaaa");
  }
}

// All that was submitted together is seen by one step: eight requests of one token each take a single step.
TEST(EngineThread, SubmitsAllOrNothing) {
  const ScriptedEngine made = make_engine();
  std::vector<GenerationRequest> requests;
  for (int count = 0; count < 8; ++count) requests.push_back(toy_request(1));
  collect(*made.engine, made.engine->submit_all(std::move(requests)));
  EXPECT_EQ(made.runner->num_steps(), 1);
}

TEST(EngineThread, SleepsWhenThereIsNothingToDo) {
  const ScriptedEngine made = make_engine();
  collect(*made.engine, {made.engine->submit(toy_request(5))});
  const std::int64_t num_steps = made.runner->num_steps();
  const std::clock_t begin = std::clock();
  std::this_thread::sleep_for(milliseconds(200));
  const double busy_s = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  EXPECT_EQ(made.runner->num_steps(), num_steps);
  EXPECT_LT(busy_s, 0.05);
}

// The device takes its time over token 10 until the cancel is on its way: no further token may follow.
TEST(EngineThread, CancelTakesEffectBeforeTheNextStep) {
  std::atomic<bool> cancel_is_sent = false;
  const ScriptedEngine made = make_engine([&](RequestId, std::size_t position) {
    if (position == 10) cancel_is_sent.wait(false);
    return kA;
  });
  const RequestId request_id = made.engine->submit(toy_request(900));
  made.engine->cancel(RequestId{12345});  // nobody's: no effect
  while (made.runner->num_steps() < 11) std::this_thread::yield();
  made.engine->cancel(request_id);
  cancel_is_sent = true;
  cancel_is_sent.notify_all();
  const CompletionOutput output = collect(*made.engine, {request_id}).at(0).outputs.at(0);
  EXPECT_EQ(output.token_ids.size(), 11u);
  EXPECT_EQ(output.text, std::string(11, 'a'));
  EXPECT_EQ(output.finish_reason, FinishReason::kAbort);
}

// The ids of those who are told of, in order: "+1" was accepted, "-1" ended, "x1" has an output that was
// aborted.
std::string order_of(Engine& engine, std::size_t num_ends, RequestId first) {
  std::string order;
  const auto name = [&](RequestId id) { return std::to_string(id.value - first.value + 1) + " "; };
  while (num_ends > 0) {
    for (const EngineEvent& event : engine.poll(seconds(10))) {
      const std::string id = name(request_id_of(event));
      if (std::holds_alternative<RequestAccepted>(event)) order += "+" + id;
      const auto* const finished = std::get_if<OutputFinished>(&event);
      if (finished != nullptr && finished->finish_reason == FinishReason::kAbort) order += "x" + id;
      if (!std::holds_alternative<RequestFinished>(event)) continue;
      order += "-" + id;
      --num_ends;
    }
  }
  return order;
}

GenerationRequest gated_request(std::int32_t n = 1) {
  return {.prompt = TextPrompt{"dd"}, .sampling = {.n = n, .max_tokens = 1}, .cache_salt = {}};
}

TEST(EngineThread, GoesOnWhileAPromptIsPrepared) {
  const auto [runner, tokenizer, engine] = make_engine();
  const RequestId running = engine->submit(toy_request(20'000));
  engine->submit(gated_request());
  EXPECT_EQ(order_of(*engine, 1, running), "+1 -1 ");
  tokenizer->open();
  EXPECT_EQ(order_of(*engine, 1, running), "+2 -2 ");
}

TEST(EngineThread, TakesRequestsInTheOrderOfSubmission) {
  const auto [runner, tokenizer, engine] = make_engine();
  const RequestId slow = engine->submit(gated_request());
  engine->submit(toy_request(1));
  EXPECT_TRUE(engine->poll(milliseconds(20)).empty()) << "the second waits its turn";
  tokenizer->open();
  const std::string order = order_of(*engine, 2, slow);
  EXPECT_LT(order.find("+1"), order.find("+2")) << order;
}

TEST(EngineThread, ACancelEndsARequestThatIsPrepared) {
  const auto [runner, tokenizer, engine] = make_engine();
  const auto ids = engine->submit_all({gated_request(2), toy_request(1)});
  engine->submit(toy_request(1));
  engine->cancel(ids[0]);
  const std::string order = order_of(*engine, 3, ids[0]);  // the gate stays shut
  EXPECT_TRUE(order.starts_with("x1 x1 -1 +2 ")) << order;
  EXPECT_EQ(order.find("+1"), std::string::npos) << order;
}

TEST(EngineThread, StopsWhileAPromptIsPrepared) {
  const auto [runner, tokenizer, engine] = make_engine();
  engine->submit_all({gated_request(), toy_request(1)});
  engine->poll(milliseconds(1));
}

TEST(EngineThread, StopsWhileRequestsRunAndNobodyReads) {
  for (int count = 0; count < 20; ++count) {
    const ScriptedEngine made = make_engine();
    for (int request = 0; request < 20; ++request) made.engine->submit(toy_request(900));
    if (count % 2 == 0) std::this_thread::sleep_for(milliseconds(1));
  }
}

bool is_end(const EngineEvent& event) {
  return std::holds_alternative<RequestFinished>(event) || std::holds_alternative<RequestFailed>(event);
}

// Some run, some wait for a seat, some were not looked at yet: each has one end, after all else that is told
// of it.
TEST(EngineThread, AStopEndsEveryRequestWithItsEvents) {
  for (int count = 0; count < 20; ++count) {
    const ScriptedEngine made = make_engine([](RequestId, std::size_t) {  // none ends before the stop
      std::this_thread::sleep_for(std::chrono::microseconds(50));
      return kA;
    });
    std::map<RequestId, int> num_ends;
    for (int request = 0; request < 20; ++request) num_ends[made.engine->submit(toy_request(900))] = 0;
    if (count % 2 == 0) {
      while (made.runner->num_steps() < 3) std::this_thread::yield();
    }
    made.engine->stop();
    made.engine->stop();
    for (const EngineEvent& event : made.engine->poll(std::chrono::hours(1))) {
      EXPECT_EQ(num_ends.at(request_id_of(event)), 0) << "something after its end";
      num_ends.at(request_id_of(event)) += is_end(event) ? 1 : 0;
      if (const auto* finished = std::get_if<OutputFinished>(&event)) {
        EXPECT_EQ(finished->finish_reason, FinishReason::kAbort);
      }
      if (const auto* failed = std::get_if<RequestFailed>(&event)) {
        EXPECT_EQ(failed->error.code, ErrorCode::kCancelled);
      }
    }
    for (const auto& [request_id, num] : num_ends) EXPECT_EQ(num, 1) << request_id.value;
  }
}

// (Left alone, the answer would take nine seconds.)
TEST(EngineThread, WhoeverPollsUntilTheEndReturnsAfterAStop) {
  const ScriptedEngine made = make_engine([](RequestId, std::size_t) {
    std::this_thread::sleep_for(milliseconds(10));
    return kA;
  });
  const RequestId request_id = made.engine->submit(toy_request(900));
  std::vector<RequestOutput> answers;
  std::thread reader([&] { answers = collect(*made.engine, {request_id}); });
  while (made.runner->num_steps() < 5) std::this_thread::yield();
  made.engine->stop();
  reader.join();
  ASSERT_FALSE(answers.at(0).error);
  EXPECT_EQ(answers.at(0).outputs.at(0).finish_reason, FinishReason::kAbort);
  EXPECT_GE(answers.at(0).outputs.at(0).token_ids.size(), 4u);
}

TEST(EngineThread, WhatReachesAStoppedEngineFails) {
  const ScriptedEngine made = make_engine();
  made.engine->stop();
  std::atomic<int> num_wake_ups = 0;
  made.engine->set_wake_up([&] { ++num_wake_ups; });
  const RequestId request_id = made.engine->submit(toy_request(5));
  EXPECT_EQ(num_wake_ups, 1);
  const std::vector<EngineEvent> events = made.engine->poll(std::chrono::hours(1));
  ASSERT_EQ(events.size(), 1u);
  ASSERT_TRUE(std::holds_alternative<RequestFailed>(events[0]));
  const RequestFailed& failed = std::get<RequestFailed>(events[0]);
  EXPECT_EQ(failed.request_id, request_id);
  EXPECT_EQ(failed.error.code, ErrorCode::kCancelled);
  EXPECT_NE(failed.error.message.find("stopped"), std::string::npos);
  EXPECT_TRUE(made.engine->poll(std::chrono::hours(1)).empty());
  made.engine->cancel(request_id);
  made.engine->reset_prefix_cache();
  made.engine->watch_block(BlockId{3});
  EXPECT_EQ(made.engine->kv_totals().num_blocks, 256);
}

TEST(EngineThread, PublishesASnapshotWhenAskedAlsoWhenIdle) {
  const ScriptedEngine made = make_engine();
  std::atomic<int> num_wake_ups = 0;
  made.engine->set_wake_up([&] { ++num_wake_ups; });
  std::shared_ptr<const KvSnapshot> snapshot;
  for (int tries = 0; tries < 1000 && (!snapshot || num_wake_ups == 0); ++tries) {
    snapshot = made.engine->kv_snapshot(SnapshotScope::kPool);
    std::this_thread::sleep_for(milliseconds(1));
  }
  ASSERT_TRUE(snapshot);
  EXPECT_EQ(snapshot->blocks.size(), 256u);
  EXPECT_GE(num_wake_ups, 1);

  collect(*made.engine, {made.engine->submit(toy_request(5))});
  std::shared_ptr<const KvSnapshot> later;
  for (int tries = 0; tries < 1000 && (!later || later->step == snapshot->step); ++tries) {
    later = made.engine->kv_snapshot(SnapshotScope::kPool);
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_GT(later->step, snapshot->step);
}

// Asks until there is a snapshot that has what is wanted; null after a second.
template <class Wanted>
std::shared_ptr<const KvSnapshot> snapshot_with(Engine& engine, const Wanted& wanted,
                                                SnapshotScope scope = SnapshotScope::kPool) {
  for (int tries = 0; tries < 1000; ++tries) {
    const auto snapshot = engine.kv_snapshot(scope);
    if (snapshot && wanted(*snapshot)) return snapshot;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return nullptr;
}

TEST(EngineThread, AnIdleEngineWakesForTheFirstWishForASnapshot) {
  const ScriptedEngine made = make_engine();
  collect(*made.engine, {made.engine->submit(toy_request(5))});
  std::this_thread::sleep_for(milliseconds(20));  // it sleeps now
  EXPECT_TRUE(snapshot_with(*made.engine, [](const KvSnapshot&) { return true; }));
}

TEST(EngineThread, KeepsAWishForASnapshotUntilThereIsANewOne) {
  const ScriptedEngine made = make_engine();
  const auto first = snapshot_with(*made.engine, [](const KvSnapshot&) { return true; });
  ASSERT_TRUE(first);
  made.engine->kv_snapshot(SnapshotScope::kPool);
  std::this_thread::sleep_for(milliseconds(20));  // it has seen the wish, and has nothing new
  collect(*made.engine, {made.engine->submit(toy_request(5))});
  EXPECT_GT(made.engine->kv_snapshot(SnapshotScope::kPool)->step, first->step)
      << "published without another wish";
}

TEST(EngineThread, CopiesThePoolOnlyForWhoeverAsksForItsBlocks) {
  const ScriptedEngine made = make_engine();
  collect(*made.engine, {made.engine->submit(toy_request(5))});
  const auto any = [](const KvSnapshot&) { return true; };
  const auto without = snapshot_with(*made.engine, any, SnapshotScope::kSequences);
  ASSERT_TRUE(without);
  EXPECT_EQ(without->scope(), SnapshotScope::kSequences);
  EXPECT_EQ(without->totals.num_blocks, 256);
  EXPECT_EQ(without->figures.free_blocks + without->figures.cached_blocks, 256);
  const auto has_blocks = [](const KvSnapshot& snapshot) { return snapshot.blocks.size() == 256; };
  EXPECT_TRUE(snapshot_with(*made.engine, has_blocks)) << "of the same state, though it is idle";
  collect(*made.engine, {made.engine->submit(toy_request(5))});
  EXPECT_TRUE(snapshot_with(
      *made.engine, [&](const KvSnapshot& snapshot) { return snapshot.blocks.empty(); },
      SnapshotScope::kSequences))
      << "who asked for blocks once does not have them for ever";
}

TEST(EngineThread, DescribesTheBlockThatIsWatchedAlsoWhenIdle) {
  const ScriptedEngine made = make_engine();
  ASSERT_TRUE(snapshot_with(*made.engine, [](const KvSnapshot&) { return true; }));
  for (const std::int32_t block : {3, 200}) {
    made.engine->watch_block(BlockId{block});
    EXPECT_TRUE(snapshot_with(*made.engine, [&](const KvSnapshot& snapshot) {
      return snapshot.watched && snapshot.watched->block == BlockId{block};
    })) << block;
  }
}

// An idle window that asks at each frame, and draws a frame at each wake-up, must come to rest.
TEST(EngineThread, DoesNotPublishTheSameStateAgainAndAgain) {
  const ScriptedEngine made = make_engine();
  std::atomic<int> num_wake_ups = 0;
  made.engine->set_wake_up([&] { ++num_wake_ups; });
  for (int frame = 0; frame < 50; ++frame) {
    made.engine->kv_snapshot(SnapshotScope::kPool);
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_LE(num_wake_ups, 2);
}

TEST(EngineThread, AReaderThatLooksOnlyWhenWokenHearsEverything) {
  const ScriptedEngine made = make_engine();
  std::atomic<int> num_tokens = 0;
  std::atomic<bool> has_finished = false;
  made.engine->set_wake_up([&] {
    for (const EngineEvent& event : made.engine->poll(milliseconds(0))) {
      const auto* tokens = std::get_if<TokensGenerated>(&event);
      if (tokens != nullptr) num_tokens += static_cast<int>(tokens->token_ids.size());
      if (std::holds_alternative<RequestFinished>(event)) has_finished = true;
    }
  });
  made.engine->submit(toy_request(5));
  for (int tries = 0; tries < 2000 && !has_finished; ++tries) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_TRUE(has_finished);
  EXPECT_EQ(num_tokens, 5);
  made.engine->set_wake_up({});
}

TEST(EngineThread, TraceCountsEveryStep) {
  const ScriptedEngine made = make_engine();
  collect(*made.engine, {made.engine->submit(toy_request(5))});
  const Engine::Trace trace = made.engine->trace_since(0, 0);
  EXPECT_EQ(static_cast<std::int64_t>(trace.steps.size()), made.runner->num_steps());
  EXPECT_TRUE(made.engine->trace_since(trace.next_step_mark, trace.next_event_mark).steps.empty());
}

}  // namespace
}  // namespace octavo
