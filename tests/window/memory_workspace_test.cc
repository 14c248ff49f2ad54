// The Memory workspace without a window: the cursor, recordings, exports, and words that light blocks.

#include "app/window/memory/memory_workspace.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "app/window/memory/memory_export.h"
#include "app/window/memory/memory_health.h"
#include "app/window/platform/png.h"
#include "app/window/platform/window.h"
#include "tests/metrics/engine_traffic.h"

namespace octavo::app {
namespace {

namespace act = ui::actions;

class MemoryWorkspaceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::temp_directory_path() / ("octavo-memory_workspace-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    memory_workspace_ = std::make_unique<MemoryWorkspace>(folder_);
    EngineDescription description;
    description.block_size = traffic_.pool().block_size;
    description.num_blocks = traffic_.pool().num_blocks;
    description.num_host_blocks = traffic_.pool().num_host_blocks;
    description.bytes_per_block = 64;
    description.max_model_len = traffic_.options().max_model_len;
    state_.workspace = ui::Workspace::kMemory;
    memory_workspace_->attach(description, traffic_.core().recorder(), {}, state_);
  }
  void TearDown() override {
    memory_workspace_.reset();
    std::filesystem::remove_all(folder_);
  }

  void run(int num_steps) {
    for (int i = 0; i < num_steps; ++i) {
      traffic_.step();
      const metrics::Trace trace = traffic_.core().recorder()->read_since(step_mark_, event_mark_);
      step_mark_ = trace.next_step_mark;
      event_mark_ = trace.next_event_mark;
      memory_workspace_->fold(
          trace, std::make_shared<KvSnapshot>(traffic_.core().snapshot()),
          [](RequestId) { return std::nullopt; }, state_);
    }
  }
  void apply(const act::MemoryAction& action) { memory_workspace_->apply(action, state_); }
  const ui::MemoryWorkspaceState& shown() const { return state_.memory_workspace; }

