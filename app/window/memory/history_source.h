// A source of what the Memory workspace shows: the engine that runs, a recording, or a chapter of the tour.
// All three are a recorder that is read; the engine's goes on while it is.
//
// A value type; UI thread, or that of whoever makes one.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "app/window/memory/explain_tour.h"
#include "app/window/memory/memory_history.h"
#include "app/window/memory/memory_timeline.h"
#include "engine/api/model_description.h"
#include "engine/metrics/step_recorder.h"
#include "ui/memory_state.h"

namespace octavo::app {

struct HistorySource {
  ui::MemorySource kind = ui::MemorySource::kLive;
  ui::ShownPool pool;
  MemoryHistory history;
  MemoryTimeline timeline = {};
  std::shared_ptr<const KvSnapshot> newest = {};  // the engine's own; none: replayed

  // Of the tour and of lessons.
  std::string title = {};
  WordsOfSequences words = {};
  std::vector<TourStop> stops = {};
  std::size_t stop = 0;

  bool is_walked() const { return !stops.empty(); }
  // What the recorder holds since the last time.
  void add(const metrics::Trace& trace);
};

std::unique_ptr<HistorySource> live_source(const EngineDescription& description,
                                           std::shared_ptr<const metrics::StepRecorder> recorder);
std::unique_ptr<HistorySource> tour_source(TourChapter chapter);

}  // namespace octavo::app
