#include "app/window/platform/frame_pacing.h"

#include <gtest/gtest.h>

namespace octavo::app {
namespace {

constexpr std::int64_t kMs = 1000;

// Draws every frame that is due in [from, to), looking every millisecond; how many there were.
int frames_between(FramePacing& pacing, std::int64_t from_us, std::int64_t to_us, bool caret) {
  int frames = 0;
  for (std::int64_t now = from_us; now < to_us; now += kMs) {
    if (!pacing.frame_due(now)) continue;
    pacing.on_frame(now, caret);
    ++frames;
  }
  return frames;
}

TEST(FramePacing, IdleDrawsNothing) {
  FramePacing pacing;
  frames_between(pacing, 0, 10'000 * kMs, false);
  EXPECT_EQ(frames_between(pacing, 10'000 * kMs, 20'000 * kMs, false), 0);
  EXPECT_LT(pacing.seconds_to_wait(20'000 * kMs), 0);
}

TEST(FramePacing, InputIsAnsweredAtOnceAndSettles) {
  FramePacing pacing;
  frames_between(pacing, 0, 10'000 * kMs, false);
  pacing.on_input(10'000 * kMs);
  EXPECT_TRUE(pacing.frame_due(10'000 * kMs));
  EXPECT_EQ(frames_between(pacing, 10'000 * kMs, 12'000 * kMs, false), 5);
  EXPECT_EQ(frames_between(pacing, 12'000 * kMs, 20'000 * kMs, false), 0);
}

TEST(FramePacing, StreamingIsDrawnThirtyTimesASecond) {
  FramePacing pacing;
  frames_between(pacing, 0, 10'000 * kMs, false);
  int frames = 0;
  for (std::int64_t now = 10'000 * kMs; now < 11'000 * kMs; now += kMs) {
    pacing.on_change(now);
    if (!pacing.frame_due(now)) continue;
    pacing.on_frame(now, false);
    ++frames;
  }
  EXPECT_GE(frames, 28);
  EXPECT_LE(frames, 31);
}

TEST(FramePacing, CaretBlinksForFiveSecondsAndThenStandsStill) {
  FramePacing pacing;
  frames_between(pacing, 0, 10'000 * kMs, true);
  pacing.on_input(10'000 * kMs);
  EXPECT_GE(frames_between(pacing, 10'000 * kMs, 15'000 * kMs, true), 12);
  EXPECT_TRUE(pacing.caret_blinks(14'900 * kMs));
  EXPECT_FALSE(pacing.caret_blinks(15'000 * kMs));
  EXPECT_EQ(frames_between(pacing, 15'000 * kMs, 15'100 * kMs, true), 1);  // the one with a still caret
  EXPECT_EQ(frames_between(pacing, 15'100 * kMs, 30'000 * kMs, true), 0);
}

}  // namespace
}  // namespace octavo::app
