#include "engine/base/calendar.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

namespace octavo {
namespace {

constexpr std::int64_t kSecond = 1000, kHour = 3600 * kSecond, kDay = 24 * kHour;
constexpr std::int64_t kNewYear2026 = 1'767'225'600 * kSecond;  // UTC

class Calendar : public ::testing::Test {
 protected:
  Calendar() {
    if (const char* zone = std::getenv("TZ")) before_ = zone;
  }
  ~Calendar() override { before_.empty() ? ::unsetenv("TZ") : ::setenv("TZ", before_.c_str(), 1), ::tzset(); }
  // As POSIX writes zones, which needs no table of them.
  static void use_zone(const char* zone) {
    ::setenv("TZ", zone, 1);
    ::tzset();
  }
  static std::int64_t at(int year, int month, int day, int hour, int minute = 0, int second = 0) {
    std::tm parts{};
    parts.tm_year = year - 1900, parts.tm_mon = month - 1, parts.tm_mday = day;
    parts.tm_hour = hour, parts.tm_min = minute, parts.tm_sec = second, parts.tm_isdst = -1;
    return static_cast<std::int64_t>(std::mktime(&parts)) * kSecond;
  }
  static std::string label(std::int64_t now_ms, std::int64_t then_ms) {
    for (const DaySpan& span : day_spans(now_ms, then_ms)) {
      if (then_ms >= span.begin_ms) return span.label;
    }
    return "none";
  }

 private:
  std::string before_;
};

TEST_F(Calendar, TimesReadAsPeopleWriteThem) {
  use_zone("UTC0");
  const std::int64_t time = kNewYear2026 + 14 * kHour + 3 * 60 * kSecond + 5 * kSecond + 999;
  EXPECT_EQ(time_of_day_text(time), "14:03");
  EXPECT_EQ(date_time_text(time), "1 January 2026, 14:03");
  EXPECT_EQ(full_time_text(time), "Thursday, 1 January 2026, 14:03:05");
  EXPECT_EQ(short_time_text(time, kNewYear2026), "14:03");
  EXPECT_EQ(short_time_text(time, kNewYear2026 + kDay), "1 Jan 14:03");
  EXPECT_EQ(short_time_text(kNewYear2026 - 1, kNewYear2026), "31 Dec 2025 23:59");
  use_zone("XYZ-5:30");
  EXPECT_EQ(date_time_text(kNewYear2026), "1 January 2026, 05:30");
}

TEST_F(Calendar, DaysEndAtMidnightOfTheZone) {
  use_zone("EST5EDT,M3.2.0,M11.1.0");
  const std::int64_t midnight = at(2026, 11, 24, 0);
  EXPECT_EQ(label(midnight, midnight), "Today");
  EXPECT_EQ(label(midnight, midnight - 1), "Yesterday");
  EXPECT_EQ(label(midnight - 1, midnight - 1), "Today");
  EXPECT_EQ(label(midnight, midnight + kDay), "Today") << "a clock that was set back";
  EXPECT_EQ(label(midnight, at(2026, 11, 23, 0)), "Yesterday");
  EXPECT_EQ(label(midnight, at(2026, 11, 23, 0) - 1), "Previous 7 days");
  EXPECT_EQ(label(midnight, at(2026, 11, 17, 0)), "Previous 7 days");
  EXPECT_EQ(label(midnight, at(2026, 11, 17, 0) - 1), "November");
  EXPECT_EQ(label(midnight, at(2026, 10, 31, 23, 59)), "October");
  EXPECT_EQ(label(midnight, at(2025, 12, 31, 23, 59)), "December 2025");
  EXPECT_EQ(label(midnight, 0), "Older");
  EXPECT_EQ(day_begin_ms(midnight), midnight);
  EXPECT_EQ(day_begin_ms(midnight - 1), at(2026, 11, 23, 0));
  EXPECT_EQ(day_begin_ms(midnight, 1), at(2026, 11, 25, 0));
}

TEST_F(Calendar, DaysOfTwentyThreeAndTwentyFiveHoursAreDays) {
  use_zone("CET-1CEST,M3.5.0,M10.5.0/3");
  for (const auto& [month, day, hours] : {std::tuple{3, 29, 23}, std::tuple{10, 25, 25}}) {
    const std::int64_t begin = at(2026, month, day, 0), end = at(2026, month, day + 1, 0);
    EXPECT_EQ(end - begin, hours * kHour);
    for (std::int64_t time = begin; time < end; time += kHour / 4) {
      EXPECT_EQ(day_begin_ms(time), begin);
      EXPECT_EQ(day_begin_ms(time, 1), end);
      EXPECT_EQ(day_begin_ms(end + kHour, -1), begin);
    }
    EXPECT_EQ(label(end, begin), "Yesterday");
    EXPECT_EQ(label(end, begin - 1), "Previous 7 days");
    EXPECT_EQ(label(end + 6 * kDay, begin), "Previous 7 days");
  }
}

// Clocks that change at midnight: the day begins at one o'clock, or its first hour comes twice.
TEST_F(Calendar, MidnightThatIsSkippedOrComesTwiceBeginsOneDay) {
  use_zone("AAA3BBB,M3.5.0/0,M10.5.0/1");
  const std::int64_t skipped = day_begin_ms(at(2026, 3, 29, 12));
  EXPECT_EQ(time_of_day_text(skipped), "01:00");
  EXPECT_EQ(day_begin_ms(skipped - 1), at(2026, 3, 28, 0));
  EXPECT_EQ(day_begin_ms(skipped - 1, 1), skipped);
  const std::int64_t twice = day_begin_ms(at(2026, 10, 25, 12));
  EXPECT_EQ(time_of_day_text(twice), "00:00");
  EXPECT_EQ(time_of_day_text(twice + kHour), "00:00") << "again";
  EXPECT_EQ(day_begin_ms(twice + kHour), twice);
  EXPECT_EQ(time_of_day_text(twice - 1), "23:59");
}

TEST_F(Calendar, EveryDayOfManyYearsBeginsWhereTheOneBeforeEnds) {
  for (const char* zone : {"UTC0", "CET-1CEST,M3.5.0,M10.5.0/3", "AAA3BBB,M3.5.0/0,M10.5.0/1",
                           "LHST-10:30LHDT-11,M10.1.0,M4.1.0", "NZST-12NZDT,M9.5.0,M4.1.0/3"}) {
    use_zone(zone);
    std::int64_t begin = day_begin_ms(kNewYear2026);
    for (int day = 0; day < 800; ++day) {
      const std::int64_t next = day_begin_ms(begin, 1);
      ASSERT_GE(next - begin, 23 * kHour) << zone << " day " << day;
      ASSERT_LE(next - begin, 25 * kHour) << zone << " day " << day;
      ASSERT_EQ(day_begin_ms(next - 1), begin) << zone << " day " << day;
      ASSERT_EQ(day_begin_ms(next), next);
      begin = next;
    }
  }
}

}  // namespace
}  // namespace octavo
