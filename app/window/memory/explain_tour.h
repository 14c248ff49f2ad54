// The "Explain" tour: short scripted chapters on a tiny pool, each run by the real engine core with a runner
// that knows its words beforehand, and told step by step in sentences made from the events.
//
// A chapter is played whole at once; walking through it is moving a cursor over its history.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/api/kv_snapshot.h"
#include "engine/base/ids.h"
#include "engine/metrics/step_recorder.h"

namespace octavo::app {

// A place to stop and say something.
struct TourStop {
  std::uint64_t mark = 0;
  std::string sentence = {};
};

struct TourChapter {
  std::string title = {};
  std::int64_t bytes_per_block = 0;
  std::int32_t max_model_len = 0;
  std::shared_ptr<const metrics::StepRecorder> recorder = {};    // what happened
  std::vector<TourStop> stops = {};                              // at least two
  std::vector<KvSnapshot> snapshots = {};                        // of each step's end: who the sequences are
  std::map<std::uint64_t, std::string> labels = {};              // of sequences
  std::map<std::uint64_t, std::vector<TokenId>> token_ids = {};  // of sequences, as far as they came
};

std::vector<std::string> tour_titles();
// REQUIRES: 0 <= chapter < tour_titles().size()
TourChapter play_tour_chapter(std::size_t chapter);
// A word with its space.
std::string_view tour_word(TokenId id);

}  // namespace octavo::app
