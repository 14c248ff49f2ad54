// What layers with a window keep, in the Memory workspace: which part lies where, who reads it, who goes on
// behind a block, what is told, live, back in time and from a recording.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "app/window/memory/memory_workspace.h"
#include "app/window/memory/window_part_rows.h"
#include "tests/metrics/engine_traffic.h"
#include "tests/window/told_stories.h"

namespace octavo::app {
namespace {

namespace act = ui::actions;
using testing::told_stories;
using Kind = BlockEventKind;

// Of traffic that keeps what it computed, and whose texts are longer than its window.
unsigned seed_with_windows() {
  for (unsigned seed = 21;; ++seed) {
    const metrics::EngineTraffic traffic(seed, metrics::TrafficLayers::kWindowed);
    const scheduler::SchedulerOptions& options = traffic.options();
    const bool is_roomy = options.num_blocks * options.block_size > 2 * options.max_model_len;
    const bool is_tight = options.num_window_blocks < options.num_blocks;
    if (options.enable_prefix_caching && options.max_model_len > 60 && is_roomy && is_tight &&
        options.block_size < 16)
      return seed;
  }
}

class MemoryWindows : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("octavo_windows_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    workspace_ = std::make_unique<MemoryWorkspace>(folder_);
    EngineDescription description;
    const metrics::PoolShape pool = traffic_.pool();
    description.block_size = pool.block_size;
    description.num_blocks = pool.num_blocks;
    description.num_host_blocks = pool.num_host_blocks;
    description.bytes_per_block = 64;
    description.window = pool.window;
    description.num_window_blocks = pool.num_window_blocks;
    description.num_host_window_blocks = pool.num_host_window_blocks;
    description.bytes_per_window_block = 32;
    description.max_model_len = traffic_.options().max_model_len;
    state_.workspace = ui::Workspace::kMemory;
    workspace_->attach(description, traffic_.core().recorder(), {}, state_);
  }
  void TearDown() override {
    workspace_.reset();
    std::filesystem::remove_all(folder_);
  }

  // What happened in it.
  std::vector<BlockEvent> step() {
    traffic_.step();
    const metrics::Trace trace = traffic_.core().recorder()->read_since(step_mark_, event_mark_);
    step_mark_ = trace.next_step_mark;
    event_mark_ = trace.next_event_mark;
    workspace_->fold(
        trace, std::make_shared<KvSnapshot>(traffic_.core().snapshot()),
        [](RequestId) { return std::nullopt; }, state_);
    return trace.block_events;
  }
  // Steps until some block is as wanted; -1: none ever was.
  std::int32_t step_until(const std::function<bool(const BlockSnapshot&)>& wanted) {
    for (int i = 0; i < 2'000; ++i) {
      step();
      const auto& blocks = shown().snapshot->blocks;
      const auto found = std::ranges::find_if(blocks, wanted);
      if (found != blocks.end()) return static_cast<std::int32_t>(found - blocks.begin());
    }
    return -1;
  }
  ui::WindowCard card_of(std::int32_t block) {
    apply(act::ChooseBlock{block});
    return shown().card && shown().card->window ? *shown().card->window : ui::WindowCard{};
  }
  void apply(const act::MemoryAction& action) { workspace_->apply(action, state_); }
  const ui::MemoryWorkspaceState& shown() const { return state_.memory_workspace; }

