#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <fstream>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/metrics/recording_file.h"
#include "engine/metrics/recording_format.h"
#include "engine/metrics/recording_limits.h"
#include "engine/metrics/recording_reader.h"
#include "engine/metrics/recording_summary.h"
#include "engine/metrics/recording_writer.h"
#include "tests/block/seed.h"
#include "tests/metrics/engine_traffic.h"
#include "tests/support/temporary_folder.h"

namespace octavo::metrics {
namespace {

using Kind = BlockEventKind;
using test::TemporaryFolder;

std::unique_ptr<ByteSink> open_or_die(const std::filesystem::path& path) {
  auto file = RecordingFile::open(path);
  EXPECT_TRUE(file.has_value()) << file.error().message;
  return std::move(*file);
}

void never_fails(const Error& error) { ADD_FAILURE() << error.message; }

Bytes read_file(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(stream)), {});
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

void write_file(const std::filesystem::path& path, const Bytes& bytes) {
  std::ofstream stream(path, std::ios::binary | std::ios::trunc);
  stream.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

// A short one with a bit of everything, as bytes.
Bytes small_recording(const TemporaryFolder& folder, unsigned seed = 3) {
  EngineTraffic traffic(seed);
  {
    RecordingWriter writer(open_or_die(folder / "small"), {.bytes_per_block = 64, .model = "toy"},
                           traffic.core().recorder(), never_fails);
    for (int i = 0; i < 12; ++i) {
      traffic.step();
      writer.notify();
    }
  }
  return read_file(folder / "small");
}

// ---- round trips

TEST(Recording, TellsWhatTheEngineDid) {
  const unsigned first_seed = test_seed();
  const TemporaryFolder folder;
  std::int64_t num_steps = 0;
  for (unsigned seed = first_seed; seed < first_seed + 12; ++seed) {
    SCOPED_TRACE("--gtest_random_seed=" + std::to_string(seed));
    EngineTraffic traffic(seed, layers_of(seed));
    const auto path = folder / "events.rec";
    std::int64_t num_prefill_tokens = 0, num_decode_tokens = 0, num_draft_tokens = 0, num_accepted_tokens = 0;
    {
      RecordingWriter writer(open_or_die(path),
                             {.bytes_per_block = 64, .max_model_len = 77, .model = "toy \"model\""},
                             traffic.core().recorder(), never_fails);
      for (int i = 0; i < 150; ++i) {
        traffic.step();
        writer.notify();
      }
      const Trace trace = traffic.core().recorder()->read_since(0, 0);
      for (const StepRecord& step : trace.steps) {
        num_prefill_tokens += step.num_prefill_tokens;
        num_decode_tokens += step.num_decode_tokens;
        num_draft_tokens += step.num_draft_tokens;
        num_accepted_tokens += step.num_accepted_tokens;
      }
      num_steps = static_cast<std::int64_t>(trace.steps.size());
    }
    const auto summary = summarise_recording(path);
    ASSERT_TRUE(summary.has_value()) << summary.error().message;
    EXPECT_TRUE(summary->is_complete);
    EXPECT_EQ(summary->inconsistency, std::nullopt);
    EXPECT_EQ(summary->header.pool, traffic.pool());
    EXPECT_EQ(summary->header.model, "toy \"model\"");
    EXPECT_EQ(summary->header.max_model_len, 77);
    EXPECT_EQ(summary->num_steps, num_steps);
    EXPECT_EQ(summary->num_prefill_tokens, num_prefill_tokens);
    EXPECT_EQ(summary->num_decode_tokens, num_decode_tokens);
    EXPECT_EQ(summary->num_draft_tokens, num_draft_tokens);
    EXPECT_EQ(summary->num_accepted_tokens, num_accepted_tokens);
    const KvTotals& totals = traffic.core().totals();
    EXPECT_EQ(summary->peak_used_blocks, totals.peak_used_blocks);
    EXPECT_EQ(summary->peak_logical_blocks, totals.peak_logical_blocks);
    EXPECT_EQ(summary->peak_host_used_blocks, totals.peak_host_used_blocks);
    EXPECT_EQ(summary->count(Kind::kCopyOnWrite) + summary->count(Kind::kCopyPartial), totals.cow_copies);
    EXPECT_EQ(summary->count(Kind::kEvict), totals.evicted_cached_blocks);
    EXPECT_EQ(summary->num_swapped_out, totals.swapped_out_blocks);
    EXPECT_EQ(summary->num_swapped_in, totals.swapped_in_blocks);
    EXPECT_EQ(summary->num_preempted_groups, totals.preempted_swap + totals.preempted_recompute);
    const Trace trace = traffic.core().recorder()->read_since(0, 0);
    for (std::size_t i = 0; i < trace.steps.size(); i += 19) {
      const auto found = replay_to_step(path, trace.steps[i].step);
      ASSERT_TRUE(found.has_value()) << found.error().message;
      const auto kept = traffic.core().recorder()->state_at(trace.step_event_marks[i]);
      ASSERT_TRUE(kept.has_value());
      EXPECT_EQ(found->state.difference(*kept), std::nullopt);
      EXPECT_EQ(found->step.used_blocks, kept->num_used());
    }
  }
}

// What a writer was told about sequences comes back in order, whatever stands
// around it; too long a name is cut.
TEST(Recording, KeepsWhatSequencesAreCalled) {
  const TemporaryFolder folder;
  EngineTraffic traffic(test_seed());
  const std::vector<RecordedSequence> told = {
      {.sequence = 1,
       .request = 7,
       .output_index = 2,
       .num_prompt_tokens = 40,
       .colour_index = 3,
       .name = "Poems"},
      {.sequence = 2,
       .request = 7,
       .output_index = 3,
       .num_prompt_tokens = 40,
       .colour_index = 3,
       .name = "Compare · Sample 4"},
      {.sequence = 1, .request = 7, .name = "Poems, renamed"},
      {.sequence = 9, .request = 8, .name = std::string(kMaxSequenceNameBytes + 50, 'n')}};
  {
    RecordingWriter writer(open_or_die(folder / "named"), {}, traffic.core().recorder(), never_fails);
    writer.describe({told[0]});
    for (int i = 0; i < 20; ++i) {
      traffic.step();
      writer.notify();
    }
    writer.describe({told[1], told[2], told[3]});
  }
  auto reader = RecordingReader::open(folder / "named");
  ASSERT_TRUE(reader) << reader.error().message;
  std::vector<RecordedSequence> read;
  while (true) {
    auto part = reader->next();
    ASSERT_TRUE(part) << part.error().message;
    if (!*part) break;
    read.insert(read.end(), (*part)->sequences.begin(), (*part)->sequences.end());
  }
  EXPECT_TRUE(reader->is_complete());
  ASSERT_EQ(read.size(), told.size());
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(read[i], told[i]) << i;
  EXPECT_EQ(read[3].name, std::string(kMaxSequenceNameBytes, 'n'));
  EXPECT_TRUE(summarise_recording(folder / "named").has_value());
}

TEST(Recording, MayBeginInTheMiddle) {
  const TemporaryFolder folder;
  const unsigned first_seed = test_seed();
  for (unsigned seed = first_seed; seed < first_seed + 10; ++seed) {
    SCOPED_TRACE("--gtest_random_seed=" + std::to_string(seed));
    EngineTraffic traffic(seed, layers_of(seed));
    for (int i = 0; i < 40; ++i) traffic.step();
    const KvState start = KvState::from(traffic.core().snapshot());
    std::int64_t last_step = 0;
    {
      RecordingWriter writer(open_or_die(folder / "late"), {}, traffic.core().recorder(), never_fails);
      for (int i = 0; i < 40; ++i) traffic.step();
      last_step = traffic.core().snapshot().step;
    }
    const auto reader = RecordingReader::open(folder / "late");
    ASSERT_TRUE(reader.has_value()) << reader.error().message;
    EXPECT_EQ(reader->start().difference(start), std::nullopt);
    const auto summary = summarise_recording(folder / "late");
    ASSERT_TRUE(summary.has_value());
    EXPECT_EQ(summary->inconsistency, std::nullopt);
    EXPECT_LE(summary->last_step, last_step);
  }
}

TEST(Recording, AnEngineThatDidNothingLeavesAnEmptyOne) {
  const TemporaryFolder folder;
  const auto recorder = std::make_shared<StepRecorder>(PoolShape{.num_blocks = 4});
  { const RecordingWriter writer(open_or_die(folder / "empty"), {}, recorder, never_fails); }
  const auto summary = summarise_recording(folder / "empty");
  ASSERT_TRUE(summary.has_value());
  EXPECT_TRUE(summary->is_complete);
  EXPECT_EQ(summary->num_steps, 0);
  EXPECT_TRUE(summary->timeline.levels().empty());
  const auto none = replay_to_step(folder / "empty", 3);
  ASSERT_FALSE(none.has_value());
  EXPECT_NE(none.error().message.find("has no step 3"), std::string::npos) << none.error().message;
}

TEST(Recording, AContradictionIsFoundAndNamed) {
  const TemporaryFolder folder;
  const auto recorder = std::make_shared<StepRecorder>(PoolShape{.num_blocks = 4});
  {
    const RecordingWriter writer(open_or_die(folder / "odd"), {}, recorder, never_fails);
    const std::vector<BlockEvent> events = {{.step = 1, .sequence = 1, .block = 0, .kind = Kind::kAlloc}};
    recorder->record(StepRecord{.step = 1, .used_blocks = 1, .free_blocks = 3, .logical_blocks = 1}, events);
    recorder->record(StepRecord{.step = 2, .used_blocks = 2, .free_blocks = 2, .logical_blocks = 1}, {});
    recorder->record(std::nullopt, events);
  }
  const auto summary = summarise_recording(folder / "odd");
  ASSERT_TRUE(summary.has_value());
  EXPECT_EQ(summary->inconsistency, "step 2 recorded 2 used blocks, but its events give 1");
  EXPECT_EQ(summary->num_events, 2);
}

// The numbers of kinds are in files: they may not change without the version.
TEST(Recording, KindsOfEventsHaveFixedNumbers) {
  const std::vector<std::string> names = {"step_begin",
                                          "step_end",
                                          "alloc",
                                          "fill",
                                          "seal",
                                          "hit",
                                          "share",
                                          "pin",
                                          "unref",
                                          "copy_on_write",
                                          "copy_partial",
                                          "evict",
                                          "free",
                                          "swap_out",
                                          "swap_in",
                                          "swap_drop",
                                          "preempt",
                                          "resume",
                                          "fork",
                                          "prune",
                                          "leave_window",
                                          "state_take",
                                          "state_share",
                                          "state_resume",
                                          "state_copy",
                                          "state_release",
                                          "state_keep",
                                          "state_forget",
                                          "state_swap_out",
                                          "state_swap_in",
                                          "state_miss",
                                          "state_worth",
                                          "window_skip",
                                          "window_open",
                                          "window_keep",
                                          "window_close",
                                          "window_swap_out",
                                          "window_swap_in",
                                          "window_miss"};
  for (std::size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(block_event_kind_name(static_cast<Kind>(i)), names[i]);
  }
  EXPECT_EQ(block_event_kind_name(static_cast<Kind>(names.size())), "unknown");
  EXPECT_EQ(kRecordingVersion, 5u);
}

// Files of versions before: the same header without its last numbers, those of states and of windows.
TEST(Recording, HeadersOfTheVersionsBeforeCanStillBeRead) {
  Bytes now;
  append_chunk(now, RecordingHeader{.pool = {.block_size = 8, .num_blocks = 5, .num_host_blocks = 2},
                                    .bytes_per_block = 64,
                                    .max_model_len = 77,
                                    .unix_time_s = 3,
                                    .model = "toy"});
  constexpr int kOfStates = 4 + 4 + 8, kOfWindows = 4 + 4 + 4 + 8;
  Bytes with_states(now.begin() + kChunkHeaderBytes, now.end() - kOfWindows);
  with_states[0] = std::byte{4};
  const auto version_4 = read_recording_header(with_states);
  ASSERT_TRUE(version_4.has_value()) << version_4.error().message;
  EXPECT_EQ(version_4->pool.num_window_blocks, 0);
  EXPECT_EQ(version_4->version, 4u);
  Bytes payload(now.begin() + kChunkHeaderBytes, now.end() - kOfWindows - kOfStates);
  payload[0] = std::byte{3};
  const auto before = read_recording_header(payload);
  ASSERT_TRUE(before.has_value()) << before.error().message;
  EXPECT_EQ(before->pool, (PoolShape{.block_size = 8, .num_blocks = 5, .num_host_blocks = 2}));
  EXPECT_EQ(before->model, "toy");
  EXPECT_EQ(before->bytes_per_state, 0);
  payload[0] = std::byte{4};
  EXPECT_FALSE(read_recording_header(payload).has_value()) << "this version says how many states there are";
  payload[0] = std::byte{2};
  EXPECT_FALSE(read_recording_header(payload).has_value()) << "too old";
}

// Steps had two levels less, and whoever left a window said so, of a pool that nobody described.
TEST(Recording, StepsAndEventsOfTheVersionBeforeCanStillBeRead) {
  Bytes now;
  const RecordedStep step{{.step = 4, .used_blocks = 1, .free_blocks = 3, .host_used_blocks = 2}, 7};
  append_chunks(now, std::span(&step, 1));
  Bytes payload(now.begin() + kChunkHeaderBytes, now.end());
  payload.erase(payload.end() - 8 - 2 * 4, payload.end() - 8);
  const RecordingHeader before{.version = 4, .pool = {.num_blocks = 4}};
  const auto read = read_steps(payload, before);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  ASSERT_EQ(read->size(), 1u);
  EXPECT_EQ(read->front().record.host_used_blocks, 2);
  EXPECT_EQ(read->front().event_mark, 7u);
  EXPECT_FALSE(read_steps(payload, RecordingHeader{.pool = {.num_blocks = 4}}).has_value());
  KvState state({.block_size = 4, .num_blocks = 4});
  ASSERT_TRUE(state.apply({.sequence = 1, .block = 0, .kind = Kind::kAlloc}));
  EXPECT_TRUE(state.apply({.sequence = 1, .block = 0, .kind = Kind::kLeaveWindow}));
  EXPECT_FALSE(state.apply({.sequence = 1, .block = 0, .kind = Kind::kWindowOpen}));
}

TEST(Recording, KeepsTheShapeOfThePoolOfWindowParts) {
  Bytes bytes;
  const PoolShape pool{.block_size = 8,
                       .num_blocks = 50,
                       .num_host_blocks = 2,
                       .window = 100,
                       .num_window_blocks = 30,
                       .num_host_window_blocks = 1};
  append_chunk(bytes, RecordingHeader{.pool = pool, .bytes_per_window_block = 1 << 20});
  const auto read = read_recording_header(std::span(bytes).subspan(kChunkHeaderBytes));
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->pool, pool);
  EXPECT_EQ(read->bytes_per_window_block, 1 << 20);
  for (const PoolShape& wrong :
       {PoolShape{.num_blocks = 5, .num_window_blocks = kMaxRecordedBlocks + 1},
        PoolShape{.num_blocks = 5, .num_window_blocks = -1}, PoolShape{.num_blocks = 5, .window = -1}}) {
    Bytes refused;
    append_chunk(refused, RecordingHeader{.pool = wrong});
    EXPECT_FALSE(read_recording_header(std::span(refused).subspan(kChunkHeaderBytes)).has_value());
  }
}

TEST(Recording, KeepsTheShapeOfThePoolOfStates) {
  Bytes bytes;
  const PoolShape pool{
      .block_size = 8, .num_blocks = 5, .num_host_blocks = 2, .num_states = 9, .num_host_states = 3};
  append_chunk(bytes, RecordingHeader{.pool = pool, .bytes_per_state = 1 << 20});
  const auto read = read_recording_header(std::span(bytes).subspan(kChunkHeaderBytes));
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->pool, pool);
  EXPECT_EQ(read->bytes_per_state, 1 << 20);
  Bytes too_many;
  append_chunk(too_many, RecordingHeader{.pool = {.num_blocks = 5, .num_states = kMaxRecordedStates + 1}});
  EXPECT_FALSE(read_recording_header(std::span(too_many).subspan(kChunkHeaderBytes)).has_value());
}

