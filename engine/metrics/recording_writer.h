// Writes what a StepRecorder keeps to a sink, on a thread of its own. The recorder's history is the buffer
// between the two: the engine thread hands nothing over, allocates nothing and waits for nothing. A disk that
// is full, or slower than the history is long, ends the recording with one sentence; the engine continues,
// and what was written can be read.
//
// Each write holds whole chunks, made about twenty times a second: a process that is killed leaves a readable
// beginning.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/base/result.h"
#include "engine/metrics/recording_file.h"
#include "engine/metrics/recording_format.h"
#include "engine/metrics/step_recorder.h"

namespace octavo::metrics {

class RecordingWriter {
 public:
  // Called on the writer's thread, once at most, when the recording had to end early.
  using OnFailure = std::function<void(const Error& error)>;

  // Begins with the state at this moment. Pool and keyframe of the header are filled in here.
  RecordingWriter(std::unique_ptr<ByteSink> sink, RecordingHeader header,
                  std::shared_ptr<const StepRecorder> recorder, OnFailure on_failure);
  // Writes what has been recorded until now, and the end.
  ~RecordingWriter();

  // Something was recorded. Cheap: the engine calls it at each step.
  void notify();

  // Whose sequences are, as far as the caller knows it; written with what happens next.
  void describe(std::vector<RecordedSequence> sequences);

 private:
  void run();
  bool wait();
  std::vector<RecordedSequence> take_described();
  void take_keyframe();
  Result<void> begin();
  Result<void> drain(bool is_last);
  Result<void> end();
  Result<void> write(Bytes bytes);
  void give_up(const Error& error);

  const std::unique_ptr<ByteSink> sink_;
  const std::shared_ptr<const StepRecorder> recorder_;
  const OnFailure on_failure_;

  // Writer's thread only.
  RecordingHeader header_;
  RecordingEnd written_;
  std::vector<BlockEvent> keyframe_;
  std::uint64_t first_event_mark_ = 0;
  std::uint64_t step_mark_ = 0, event_mark_ = 0;
  std::int64_t last_step_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool has_news_ = false;                    // guarded by mutex_
  bool is_closing_ = false;                  // guarded by mutex_
  std::vector<RecordedSequence> described_;  // guarded by mutex_; not written yet
  std::thread thread_;                       // last: everything above exists before it runs
};

}  // namespace octavo::metrics
