// A recording as bytes: an eight-byte magic, then chunks, all numbers little-endian.
//
// A chunk is: kind u32, payload length u32, check of the payload u64, check of these three u64, payload.
// - header: first. Version, pool, model.
// - keyframe: events that lead from a free pool to the state at the start.
// - sequences: whose they are, and what they are called, as far as the writer knew. Anywhere behind the
//   keyframe.
// - lesson: the recording is walked stop by stop, with a sentence at each and the words of its tokens. At
//   most one, before the first step; its pool is small and begins free.
// - steps: before the events that lead to them, so that who replays knows where to compare.
// - events: as they happened.
// - end: how many steps and events there were. Without it the recording was cut short, and what is there
//   counts.
//
// A lesson's payload: title, number of stops u32; of each its mark u64 and its sentence; number of sequences
// u32; of each its id u64, number of words u32, and the words. A text is its length in bytes u32, then UTF-8.
//
// A check is a chain of mix64 over eight-byte words: any change of one word changes it. Kinds of events are
// stored as the value of their enumerator: kRecordingVersion changes with them, and with the fields of a
// StepRecord.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "engine/api/block_event.h"
#include "engine/base/result.h"
#include "engine/metrics/kv_state.h"
#include "engine/metrics/step_recorder.h"

namespace octavo::metrics {

inline constexpr std::array<char, 8> kRecordingMagic = {'O', 'C', 'T', 'A', 'V', 'O', 'R', '\n'};
inline constexpr std::uint32_t kRecordingVersion = 5;
// That is read. 3 knows no states; 4 no window parts, and not what a checkpoint saves. What a sealed block
// follows came without a new version: where nobody tells, chains are as the tables were.
inline constexpr std::uint32_t kOldestRecordingVersion = 3;

struct RecordingHeader {
  std::uint32_t version = kRecordingVersion;  // of what is read; written is always the newest
  PoolShape pool = {};
  std::int64_t bytes_per_block = 0;
  std::int64_t bytes_per_state = 0;
  std::int64_t bytes_per_window_block = 0;
  std::int32_t max_model_len = 0;
  std::int64_t unix_time_s = 0;  // when it was started
  std::string model = {};        // its name, for people
  std::uint64_t num_keyframe_events = 0;
};

// What events do not say about a sequence. Told again when it changes: the last one counts.
struct RecordedSequence {
  std::uint64_t sequence = 0;
  std::uint64_t request = 0;
  std::int32_t output_index = 0;
  std::int32_t num_prompt_tokens = 0;
  std::uint32_t colour_index = 0;  // as it was drawn
  std::string name = {};           // for people
  friend bool operator==(const RecordedSequence&, const RecordedSequence&) = default;
};

// What makes a lesson of a recording: where to stop, what to say there, and what the tokens are.
struct RecordedLesson {
  struct Stop {
    std::uint64_t mark = 0;  // events before it have happened
    std::string sentence = {};
    friend bool operator==(const Stop&, const Stop&) = default;
  };
  std::string title = {};
  std::vector<Stop> stops = {};                                  // at least one, their marks never go down
  std::map<std::uint64_t, std::vector<std::string>> words = {};  // of sequences, a word for each token
  friend bool operator==(const RecordedLesson&, const RecordedLesson&) = default;
};

struct RecordingEnd {
  std::uint64_t num_steps = 0;
  std::uint64_t num_events = 0;
};

enum class ChunkKind : std::uint32_t {
  kHeader = 1,
  kKeyframe = 2,
  kSteps = 3,
  kEvents = 4,
  kEnd = 5,
  kSequences = 6,
  kLesson = 7
};

struct ChunkHeader {
  ChunkKind kind = ChunkKind::kEnd;
  std::uint32_t num_payload_bytes = 0;
  std::uint64_t payload_check = 0;
};
inline constexpr std::size_t kChunkHeaderBytes = 24;

using Bytes = std::vector<std::byte>;

// ---- writing: each appends whole chunks

void append_chunk(Bytes& out, const RecordingHeader& header);
void append_chunk(Bytes& out, const RecordingEnd& end);
void append_chunks(Bytes& out, std::span<const RecordedStep> steps);
void append_chunks(Bytes& out, ChunkKind kind, std::span<const BlockEvent> events);  // kKeyframe or kEvents
void append_chunks(Bytes& out, std::span<const RecordedSequence> sequences);
// Cuts texts that are too long. REQUIRES: all of it fits into one chunk
void append_chunk(Bytes& out, const RecordedLesson& lesson);
void append_chunk(Bytes& out, ChunkKind kind, std::span<const std::byte> payload);

// ---- reading untrusted files. An error says what is wrong, not where

Result<ChunkHeader> read_chunk_header(std::span<const std::byte, kChunkHeaderBytes> bytes);
Result<void> check_payload(const ChunkHeader& header, std::span<const std::byte> payload);
Result<RecordingHeader> read_recording_header(std::span<const std::byte> payload);
Result<RecordingEnd> read_recording_end(std::span<const std::byte> payload);
// Levels that add up to another pool and negative counts are refused.
Result<std::vector<RecordedStep>> read_steps(std::span<const std::byte> payload,
                                             const RecordingHeader& header);
// Known kinds only. Whether they can be is for KvState to say.
Result<std::vector<BlockEvent>> read_events(std::span<const std::byte> payload);
// Names that are no UTF-8 are made such.
Result<std::vector<RecordedSequence>> read_sequences(std::span<const std::byte> payload);
// The same of its texts. Whether its marks are there is for who has read the events.
Result<RecordedLesson> read_lesson(std::span<const std::byte> payload);

}  // namespace octavo::metrics
