#include "engine/chat_template/civil_time.h"

#include <array>
#include <chrono>
#include <cstdio>

#include "engine/base/text.h"

namespace octavo::tokenizer {
namespace {

struct CivilTime {
  int year, month, day, weekday, day_of_year, hour, minute, second;
};

CivilTime civil_time(std::int64_t seconds) {
  using namespace std::chrono;  // NOLINT: calendar arithmetic is unreadable otherwise
  const sys_seconds time{std::chrono::seconds{seconds}};
  const sys_days day = floor<days>(time);
  const year_month_day date(day);
  const hh_mm_ss clock(time - day);
  const auto day_of_year = (day - sys_days(date.year() / January / 1)).count() + 1;
  return {static_cast<int>(date.year()),
          static_cast<int>(static_cast<unsigned>(date.month())),
          static_cast<int>(static_cast<unsigned>(date.day())),
          static_cast<int>(weekday(day).c_encoding()),
          static_cast<int>(day_of_year),
          static_cast<int>(clock.hours().count()),
          static_cast<int>(clock.minutes().count()),
          static_cast<int>(clock.seconds().count())};
}

constexpr std::array<std::string_view, 12> kMonths = {"January",   "February", "March",    "April",
                                                      "May",       "June",     "July",     "August",
                                                      "September", "October",  "November", "December"};
constexpr std::array<std::string_view, 7> kWeekdays = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                       "Thursday", "Friday", "Saturday"};

std::string padded(int value, int width, bool with_zeros) {
  std::array<char, 24> buffer{};
  std::snprintf(buffer.data(), buffer.size(), with_zeros ? "%0*d" : "%*d", width, value);
  return buffer.data();
}

// Empty for an unknown conversion.
std::string convert(char kind, bool unpadded, const CivilTime& t) {
  const auto two = [&](int value) { return unpadded ? std::to_string(value) : padded(value, 2, true); };
  const std::string_view month = kMonths[static_cast<std::size_t>(t.month - 1)];
  const std::string_view weekday = kWeekdays[static_cast<std::size_t>(t.weekday)];
  switch (kind) {
    case 'a': return std::string(weekday.substr(0, 3));
    case 'A': return std::string(weekday);
    case 'b': return std::string(month.substr(0, 3));
    case 'B': return std::string(month);
    case 'd': return two(t.day);
    case 'e': return padded(t.day, 2, false);
    case 'H': return two(t.hour);
    case 'I': return two(t.hour % 12 == 0 ? 12 : t.hour % 12);
    case 'j': return unpadded ? std::to_string(t.day_of_year) : padded(t.day_of_year, 3, true);
    case 'm': return two(t.month);
    case 'M': return two(t.minute);
    case 'p': return t.hour < 12 ? "AM" : "PM";
    case 'S': return two(t.second);
    case 'y': return two(t.year % 100);
    case 'Y': return std::to_string(t.year);
    case 'F': return std::to_string(t.year) + "-" + padded(t.month, 2, true) + "-" + padded(t.day, 2, true);
    case 'T':
      return padded(t.hour, 2, true) + ":" + padded(t.minute, 2, true) + ":" + padded(t.second, 2, true);
    case '%': return "%";
    default: return {};
  }
}

}  // namespace

Result<std::string> format_time(std::string_view format, std::int64_t seconds) {
  constexpr std::int64_t kLastSecond = 253402300799;  // 9999-12-31 23:59:59
  if (seconds < 0 || seconds > kLastSecond)
    return Error{ErrorCode::kInvalidArgument, "the date is outside 1970 to 9999"};
  const CivilTime time = civil_time(seconds);
  std::string out;
  for (std::size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      out.push_back(format[i]);
      continue;
    }
    const bool unpadded = i + 1 < format.size() && format[i + 1] == '-';
    i += unpadded ? 2 : 1;
    const std::string converted = i < format.size() ? convert(format[i], unpadded, time) : std::string();
    if (converted.empty()) {
      return Error{ErrorCode::kInvalidArgument, "the date format \"" + escape_for_message(format, 60) +
                                                    "\" has a conversion that is not supported"};
    }
    out += converted;
  }
  return out;
}

}  // namespace octavo::tokenizer
