#include "engine/metrics/recording_format.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/hash.h"
#include "engine/base/text.h"
#include "engine/metrics/recording_limits.h"

namespace octavo::metrics {
namespace {

// ---- numbers

template <class Integer>
void put(Bytes& out, Integer value) {
  using Unsigned = std::make_unsigned_t<Integer>;
  const auto bits = static_cast<Unsigned>(value);
  for (std::size_t i = 0; i < sizeof(Integer); ++i) {
    out.push_back(static_cast<std::byte>((bits >> (8 * i)) & 0xff));
  }
}

void put_text(Bytes& out, std::string_view text, std::uint32_t most_bytes) {
  text = text.substr(0, most_bytes);
  put(out, static_cast<std::uint32_t>(text.size()));
  for (const char c : text) out.push_back(static_cast<std::byte>(c));
}

// Reads from the front; past the end it gives zeros and remembers.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class Integer>
  Integer get() {
    using Unsigned = std::make_unsigned_t<Integer>;
    if (bytes_.size() < sizeof(Integer)) {
      is_short_ = true;
      return 0;
    }
    Unsigned bits = 0;
    for (std::size_t i = 0; i < sizeof(Integer); ++i) {
      bits = static_cast<Unsigned>(bits |
                                   static_cast<Unsigned>(std::to_integer<Unsigned>(bytes_[i]) << (8 * i)));
    }
    bytes_ = bytes_.subspan(sizeof(Integer));
    return static_cast<Integer>(bits);
  }

  std::string get_text(std::uint32_t num_bytes) {
    if (bytes_.size() < num_bytes) {
      is_short_ = true;
      return {};
    }
    std::string text(reinterpret_cast<const char*>(bytes_.data()), num_bytes);
    bytes_ = bytes_.subspan(num_bytes);
    return text;
  }

  bool empty() const { return bytes_.empty(); }
  bool is_short() const { return is_short_; }
  bool has_read_exactly() const { return bytes_.empty() && !is_short_; }

