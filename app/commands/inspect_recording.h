// What `octavo inspect` says of an event recording: the whole of it in figures, or the pools at the end of
// one step.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "engine/base/result.h"

namespace octavo::app {

struct RecordingReport {
  std::string text;                    // lines for a person, or one JSON object
  std::optional<std::string> problem;  // the recording contradicts itself: one sentence
};

Result<RecordingReport> report_recording(const std::filesystem::path& path, bool json);
Result<RecordingReport> report_recording_at_step(const std::filesystem::path& path, std::int64_t step,
                                                 bool json);

}  // namespace octavo::app
