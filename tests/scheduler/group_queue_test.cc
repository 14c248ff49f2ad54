#include "engine/scheduler/group_queue.h"

#include <gtest/gtest.h>

#include "engine/scheduler/scheduler.h"

namespace octavo::scheduler {
namespace {

std::unique_ptr<SequenceGroup> group(std::uint64_t request, std::uint64_t first_sequence,
                                     std::int32_t n = 1) {
  NewRequest added{.request_id = RequestId{request}, .prompt_token_ids = {1}, .sampling = {}};
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
  queue.remove(*queue.find(RequestId{1}));
  EXPECT_EQ(queue.running().size(), 1u);
  queue.remove(*queue.find(RequestId{3}));
  EXPECT_EQ(queue.running().size(), 1u);
  EXPECT_EQ(queue.waiting().front()->request_id, RequestId{4});
  EXPECT_EQ(queue.find(RequestId{3}), nullptr);
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
}

}  // namespace
}  // namespace octavo::scheduler
