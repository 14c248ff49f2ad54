// Notices leave by themselves; errors do not.

#include "app/window/notice_timer.h"

#include <gtest/gtest.h>

namespace octavo::app {
namespace {

constexpr std::int64_t kSecond = 1'000'000;

std::optional<ui::Banner> notice(const std::string& text) {
  return ui::Banner{.kind = ui::BannerKind::kNotice, .text = text};
}

TEST(NoticeTimer, ANoticeLeavesOnceItCouldBeRead) {
  NoticeTimer timer;
  std::optional<ui::Banner> banner = notice("Attached notes.txt.");
  EXPECT_FALSE(timer.update(banner, 10 * kSecond));
  ASSERT_TRUE(timer.due_us());
  EXPECT_FALSE(timer.update(banner, *timer.due_us() - 1));
  EXPECT_TRUE(banner);
  EXPECT_TRUE(timer.update(banner, *timer.due_us()));
  EXPECT_FALSE(banner);
  EXPECT_FALSE(timer.due_us());
}

TEST(NoticeTimer, ALongOneStaysLonger) {
  NoticeTimer brief, lengthy;
  std::optional<ui::Banner> one = notice("Done."), other = notice(std::string(200, 'a'));
  brief.update(one, 0);
  lengthy.update(other, 0);
  EXPECT_GT(*lengthy.due_us(), *brief.due_us() + 5 * kSecond);
}

TEST(NoticeTimer, AnotherNoticeHasItsOwnTime) {
  NoticeTimer timer;
  std::optional<ui::Banner> banner = notice("First.");
  timer.update(banner, 0);
  const std::int64_t first = *timer.due_us();
  banner = notice("Second.");
  EXPECT_FALSE(timer.update(banner, first));
  EXPECT_TRUE(banner);
  EXPECT_GT(*timer.due_us(), first);
}

TEST(NoticeTimer, AnErrorStays) {
  NoticeTimer timer;
  std::optional<ui::Banner> banner = notice("Going.");
  timer.update(banner, 0);
  banner = ui::Banner{.kind = ui::BannerKind::kError, .text = "It is gone."};
  EXPECT_FALSE(timer.update(banner, 1'000 * kSecond));
  EXPECT_TRUE(banner);
  EXPECT_FALSE(timer.due_us());
}

TEST(NoticeTimer, WhatAnErrorWasAboutTakesItAway) {
  std::optional<ui::Banner> banner =
      ui::Banner{.kind = ui::BannerKind::kError, .text = "cannot save", .topic = ui::BannerTopic::kSettings};
  ui::settle(banner, ui::BannerTopic::kModel);
  EXPECT_TRUE(banner);
  ui::settle(banner, ui::BannerTopic::kSettings);
  EXPECT_FALSE(banner);
}

}  // namespace
}  // namespace octavo::app