  metrics::EngineTraffic traffic_{seed_with_windows(), metrics::TrafficLayers::kWindowed};
  std::uint64_t step_mark_ = 0, event_mark_ = 0;
  std::filesystem::path folder_;
  std::unique_ptr<MemoryWorkspace> workspace_;
  ui::UiState state_;
};

TEST_F(MemoryWindows, APlaceKnowsItsBlockAndWhoReadsIt) {
  const std::int32_t block = step_until(
      [](const BlockSnapshot& one) { return one.window == WindowPart::kUsed && one.ref_count > 1; });
  ASSERT_GE(block, 0);
  const auto place =
      static_cast<std::size_t>(shown().snapshot->blocks[static_cast<std::size_t>(block)].window_place.value);
  const ui::ShownWindowPart& part = shown().window_parts.at(place);
  EXPECT_EQ(part.block, BlockId{block});
  const ui::WindowCard card = card_of(block);
  EXPECT_EQ(part.num_readers, card.num_readers);
  EXPECT_GE(card.num_owners, card.num_readers);
  EXPECT_EQ(shown().pool.bytes_per_window_block, 32);
  EXPECT_EQ(shown().card->owners.size(), static_cast<std::size_t>(card.num_owners));
}

// Each way in which a part can go is told by the card of its block.
TEST_F(MemoryWindows, APartThatWentSaysWhy) {
  std::int32_t evicted = -1;
  std::string by;
  for (int i = 0; i < 3'000 && evicted < 0; ++i) {
    for (const BlockEvent& event : step()) {
      const bool is_evicted = event.kind == Kind::kWindowClose && event.aux == 1;
      const auto& now = shown().snapshot->blocks;
      if (!is_evicted || now[static_cast<std::size_t>(event.block)].window != WindowPart::kNone ||
          now[static_cast<std::size_t>(event.block)].state == BlockState::kFree)
        continue;
      evicted = event.block;
      by = ui::sequence_name(*shown().timeline, event.sequence);
    }
  }
  ASSERT_GE(evicted, 0);
  const ui::WindowCard card = card_of(evicted);
  EXPECT_GE(card.gone_us, 0);
  EXPECT_EQ(card.gone_for, by);
  EXPECT_EQ(card.num_readers, 0);
}

// Whoever begins with blocks of the cache begins behind one of which its card said so.
TEST_F(MemoryWindows, WhoResumesDoesSoWhereTheCardSaidThatItCould) {
  int num_resumed = 0, num_refused = 0;
  for (int i = 0; i < 1'500; ++i) {
    // The cards of all blocks before the step.
    if (shown().snapshot == nullptr) step();
    std::vector<ui::WindowResume> said;
    std::set<std::uint64_t> had_table;
    for (std::size_t block = 0; block < shown().snapshot->blocks.size(); ++block)
      said.push_back(card_of(static_cast<std::int32_t>(block)).resume);
    num_refused += static_cast<int>(std::ranges::count(said, ui::WindowResume::kMissing));
    for (const SequenceSnapshot& sequence : shown().snapshot->sequences) {
      if (!sequence.block_table.empty()) had_table.insert(sequence.sequence_id.value);
    }
    std::map<std::uint64_t, std::int32_t> last_hit;
    for (const BlockEvent& event : step()) {
      const bool changes_parts =
          event.kind == Kind::kWindowClose || event.kind == Kind::kSeal || event.kind == Kind::kFree;
      if (changes_parts) break;  // what was said is of before
      if (event.kind == Kind::kHit && !had_table.contains(event.sequence))
        last_hit[event.sequence] = event.block;
    }
    for (const auto& [sequence, block] : last_hit) {
      EXPECT_EQ(said[static_cast<std::size_t>(block)], ui::WindowResume::kYes) << "block " << block;
      ++num_resumed;
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(num_resumed, 20);
  EXPECT_GT(num_refused, 20);
}

TEST_F(MemoryWindows, ARecordingTellsOfThemAsTheEngineDid) {
  step();
  apply(act::StartRecording{});
  ASSERT_TRUE(shown().recording.is_recording);
  ASSERT_GE(step_until([](const BlockSnapshot& one) { return one.window == WindowPart::kCached; }), 0);
  const auto live = shown().snapshot;
  const std::vector<ui::ShownWindowPart> parts = shown().window_parts;
  apply(act::StopRecording{});
  apply(act::OpenRecording{workspace_->take_effects().written});
  for (int i = 0; i < 2'000 && shown().source != ui::MemorySource::kRecording; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    workspace_->tick(i, state_);
  }
  ASSERT_EQ(shown().source, ui::MemorySource::kRecording);
  EXPECT_EQ(shown().pool.window, traffic_.pool().window);
  EXPECT_EQ(shown().pool.num_window_blocks, traffic_.pool().num_window_blocks);
  EXPECT_EQ(shown().pool.bytes_per_window_block, 32);
  ASSERT_EQ(shown().window_parts.size(), parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    EXPECT_EQ(shown().window_parts[i].block, parts[i].block) << "place " << i;
    EXPECT_EQ(shown().window_parts[i].num_readers, parts[i].num_readers) << "place " << i;
  }
  for (std::size_t i = 0; i < live->blocks.size(); ++i) {
    EXPECT_EQ(shown().snapshot->blocks[i].window, live->blocks[i].window) << "block " << i;
    EXPECT_EQ(shown().snapshot->blocks[i].window_retention, live->blocks[i].window_retention);
  }
  EXPECT_EQ(shown().snapshot->figures.used_window_blocks, live->figures.used_window_blocks);
  EXPECT_EQ(shown().snapshot->figures.cached_window_blocks, live->figures.cached_window_blocks);
}

TEST_F(MemoryWindows, AModelWithoutThemShowsNothingOfThem) {
  metrics::EngineTraffic dense(21);
  EngineDescription description;
  description.block_size = dense.pool().block_size;
  description.num_blocks = dense.pool().num_blocks;
  workspace_->attach(description, dense.core().recorder(), {}, state_);
  dense.step();
  workspace_->fold(
      dense.core().recorder()->read_since(0, 0), std::make_shared<KvSnapshot>(dense.core().snapshot()),
      [](RequestId) { return std::nullopt; }, state_);
  EXPECT_TRUE(shown().window_parts.empty());
  apply(act::ChooseBlock{0});
  EXPECT_FALSE(shown().card->window);
  for (const ui::HealthFigure& figure : shown().health) {
    EXPECT_NE(std::string(figure.id), "windows");
    EXPECT_NE(std::string(figure.id), "left_behind");
  }
}

// ---- what is told

BlockEvent event(Kind kind, std::uint64_t sequence, std::int32_t block, std::int32_t aux = 0,
                 std::int64_t step = 1) {
  return {.step = step, .sequence = sequence, .block = block, .aux = aux, .kind = kind};
}

TEST(WindowStories, AnAnswerThatGrowsTakesBlocksAndLeavesBlocksInOneStoryEach) {
  EXPECT_EQ(told_stories({event(Kind::kAlloc, 1, 4, 0, 1), event(Kind::kLeaveWindow, 1, 0, 0, 2),
                          event(Kind::kAlloc, 1, 5, 0, 3), event(Kind::kLeaveWindow, 1, 1, 0, 4),
                          event(Kind::kAlloc, 1, 6, 0, 5), event(Kind::kLeaveWindow, 1, 2, 0, 6)}),
            (std::vector<std::string>{"Alan took 3 new blocks",
                                      "Alan left 3 blocks behind: its window has passed"}));
  EXPECT_EQ(told_stories({event(Kind::kLeaveWindow, 1, 0, 0, 1), event(Kind::kAlloc, 2, 5, 0, 2),
                          event(Kind::kLeaveWindow, 1, 1, 0, 3)})
                .size(),
            3u)
      << "somebody else came between";
}

TEST(WindowStories, WhoTakesAPlaceAndWhoFindsNoWindowIsTold) {
  EXPECT_EQ(told_stories({event(Kind::kAlloc, 1, 4), event(Kind::kWindowClose, 2, 4, 1)}),
            (std::vector<std::string>{"Alan took 1 new block",
                                      "Ada took the place of 1 kept window part of Alan"}));
  EXPECT_EQ(told_stories({event(Kind::kWindowMiss, 2, -1, 48)}),
            (std::vector<std::string>{"Ada recomputed 48 tokens: the window before them is gone"}));
  EXPECT_TRUE(told_stories({event(Kind::kWindowClose, 0, 4, 0), event(Kind::kWindowOpen, 1, 4, 3),
                            event(Kind::kWindowKeep, 0, 4, 1), event(Kind::kWindowSkip, 1, -1, 2)})
                  .empty())
      << "what went with its block is no news";
}

}  // namespace
}  // namespace octavo::app
