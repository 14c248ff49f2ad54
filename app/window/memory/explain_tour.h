// The "Explain" tour: short scripted chapters on a tiny pool, each run by the real engine core with a runner
// that knows its words beforehand, and told step by step in sentences made from the events.
//
// A chapter is played whole at once; walking through it is moving a cursor over its history. In the last one
// the visitor types what is asked.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "app/window/memory/slot_map.h"
#include "engine/api/kv_snapshot.h"
#include "engine/base/result.h"
#include "engine/metrics/recording_format.h"
#include "engine/metrics/step_recorder.h"
#include "ui/tour_state.h"

namespace octavo::app {

// A place to stop and say something.
using TourStop = metrics::RecordedLesson::Stop;

struct TourChapter {
  std::string title = {};
  std::int64_t bytes_per_block = 0, bytes_per_state = 0, bytes_per_window_block = 0;
  std::int32_t max_model_len = 0;
  std::shared_ptr<const metrics::StepRecorder> recorder = {};  // what happened
  std::vector<TourStop> stops = {};                            // at least two
  std::vector<KvSnapshot> snapshots = {};                      // of each step's end: who the sequences are
  // Of sequences.
  std::map<std::uint64_t, std::string> labels = {};
  std::map<std::uint64_t, std::uint32_t> colours = {};  // no two at one time, while there are enough
  WordsOfSequences words = {};                          // as far as they came
};

// The last one is that of a trial.
std::vector<std::string> tour_titles();
// REQUIRES: 0 <= chapter < tour_titles().size() - 1
TourChapter play_tour_chapter(std::size_t chapter);

// Plays what a visitor typed; why it cannot be is one sentence.
Result<TourChapter> play_trial(const ui::TourTrial& trial);

}  // namespace octavo::app
