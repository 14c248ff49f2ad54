// A chapter of the tour as one file: a recording with its sentences and words
// (engine/metrics/recording_format.h), which anybody opens without a model. Read by recording_viewer.
#pragma once

#include <filesystem>

#include "app/window/memory/history_source.h"
#include "engine/base/result.h"

namespace octavo::app {

// A whole new file, or none. REQUIRES: source.is_walked()
Result<void> write_lesson(const std::filesystem::path& path, const HistorySource& source);

}  // namespace octavo::app
