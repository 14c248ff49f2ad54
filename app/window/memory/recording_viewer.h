// A recording read whole, to be looked at without its model.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/metrics/kv_state.h"
#include "engine/metrics/recording_format.h"
#include "engine/metrics/step_recorder.h"

namespace octavo::app {

struct OpenedRecording {
  std::string name = {};  // of the file
  metrics::RecordingHeader header = {};
  metrics::KvState start{metrics::PoolShape{}};
  metrics::Trace trace = {};
  std::vector<metrics::RecordedSequence> sequences = {};  // in the order in which they were told
  bool is_complete = false;                               // else it was cut short
  bool is_shortened = false;                              // it holds more than is shown
};

// Damage is one sentence. Of a very long recording only its beginning is read. May take seconds: on a thread
// of its own.
Result<OpenedRecording> open_recording(const std::filesystem::path& path);

// Recordings in a folder, newest first.
std::vector<std::string> list_recordings(const std::filesystem::path& folder);

}  // namespace octavo::app
