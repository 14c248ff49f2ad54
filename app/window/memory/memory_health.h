// The health strip: the figures of engine/metrics with a minute's curves, and what happened lately in plain
// sentences.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/api/kv_snapshot.h"
#include "ui/memory_state.h"

namespace octavo::app {

// `steps` up to the moment of the snapshot. REQUIRES: snapshot is not null
std::vector<ui::HealthFigure> health_figures(const KvSnapshot& snapshot, const ui::ShownPool& pool,
                                             const ui::TimelineState& timeline, std::uint64_t mark);

// Newest first, at most three; one that says so when nothing happened. `now_us` below 0: no age is told.
std::vector<ui::HealthSentence> health_sentences(const KvSnapshot& snapshot,
                                                 const ui::MemoryWorkspaceState& state, std::uint64_t mark,
                                                 std::int64_t now_us);

// Ages count for this long after an event; then its time is told instead.
inline constexpr std::int64_t kAgesCountUs = 5'000'000;

}  // namespace octavo::app
