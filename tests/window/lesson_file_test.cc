// A chapter as one file: what is opened is what was written, and nothing of a damaged file is believed.

#include "app/window/memory/lesson_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "app/window/memory/recording_viewer.h"
#include "app/window/memory/slot_map.h"
#include "app/window/memory/tour_trial.h"
#include "engine/metrics/recording_format.h"
#include "engine/metrics/recording_limits.h"
#include "engine/metrics/recording_summary.h"
#include "tests/support/temporary_folder.h"

namespace octavo::app {
namespace {

using test::TemporaryFolder;

std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

void write(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// The shortest that has everything: a visitor's text with a single sample.
std::string small_lesson(const TemporaryFolder& folder) {
  const auto chapter = play_trial({.prompts = {"ten words"}, .answers = ui::TrialAnswers::kOneSample});
  EXPECT_TRUE(write_lesson(folder / "small.rec", *tour_source(*chapter)).has_value());
  return bytes_of(folder / "small.rec");
}

TEST(LessonFile, TellsEveryStopWithTheSameWordsInTheSameSlots) {
  const TemporaryFolder folder;
  const auto path = folder / "lesson.rec";
  for (std::size_t i = 0; i + 1 < tour_titles().size(); ++i) {
    SCOPED_TRACE(tour_titles()[i]);
    const auto taught = tour_source(play_tour_chapter(i));
    ASSERT_TRUE(write_lesson(path, *taught).has_value());
    auto opened = open_recording(path);
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    HistorySource& lesson = *opened->source;
    EXPECT_EQ(lesson.kind, ui::MemorySource::kLesson);
    EXPECT_EQ(lesson.title, taught->title);
    EXPECT_EQ(lesson.words, taught->words);
    ASSERT_EQ(lesson.stops, taught->stops);
    EXPECT_EQ(lesson.pool.bytes_per_block, taught->pool.bytes_per_block);
    for (const TourStop& stop : lesson.stops) {
      const auto here = lesson.history.at(stop.mark), there = taught->history.at(stop.mark);
      ASSERT_TRUE(here && there);
      const auto slots = slot_map(lesson.history, stop.mark, *here->snapshot, lesson.words);
      const auto wanted = slot_map(taught->history, stop.mark, *there->snapshot, taught->words);
      EXPECT_EQ(slot_figures(slots), slot_figures(wanted));
      EXPECT_EQ(slots.arrows, wanted.arrows);
      ASSERT_EQ(slots.device.size(), wanted.device.size());
      for (std::size_t block = 0; block < slots.device.size(); ++block) {
        EXPECT_EQ(slots.device[block].owners, wanted.device[block].owners);
        ASSERT_EQ(slots.device[block].slots.size(), wanted.device[block].slots.size());
        for (std::size_t slot = 0; slot < slots.device[block].slots.size(); ++slot)
          EXPECT_EQ(slots.device[block].slots[slot].word, wanted.device[block].slots[slot].word);
      }
    }
    for (const auto& [sequence, name] : taught->timeline.state().names) {
      EXPECT_EQ(lesson.timeline.state().names.at(sequence).label, name.label);
      EXPECT_EQ(lesson.timeline.state().names.at(sequence).colour_index, name.colour_index);
    }
    const auto summary = metrics::summarise_recording(path);
    ASSERT_TRUE(summary.has_value()) << "who does not teach reads it as any recording";
    EXPECT_EQ(summary->inconsistency, std::nullopt);
    EXPECT_TRUE(summary->is_complete);
  }
}

TEST(LessonFile, NoTruncatedFileIsOpenedAsALesson) {
  const TemporaryFolder folder;
  const std::string whole = small_lesson(folder);
  const auto path = folder / "cut.rec";
  std::size_t num_refused = 0, num_recordings = 0;
  for (std::size_t size = 0; size < whole.size(); ++size) {
    write(path, whole.substr(0, size));
    const auto opened = open_recording(path);
    if (opened.has_value()) {  // it ends before it says that it is a lesson
      EXPECT_FALSE(opened->source->is_walked()) << size;
      EXPECT_FALSE(opened->is_complete) << size;
      ++num_recordings;
      continue;
    }
    ++num_refused;
    EXPECT_EQ(opened.error().message.find('\n'), std::string::npos) << size;
  }
  EXPECT_GT(num_refused, num_recordings);
}

TEST(LessonFile, NoFlippedBitIsBelieved) {
  const TemporaryFolder folder;
  std::string bytes = small_lesson(folder);
  ASSERT_LT(bytes.size(), 20'000u);
  const auto path = folder / "flipped.rec";
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const char before = bytes[i];
    bytes[i] = static_cast<char>(static_cast<unsigned char>(before) ^ (1u << (i % 8)));
    write(path, bytes);
    const auto opened = open_recording(path);
    ASSERT_FALSE(opened.has_value()) << "byte " << i;
    EXPECT_EQ(opened.error().message.find('\n'), std::string::npos);
    bytes[i] = before;
  }
  write(path, bytes);
  EXPECT_TRUE(open_recording(path).has_value());
}

// Checksums that match, and nonsense behind them.
TEST(LessonFile, HostileLessonsAreOneSentence) {
  using metrics::RecordedLesson;
  const TemporaryFolder folder;
  const RecordedLesson lesson = {
      .title = "A lesson", .stops = {{0, "One"}, {1, "Two"}}, .words = {{1, {"word"}}}};
  const metrics::PoolShape pool = {.block_size = 4, .num_blocks = 4, .num_host_blocks = 1};
  const std::vector<BlockEvent> one_event = {{.sequence = 1, .block = 0, .kind = BlockEventKind::kAlloc}};
  struct Parts {
    metrics::PoolShape pool;
    std::vector<RecordedLesson> lessons;
    metrics::Bytes raw_lesson = {};
    std::vector<BlockEvent> events_before = {}, events = {};
  };
  const auto file_of = [](const Parts& parts) {
    metrics::Bytes bytes;
    for (const char c : metrics::kRecordingMagic) bytes.push_back(static_cast<std::byte>(c));
    append_chunk(bytes, metrics::RecordingHeader{.pool = parts.pool});
    append_chunks(bytes, metrics::ChunkKind::kEvents, parts.events_before);
    for (const RecordedLesson& one : parts.lessons) append_chunk(bytes, one);
    if (!parts.raw_lesson.empty()) append_chunk(bytes, metrics::ChunkKind::kLesson, parts.raw_lesson);
    append_chunks(bytes, metrics::ChunkKind::kEvents, parts.events);
    append_chunk(bytes, metrics::RecordingEnd{0, parts.events_before.size() + parts.events.size()});
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  const auto with = [&](auto change) {
    RecordedLesson changed = lesson;
    change(changed);
    return Parts{pool, {changed}, {}, {}, one_event};
  };
  metrics::Bytes payload;
  append_chunk(payload, lesson);
  payload.erase(payload.begin(), payload.begin() + metrics::kChunkHeaderBytes);
  metrics::Bytes shorter(payload.begin(), payload.end() - 1), longer = payload, endless_title = payload;
  longer.push_back(std::byte{0});
  endless_title[3] = std::byte{0x7f};
  metrics::Bytes many_stops = payload, many_words = payload;
  many_stops[4 + 8 + 3] = std::byte{0x7f};                   // behind the title, its length first
  many_words[payload.size() - 4 - 4 - 1] = std::byte{0x7f};  // before "word", its length first
  const std::vector<BlockEvent> many_events(metrics::kMaxLessonEvents + 1);

  const std::vector<std::pair<std::string, Parts>> hostile = {
      {"at most 256 blocks of 16 tokens", {{4, 257, 0}, {lesson}}},
      {"at most 256 blocks of 16 tokens", {{4, 4, 257}, {lesson}}},
      {"at most 256 blocks of 16 tokens", {{17, 4, 0}, {lesson}}},
      {"there is a second lesson", {pool, {lesson, lesson}}},
      {"does not come before", {pool, {lesson}, {}, one_event}},
      {"stops after its last event", {pool, {lesson}}},
      {"at most 65536 events", {pool, {lesson}, {}, {}, many_events}},
      {"not in order", with([](RecordedLesson& l) { std::swap(l.stops[0].mark, l.stops[1].mark); })},
      {"has no stops", with([](RecordedLesson& l) { l.stops.clear(); })},
      {"4097 stops", with([](RecordedLesson& l) { l.stops.resize(4'097); })},
      {"has the wrong length", {pool, {}, shorter}},
      {"has the wrong length", {pool, {}, longer}},
      {"a text of its lesson is too long", {pool, {}, endless_title}},
      {"stops", {pool, {}, many_stops}},
      {"has the wrong length", {pool, {}, many_words}},
      {"contradicts itself",
       {pool, {lesson}, {}, {}, {{.sequence = 1, .block = 9, .kind = BlockEventKind::kAlloc}}}},
  };
  const auto path = folder / "hostile.rec";
  for (const auto& [sentence, parts] : hostile) {
    write(path, file_of(parts));
    const auto opened = open_recording(path);
    ASSERT_FALSE(opened.has_value()) << sentence;
    EXPECT_NE(opened.error().message.find(sentence), std::string::npos)
        << opened.error().message << "\nwanted: " << sentence;
    EXPECT_EQ(opened.error().message.find('\n'), std::string::npos);
  }
  write(path, file_of(with([](RecordedLesson& l) { l.title = "still \xff a lesson"; })));
  const auto opened = open_recording(path);
  ASSERT_TRUE(opened.has_value()) << opened.error().message;
  EXPECT_EQ(opened->source->title, "still \xef\xbf\xbd a lesson");
}

TEST(LessonFile, WhereItCannotBeWrittenIsSaid) {
  const auto chapter = tour_source(play_tour_chapter(0));
  const auto written = write_lesson("/nowhere/at/all/lesson.rec", *chapter);
  ASSERT_FALSE(written.has_value());
  EXPECT_NE(written.error().message.find("could not be written"), std::string::npos);
}

}  // namespace
}  // namespace octavo::app