  metrics::EngineTraffic traffic_{21};
  std::uint64_t step_mark_ = 0, event_mark_ = 0;
  std::filesystem::path folder_;
  std::unique_ptr<MemoryWorkspace> memory_workspace_;
  ui::UiState state_;
};

TEST_F(MemoryWorkspaceTest, FollowsUntilItIsPausedAndComesBack) {
  run(50);
  EXPECT_TRUE(shown().cursor.following);
  EXPECT_EQ(shown().snapshot->step, traffic_.core().snapshot().step);
  apply(act::PauseMemory{});
  const std::uint64_t mark = shown().cursor.mark;
  const auto paused = shown().snapshot;
  run(20);
  EXPECT_EQ(shown().cursor.mark, mark);
  EXPECT_EQ(shown().snapshot, paused) << "what is paused does not move";
  apply(act::FollowNewest{});
  EXPECT_EQ(shown().snapshot->step, traffic_.core().snapshot().step);
}

TEST_F(MemoryWorkspaceTest, StepsBackAndOnAreInverse) {
  run(80);
  apply(act::PauseMemory{});
  apply(act::StepSteps{-1});
  apply(act::StepSteps{-1});
  const std::uint64_t mark = shown().cursor.mark;
  apply(act::StepSteps{-1});
  apply(act::StepSteps{+1});
  EXPECT_EQ(shown().cursor.mark, mark);
  apply(act::StepEvents{-1});
  EXPECT_EQ(shown().cursor.mark, mark - 1);
  apply(act::StepEvents{+1});
  EXPECT_EQ(shown().cursor.mark, mark);
}

TEST_F(MemoryWorkspaceTest, PoolAtAStepHasThatStepsLevels) {
  run(150);
  for (std::size_t i = 0; i < shown().timeline->steps.size(); i += 17) {
    const ui::TimelineStep step = shown().timeline->steps[i];
    apply(act::SeekMark{step.mark});
    EXPECT_EQ(shown().snapshot->figures.used_blocks, step.record.used_blocks);
    EXPECT_EQ(shown().snapshot->figures.cached_blocks, step.record.cached_blocks);
    EXPECT_EQ(shown().snapshot->figures.logical_blocks, step.record.logical_blocks);
    EXPECT_EQ(shown().snapshot->figures.host_used_blocks, step.record.host_used_blocks);
  }
}

TEST_F(MemoryWorkspaceTest, PlayingReachesTheEndAndStops) {
  run(40);
  apply(act::ChangePlaySpeed{64});
  apply(act::PlayMemory{true});
  EXPECT_TRUE(memory_workspace_->wants_tick());
  std::int64_t now_us = 1;
  for (int i = 0; i < 10'000 && shown().cursor.playing; ++i)
    memory_workspace_->tick(now_us += 20'000, state_);
  EXPECT_FALSE(shown().cursor.playing);
  EXPECT_EQ(shown().cursor.mark, shown().timeline->newest_mark);
}

TEST_F(MemoryWorkspaceTest, OpenedRecordingShowsWhatWasRecorded) {
  run(60);
  apply(act::StartRecording{});
  ASSERT_TRUE(shown().recording.is_recording) << memory_workspace_->take_effects().problem.value_or("");
  run(120);
  const auto live = shown().snapshot;
  apply(act::StopRecording{});
  const MemoryEffects told = memory_workspace_->take_effects();
  EXPECT_TRUE(told.notice);
  EXPECT_EQ(told.written, shown().recording.path);
  apply(act::OpenRecording{told.written});
  for (int i = 0; i < 2'000 && shown().source != ui::MemorySource::kRecording; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    memory_workspace_->tick(i, state_);
  }
  ASSERT_EQ(shown().source, ui::MemorySource::kRecording)
      << memory_workspace_->take_effects().problem.value_or("");
  EXPECT_EQ(shown().timeline->steps.back().record.step, live->step);
  for (std::size_t i = 0; i < live->blocks.size(); ++i) {
    EXPECT_EQ(shown().snapshot->blocks[i].ref_count, live->blocks[i].ref_count) << i;
    EXPECT_EQ(shown().snapshot->blocks[i].filled, live->blocks[i].filled) << i;
  }
  apply(act::CloseRecording{});
  EXPECT_EQ(shown().source, ui::MemorySource::kLive);
  EXPECT_EQ(shown().timeline->steps.back().record.step, live->step);
}

TEST_F(MemoryWorkspaceTest, DamagedRecordingIsOneSentence) {
  const auto path = folder_ / "damaged.rec";
  std::ofstream(path) << "OCTAVOR\nand then nothing that makes sense";
  apply(act::OpenRecording{path.string()});
  MemoryEffects effects;
  for (int i = 0; i < 2'000 && !effects.problem; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    memory_workspace_->tick(i, state_);
    effects = memory_workspace_->take_effects();
  }
  ASSERT_TRUE(effects.problem);
  EXPECT_EQ(shown().source, ui::MemorySource::kLive);
}

TEST_F(MemoryWorkspaceTest, ExportsAreWritten) {
  run(50);
  apply(act::ExportMemory{act::ExportFormat::kJson, (folder_ / "memory.json").string()});
  apply(act::ExportMemory{act::ExportFormat::kCsv, (folder_ / "memory.csv").string()});
  int num_files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    ++num_files;
    EXPECT_GT(entry.file_size(), 200u) << entry.path();
  }
  EXPECT_EQ(num_files, 2);
  std::istringstream lines(steps_csv(*shown().timeline));
  std::string line;
  std::size_t num_lines = 0;
  while (std::getline(lines, line)) {
    ++num_lines;
    EXPECT_EQ(std::count(line.begin(), line.end(), ','), 19);
  }
  EXPECT_EQ(num_lines, shown().timeline->steps.size() + 1);
}

TEST_F(MemoryWorkspaceTest, BlockCardTellsOwnersAndHistory) {
  run(120);
  for (int i = 0; i < 100 && shown().snapshot->figures.used_blocks == 0; ++i) run(1);
  const auto& blocks = shown().snapshot->blocks;
  const auto used = std::find_if(blocks.begin(), blocks.end(),
                                 [](const BlockSnapshot& block) { return block.state == BlockState::kUsed; });
  ASSERT_NE(used, blocks.end());
  const auto id = static_cast<std::int32_t>(used - blocks.begin());
  apply(act::ChooseBlock{id});
  ASSERT_TRUE(shown().card);
  EXPECT_EQ(static_cast<std::int32_t>(shown().card->owners.size()), used->ref_count);
  ASSERT_FALSE(shown().card->history.empty());
  EXPECT_EQ(memory_workspace_->take_effects().watched_block, BlockId{id});
  apply(act::ChooseBlock{-1});
  EXPECT_FALSE(shown().card);
}

TEST_F(MemoryWorkspaceTest, TourGoesFromChapterToChapterAndBackToTheEngine) {
  run(30);
  apply(act::ShowMemoryPage{ui::MemoryPage::kTour});
  EXPECT_EQ(shown().source, ui::MemorySource::kTour);
  EXPECT_EQ(shown().tour.step, 0);
  for (int i = 0; i < 400 && shown().tour.chapter == 0; ++i) apply(act::MoveTour{+1});
  EXPECT_EQ(shown().tour.chapter, 1);
  EXPECT_EQ(shown().tour.step, 0);
  apply(act::MoveTour{+1});
  EXPECT_EQ(shown().tour.step, 1);
  EXPECT_GT(shown().snapshot->figures.used_blocks, 0);
  apply(act::MoveTour{-1});
  EXPECT_EQ(shown().snapshot->figures.used_blocks, 0);
  apply(act::ShowMemoryPage{ui::MemoryPage::kPools});
  EXPECT_EQ(shown().source, ui::MemorySource::kLive);
  EXPECT_EQ(shown().snapshot->step, traffic_.core().snapshot().step);
}

TEST_F(MemoryWorkspaceTest, AChapterIsExportedOpenedWalkedAndClosed) {
  const std::string path = (folder_ / "lesson.rec").string();
  apply(act::ExportMemory{act::ExportFormat::kLesson, path});
  EXPECT_TRUE(memory_workspace_->take_effects().problem) << "the live engine is no chapter";
  apply(act::ShowChapter{4});
  apply(act::ExportMemory{act::ExportFormat::kLesson, path});
  const MemoryEffects told = memory_workspace_->take_effects();
  EXPECT_FALSE(told.problem) << *told.problem;
  EXPECT_EQ(told.written, path);
  apply(act::ShowMemoryPage{ui::MemoryPage::kPools});
  memory_workspace_->detach();  // it needs no model
  apply(act::OpenRecording{path});
  for (int i = 0; i < 2'000 && shown().source != ui::MemorySource::kLesson; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    memory_workspace_->tick(i, state_);
  }
  ASSERT_EQ(shown().source, ui::MemorySource::kLesson);
  EXPECT_EQ(shown().page, ui::MemoryPage::kTour);
  EXPECT_EQ(shown().tour.title, "Samples share their prompt");
  EXPECT_EQ(shown().tour.step, 0);
  const std::int32_t num_steps = shown().tour.num_steps;
  std::size_t num_arrows = 0;
  for (int i = 0; i < 2 * num_steps; ++i) {
    apply(act::MoveTour{+1});
    num_arrows += shown().slots->arrows.size();
    EXPECT_EQ(shown().source, ui::MemorySource::kLesson) << "behind a lesson's end is no next chapter";
  }
  EXPECT_EQ(shown().tour.step, num_steps - 1);
  EXPECT_GT(num_arrows, 0u);
  apply(act::CloseRecording{});
  EXPECT_EQ(shown().source, ui::MemorySource::kLive);
  EXPECT_EQ(shown().page, ui::MemoryPage::kPools);
  EXPECT_FALSE(shown().slots);
}

TEST_F(MemoryWorkspaceTest, ATrialIsPlayedAndKeptAndARefusedOneChangesNothing) {
  apply(act::ShowChapter{12});
  EXPECT_TRUE(shown().tour.is_trial);
  EXPECT_FALSE(shown().tour.trial.prompts[0].empty()) << "something is there before anybody types";
  const ui::TourTrial trial{.prompts = {"my own words"}, .answers = ui::TrialAnswers::kOneSample};
  apply(act::PlayTrial{trial});
  EXPECT_EQ(shown().tour.trial, trial);
  apply(act::MoveTour{+1});
  ASSERT_TRUE(shown().slots);
  EXPECT_EQ(shown().slots->device[0].slots[0].word, "my");
  apply(act::PlayTrial{{.prompts = {""}}});
  EXPECT_EQ(shown().tour.problem, "Type a few words first.");
  EXPECT_EQ(shown().tour.trial, trial);
  EXPECT_EQ(shown().tour.step, 1);
  apply(act::ShowChapter{0});
  EXPECT_FALSE(shown().tour.is_trial);
  apply(act::ShowChapter{12});
  EXPECT_EQ(shown().tour.trial, trial) << "coming back shows it again";
  EXPECT_EQ(shown().tour.problem, "");
}

TEST(TokenBook, WordLeadsToItsPositionAndBack) {
  // Ids are letters; the template puts brackets around messages.
  const std::string letters = "[abc][de]fgh";
  std::vector<std::string> pieces;
  for (const char letter : letters) pieces.emplace_back(1, letter);
  const TokenBytes bytes = [&](TokenId id) { return std::string_view(pieces[static_cast<std::size_t>(id)]); };
  TokenBook book;
  book.begin(RequestId{1}, ChatId{7}, {{{11}, "abc"}, {{12}, "de"}}, {13});
  book.accept(RequestId{1}, std::vector<TokenId>{0, 1, 2, 3, 4, 5, 6, 7, 8});
  book.generate(RequestId{1}, 0, std::vector<TokenId>{9, 10}, "fg");
  book.generate(RequestId{1}, 0, std::vector<TokenId>{11}, "h");
  const auto place = book.find(ChatId{7}, MessageId{12}, 1, 2, bytes);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->begin, 7);
  EXPECT_EQ(place->end, 8);
  const auto answer = book.find(ChatId{7}, MessageId{13}, 2, 3, bytes);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->begin, 11);
  EXPECT_EQ(book.text_of(RequestId{1}, 0, 8, 4, bytes), "]fgh");
  const auto stretches = book.stretches_of(RequestId{1}, 2, 8, bytes);
  ASSERT_EQ(stretches.size(), 2u);
  EXPECT_EQ(stretches[0].message, MessageId{11});
  EXPECT_EQ(stretches[0].range.begin, 1u);
  EXPECT_EQ(stretches[0].range.end, 3u);
  EXPECT_EQ(stretches[1].message, MessageId{12});
  EXPECT_FALSE(book.find(ChatId{8}, MessageId{12}, 0, 1, bytes));
}

