#include "engine/core/preparation_queue.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/engine/toy_tokens.h"

namespace octavo {
namespace {

SubmitRequest asked(std::uint64_t id, SamplingParams sampling = {}) {
  return {RequestId{id}, {.prompt = TextPrompt{"a"}, .sampling = std::move(sampling)}, 0};
}

class Preparation : public testing::Test {
 protected:
  PreparationQueue::Job take() {
    auto job = queue_.take();
    EXPECT_TRUE(job.has_value());
    return *std::move(job);
  }
  void finish(std::uint64_t id) { queue_.finish({RequestId{id}, scheduler::NewRequest{}, 0}); }

  // "1" entered, "x1" was abandoned, "!1" was refused.
  std::string ready() {
    std::string text;
    for (const EngineCommand& command : queue_.take_ready()) {
      if (const auto* prepared = std::get_if<PreparedRequest>(&command)) {
        text += (prepared->request ? "" : "!") + std::to_string(prepared->request_id.value) + " ";
      } else {
        const auto& abandoned = std::get<AbandonedRequest>(command);
        text += "x" + std::to_string(abandoned.request_id.value) + " ";
      }
    }
    return text;
  }

  PreparationQueue queue_{kToyTokenizer};
};

TEST_F(Preparation, TakesAndEntersInTheOrderOfSubmission) {
  queue_.add({asked(1)});
  queue_.add({asked(2)});
  queue_.add({asked(3)});
  for (const std::uint64_t id : {1u, 2u, 3u}) EXPECT_EQ(take().submit.request_id, RequestId{id});
  EXPECT_FALSE(queue_.take());
  finish(3);
  finish(2);
  EXPECT_EQ(ready(), "") << "the first is not prepared yet";
  finish(1);
  EXPECT_EQ(ready(), "1 2 3 ");
  EXPECT_TRUE(queue_.empty());
}

TEST_F(Preparation, WhatWasSubmittedTogetherEntersTogether) {
  queue_.add({asked(1), asked(2)});
  take();
  finish(1);
  EXPECT_EQ(ready(), "");
  take();
  finish(2);
  EXPECT_EQ(ready(), "1 2 ");
}

TEST_F(Preparation, ACancelledRequestLeavesAtOnceWhateverIsDoneWithIt) {
  queue_.add({asked(1), asked(2), asked(3)});
  queue_.add({asked(4)});
  const auto first = take();
  EXPECT_TRUE(queue_.cancel(RequestId{1})) << "while it is prepared";
  EXPECT_TRUE(first.stop.stop_requested());
  EXPECT_EQ(ready(), "x1 ");
  finish(1);
  EXPECT_EQ(take().submit.request_id, RequestId{2});
  finish(2);
  EXPECT_TRUE(queue_.cancel(RequestId{2})) << "prepared, while the others of its call are not";
  EXPECT_EQ(ready(), "x2 ");
  EXPECT_TRUE(queue_.cancel(RequestId{3})) << "before anybody looked at it";
  EXPECT_EQ(take().submit.request_id, RequestId{4});
  finish(4);
  EXPECT_EQ(ready(), "x3 4 ");
  EXPECT_FALSE(queue_.cancel(RequestId{4})) << "it has entered";
  EXPECT_FALSE(queue_.cancel(RequestId{9}));
  EXPECT_EQ(ready(), "");
  EXPECT_TRUE(queue_.empty());
}

TEST_F(Preparation, ACancelledOutputEntersRightBehindItsRequest) {
  queue_.add({asked(1, {.n = 2}), asked(2)});
  take();
  EXPECT_TRUE(queue_.cancel_output(RequestId{1}, 1));
  finish(1);
  EXPECT_TRUE(queue_.cancel_output(RequestId{1}, 0)) << "prepared, while the others of its call are not";
  take();
  finish(2);
  const auto commands = queue_.take_ready();
  ASSERT_EQ(commands.size(), 4u);
  EXPECT_EQ(std::get<PreparedRequest>(commands[0]).request_id, RequestId{1});
  EXPECT_EQ(std::get<CancelOutput>(commands[1]).output_index, 1);
  EXPECT_EQ(std::get<CancelOutput>(commands[2]).output_index, 0);
  EXPECT_EQ(std::get<PreparedRequest>(commands[3]).request_id, RequestId{2});
  EXPECT_FALSE(queue_.cancel_output(RequestId{1}, 0)) << "it has entered";
}

TEST_F(Preparation, ACancelLetsTheRestOfItsCallIn) {
  queue_.add({asked(1), asked(2)});
  take();
  finish(1);
  queue_.cancel(RequestId{2});
  EXPECT_EQ(ready(), "x2 1 ");
}

TEST_F(Preparation, AnAbandonedRequestHasAsManyOutputsAsItAskedFor) {
  queue_.add({asked(1, {.n = 3}), asked(2, {.beam_width = 2}), asked(3, {.n = -7})});
  for (const std::uint64_t id : {1u, 2u}) {
    queue_.cancel(RequestId{id});
    const auto commands = queue_.take_ready();
    ASSERT_EQ(commands.size(), 1u);
    EXPECT_EQ(std::get<AbandonedRequest>(commands[0]).num_outputs, id == 1 ? 3 : 2);
  }
  take();
  queue_.cancel(RequestId{3});
  EXPECT_EQ(ready(), "!3 ") << "it could never have run";
}

TEST_F(Preparation, AtTheEndEverythingIsAbandoned) {
  queue_.add({asked(1), asked(2)});
  queue_.add({asked(3)});
  const auto job = take();
  finish(1);
  queue_.cancel_all();
  EXPECT_TRUE(queue_.empty());
  EXPECT_EQ(ready(), "x1 x2 x3 ");
  finish(2);
  EXPECT_EQ(ready(), "");
}

}  // namespace
}  // namespace octavo