// ---- damage

// What is left of a file that ends anywhere is its beginning.
TEST(Recording, ReadsAsFarAsATruncatedFileGoes) {
  const TemporaryFolder folder;
  std::uintmax_t size = small_recording(folder).size();
  const auto whole = summarise_recording(folder / "small");
  ASSERT_TRUE(whole.has_value());
  ASSERT_GT(whole->num_steps, 5);
  std::int64_t num_readable = 0, num_unreadable = 0, num_steps = whole->num_steps;
  while (size-- > 0) {
    std::filesystem::resize_file(folder / "small", size);
    const auto cut = summarise_recording(folder / "small");
    if (!cut.has_value()) {
      ++num_unreadable;
      EXPECT_EQ(cut.error().message.find('\n'), std::string::npos);
      continue;
    }
    ++num_readable;
    ASSERT_EQ(num_unreadable, 0) << "less can be read and more cannot, at " << size;
    ASSERT_FALSE(cut->is_complete) << size;
    ASSERT_EQ(cut->inconsistency, std::nullopt) << size;
    ASSERT_LE(cut->num_steps, num_steps);
    num_steps = cut->num_steps;
  }
  EXPECT_EQ(num_steps, 0);
  EXPECT_GT(num_readable, 100);
  EXPECT_LT(num_unreadable, 200);
}

