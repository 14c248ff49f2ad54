#include "app/window/memory/recording_viewer.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "engine/metrics/recording_file.h"
#include "engine/metrics/recording_reader.h"

namespace octavo::app {
namespace {

constexpr std::size_t kMostEvents = std::size_t{1} << 22;  // 160 MiB
constexpr std::size_t kMostListed = 24;
constexpr std::size_t kMostSequences = std::size_t{1} << 16;

}  // namespace

Result<OpenedRecording> open_recording(const std::filesystem::path& path) {
  OCTAVO_TRY(auto reader, metrics::RecordingReader::open(path));
  OpenedRecording recording{
      .name = path.filename().string(), .header = reader.header(), .start = reader.start()};
  metrics::Trace& trace = recording.trace;
  while (trace.block_events.size() < kMostEvents) {
    OCTAVO_TRY(auto part, reader.next());
    if (!part) {
      recording.is_complete = reader.is_complete();
      break;
    }
    for (const metrics::RecordedStep& step : part->steps) {
      trace.steps.push_back(step.record);
      trace.step_event_marks.push_back(step.event_mark);
    }
    const std::size_t room = kMostSequences - std::min(kMostSequences, recording.sequences.size());
    recording.sequences.insert(
        recording.sequences.end(), part->sequences.begin(),
        part->sequences.begin() + static_cast<std::ptrdiff_t>(std::min(room, part->sequences.size())));
    trace.block_events.insert(trace.block_events.end(), part->events.begin(), part->events.end());
  }
  recording.is_shortened = trace.block_events.size() >= kMostEvents;
  trace.next_step_mark = trace.steps.size();
  trace.next_event_mark = trace.block_events.size();
  return recording;
}

std::vector<std::string> list_recordings(const std::filesystem::path& folder) {
  std::vector<std::pair<std::filesystem::file_time_type, std::string>> found;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (!entry->is_regular_file(ignored) || !metrics::is_recording(entry->path())) continue;
    found.emplace_back(entry->last_write_time(ignored), entry->path().string());
  }
  std::sort(found.rbegin(), found.rend());
  std::vector<std::string> paths;
  for (auto& [time, path] : found) {
    if (paths.size() < kMostListed) paths.push_back(std::move(path));
  }
  return paths;
}

}  // namespace octavo::app
