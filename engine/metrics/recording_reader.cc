#include "engine/metrics/recording_reader.h"

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "engine/base/text.h"
#include "engine/metrics/recording_file.h"
#include "engine/metrics/recording_limits.h"

namespace octavo::metrics {

Result<RecordingReader> RecordingReader::open(const std::filesystem::path& path) {
  const std::string name = escape_for_message(path.string());
  std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path.c_str(), "rbe"));
  if (!file) {
    return Error{errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo,
                 name + " cannot be read: " + std::generic_category().message(errno)};
  }
  if (!is_recording(path)) return Error{ErrorCode::kDamagedFile, name + " is not an Octavo recording"};
  RecordingReader reader(name, std::move(file));
  OCTAVO_TRY_VOID(reader.read_begin());
  return reader;
}

Result<void> RecordingReader::read_begin() {
  std::array<std::byte, kRecordingMagic.size()> magic;
  if (!read(magic)) return damaged("it is too short");
  OCTAVO_TRY(const std::optional<Chunk> chunk, next_chunk());
  if (!chunk) return damaged("it ends before its header; nothing was recorded");
  if (chunk->kind != ChunkKind::kHeader) return damaged("it does not begin with a header");
  auto header = read_recording_header(chunk->payload);
  if (!header) return at_chunk(std::move(header).error());
  header_ = *std::move(header);
  return read_keyframe();
}

Result<void> RecordingReader::read_keyframe() {
  start_ = KvState(header_.pool);
  for (std::uint64_t num_left = header_.num_keyframe_events; num_left > 0;) {
    OCTAVO_TRY(const std::optional<Chunk> chunk, next_chunk());
    if (!chunk) return damaged("it ends before its first step; nothing was recorded");
    if (chunk->kind != ChunkKind::kKeyframe) return damaged("a part of its first state is missing");
    auto events = read_events(chunk->payload);
    if (!events) return at_chunk(std::move(events).error());
    if (events->size() > num_left) return damaged("its first state is longer than its header says");
    for (const BlockEvent& event : *events) {
      if (auto applied = start_.apply(event); !applied) return at_chunk(std::move(applied).error());
    }
    num_left -= events->size();
  }
  return {};
}

// ---- chunks

// nullopt when the file ends before the chunk does.
Result<std::optional<RecordingReader::Chunk>> RecordingReader::next_chunk() {
  chunk_offset_ = offset_;
  std::array<std::byte, kChunkHeaderBytes> begin;
  if (!read(begin)) return std::optional<Chunk>();
  auto header = read_chunk_header(begin);
  if (!header) return at_chunk(std::move(header).error());
  Chunk chunk{header->kind, Bytes(header->num_payload_bytes)};
  if (!read(chunk.payload)) return std::optional<Chunk>();
  if (auto checked = check_payload(*header, chunk.payload); !checked)
    return at_chunk(std::move(checked).error());
  return std::optional(std::move(chunk));
}

Result<std::optional<RecordingPart>> RecordingReader::next() {
  if (has_ended_) return std::optional<RecordingPart>();
  OCTAVO_TRY(const std::optional<Chunk> chunk, next_chunk());
  if (chunk && chunk->kind != ChunkKind::kEnd) return accept(*chunk);
  has_ended_ = true;
  if (chunk) OCTAVO_TRY_VOID(accept_end(*chunk));
  return std::optional<RecordingPart>();
}

