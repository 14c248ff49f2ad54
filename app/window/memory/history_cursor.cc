#include "app/window/memory/history_cursor.h"

#include <algorithm>
#include <iterator>

namespace octavo::app {
namespace {

constexpr double kLongestSilenceUs = 1'000'000;

}  // namespace

// Steps are fewer than events: the end of the last step that had begun by then.
std::uint64_t mark_at(const HistorySource& source, std::int64_t time_us) {
  const auto& steps = source.timeline.state().steps;
  const auto after = std::partition_point(steps.begin(), steps.end(), [&](const ui::TimelineStep& step) {
    return step.record.begin_us <= time_us;
  });
  if (after == steps.begin()) return source.history.oldest_mark();
  const bool is_last = after == steps.end();
  if (is_last && time_us >= source.timeline.state().newest_us) return source.history.newest_mark();
  return std::max(source.history.oldest_mark(), std::prev(after)->mark);
}

std::uint64_t mark_of_next_step(const HistorySource& source, std::uint64_t mark, std::int64_t offset) {
  const auto& steps = source.timeline.state().steps;
  const auto mark_of = [](const ui::TimelineStep& step) { return step.mark; };
  if (offset > 0) {
    const auto next = std::ranges::upper_bound(steps, mark, {}, mark_of);
    return next == steps.end() ? source.history.newest_mark() : next->mark;
  }
  const auto here = std::ranges::lower_bound(steps, mark, {}, mark_of);
  return here == steps.begin() ? source.history.oldest_mark() : std::prev(here)->mark;
}

std::uint64_t mark_after(const MemoryHistory& history, const ui::MemoryCursor& cursor, double gone_us) {
  const std::int64_t until_us = cursor.time_us + static_cast<std::int64_t>(gone_us);
  std::uint64_t mark = cursor.mark;
  for (const auto& stretch : history.events_between(cursor.mark, history.newest_mark())) {
    for (const BlockEvent& event : stretch.events) {
      if (event.time_us > until_us) break;
      ++mark;
    }
    if (mark < stretch.first_mark + stretch.events.size()) break;
  }
  if (mark == cursor.mark && gone_us > kLongestSilenceUs && mark < history.newest_mark()) ++mark;
  return mark;
}

}  // namespace octavo::app
