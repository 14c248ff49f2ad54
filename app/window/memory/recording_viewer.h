// A recording read whole, to be looked at without its model; a lesson to be walked as well.
#pragma once

#include <filesystem>
#include <memory>

#include "app/window/memory/history_source.h"
#include "engine/base/result.h"

namespace octavo::app {

struct OpenedRecording {
  std::unique_ptr<HistorySource> source = {};
  bool is_complete = false;   // else it was cut short
  bool is_shortened = false;  // it holds more than is shown
};

// Damage is one sentence. Of a very long recording only its beginning is read. May take seconds: on a thread
// of its own.
Result<OpenedRecording> open_recording(const std::filesystem::path& path);

}  // namespace octavo::app