 private:
  std::span<const std::byte> bytes_;
  bool is_short_ = false;
};

std::uint64_t check_of(std::span<const std::byte> bytes) {
  std::uint64_t check = mix64(bytes.size());
  for (std::size_t begin = 0; begin < bytes.size(); begin += 8) {
    std::uint64_t word = 0;
    const auto part = bytes.subspan(begin, std::min<std::size_t>(8, bytes.size() - begin));
    for (std::size_t i = 0; i < part.size(); ++i) word |= std::to_integer<std::uint64_t>(part[i]) << (8 * i);
    check = mix64(check ^ word);
  }
  return check;
}

Error damaged(std::string what) { return {.code = ErrorCode::kDamagedFile, .message = std::move(what)}; }

// ---- rows: one list of fields for both directions

struct AnyField {
  template <class Field>
  operator Field() const;
};
template <std::size_t... Index>
constexpr bool step_has_fields(std::index_sequence<Index...>) {
  return requires { StepRecord{(static_cast<void>(Index), AnyField{})...}; };
}
static_assert(step_has_fields(std::make_index_sequence<26>()) &&
                  !step_has_fields(std::make_index_sequence<27>()),
              "a StepRecord has other fields: list them here and change kRecordingVersion");

// As a recording of this version has them.
template <class Step, class Visit>
void visit_fields(Step& step, std::uint32_t version, Visit visit) {
  visit(step.step);
  visit(step.begin_us);
  visit(step.schedule_us);
  visit(step.execute_us);
  visit(step.commit_us);
  visit(step.num_prefill_tokens);
  visit(step.num_decode_tokens);
  visit(step.num_draft_tokens);
  visit(step.num_accepted_tokens);
  visit(step.num_running);
  visit(step.num_waiting);
  visit(step.used_blocks);
  visit(step.cached_blocks);
  visit(step.free_blocks);
  visit(step.logical_blocks);
  visit(step.unfilled_slots);
  visit(step.num_preempted);
  visit(step.num_block_copies);
  visit(step.num_swapped_out);
  visit(step.num_swapped_in);
  visit(step.num_swapped_groups);
  visit(step.reserved_ahead_slots);
  visit(step.filled_slots);
  visit(step.host_used_blocks);
  if (version < 5) return;
  visit(step.used_window_blocks);
  visit(step.cached_window_blocks);
}

constexpr std::size_t step_bytes(std::uint32_t version) { return 5 * 8 + (version < 5 ? 19 : 21) * 4 + 8; }
constexpr std::size_t kEventBytes = 3 * 8 + 2 * 4 + 1;
constexpr std::size_t kSequenceBytes = 2 * 8 + 4 * 4;  // and its name

void put_row(Bytes& out, const RecordedStep& step) {
  visit_fields(step.record, kRecordingVersion, [&](auto field) { put(out, field); });
  put(out, step.event_mark);
}

void put_row(Bytes& out, const BlockEvent& event) {
  put(out, event.step);
  put(out, event.time_us);
  put(out, event.sequence);
  put(out, event.block);
  put(out, event.aux);
  put(out, static_cast<std::uint8_t>(event.kind));
}

template <class Row>
void append_rows(Bytes& out, ChunkKind kind, std::span<const Row> rows, std::size_t row_bytes) {
  const std::size_t most_rows = kMaxChunkBytes / row_bytes;
  Bytes payload;
  while (!rows.empty()) {
    const auto part = rows.first(std::min(rows.size(), most_rows));
    payload.clear();
    payload.reserve(part.size() * row_bytes);
    for (const Row& row : part) put_row(payload, row);
    append_chunk(out, kind, payload);
    rows = rows.subspan(part.size());
  }
}

Result<void> check_step(const StepRecord& step, const PoolShape& pool) {
  bool is_negative = false;
  visit_fields(step, kRecordingVersion, [&](auto field) { is_negative |= field < 0; });
  if (is_negative) return damaged("step " + std::to_string(step.step) + " has a negative figure");
  const std::int64_t num_blocks = std::int64_t{step.used_blocks} + step.cached_blocks + step.free_blocks;
  const std::int64_t num_windows = std::int64_t{step.used_window_blocks} + step.cached_window_blocks;
  if (num_windows > pool.num_window_blocks) {
    return damaged("step " + std::to_string(step.step) + " has " + std::to_string(num_windows) +
                   " window parts in a pool of " + std::to_string(pool.num_window_blocks));
  }
  if (num_blocks == pool.num_blocks) return {};
  return damaged("step " + std::to_string(step.step) + " has " + std::to_string(num_blocks) +
                 " blocks in a pool of " + std::to_string(pool.num_blocks));
}

Result<void> check_range(const char* what, std::int64_t value, std::int64_t low, std::int64_t high) {
  if (value >= low && value <= high) return {};
  return damaged(std::string("its header says ") + std::to_string(value) + " " + what + ", where " +
                 std::to_string(low) + " to " + std::to_string(high) + "");
}

Result<void> check_header(const RecordingHeader& header) {
  OCTAVO_TRY_VOID(check_range("tokens per block", header.pool.block_size, 1, kMaxRecordedBlockSize));
  OCTAVO_TRY_VOID(check_range("blocks", header.pool.num_blocks, 1, kMaxRecordedBlocks));
  OCTAVO_TRY_VOID(check_range("host blocks", header.pool.num_host_blocks, 0, kMaxRecordedBlocks));
  OCTAVO_TRY_VOID(check_range("bytes per block", header.bytes_per_block, 0, kMaxRecordedBlockBytes));
  OCTAVO_TRY_VOID(check_range("states", header.pool.num_states, 0, kMaxRecordedStates));
  OCTAVO_TRY_VOID(check_range("host states", header.pool.num_host_states, 0, kMaxRecordedStates));
  OCTAVO_TRY_VOID(check_range("bytes per state", header.bytes_per_state, 0, kMaxRecordedBlockBytes));
  OCTAVO_TRY_VOID(check_range("tokens of a window", header.pool.window, 0, INT32_MAX));
  OCTAVO_TRY_VOID(check_range("window parts", header.pool.num_window_blocks, 0, kMaxRecordedBlocks));
  OCTAVO_TRY_VOID(
      check_range("host window parts", header.pool.num_host_window_blocks, 0, kMaxRecordedBlocks));
  OCTAVO_TRY_VOID(
      check_range("bytes per window part", header.bytes_per_window_block, 0, kMaxRecordedBlockBytes));
  return check_range("tokens per request", header.max_model_len, 0, INT32_MAX);
}

}  // namespace