TEST(Recording, NoFlippedBitIsBelieved) {
  const TemporaryFolder folder;
  const Bytes whole = small_recording(folder);
  ASSERT_LT(whole.size(), 60'000u);
  std::fstream file(folder / "small", std::ios::in | std::ios::out | std::ios::binary);
  const auto put = [&](std::size_t place, std::byte byte) {
    file.seekp(static_cast<std::streamoff>(place));
    file.put(static_cast<char>(byte)).flush();
  };
  for (std::size_t i = 0; i < whole.size(); ++i) {
    put(i, whole[i] ^ std::byte{static_cast<unsigned char>(1u << (i % 8))});
    const auto summary = summarise_recording(folder / "small");
    ASSERT_FALSE(summary.has_value()) << "byte " << i;
    ASSERT_EQ(summary.error().message.find('\n'), std::string::npos);
    put(i, whole[i]);
  }
  EXPECT_TRUE(summarise_recording(folder / "small").has_value());
}

Bytes begin_of(const RecordingHeader& header) {
  Bytes bytes;
  for (const char c : kRecordingMagic) bytes.push_back(static_cast<std::byte>(c));
  append_chunk(bytes, header);
  return bytes;
}

const RecordingHeader kSmallHeader = {.pool = {.block_size = 4, .num_blocks = 4, .num_host_blocks = 1}};

// Checks that match, and nonsense behind them.
TEST(Recording, HostileFilesAreOneSentence) {
  const TemporaryFolder folder;
  const auto header_with = [](auto change) {
    RecordingHeader header = kSmallHeader;
    change(header);
    return begin_of(header);
  };
  const auto with_events = [](std::vector<BlockEvent> events) {
    Bytes bytes = begin_of(kSmallHeader);
    append_chunks(bytes, ChunkKind::kEvents, events);
    return bytes;
  };
  const auto with_steps = [](std::vector<RecordedStep> steps) {
    Bytes bytes = begin_of(kSmallHeader);
    append_chunks(bytes, steps);
    return bytes;
  };
  const auto with_sequence = [](const RecordedSequence& sequence, std::size_t num_bytes_less) {
    Bytes bytes, payload;
    append_chunks(bytes, std::vector<RecordedSequence>{sequence});
    payload.assign(bytes.begin() + kChunkHeaderBytes,
                   bytes.end() - static_cast<std::ptrdiff_t>(num_bytes_less));
    Bytes file = begin_of(kSmallHeader);
    append_chunk(file, ChunkKind::kSequences, payload);
    return file;
  };
  const auto with_chunk = [](ChunkKind kind, std::size_t num_bytes) {
    Bytes bytes = begin_of(kSmallHeader);
    append_chunk(bytes, kind, Bytes(num_bytes));
    return bytes;
  };
  constexpr std::int32_t kHuge = std::numeric_limits<std::int32_t>::max();
  Bytes two_ends = begin_of(kSmallHeader);
  append_chunk(two_ends, RecordingEnd{});
  append_chunk(two_ends, RecordingEnd{});
  Bytes endless_name = begin_of(kSmallHeader);
  append_chunk(endless_name, ChunkKind::kSequences, Bytes(32, std::byte{0x7f}));
  Bytes wrong_end = begin_of(kSmallHeader);
  append_chunk(wrong_end, RecordingEnd{.num_steps = 1});
  Bytes no_header(begin_of(kSmallHeader));
  no_header.resize(kRecordingMagic.size());
  append_chunk(no_header, RecordingEnd{});
  Bytes long_name(no_header.begin(), no_header.begin() + kRecordingMagic.size());
  append_chunk(long_name, ChunkKind::kHeader, Bytes(60, std::byte{0xff}));
  Bytes late_step = with_events({{.kind = Kind::kStepBegin}});
  append_chunks(late_step,
                std::vector<RecordedStep>{{.record = {.step = 1, .free_blocks = 4}, .event_mark = 0}});

  const std::vector<std::pair<std::string, Bytes>> hostile = {
      {"its header says 0 tokens per block", header_with([](auto& h) { h.pool.block_size = 0; })},
      {"257 tokens per block", header_with([](auto& h) { h.pool.block_size = kMaxRecordedBlockSize + 1; })},
      {"0 blocks", header_with([](auto& h) { h.pool.num_blocks = 0; })},
      {"2147483647 blocks", header_with([](auto& h) { h.pool.num_blocks = kHuge; })},
      {"4194305 blocks", header_with([](auto& h) { h.pool.num_blocks = kMaxRecordedBlocks + 1; })},
      {"-1 host blocks", header_with([](auto& h) { h.pool.num_host_blocks = -1; })},
      {"4194305 host blocks", header_with([](auto& h) { h.pool.num_host_blocks = kMaxRecordedBlocks + 1; })},
      {"-1 bytes per block", header_with([](auto& h) { h.bytes_per_block = -1; })},
      {"1099511627777 bytes per block",
       header_with([](auto& h) { h.bytes_per_block = kMaxRecordedBlockBytes + 1; })},
      {"ends before its first step", header_with([](auto& h) { h.num_keyframe_events = ~std::uint64_t{0}; })},
      {"version 4294967295", long_name},
      {"does not begin with a header", no_header},
      {"a chunk of 1048577 bytes", with_chunk(ChunkKind::kEvents, kMaxChunkBytes + 1)},
      {"unknown kind of chunk: 77", with_chunk(static_cast<ChunkKind>(77), 8)},
      {"a chunk of events has the wrong length", with_chunk(ChunkKind::kEvents, 34)},
      {"a chunk of events has the wrong length", with_chunk(ChunkKind::kEvents, 0)},
      {"a chunk of steps has the wrong length", with_chunk(ChunkKind::kSteps, 100)},
      {"a chunk of sequences has the wrong length", with_sequence({.name = "four"}, 1)},
      {"a chunk of sequences has the wrong length", with_chunk(ChunkKind::kSequences, 31)},
      {"the name of a sequence is too long", endless_name},
      {"sequence 3 has a negative figure", with_sequence({.sequence = 3, .output_index = -1}, 0)},
      {"its final chunk has the wrong length", with_chunk(ChunkKind::kEnd, 17)},
      {"is in the middle", with_chunk(ChunkKind::kHeader, 8)},
      {"is in the middle", with_chunk(ChunkKind::kKeyframe, 33)},
      {"unknown kind of event: 99", with_events({{.kind = static_cast<Kind>(99)}})},
      {"negative step or time", with_events({{.step = -1}})},
      {"negative step or time", with_events({{.time_us = -1}})},
      {"has 5 blocks in a pool of 4", with_steps({{.record = {.used_blocks = 5}}})},
      {"negative figure", with_steps({{.record = {.num_running = -1, .free_blocks = 4}}})},
      {"not in order",
       with_steps({{.record = {.step = 2, .free_blocks = 4}}, {.record = {.step = 1, .free_blocks = 4}}})},
      {"follows its own events", late_step},
      {"the file continues after its end marker", two_ends},
      {"parts of the file are missing", wrong_end},
  };
  for (const auto& [sentence, bytes] : hostile) {
    write_file(folder / "hostile", bytes);
    const auto summary = summarise_recording(folder / "hostile");
    ASSERT_FALSE(summary.has_value()) << sentence;
    EXPECT_NE(summary.error().message.find(sentence), std::string::npos)
        << summary.error().message << "\nwanted: " << sentence;
    EXPECT_EQ(summary.error().message.find('\n'), std::string::npos);
  }
  const auto impossible = [&](std::vector<BlockEvent> events) {
    write_file(folder / "hostile", with_events(std::move(events)));
    return summarise_recording(folder / "hostile");
  };
  for (const std::int32_t block : {4, kHuge, -kHuge, -1}) {
    const auto summary = impossible({{.sequence = 1, .block = block, .kind = Kind::kAlloc}});
    ASSERT_TRUE(summary.has_value());
    EXPECT_NE(summary->inconsistency, std::nullopt);
  }
  for (const Kind kind :
       {Kind::kSwapOut, Kind::kSwapIn, Kind::kSwapDrop, Kind::kCopyOnWrite, Kind::kCopyPartial}) {
    const auto summary = impossible({{.sequence = 1, .block = 0, .kind = Kind::kAlloc},
                                     {.sequence = 1, .block = 0, .aux = kHuge, .kind = kind}});
    ASSERT_TRUE(summary.has_value());
    EXPECT_NE(summary->inconsistency, std::nullopt);
  }
}

// ---- where it is written

TEST(RecordingFile, RefusesWhatCannotBeWritten) {
  const TemporaryFolder folder;
  write_file(folder / "model.gguf", Bytes(100));
  mkfifo((folder / "pipe").c_str(), 0600);
  for (const auto& path :
       {folder.path(), folder / "no" / "such" / "folder", folder / "model.gguf", folder / "pipe"}) {
    const auto file = RecordingFile::open(path);
    ASSERT_FALSE(file.has_value()) << path;
    EXPECT_EQ(file.error().message.rfind("cannot record to ", 0), 0u) << file.error().message;
    EXPECT_EQ(file.error().message.find('\n'), std::string::npos);
  }
  EXPECT_EQ(read_file(folder / "model.gguf").size(), 100u);
}

TEST(RecordingFile, LosesNothingUntilItIsWrittenTo) {
  const TemporaryFolder folder;
  const Bytes old = small_recording(folder);
  { const auto untouched = open_or_die(folder / "small"); }
  EXPECT_EQ(read_file(folder / "small"), old);
  { const auto unused = open_or_die(folder / "new"); }
  EXPECT_FALSE(std::filesystem::exists(folder / "new"));
  const auto file = open_or_die(folder / "small");
  ASSERT_TRUE(file->write(Bytes(3)).has_value());
  EXPECT_EQ(read_file(folder / "small"), Bytes(3));
}

// A disk with so much room, and a gate that holds writes back.
struct SlowDisk {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_open = true;          // guarded by mutex
  std::size_t room = 1u << 30;  // guarded by mutex
  Bytes bytes;                  // guarded by mutex
};

class SlowSink final : public ByteSink {
 public:
  explicit SlowSink(SlowDisk& disk) : disk_(disk) {}
  std::string name() const override { return "slow.rec"; }
  Result<void> write(std::span<const std::byte> bytes) override {
    std::unique_lock lock(disk_.mutex);
    disk_.changed.wait(lock, [&] { return disk_.is_open; });
    const std::size_t count = std::min(bytes.size(), disk_.room);
    disk_.bytes.insert(disk_.bytes.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(count));
    disk_.room -= count;
    if (count < bytes.size()) return Error{ErrorCode::kIo, "No space left on device"};
    return {};
  }

 private:
  SlowDisk& disk_;
};

TEST(RecordingWriter, AFullDiskEndsItWithOneSentence) {
  const TemporaryFolder folder;
  EngineTraffic traffic(5);
  SlowDisk disk;
  disk.room = 3'000;
  std::vector<std::string> said;
  {
    RecordingWriter writer(std::make_unique<SlowSink>(disk), {}, traffic.core().recorder(),
                           [&](const Error& error) { said.push_back(error.message); });
    for (int i = 0; i < 100; ++i) {
      traffic.step();
      writer.notify();
    }
  }
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(said[0].rfind("recording to slow.rec ended after step ", 0), 0u) << said[0];
  EXPECT_NE(said[0].find("No space left on device; the steps recorded so far can be read"),
            std::string::npos);
  write_file(folder / "full", disk.bytes);
  const auto summary = summarise_recording(folder / "full");
  ASSERT_TRUE(summary.has_value()) << summary.error().message;
  EXPECT_FALSE(summary->is_complete);
}

TEST(RecordingWriter, ADiskThatIsTooSlowEndsItAndHoldsNobodyUp) {
  const TemporaryFolder folder;
  const auto recorder = std::make_shared<StepRecorder>(
      PoolShape{.num_blocks = 4}, HistorySizes{.num_steps = 16, .num_events = 16, .num_segment_events = 4});
  SlowDisk disk;
  disk.is_open = false;
  std::vector<std::string> said;
  {
    RecordingWriter writer(std::make_unique<SlowSink>(disk), {}, recorder,
                           [&](const Error& error) { said.push_back(error.message); });
    for (std::int64_t step = 1; step <= 1'000; ++step) {
      const std::vector<BlockEvent> events = {{.step = step, .kind = Kind::kStepBegin}};
      recorder->record(StepRecord{.step = step, .free_blocks = 4}, events);
      writer.notify();
    }
    std::lock_guard lock(disk.mutex);
    disk.is_open = true;
    disk.changed.notify_all();
  }
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said[0].find("cannot be written as fast as the engine runs"), std::string::npos) << said[0];
  write_file(folder / "slow", disk.bytes);
  const auto summary = summarise_recording(folder / "slow");
  ASSERT_TRUE(summary.has_value()) << summary.error().message;
  EXPECT_FALSE(summary->is_complete);
}