TEST(HealthSentences, SwapIsToldWithItsAgeForFiveSecondsAndThenWithItsTime) {
  ui::MemoryWorkspaceState state;
  state.pool.bytes_per_block = 130'000;
  ui::TimelineState timeline;
  timeline.names[3] = {.label = "Chat 3"};
  timeline.log.push_back({.mark = 5,
                          .last_mark = 45,
                          .time_us = 12'000'000,
                          .sequence = 3,
                          .kind = BlockEventKind::kSwapOut,
                          .count = 41});
  state.timeline = std::make_shared<ui::TimelineState>(timeline);
  KvSnapshot snapshot;
  const auto soon = health_sentences(snapshot, state, 50, 14'100'000);
  EXPECT_EQ(soon.front().text, "Chat 3 was swapped out 2.1 s ago: 41 blocks, 5.08 MiB.");
  const auto later = health_sentences(snapshot, state, 50, 18'000'000);
  EXPECT_EQ(later.front().text, "Chat 3 was swapped out at 12.00 s: 41 blocks, 5.08 MiB.");
  const auto before = health_sentences(snapshot, state, 5, 14'100'000);
  EXPECT_EQ(before.front().text.find("swapped"), std::string::npos);
}

TEST(PngBytes, AreAPictureWithRightChecksums) {
  Picture picture{.width = 2, .height = 1, .pixels = {255, 0, 0, 0, 0, 255}};
  const std::string bytes = png_bytes(picture.width, picture.height, PixelKind::kColour, picture.pixels);
  EXPECT_EQ(bytes.substr(1, 3), "PNG");
  EXPECT_NE(bytes.find("IHDR"), std::string::npos);
  // The end chunk is always the same, with its checksum.
  EXPECT_EQ(bytes.substr(bytes.size() - 12), std::string("\0\0\0\0IEND\xae\x42\x60\x82", 12));
}