// ---- writing

void append_chunk(Bytes& out, ChunkKind kind, std::span<const std::byte> payload) {
  const std::size_t begin = out.size();
  put(out, static_cast<std::uint32_t>(kind));
  put(out, static_cast<std::uint32_t>(payload.size()));
  put(out, check_of(payload));
  put(out, check_of(std::span(out).subspan(begin)));
  out.insert(out.end(), payload.begin(), payload.end());
}

void append_chunk(Bytes& out, const RecordingHeader& header) {
  Bytes payload;
  put(payload, kRecordingVersion);
  put(payload, header.pool.block_size);
  put(payload, header.pool.num_blocks);
  put(payload, header.pool.num_host_blocks);
  put(payload, header.bytes_per_block);
  put(payload, header.max_model_len);
  put(payload, header.unix_time_s);
  put(payload, header.num_keyframe_events);
  put_text(payload, header.model, kMaxModelNameBytes);
  put(payload, header.pool.num_states);
  put(payload, header.pool.num_host_states);
  put(payload, header.bytes_per_state);
  put(payload, header.pool.window);
  put(payload, header.pool.num_window_blocks);
  put(payload, header.pool.num_host_window_blocks);
  put(payload, header.bytes_per_window_block);
  append_chunk(out, ChunkKind::kHeader, payload);
}

void append_chunk(Bytes& out, const RecordingEnd& end) {
  Bytes payload;
  put(payload, end.num_steps);
  put(payload, end.num_events);
  append_chunk(out, ChunkKind::kEnd, payload);
}

void append_chunks(Bytes& out, std::span<const RecordedStep> steps) {
  append_rows(out, ChunkKind::kSteps, steps, step_bytes(kRecordingVersion));
}

void append_chunks(Bytes& out, ChunkKind kind, std::span<const BlockEvent> events) {
  append_rows(out, kind, events, kEventBytes);
}

void append_chunks(Bytes& out, std::span<const RecordedSequence> sequences) {
  Bytes payload;
  const auto flush = [&] {
    if (!payload.empty()) append_chunk(out, ChunkKind::kSequences, payload);
    payload.clear();
  };
  for (const RecordedSequence& sequence : sequences) {
    if (payload.size() + kSequenceBytes + kMaxSequenceNameBytes > kMaxChunkBytes) flush();
    put(payload, sequence.sequence);
    put(payload, sequence.request);
    put(payload, sequence.output_index);
    put(payload, sequence.num_prompt_tokens);
    put(payload, sequence.colour_index);
    put_text(payload, sequence.name, kMaxSequenceNameBytes);
  }
  flush();
}

void append_chunk(Bytes& out, const RecordedLesson& lesson) {
  Bytes payload;
  put_text(payload, lesson.title, kMaxLessonTextBytes);
  put(payload, static_cast<std::uint32_t>(lesson.stops.size()));
  for (const RecordedLesson::Stop& stop : lesson.stops) {
    put(payload, stop.mark);
    put_text(payload, stop.sentence, kMaxLessonTextBytes);
  }
  put(payload, static_cast<std::uint32_t>(lesson.words.size()));
  for (const auto& [sequence, words] : lesson.words) {
    put(payload, sequence);
    put(payload, static_cast<std::uint32_t>(words.size()));
    for (const std::string& word : words) put_text(payload, word, kMaxLessonWordBytes);
  }
  OCTAVO_CHECK(payload.size() <= kMaxChunkBytes, "a lesson of %zu bytes", payload.size());
  append_chunk(out, ChunkKind::kLesson, payload);
}

// ---- reading

