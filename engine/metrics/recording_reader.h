// Reads a recording from a file, in order. Everything is checked before it is used: a damaged or hostile
// file is one sentence that names the place, never a crash and never more memory than recording_limits.h
// allows. A recording that was cut short, by a crash or a full disk, is read as far as it goes.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/metrics/kv_state.h"
#include "engine/metrics/recording_format.h"

namespace octavo::metrics {

// One chunk's worth: steps, events, names, or the lesson.
struct RecordingPart {
  std::vector<RecordedSequence> sequences;
  std::vector<RecordedStep> steps;  // their marks count from the first event of the recording
  std::vector<BlockEvent> events;
  std::optional<RecordedLesson> lesson;
};

class RecordingReader {
 public:
  static Result<RecordingReader> open(const std::filesystem::path& path);

  const RecordingHeader& header() const { return header_; }
  const KvState& start() const { return start_; }

  // nullopt at the end.
  Result<std::optional<RecordingPart>> next();

  // After the end: whether the recording was ended in order, with everything that it says it holds.
  bool is_complete() const { return is_complete_; }

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  struct Chunk {
    ChunkKind kind = ChunkKind::kEnd;
    Bytes payload;
  };

  RecordingReader(std::string name, std::unique_ptr<std::FILE, CloseFile> file)
      : name_(std::move(name)), file_(std::move(file)) {}

  Result<void> read_begin();
  Result<void> read_keyframe();
  Result<std::optional<Chunk>> next_chunk();
  Result<std::optional<RecordingPart>> accept(const Chunk& chunk);
  Result<void> accept_steps(const Chunk& chunk, RecordingPart& part);
  Result<void> accept_events(const Chunk& chunk, RecordingPart& part);
  Result<void> accept_lesson(const Chunk& chunk, RecordingPart& part);
  Result<void> accept_end(const Chunk& chunk);
  bool read(std::span<std::byte> bytes);
  Error at_chunk(Error error) const;
  Error damaged(const std::string& what) const;

  std::string name_;
  std::unique_ptr<std::FILE, CloseFile> file_;
  RecordingHeader header_;
  KvState start_{PoolShape{}};
  std::uint64_t offset_ = 0;        // of what is read next
  std::uint64_t chunk_offset_ = 0;  // of the chunk at hand
  RecordingEnd read_;               // so far
  std::int64_t last_step_ = -1;
  std::uint64_t last_mark_ = 0;
  bool is_lesson_ = false;
  std::uint64_t last_stop_mark_ = 0;  // of the lesson
  bool has_ended_ = false;
  bool is_complete_ = false;
};

}  // namespace octavo::metrics