// Who draws asks for a tick as long as there is something to see: the end is.
TEST_F(MemoryWorkspaceTest, TheEndOfThePapersRunIsShown) {
  apply(act::RunPaper{});
  EXPECT_TRUE(shown().evaluation.is_queue_running);
  apply(act::CancelPaper{});
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (memory_workspace_->wants_tick() && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    memory_workspace_->tick(0, state_);
  }
  EXPECT_FALSE(memory_workspace_->wants_tick());
  EXPECT_FALSE(shown().evaluation.is_queue_running) << "nothing else asks for a frame";
}

// Either would make the figures of the other worse.
TEST_F(MemoryWorkspaceTest, TheQueueAndAnExperimentDoNotRunAtOnce) {
  apply(act::ShowMemoryPage{ui::MemoryPage::kPaper});
  apply(act::RunPaper{});
  apply(act::RunExperiments{0});
  EXPECT_FALSE(shown().evaluation.is_running);
  apply(act::CancelPaper{});
  const auto settle = [this] {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (memory_workspace_->wants_tick() && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      memory_workspace_->tick(0, state_);
    }
  };
  settle();
  apply(act::RunExperiments{0});
  EXPECT_TRUE(shown().evaluation.is_running);
  apply(act::RunPaper{});
  EXPECT_FALSE(shown().evaluation.is_queue_running);
  apply(act::CancelExperiments{});
  settle();
  EXPECT_FALSE(shown().evaluation.is_running);
}

