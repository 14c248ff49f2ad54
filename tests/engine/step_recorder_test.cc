#include "engine/metrics/step_recorder.h"

#include <gtest/gtest.h>

#include <vector>

namespace octavo::metrics {
namespace {

TEST(Ring, TellsHowManyRecordsAReaderMissed) {
  Ring<int> ring(4);
  std::vector<int> read;
  EXPECT_EQ(ring.copy_since(0, read), 0u);
  for (int value = 0; value < 10; ++value) ring.append(value);
  EXPECT_EQ(ring.copy_since(3, read), 3u);  // 3, 4 and 5 are gone
  EXPECT_EQ(read, (std::vector<int>{6, 7, 8, 9}));
  read.clear();
  EXPECT_EQ(ring.copy_since(8, read), 0u);
  EXPECT_EQ(read, (std::vector<int>{8, 9}));
  read.clear();
  EXPECT_EQ(ring.copy_since(ring.next_mark(), read), 0u);
  EXPECT_EQ(ring.copy_since(ring.next_mark() + 5, read), 0u);
  EXPECT_TRUE(read.empty());
}

TEST(Ring, EqualsAPlainListOfEverything) {
  for (const std::size_t capacity : {1u, 3u, 7u}) {
    Ring<std::uint64_t> ring(capacity);
    std::uint64_t num_appended = 0, mark = 0, num_read = 0, num_lost = 0;
    for (std::uint64_t round = 0; round < 50; ++round) {
      for (std::uint64_t count = 0; count < round % 11; ++count) ring.append(num_appended++);
      std::vector<std::uint64_t> read;
      num_lost += ring.copy_since(mark, read);
      num_read += read.size();
      mark = ring.next_mark();
      for (std::size_t index = 0; index < read.size(); ++index) {
        EXPECT_EQ(read[index], num_appended - read.size() + index);
      }
      EXPECT_EQ(num_read + num_lost, num_appended);
    }
  }
}

TEST(StepRecorder, GivesEachRecordOnce) {
  StepRecorder recorder({.num_blocks = 4}, {.num_steps = 8, .num_events = 8, .num_segment_events = 3});
  const std::vector<BlockEvent> events(3);
  recorder.record(StepRecord{.step = 1}, events);
  recorder.record(std::nullopt, events);
  const Trace first = recorder.read_since(0, 0);
  EXPECT_EQ(first.steps.size(), 1u);
  EXPECT_EQ(first.step_event_marks, std::vector<std::uint64_t>{3});
  EXPECT_EQ(first.block_events.size(), 6u);
  EXPECT_EQ(first.num_lost, 0u);
  recorder.record(StepRecord{.step = 2}, events);
  const Trace second = recorder.read_since(first.next_step_mark, first.next_event_mark);
  ASSERT_EQ(second.steps.size(), 1u);
  EXPECT_EQ(second.steps[0].step, 2);
  EXPECT_EQ(second.step_event_marks, std::vector<std::uint64_t>{9});
  EXPECT_EQ(second.block_events.size(), 3u);
  recorder.record(std::nullopt, events);
  EXPECT_EQ(recorder.read_since(0, 0).num_lost, 3u);  // the oldest three: the others are more than eight
  EXPECT_EQ(recorder.oldest_event_mark(), 3u);
}

}  // namespace
}  // namespace octavo::metrics
