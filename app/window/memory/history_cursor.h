// Where the cursor of the Memory workspace goes in a history. Marks; UI thread.
#pragma once

#include <cstdint>

#include "app/window/memory/history_source.h"
#include "ui/memory_state.h"

namespace octavo::app {

// The last moment at or before this time.
std::uint64_t mark_at(const HistorySource& source, std::int64_t time_us);
// The end of the step after or before `mark`; `offset` says by its sign which.
std::uint64_t mark_of_next_step(const HistorySource& source, std::uint64_t mark, std::int64_t offset);
// How far playing comes in `gone_us` of the history's own time. Silence is cut short.
std::uint64_t mark_after(const MemoryHistory& history, const ui::MemoryCursor& cursor, double gone_us);

}  // namespace octavo::app