TEST_F(MemoryWorkspaceTest, AnExperimentOnThisComputerNeedsTheEngineThatIsThereNow) {
  apply(act::ShowMemoryPage{ui::MemoryPage::kPaper});
  const std::size_t last = shown().evaluation.experiments.size() - 1;
  ASSERT_TRUE(shown().evaluation.experiments[last].is_real);
  EngineOptions options;
  options.model = (folder_ / "none.gguf").string();
  memory_workspace_->evaluation().set_engine(options);
  apply(act::RunExperiments{last});
  EXPECT_TRUE(shown().evaluation.is_running);
  while (shown().evaluation.is_running) memory_workspace_->tick(0, state_);
  memory_workspace_->attach({}, traffic_.core().recorder(), {},
                            state_);  // one that nobody said what it is of
  apply(act::RunExperiments{last});
  EXPECT_FALSE(shown().evaluation.is_running);
}

// The newest snapshot may be older than the events that were read after it.
TEST_F(MemoryWorkspaceTest, EverythingIsShownAtTheMomentOfTheSnapshot) {
  run(20);
  traffic_.step();
  const auto snapshot = std::make_shared<KvSnapshot>(traffic_.core().snapshot());
  metrics::Trace trace;
  for (int i = 0; i < 100 && trace.next_event_mark <= snapshot->event_mark; ++i) {
    traffic_.step();
    trace = traffic_.core().recorder()->read_since(step_mark_, event_mark_);
  }
  ASSERT_LT(snapshot->event_mark, trace.next_event_mark);
  memory_workspace_->fold(
      trace, snapshot, [](RequestId) { return std::nullopt; }, state_);
  EXPECT_EQ(shown().cursor.mark, snapshot->event_mark);
  EXPECT_EQ(shown().snapshot, snapshot);
  std::int32_t num_used = 0;
  for (const ui::ShownHostBlock& block : shown().host) num_used += block.is_used ? 1 : 0;
  EXPECT_EQ(num_used, snapshot->totals.host_used_blocks);
}

}  // namespace
}  // namespace octavo::app
