#include "app/window/memory/lesson_file.h"

#include <ctime>
#include <string>
#include <vector>

#include "app/window/memory/live_recording.h"
#include "app/window/memory/memory_export.h"
#include "engine/base/check.h"
#include "engine/metrics/recording_format.h"

namespace octavo::app {
namespace {

metrics::Bytes lesson_bytes(const HistorySource& source) {
  metrics::Bytes bytes;
  for (const char c : metrics::kRecordingMagic) bytes.push_back(static_cast<std::byte>(c));
  append_chunk(bytes, metrics::RecordingHeader{.pool = source.history.recorder()->shape(),
                                               .bytes_per_block = source.pool.bytes_per_block,
                                               .bytes_per_state = source.pool.bytes_per_state,
                                               .bytes_per_window_block = source.pool.bytes_per_window_block,
                                               .max_model_len = source.pool.max_model_len,
                                               .unix_time_s = static_cast<std::int64_t>(std::time(nullptr)),
                                               .model = source.title});
  append_chunk(bytes, metrics::RecordedLesson{source.title, source.stops, source.words});
  append_chunks(bytes, recorded_sequences(source));
  const metrics::Trace trace = source.history.recorder()->read_since(0, 0);
  std::vector<metrics::RecordedStep> steps;
  for (std::size_t i = 0; i < trace.steps.size(); ++i)
    steps.push_back({trace.steps[i], trace.step_event_marks[i]});
  append_chunks(bytes, steps);
  append_chunks(bytes, metrics::ChunkKind::kEvents, trace.block_events);
  append_chunk(bytes, metrics::RecordingEnd{steps.size(), trace.block_events.size()});
  return bytes;
}

}  // namespace

Result<void> write_lesson(const std::filesystem::path& path, const HistorySource& source) {
  OCTAVO_CHECK(source.is_walked(), "only a chapter is a lesson");
  const metrics::Bytes bytes = lesson_bytes(source);
  return write_export(path, std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

}  // namespace octavo::app