Result<ChunkHeader> read_chunk_header(std::span<const std::byte, kChunkHeaderBytes> bytes) {
  ByteReader reader(bytes);
  const auto kind = reader.get<std::uint32_t>();
  ChunkHeader header;
  header.num_payload_bytes = reader.get<std::uint32_t>();
  header.payload_check = reader.get<std::uint64_t>();
  if (reader.get<std::uint64_t>() != check_of(bytes.first<kChunkHeaderBytes - 8>())) {
    return damaged("the start of a chunk does not match its checksum");
  }
  if (kind < static_cast<std::uint32_t>(ChunkKind::kHeader) ||
      kind > static_cast<std::uint32_t>(ChunkKind::kLesson)) {
    return damaged("unknown kind of chunk: " + std::to_string(kind));
  }
  header.kind = static_cast<ChunkKind>(kind);
  if (header.num_payload_bytes <= kMaxChunkBytes) return header;
  return damaged("a chunk of " + std::to_string(header.num_payload_bytes) + " bytes; the limit is " +
                 std::to_string(kMaxChunkBytes) + "");
}

Result<void> check_payload(const ChunkHeader& header, std::span<const std::byte> payload) {
  if (check_of(payload) == header.payload_check) return {};
  return damaged("a chunk does not match its checksum");
}

Result<RecordingHeader> read_recording_header(std::span<const std::byte> payload) {
  ByteReader reader(payload);
  const auto version = reader.get<std::uint32_t>();
  if (version < kOldestRecordingVersion || version > kRecordingVersion) {
    return Error{.code = ErrorCode::kUnsupported,
                 .message = "it has version " + std::to_string(version) + "; this program reads versions " +
                            std::to_string(kOldestRecordingVersion) + " to " +
                            std::to_string(kRecordingVersion)};
  }
  RecordingHeader header{.version = version};
  header.pool.block_size = reader.get<std::int32_t>();
  header.pool.num_blocks = reader.get<std::int32_t>();
  header.pool.num_host_blocks = reader.get<std::int32_t>();
  header.bytes_per_block = reader.get<std::int64_t>();
  header.max_model_len = reader.get<std::int32_t>();
  header.unix_time_s = reader.get<std::int64_t>();
  header.num_keyframe_events = reader.get<std::uint64_t>();
  const auto num_name_bytes = reader.get<std::uint32_t>();
  if (num_name_bytes > kMaxModelNameBytes) return damaged("its model's name is too long");
  header.model = reader.get_text(num_name_bytes);
  if (version > 3) {
    header.pool.num_states = reader.get<std::int32_t>();
    header.pool.num_host_states = reader.get<std::int32_t>();
    header.bytes_per_state = reader.get<std::int64_t>();
  }
  if (version > 4) {
    header.pool.window = reader.get<std::int32_t>();
    header.pool.num_window_blocks = reader.get<std::int32_t>();
    header.pool.num_host_window_blocks = reader.get<std::int32_t>();
    header.bytes_per_window_block = reader.get<std::int64_t>();
  }
  if (!reader.has_read_exactly()) return damaged("its header has the wrong length");
  OCTAVO_TRY_VOID(check_header(header));
  return header;
}

Result<RecordingEnd> read_recording_end(std::span<const std::byte> payload) {
  ByteReader reader(payload);
  RecordingEnd end;
  end.num_steps = reader.get<std::uint64_t>();
  end.num_events = reader.get<std::uint64_t>();
  if (!reader.has_read_exactly()) return damaged("its final chunk has the wrong length");
  return end;
}

Result<std::vector<RecordedStep>> read_steps(std::span<const std::byte> payload,
                                             const RecordingHeader& header) {
  const std::size_t num_bytes = step_bytes(header.version);
  if (payload.empty() || payload.size() % num_bytes != 0)
    return damaged("a chunk of steps has the wrong length");
  std::vector<RecordedStep> steps(payload.size() / num_bytes);
  ByteReader reader(payload);
  for (RecordedStep& step : steps) {
    visit_fields(step.record, header.version,
                 [&](auto& field) { field = reader.get<std::remove_reference_t<decltype(field)>>(); });
    step.event_mark = reader.get<std::uint64_t>();
    OCTAVO_TRY_VOID(check_step(step.record, header.pool));
  }
  return steps;
}

