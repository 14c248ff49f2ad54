#include "app/window/memory/recording_viewer.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "engine/base/text.h"
#include "engine/metrics/recording_file.h"
#include "engine/metrics/recording_reader.h"

namespace octavo::app {
namespace {

constexpr std::size_t kMostEvents = std::size_t{1} << 22;  // 160 MiB
constexpr std::size_t kMostSequences = std::size_t{1} << 16;

// Everything that a recording holds, of which memory is known to have room.
struct RecordedHistory {
  metrics::Trace trace = {};
  std::vector<metrics::RecordedSequence> sequences = {};  // in the order in which they were told
  std::optional<metrics::RecordedLesson> lesson = {};
  bool is_complete = false;
};

Result<RecordedHistory> read_whole(metrics::RecordingReader& reader) {
  RecordedHistory read;
  metrics::Trace& trace = read.trace;
  while (trace.block_events.size() < kMostEvents) {
    OCTAVO_TRY(auto part, reader.next());
    if (!part) {
      read.is_complete = reader.is_complete();
      break;
    }
    for (const metrics::RecordedStep& step : part->steps) {
      trace.steps.push_back(step.record);
      trace.step_event_marks.push_back(step.event_mark);
    }
    if (part->lesson) read.lesson = std::move(part->lesson);
    const std::size_t room = kMostSequences - std::min(kMostSequences, read.sequences.size());
    read.sequences.insert(
        read.sequences.end(), part->sequences.begin(),
        part->sequences.begin() + static_cast<std::ptrdiff_t>(std::min(room, part->sequences.size())));
    trace.block_events.insert(trace.block_events.end(), part->events.begin(), part->events.end());
  }
  trace.next_step_mark = trace.steps.size();
  trace.next_event_mark = trace.block_events.size();
  return read;
}

// Steps and events in the order in which they came, so that the marks of steps are right.
std::shared_ptr<const metrics::StepRecorder> record_again(const metrics::KvState& start,
                                                          const metrics::Trace& trace) {
  const metrics::HistorySizes sizes = {.num_steps = trace.steps.size() + 1,
                                       .num_events = trace.block_events.size() + 1};
  auto recorder = std::make_shared<metrics::StepRecorder>(start, sizes);
  const std::span<const BlockEvent> events = trace.block_events;
  std::size_t next = 0;
  for (std::size_t i = 0; i < trace.steps.size(); ++i) {
    const std::size_t end = std::clamp<std::size_t>(trace.step_event_marks[i], next, events.size());
    recorder->record(trace.steps[i], events.subspan(next, end - next));
    next = end;
  }
  recorder->record(std::nullopt, events.subspan(next));
  return recorder;
}

// It is told whole or not at all: a sentence must not be about what is missing.
Result<void> make_lesson(metrics::RecordedLesson lesson, bool is_complete, HistorySource& source) {
  const auto damaged = [&](const std::string& what) {
    return Error{ErrorCode::kDamagedFile, escape_for_message(source.pool.name) + ": " + what};
  };
  if (!is_complete) return damaged("the lesson is truncated; export it again");
  if (const auto last = source.history.at(source.history.newest_mark()); !last)
    return damaged("the lesson contradicts itself: " + last.error().message);
  source.kind = ui::MemorySource::kLesson;
  source.title = std::move(lesson.title);
  source.stops = std::move(lesson.stops);
  source.words = std::move(lesson.words);
  return {};
}

}  // namespace

Result<OpenedRecording> open_recording(const std::filesystem::path& path) {
  OCTAVO_TRY(auto reader, metrics::RecordingReader::open(path));
  OCTAVO_TRY(RecordedHistory read, read_whole(reader));
  const metrics::RecordingHeader& header = reader.header();
  auto source = std::make_unique<HistorySource>(HistorySource{
      .kind = ui::MemorySource::kRecording,
      .pool = {.name = sanitise_utf8(path.filename().string()),
               .block_size = header.pool.block_size,
               .num_blocks = header.pool.num_blocks,
               .num_host_blocks = header.pool.num_host_blocks,
               .bytes_per_block = header.bytes_per_block,
               .num_states = header.pool.num_states,
               .num_host_states = header.pool.num_host_states,
               .bytes_per_state = header.bytes_per_state,
               .window = header.pool.window,
               .num_window_blocks = header.pool.num_window_blocks,
               .num_host_window_blocks = header.pool.num_host_window_blocks,
               .bytes_per_window_block = header.bytes_per_window_block,
               .max_model_len = header.max_model_len},
      .history =
          MemoryHistory(record_again(reader.start(), read.trace),
                        {header.bytes_per_block, header.bytes_per_state, header.bytes_per_window_block})});
  for (metrics::RecordedSequence& sequence : read.sequences) {
    source->history.learn(sequence.sequence,
                          {RequestId{sequence.request}, sequence.output_index, sequence.num_prompt_tokens});
    source->timeline.name(sequence.sequence,
                          {.label = std::move(sequence.name), .colour_index = sequence.colour_index});
  }
  source->add(read.trace);
  if (read.lesson) OCTAVO_TRY_VOID(make_lesson(*std::move(read.lesson), read.is_complete, *source));
  return OpenedRecording{std::move(source), read.is_complete, read.trace.block_events.size() >= kMostEvents};
}

}  // namespace octavo::app
