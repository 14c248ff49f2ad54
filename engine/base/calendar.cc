#include "engine/base/calendar.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <limits>

namespace octavo {
namespace {

constexpr std::array kMonths = {"January", "February", "March",     "April",   "May",      "June",
                                "July",    "August",   "September", "October", "November", "December"};
constexpr std::array kDays = {"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};
constexpr std::time_t kHour = 3600;
constexpr int kMostMonths = 120;

// Milliseconds before 1970 round down, too.
std::time_t seconds_of(std::int64_t unix_ms) {
  return static_cast<std::time_t>(unix_ms >= 0 ? unix_ms / 1000 : -((999 - unix_ms) / 1000));
}

std::tm parts_of(std::time_t seconds) {
  std::tm parts{};
  if (::localtime_r(&seconds, &parts) == nullptr) parts = {};  // beyond any calendar
  return parts;
}

bool same_day(const std::tm& a, const std::tm& b) {
  return a.tm_year == b.tm_year && a.tm_mon == b.tm_mon && a.tm_mday == b.tm_mday;
}

// The first moment of a day. A clock may skip midnight, or strike it twice.
std::int64_t begin_of_day(int year, int month, int day) {
  std::tm noon{};
  noon.tm_year = year;
  noon.tm_mon = month;
  noon.tm_mday = day;
  noon.tm_hour = 12;
  noon.tm_isdst = -1;
  const std::time_t middle = std::mktime(&noon);  // which also makes the day one of its month
  std::tm midnight = noon;
  midnight.tm_hour = 0;
  midnight.tm_isdst = -1;
  std::time_t begin = std::mktime(&midnight);
  while (begin < middle && !same_day(parts_of(begin), noon)) begin += kHour / 4;
  while (same_day(parts_of(begin - kHour / 4), noon)) begin -= kHour / 4;
  return static_cast<std::int64_t>(begin) * 1000;
}

std::string two_digits(int value) { return std::to_string(100 + value).substr(1); }

std::string month_of(const std::tm& parts) { return kMonths[static_cast<std::size_t>(parts.tm_mon)]; }
std::string year_of(const std::tm& parts) { return std::to_string(parts.tm_year + 1900); }

}  // namespace

std::int64_t day_begin_ms(std::int64_t unix_ms, int days_later) {
  const std::tm parts = parts_of(seconds_of(unix_ms));
  return begin_of_day(parts.tm_year, parts.tm_mon, parts.tm_mday + days_later);
}

std::string time_of_day_text(std::int64_t unix_ms) {
  const std::tm parts = parts_of(seconds_of(unix_ms));
  return two_digits(parts.tm_hour) + ":" + two_digits(parts.tm_min);
}

std::string short_time_text(std::int64_t unix_ms, std::int64_t today_begin_ms) {
  const std::string time = time_of_day_text(unix_ms);
  if (unix_ms >= today_begin_ms) return time;
  const std::tm parts = parts_of(seconds_of(unix_ms)), today = parts_of(seconds_of(today_begin_ms));
  const std::string day = std::to_string(parts.tm_mday) + " " + month_of(parts).substr(0, 3);
  return day + (parts.tm_year == today.tm_year ? " " : " " + year_of(parts) + " ") + time;
}

std::string date_time_text(std::int64_t unix_ms) {
  const std::tm parts = parts_of(seconds_of(unix_ms));
  return std::to_string(parts.tm_mday) + " " + month_of(parts) + " " + year_of(parts) + ", " +
         time_of_day_text(unix_ms);
}

std::string full_time_text(std::int64_t unix_ms) {
  const std::tm parts = parts_of(seconds_of(unix_ms));
  return std::string(kDays[static_cast<std::size_t>(parts.tm_wday)]) + ", " + date_time_text(unix_ms) + ":" +
         two_digits(parts.tm_sec);
}

std::vector<DaySpan> day_spans(std::int64_t now_ms, std::int64_t oldest_ms) {
  std::vector<DaySpan> spans = {{"Today", day_begin_ms(now_ms)},
                                {"Yesterday", day_begin_ms(now_ms, -1)},
                                {"Previous 7 days", day_begin_ms(now_ms, -7)}};
  const std::tm now = parts_of(seconds_of(now_ms));
  std::tm month = parts_of(seconds_of(spans.back().begin_ms) - 1);
  for (int i = 0; i < kMostMonths && oldest_ms < spans.back().begin_ms; ++i) {
    const bool this_year = month.tm_year == now.tm_year;
    spans.push_back({this_year ? month_of(month) : month_of(month) + " " + year_of(month),
                     begin_of_day(month.tm_year, month.tm_mon, 1)});
    month = parts_of(seconds_of(spans.back().begin_ms) - 1);
  }
  if (oldest_ms < spans.back().begin_ms) spans.push_back({"Older", std::numeric_limits<std::int64_t>::min()});
  return spans;
}

std::size_t index_of_span(const std::vector<DaySpan>& spans, std::int64_t unix_ms) {
  const auto found =
      std::find_if(spans.begin(), spans.end(), [&](const DaySpan& span) { return unix_ms >= span.begin_ms; });
  return static_cast<std::size_t>(found - spans.begin());
}

}  // namespace octavo
