// What the window records of the live engine into a file, with what sequences are called in the window. The
// file is written from the engine's own history on the writer's thread. UI thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/window/memory/history_source.h"
#include "engine/base/result.h"
#include "engine/metrics/recording_writer.h"

namespace octavo::app {

// Who the sequences of a source are, and what they are called.
std::vector<metrics::RecordedSequence> recorded_sequences(const HistorySource& source);

class LiveRecording {
 public:
  // REQUIRES: !is_running()
  Result<void> start(const std::filesystem::path& path, const HistorySource& live);
  bool is_running() const { return writer_ != nullptr; }
  // Something was recorded.
  void notify();
  // Who the sequences are: what the file was not told yet, or otherwise.
  void describe(const HistorySource& live);
  // Writes the end. Why the recording had ended before, if it had.
  std::optional<std::string> stop();
  // Why it has ended, while nobody stopped it.
  std::optional<std::string> failure() const;

 private:
  struct Failure;

  std::shared_ptr<Failure> failure_;  // told on the writer's thread
  std::map<std::uint64_t, metrics::RecordedSequence> told_;
  std::unique_ptr<metrics::RecordingWriter> writer_;
};

}  // namespace octavo::app
