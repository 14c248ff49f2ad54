#include "engine/metrics/recording_writer.h"

#include <chrono>
#include <iterator>
#include <limits>
#include <string>
#include <utility>

#include "engine/base/check.h"

namespace octavo::metrics {
namespace {

// Steps gather so long before they are written: a crash loses no more, and a fast model costs few writes.
constexpr std::chrono::milliseconds kGathering(50);

Bytes magic_bytes() {
  Bytes bytes;
  for (const char c : kRecordingMagic) bytes.push_back(static_cast<std::byte>(c));
  return bytes;
}

}  // namespace

RecordingWriter::RecordingWriter(std::unique_ptr<ByteSink> sink, RecordingHeader header,
                                 std::shared_ptr<const StepRecorder> recorder, OnFailure on_failure)
    : sink_(std::move(sink)),
      recorder_(std::move(recorder)),
      on_failure_(std::move(on_failure)),
      header_(std::move(header)) {
  take_keyframe();
  thread_ = std::thread([this] { run(); });
}

RecordingWriter::~RecordingWriter() {
  {
    std::lock_guard lock(mutex_);
    is_closing_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void RecordingWriter::notify() {
  {
    std::lock_guard lock(mutex_);
    if (std::exchange(has_news_, true)) return;
  }
  changed_.notify_one();
}

void RecordingWriter::describe(std::vector<RecordedSequence> sequences) {
  std::lock_guard lock(mutex_);
  described_.insert(described_.end(), std::make_move_iterator(sequences.begin()),
                    std::make_move_iterator(sequences.end()));
}

std::vector<RecordedSequence> RecordingWriter::take_described() {
  std::lock_guard lock(mutex_);
  return std::exchange(described_, {});
}

void RecordingWriter::take_keyframe() {
  constexpr std::uint64_t kNewest = std::numeric_limits<std::uint64_t>::max();
  const Trace now = recorder_->read_since(kNewest, kNewest);
  step_mark_ = now.next_step_mark;
  event_mark_ = first_event_mark_ = now.next_event_mark;
  const Result<KvState> start = recorder_->state_at(first_event_mark_);
  OCTAVO_CHECK(start.has_value(), "the newest state cannot be told: %s", start.error().message.c_str());
  keyframe_ = start->as_events();
  header_.pool = start->shape();
  header_.num_keyframe_events = keyframe_.size();
}

// ---- the writer's thread

void RecordingWriter::run() {
  const auto record = [&]() -> Result<void> {
    OCTAVO_TRY_VOID(begin());
    while (wait()) OCTAVO_TRY_VOID(drain(/*is_last=*/false));
    OCTAVO_TRY_VOID(drain(/*is_last=*/true));
    return end();
  };
  if (const Result<void> result = record(); !result.has_value()) give_up(result.error());
}

// False when the recording is to end.
bool RecordingWriter::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return has_news_ || is_closing_; });
  changed_.wait_for(lock, kGathering, [&] { return is_closing_; });
  has_news_ = false;
  return !is_closing_;
}

Result<void> RecordingWriter::begin() {
  Bytes bytes = magic_bytes();
  append_chunk(bytes, header_);
  append_chunks(bytes, ChunkKind::kKeyframe, std::exchange(keyframe_, {}));
  return write(std::move(bytes));
}

// Up to the last whole step: what came after it is read again, so that steps stand before their events.
Result<void> RecordingWriter::drain(bool is_last) {
  Trace trace = recorder_->read_since(step_mark_, event_mark_);
  if (trace.num_lost > 0) {
    return Error{ErrorCode::kIo, "it cannot be written as fast as the engine runs; " +
                                     std::to_string(trace.num_lost) + " records were lost"};
  }
  std::vector<RecordedStep> steps;
  for (std::size_t i = 0; i < trace.steps.size(); ++i) {
    if (trace.step_event_marks[i] < first_event_mark_) continue;  // was being recorded when the writer began
    steps.push_back({trace.steps[i], trace.step_event_marks[i] - first_event_mark_});
  }
  if (!is_last && steps.empty()) return {};
  const std::uint64_t end_mark = is_last ? trace.next_event_mark : trace.step_event_marks.back();
  trace.block_events.resize(static_cast<std::size_t>(end_mark - event_mark_));

  Bytes bytes;
  append_chunks(bytes, take_described());
  append_chunks(bytes, steps);
  append_chunks(bytes, ChunkKind::kEvents, trace.block_events);
  OCTAVO_TRY_VOID(write(std::move(bytes)));
  step_mark_ = trace.next_step_mark;
  event_mark_ = end_mark;
  written_.num_steps += steps.size();
  written_.num_events += trace.block_events.size();
  if (!steps.empty()) last_step_ = steps.back().record.step;
  return {};
}

Result<void> RecordingWriter::end() {
  Bytes bytes;
  append_chunk(bytes, written_);
  return write(std::move(bytes));
}

Result<void> RecordingWriter::write(Bytes bytes) {
  if (bytes.empty()) return {};
  return sink_->write(bytes);
}

void RecordingWriter::give_up(const Error& error) {
  on_failure_({error.code, "recording to " + sink_->name() + " ended after step " +
                               std::to_string(last_step_) + ": " + error.message +
                               "; the steps recorded so far can be read"});
}

}  // namespace octavo::metrics