Result<std::optional<RecordingPart>> RecordingReader::accept(const Chunk& chunk) {
  RecordingPart part;
  switch (chunk.kind) {
    case ChunkKind::kSteps: {
      OCTAVO_TRY_VOID(accept_steps(chunk, part));
      return std::optional(std::move(part));
    }
    case ChunkKind::kEvents: {
      OCTAVO_TRY_VOID(accept_events(chunk, part));
      return std::optional(std::move(part));
    }
    case ChunkKind::kLesson: {
      OCTAVO_TRY_VOID(accept_lesson(chunk, part));
      return std::optional(std::move(part));
    }
    case ChunkKind::kSequences: {
      auto sequences = read_sequences(chunk.payload);
      if (!sequences) return at_chunk(std::move(sequences).error());
      part.sequences = *std::move(sequences);
      return std::optional(std::move(part));
    }
    case ChunkKind::kHeader:
    case ChunkKind::kKeyframe:
    case ChunkKind::kEnd: break;
  }
  return damaged("a chunk that belongs at the start is in the middle");
}

Result<void> RecordingReader::accept_steps(const Chunk& chunk, RecordingPart& part) {
  auto steps = read_steps(chunk.payload, header_);
  if (!steps) return at_chunk(std::move(steps).error());
  for (const RecordedStep& step : *steps) {
    if (step.record.step <= last_step_) return damaged("its steps are not in order");
    if (step.event_mark < std::max(last_mark_, read_.num_events))
      return damaged("a step follows its own events");
    last_step_ = step.record.step;
    last_mark_ = step.event_mark;
  }
  read_.num_steps += steps->size();
  part.steps = *std::move(steps);
  return {};
}

Result<void> RecordingReader::accept_events(const Chunk& chunk, RecordingPart& part) {
  auto events = read_events(chunk.payload);
  if (!events) return at_chunk(std::move(events).error());
  part.events = *std::move(events);
  read_.num_events += part.events.size();
  if (!is_lesson_ || read_.num_events <= kMaxLessonEvents) return {};
  return damaged("a lesson has at most " + std::to_string(kMaxLessonEvents) + " events");
}

Result<void> RecordingReader::accept_lesson(const Chunk& chunk, RecordingPart& part) {
  if (is_lesson_) return damaged("there is a second lesson");
  if (read_.num_steps + read_.num_events + header_.num_keyframe_events > 0)
    return damaged("its lesson does not come before everything that happened");
  const PoolShape& pool = header_.pool;
  if (pool.block_size > kMaxLessonBlockSize ||
      std::max({pool.num_blocks, pool.num_host_blocks, pool.num_window_blocks}) > kMaxLessonBlocks)
    return damaged("the pool of a lesson has at most " + std::to_string(kMaxLessonBlocks) + " blocks of " +
                   std::to_string(kMaxLessonBlockSize) + " tokens");
  auto lesson = read_lesson(chunk.payload);
  if (!lesson) return at_chunk(std::move(lesson).error());
  is_lesson_ = true;
  last_stop_mark_ = lesson->stops.back().mark;
  part.lesson = *std::move(lesson);
  return {};
}

Result<void> RecordingReader::accept_end(const Chunk& chunk) {
  auto end = read_recording_end(chunk.payload);
  if (!end) return at_chunk(std::move(end).error());
  if (end->num_steps != read_.num_steps || end->num_events != read_.num_events ||
      last_mark_ > read_.num_events) {
    return damaged("parts of the file are missing");
  }
  if (last_stop_mark_ > read_.num_events) return damaged("its lesson stops after its last event");
  std::array<std::byte, 1> more;
  if (read(more)) return damaged("the file continues after its end marker");
  is_complete_ = true;
  return {};
}

// ---- bytes

bool RecordingReader::read(std::span<std::byte> bytes) {
  const std::size_t count = std::fread(bytes.data(), 1, bytes.size(), file_.get());
  offset_ += count;
  return count == bytes.size();
}

Error RecordingReader::at_chunk(Error error) const {
  error.message = name_ + ": " + error.message + " (at byte " + std::to_string(chunk_offset_) + ")";
  error.byte_offset = chunk_offset_;
  return error;
}

Error RecordingReader::damaged(const std::string& what) const {
  return at_chunk({.code = ErrorCode::kDamagedFile, .message = what});
}

}  // namespace octavo::metrics
