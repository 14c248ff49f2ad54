#include "engine/scheduler/group_queue.h"

#include <gtest/gtest.h>

#include "engine/scheduler/scheduler.h"

namespace octavo::scheduler {
namespace {

std::unique_ptr<SequenceGroup> group(std::uint64_t request, std::uint64_t first_sequence, std::int32_t n = 1,
                                     RequestPriority priority = RequestPriority::kInteractive) {
  NewRequest added{
      .request_id = RequestId{request}, .prompt_token_ids = {1}, .sampling = {}, .priority = priority};
  added.sampling.n = n;
  return std::make_unique<SequenceGroup>(std::move(added), SequenceId{first_sequence},
                                         /*shares_blocks=*/true);
}

TEST(GroupQueue, APreemptedGroupIsTheNextToStart) {
  GroupQueue queue;
  for (std::uint64_t i = 1; i <= 3; ++i) queue.push_back(group(i, i));
  queue.start_front();
  queue.start_front();
  EXPECT_EQ(queue.preempt_last().request_id, RequestId{2});
  EXPECT_EQ(queue.waiting().front()->request_id, RequestId{2});
  EXPECT_EQ(queue.start_front().request_id, RequestId{2});
  EXPECT_EQ(queue.start_front().request_id, RequestId{3});
}

TEST(GroupQueue, RemovingKeepsTheBorder) {
  GroupQueue queue;
  for (std::uint64_t i = 1; i <= 4; ++i) queue.push_back(group(i, i));
  queue.start_front();
  queue.start_front();
  queue.remove(RequestId{1});
  EXPECT_EQ(queue.running().size(), 1u);
  queue.remove(*queue.groups_of(RequestId{3}).front());
  EXPECT_EQ(queue.running().size(), 1u);
  EXPECT_EQ(queue.waiting().front()->request_id, RequestId{4});
  EXPECT_TRUE(queue.groups_of(RequestId{3}).empty());
}

// As after a first step: each has a token.
SequenceGroup& start_with_output(GroupQueue& queue) {
  SequenceGroup& started = queue.start_front();
  for (Sequence& sequence : started.live()) {
    sequence.status = SequenceStatus::kRunning;
    sequence.append(7);
  }
  return started;
}

TEST(GroupQueue, APausedOutputWaitsBetweenItsSiblingsAndWhoeverIsNewer) {
  GroupQueue queue;
  queue.push_back(group(1, 10, 4));
  queue.push_back(group(2, 14));
  SequenceGroup& first = start_with_output(queue);
  first.sequences[2].status = SequenceStatus::kFinished;
  EXPECT_EQ(queue.pause_last_output(first).first_sequence_id(), SequenceId{13});
  EXPECT_EQ(queue.pause_last_output(first).first_sequence_id(), SequenceId{11}) << "the third has ended";
  EXPECT_FALSE(first.can_pause_output()) << "it is the last one";
  EXPECT_EQ(queue.broken_invariant(), std::nullopt);
  EXPECT_EQ(queue.running().size(), 1u);
  EXPECT_EQ(queue.groups_of(RequestId{1}).size(), 3u);
  for (const std::uint64_t id : {10, 11, 12, 13}) {
    EXPECT_EQ(queue.find(SequenceId{id})->sequence.output_index, id - 10);
    EXPECT_EQ(queue.find(SequenceId{id})->group.request_id, RequestId{1});
  }
  EXPECT_EQ(queue.start_front().first_sequence_id(), SequenceId{11});
  EXPECT_EQ(queue.start_front().first_sequence_id(), SequenceId{13});
  EXPECT_EQ(queue.start_front().first_sequence_id(), SequenceId{14});
}

TEST(GroupQueue, ARequestIsKnownAsLongAsAnOutputOfItIs) {
  GroupQueue queue;
  queue.push_back(group(1, 10, 3));
  queue.push_back(group(2, 13));
  SequenceGroup& first = start_with_output(queue);
  queue.pause_last_output(first);
  queue.remove(first);
  EXPECT_EQ(queue.groups_of(RequestId{1}).size(), 1u);
  EXPECT_EQ(queue.broken_invariant(), std::nullopt);
  queue.remove(RequestId{1});
  EXPECT_TRUE(queue.groups_of(RequestId{1}).empty());
  EXPECT_EQ(queue.waiting().size(), 1u);
  EXPECT_EQ(queue.broken_invariant(), std::nullopt);
}

std::unique_ptr<SequenceGroup> background(std::uint64_t request, std::uint64_t first_sequence,
                                          std::int32_t n = 1) {
  return group(request, first_sequence, n, RequestPriority::kBackground);
}

TEST(GroupQueue, TheInteractiveLineStartsFirstAndIsPreemptedLast) {
  GroupQueue queue;
  queue.push_back(background(1, 1));
  queue.push_back(background(2, 2));
  queue.start_front();
  queue.start_front();
  EXPECT_FALSE(queue.is_mixed());
  queue.push_back(group(3, 3));
  queue.push_back(background(4, 4));
  queue.push_back(group(5, 5));
  EXPECT_TRUE(queue.is_mixed());
  EXPECT_EQ(queue.start_front().request_id, RequestId{3});
  EXPECT_EQ(queue.start_front().request_id, RequestId{5});
  EXPECT_EQ(queue.broken_invariant(), std::nullopt);
  for (const std::uint64_t request : {2, 1, 5, 3})
    EXPECT_EQ(queue.preempt_last().request_id, RequestId{request}) << "background first, latest first";
  EXPECT_EQ(queue.broken_invariant(), std::nullopt);
  for (const std::uint64_t request : {3, 5, 1, 2, 4})
    EXPECT_EQ(queue.start_front().request_id, RequestId{request});
  EXPECT_EQ(queue.broken_invariant(), std::nullopt);
}

TEST(GroupQueue, ARequestOfTheBackgroundLineIsFoundWhereverItsOutputsAre) {
  GroupQueue queue;
  queue.push_back(background(1, 10, 3));
  SequenceGroup& first = start_with_output(queue);
  queue.pause_last_output(first);
  queue.push_back(group(2, 13));
  queue.push_back(group(3, 14));
  queue.start_front();
  ASSERT_EQ(queue.groups_of(RequestId{1}).size(), 2u);
  EXPECT_EQ(queue.groups_of(RequestId{1}).front(), &first);
  EXPECT_EQ(queue.find(SequenceId{12})->sequence.output_index, 2u);
  EXPECT_EQ(queue.find(SequenceId{13})->group.request_id, RequestId{2});
  EXPECT_EQ(queue.by_arrival().front(), &first);
  EXPECT_EQ(queue.by_arrival().size(), 4u);
  EXPECT_EQ(queue.broken_invariant(), std::nullopt);
  queue.remove(RequestId{1});
  EXPECT_EQ(queue.running().size(), 1u);
  EXPECT_EQ(queue.waiting().size(), 1u);
}

TEST(GroupQueue, BrokenInvariantsAreFound) {
  GroupQueue queue;
  queue.push_back(group(1, 10, 2));
  SequenceGroup& first = start_with_output(queue);
  for (Sequence& sequence : first.sequences) sequence.status = SequenceStatus::kFinished;
  EXPECT_EQ(queue.broken_invariant(), "a group of request 1 has ended and is still there");
}

TEST(GroupQueue, FindsSequencesOfGroupsOfAnySize) {
  GroupQueue queue;
  queue.push_back(group(1, 10, 3));
  queue.push_back(group(2, 13, 1));
  queue.push_back(group(3, 20, 2));
  EXPECT_FALSE(queue.find(SequenceId{9}));
  EXPECT_EQ(queue.find(SequenceId{12})->sequence.output_index, 2u);
  EXPECT_EQ(queue.find(SequenceId{13})->group.request_id, RequestId{2});
  EXPECT_FALSE(queue.find(SequenceId{14}));
  EXPECT_EQ(queue.find(SequenceId{21})->group.request_id, RequestId{3});
  EXPECT_FALSE(queue.find(SequenceId{22}));
}

TEST(GroupQueue, StopsAtWhatNoCallerMayDo) {
  GroupQueue queue;
  EXPECT_DEATH(queue.start_front(), "no group waits");
  EXPECT_DEATH(queue.preempt_last(), "no group runs");
  queue.push_back(group(1, 10));
  EXPECT_DEATH(queue.push_back(group(1, 11)), "request 1 is known");
  EXPECT_DEATH(queue.push_back(group(2, 10)), "must ascend");
  EXPECT_DEATH(queue.remove(*group(3, 12)), "is not in the queue");
  queue.push_back(group(4, 20, 2));
  EXPECT_DEATH(queue.pause_last_output(*queue.groups_of(RequestId{4}).front()),
               "no output that could be paused");
  queue.start_front();
  queue.start_front();
  EXPECT_DEATH(queue.pause_last_output(*queue.groups_of(RequestId{1}).front()), "a newer group runs");
}

}  // namespace
}  // namespace octavo::scheduler