// ---- the timeline

TEST(PoolTimeline, KeepsTheHighestLevelOfEachStretchHoweverLongItLasts) {
  PoolTimeline timeline;
  for (std::int64_t time_us = 1'000; time_us <= 1'000'000; time_us += 10) {
    timeline.add(time_us, {.used = time_us == 500'000 ? 9 : 2, .cached = 1});
  }
  const auto levels = timeline.levels();
  ASSERT_LE(levels.size(), 64u);
  ASSERT_GE(levels.size(), 32u);
  const auto index = static_cast<std::size_t>((500'000 - 1'000) / timeline.stretch_us());
  for (std::size_t i = 0; i < levels.size(); ++i) EXPECT_EQ(levels[i].used, i == index ? 9 : 2) << i;
}

TEST(PoolTimeline, KeepsTheLevelWhileNothingHappens) {
  PoolTimeline timeline;
  timeline.add(0, {.used = 3});
  timeline.add(1'000, {.used = 5});
  const auto levels = timeline.levels();
  ASSERT_GT(levels.size(), 10u);
  EXPECT_EQ(levels.front().used, 3);
  EXPECT_EQ(levels[levels.size() / 2].used, 3);
  EXPECT_EQ(levels.back().used, 5);
}

}  // namespace
}  // namespace octavo::metrics