Result<std::vector<BlockEvent>> read_events(std::span<const std::byte> payload) {
  if (payload.empty() || payload.size() % kEventBytes != 0)
    return damaged("a chunk of events has the wrong length");
  std::vector<BlockEvent> events(payload.size() / kEventBytes);
  ByteReader reader(payload);
  for (BlockEvent& event : events) {
    event.step = reader.get<std::int64_t>();
    event.time_us = reader.get<std::int64_t>();
    event.sequence = reader.get<std::uint64_t>();
    event.block = reader.get<std::int32_t>();
    event.aux = reader.get<std::int32_t>();
    const auto kind = reader.get<std::uint8_t>();
    event.kind = static_cast<BlockEventKind>(kind);
    if (block_event_kind_name(event.kind) == "unknown") {
      return damaged("unknown kind of event: " + std::to_string(kind));
    }
    if (event.step < 0 || event.time_us < 0) return damaged("an event has a negative step or time");
  }
  return events;
}

Result<std::vector<RecordedSequence>> read_sequences(std::span<const std::byte> payload) {
  std::vector<RecordedSequence> sequences;
  ByteReader reader(payload);
  while (!reader.empty()) {
    RecordedSequence sequence;
    sequence.sequence = reader.get<std::uint64_t>();
    sequence.request = reader.get<std::uint64_t>();
    sequence.output_index = reader.get<std::int32_t>();
    sequence.num_prompt_tokens = reader.get<std::int32_t>();
    sequence.colour_index = reader.get<std::uint32_t>();
    const auto num_name_bytes = reader.get<std::uint32_t>();
    if (num_name_bytes > kMaxSequenceNameBytes) return damaged("the name of a sequence is too long");
    sequence.name = sanitise_utf8(reader.get_text(num_name_bytes));
    if (reader.is_short()) return damaged("a chunk of sequences has the wrong length");
    if (sequence.output_index < 0 || sequence.num_prompt_tokens < 0)
      return damaged("sequence " + std::to_string(sequence.sequence) + " has a negative figure");
    sequences.push_back(std::move(sequence));
  }
  return sequences;
}

Result<RecordedLesson> read_lesson(std::span<const std::byte> payload) {
  ByteReader reader(payload);
  bool is_short = false, is_long = false;
  const auto text = [&](std::uint32_t most_bytes) {
    const auto num_bytes = reader.get<std::uint32_t>();
    is_long = is_long || num_bytes > most_bytes;
    return is_long ? std::string() : sanitise_utf8(reader.get_text(num_bytes));
  };
  // Counts are believed only as far as there are bytes: nothing is reserved for them.
  const auto goes_on = [&] { return !(is_short = reader.is_short()) && !is_long; };
  RecordedLesson lesson;
  lesson.title = text(kMaxLessonTextBytes);
  const auto num_stops = reader.get<std::uint32_t>();
  if (!is_long && num_stops > kMaxLessonStops)
    return damaged("a lesson of " + std::to_string(num_stops) + " stops");
  for (std::uint32_t i = 0; i < num_stops && goes_on(); ++i) {
    const auto mark = reader.get<std::uint64_t>();
    if (!lesson.stops.empty() && mark < lesson.stops.back().mark)
      return damaged("the stops of its lesson are not in order");
    lesson.stops.push_back({mark, text(kMaxLessonTextBytes)});
  }
  const auto num_sequences = reader.get<std::uint32_t>();
  for (std::uint32_t i = 0; i < num_sequences && goes_on(); ++i) {
    std::vector<std::string>& words = lesson.words[reader.get<std::uint64_t>()];
    const auto num_words = reader.get<std::uint32_t>();
    for (std::uint32_t k = 0; k < num_words && goes_on(); ++k) words.push_back(text(kMaxLessonWordBytes));
  }
  if (is_long) return damaged("a text of its lesson is too long");
  if (is_short || !reader.has_read_exactly()) return damaged("its lesson has the wrong length");
  if (lesson.stops.empty()) return damaged("its lesson has no stops");
  return lesson;
}

}  // namespace octavo::metrics
