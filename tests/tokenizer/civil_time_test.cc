#include "engine/chat_template/civil_time.h"

#include <gtest/gtest.h>

#include <array>
#include <ctime>

namespace octavo::tokenizer {
namespace {

TEST(CivilTime, FormatsAsTheCalendarDoes) {
  constexpr std::string_view kFormat =
      "%A %a %B %b %Y-%m-%d %H:%M:%S %j %p %I %e %F %T %-d/%-m/%-H/%-I/%-j 100%%";
  for (std::int64_t seconds = 0; seconds < 4'000'000'000; seconds += 39'999'983) {
    const std::time_t time = seconds;
    std::tm utc{};
    gmtime_r(&time, &utc);
    std::array<char, 200> expected{};
    std::strftime(expected.data(), expected.size(),
                  "%A %a %B %b %Y-%m-%d %H:%M:%S %j %p %I %e %F %T %-d/%-m/%-H/%-I/%-j 100%%", &utc);
    const auto text = format_time(kFormat, seconds);
    ASSERT_TRUE(text);
    EXPECT_EQ(*text, expected.data()) << seconds;
  }
}

TEST(CivilTime, WhatItDoesNotKnowIsAnError) {
  EXPECT_FALSE(format_time("%Q", 0));
  EXPECT_FALSE(format_time("%", 0));
  EXPECT_FALSE(format_time("%-", 0));
  EXPECT_FALSE(format_time("%Y", -1));
  EXPECT_FALSE(format_time("%Y", 1'000'000'000'000'000));
}

}  // namespace
}  // namespace octavo::tokenizer
