// Dates and times of the day as people read them, in this machine's zone (TZ, else the system's).
//
// Days begin where the zone says so: an hour that a clock skips or repeats belongs to exactly one of them.
// Times are milliseconds since 1970, UTC. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace octavo {

// When the day that holds this moment began; another one so many days later (negative: earlier).
std::int64_t day_begin_ms(std::int64_t unix_ms, int days_later = 0);

// "14:32"
std::string time_of_day_text(std::int64_t unix_ms);
// "14:32" since `today_begin_ms`, "24 Nov 14:32" in the year of that day, else "24 Nov 2025 14:32".
std::string short_time_text(std::int64_t unix_ms, std::int64_t today_begin_ms);
// "24 November 2026, 14:32"
std::string date_time_text(std::int64_t unix_ms);
// "Tuesday, 24 November 2026, 14:32:05"
std::string full_time_text(std::int64_t unix_ms);

// Days that are shown under one heading.
struct DaySpan {
  std::string label;          // "Today", "November", "December 2025"
  std::int64_t begin_ms = 0;  // the end is the beginning of the one before in the list
  friend bool operator==(const DaySpan&, const DaySpan&) = default;
};

// Today, yesterday, the seven days before today, and months back to the one that holds `oldest_ms`: newest
// first. What lies ahead of now counts as today; what is older than ten years is "Older".
std::vector<DaySpan> day_spans(std::int64_t now_ms, std::int64_t oldest_ms);

// Which of them holds the moment; their number when none does.
std::size_t index_of_span(const std::vector<DaySpan>& spans, std::int64_t unix_ms);

}  // namespace octavo
