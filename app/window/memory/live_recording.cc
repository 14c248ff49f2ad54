#include "app/window/memory/live_recording.h"

#include <ctime>
#include <mutex>
#include <utility>
#include <vector>

#include "engine/metrics/recording_file.h"

namespace octavo::app {

std::vector<metrics::RecordedSequence> recorded_sequences(const HistorySource& source) {
  std::vector<metrics::RecordedSequence> sequences;
  for (const auto& [id, name] : source.timeline.state().names) {
    metrics::RecordedSequence sequence{.sequence = id, .colour_index = name.colour_index, .name = name.label};
    if (const auto facts = source.history.facts().find(id); facts != source.history.facts().end()) {
      sequence.request = facts->second.request_id.value;
      sequence.output_index = facts->second.output_index;
      sequence.num_prompt_tokens = facts->second.num_prompt_tokens;
    }
    sequences.push_back(std::move(sequence));
  }
  return sequences;
}

struct LiveRecording::Failure {
  std::mutex mutex;
  std::optional<std::string> message;  // guarded by mutex
};

Result<void> LiveRecording::start(const std::filesystem::path& path, const HistorySource& live) {
  OCTAVO_TRY(auto file, metrics::RecordingFile::open(path));
  metrics::RecordingHeader header;
  header.bytes_per_block = live.pool.bytes_per_block;
  header.bytes_per_state = live.pool.bytes_per_state;
  header.bytes_per_window_block = live.pool.bytes_per_window_block;
  header.max_model_len = live.pool.max_model_len;
  header.unix_time_s = static_cast<std::int64_t>(std::time(nullptr));
  header.model = live.pool.name;
  failure_ = std::make_shared<Failure>();
  writer_ = std::make_unique<metrics::RecordingWriter>(
      std::move(file), std::move(header), live.history.recorder(), [failure = failure_](const Error& error) {
        std::lock_guard lock(failure->mutex);
        failure->message = error.message;
      });
  told_.clear();
  describe(live);
  return {};
}

void LiveRecording::notify() {
  if (writer_ != nullptr) writer_->notify();
}

void LiveRecording::describe(const HistorySource& live) {
  if (writer_ == nullptr) return;
  std::vector<metrics::RecordedSequence> news;
  for (metrics::RecordedSequence& sequence : recorded_sequences(live)) {
    auto& told = told_[sequence.sequence];
    if (told == sequence) continue;
    told = sequence;
    news.push_back(std::move(sequence));
  }
  if (!news.empty()) writer_->describe(std::move(news));
}

std::optional<std::string> LiveRecording::stop() {
  writer_.reset();
  return failure();
}

std::optional<std::string> LiveRecording::failure() const {
  if (failure_ == nullptr) return std::nullopt;
  std::lock_guard lock(failure_->mutex);
  return failure_->message;
}

}  // namespace octavo::app
