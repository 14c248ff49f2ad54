// The states of recurrent layers in the Memory workspace: who owns them, where checkpoints stand, what is lit
// with them, what is told of them, live, back in time and from a recording.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "app/window/memory/memory_workspace.h"
#include "app/window/memory/state_rows.h"
#include "tests/metrics/engine_traffic.h"
#include "tests/window/told_stories.h"

namespace octavo::app {
namespace {

namespace act = ui::actions;
using testing::told_stories;
using Kind = BlockEventKind;

// Of traffic that keeps what it computed, and whose texts are long enough for checkpoints.
unsigned seed_with_checkpoints() {
  for (unsigned seed = 21;; ++seed) {
    const metrics::EngineTraffic traffic(seed, metrics::TrafficLayers::kRecurrent);
    const scheduler::SchedulerOptions& options = traffic.options();
    const bool is_roomy = options.num_blocks * options.block_size > 2 * options.max_model_len;
    if (options.enable_prefix_caching && options.max_model_len > 60 && is_roomy && options.block_size < 16)
      return seed;
  }
}

class MemoryStates : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("octavo_states_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    workspace_ = std::make_unique<MemoryWorkspace>(folder_);
    EngineDescription description;
    description.block_size = traffic_.pool().block_size;
    description.num_blocks = traffic_.pool().num_blocks;
    description.num_host_blocks = traffic_.pool().num_host_blocks;
    description.num_states = traffic_.pool().num_states;
    description.num_host_states = traffic_.pool().num_host_states;
    description.bytes_per_block = 64;
    description.bytes_per_state = 640;
    description.max_model_len = traffic_.options().max_model_len;
    state_.workspace = ui::Workspace::kMemory;
    workspace_->attach(description, traffic_.core().recorder(), {}, state_);
  }
  void TearDown() override {
    workspace_.reset();
    std::filesystem::remove_all(folder_);
  }

  void step() {
    traffic_.step();
    const metrics::Trace trace = traffic_.core().recorder()->read_since(step_mark_, event_mark_);
    step_mark_ = trace.next_step_mark;
    event_mark_ = trace.next_event_mark;
    workspace_->fold(
        trace, std::make_shared<KvSnapshot>(traffic_.core().snapshot()),
        [](RequestId) { return std::nullopt; }, state_);
  }
  // Steps until some state is as wanted; -1: none ever was.
  int step_until(const std::function<bool(const StateSnapshot&)>& wanted) {
    for (int i = 0; i < 2'000; ++i) {
      step();
      const auto& states = shown().snapshot->states;
      const auto found = std::ranges::find_if(states, wanted);
      if (found != states.end()) return static_cast<int>(found - states.begin());
    }
    return -1;
  }
  void apply(const act::MemoryAction& action) { workspace_->apply(action, state_); }
  const ui::MemoryWorkspaceState& shown() const { return state_.memory_workspace; }

  metrics::EngineTraffic traffic_{seed_with_checkpoints(), metrics::TrafficLayers::kRecurrent};
  std::uint64_t step_mark_ = 0, event_mark_ = 0;
  std::filesystem::path folder_;
  std::unique_ptr<MemoryWorkspace> workspace_;
  ui::UiState state_;
};

TEST_F(MemoryStates, ACheckpointHasItsPlaceItsKeeperAndItsBlocks) {
  const int slot = step_until([](const StateSnapshot& state) {
    return state.state == BlockState::kCached && state.last_block.value >= 0;
  });
  ASSERT_GE(slot, 0);
  const auto index = static_cast<std::size_t>(slot);
  const StateSnapshot& now = shown().snapshot->states[index];
  const ui::ShownState& state = shown().states[index];
  EXPECT_TRUE(state.owners.empty());
  EXPECT_EQ(state.position, now.position);
  EXPECT_FALSE(state.keeper.empty());
  ASSERT_FALSE(state.blocks.empty());
  EXPECT_EQ(state.blocks.back(), now.last_block);
  EXPECT_EQ(static_cast<std::int32_t>(state.blocks.size()), now.position / shown().pool.block_size);
  EXPECT_GE(shown().blocks[index_of(now.last_block)].checkpoint, 0);

  apply(act::ChooseState{slot});
  ASSERT_TRUE(shown().state_card);
  EXPECT_EQ(shown().state_card->bytes, 640);
  EXPECT_EQ(shown().state_card->position, now.position);
  EXPECT_EQ(shown().state_card->now.num_saved_tokens, now.num_saved_tokens);
  const auto& history = shown().state_card->history;
  EXPECT_TRUE(std::ranges::any_of(history, [](const auto& line) { return line.kind == Kind::kStateKeep; }));
  apply(act::ChooseBlock{0});
  EXPECT_FALSE(shown().state_card) << "one card at a time";
  apply(act::ChooseState{slot});
  EXPECT_FALSE(shown().card);
  apply(act::ChooseState{-1});
  EXPECT_FALSE(shown().state_card);
}

TEST_F(MemoryStates, StatesAndBlocksLightEachOther) {
  const int slot = step_until(
      [](const StateSnapshot& state) { return state.state == BlockState::kUsed && !state.is_checkpoint; });
  ASSERT_GE(slot, 0);
  const ui::ShownState& state = shown().states[static_cast<std::size_t>(slot)];
  apply(act::HoverState{slot});
  EXPECT_EQ(shown().hover.state, BlockId{slot});
  EXPECT_EQ(shown().hover.blocks, state.blocks);
  const BlockId block = state.blocks.front();
  apply(act::HoverBlock{block.value});
  EXPECT_FALSE(shown().hover.state);
  EXPECT_TRUE(std::ranges::count(shown().hover.states, BlockId{slot}) == 1);
  for (const BlockId lit : shown().hover.states) {
    const auto& blocks = shown().states[static_cast<std::size_t>(lit.value)].blocks;
    EXPECT_NE(std::ranges::find(blocks, block), blocks.end());
  }
  apply(act::HoverState{-1});
  EXPECT_TRUE(shown().hover.states.empty());
  EXPECT_TRUE(shown().hover.blocks.empty());
}

TEST_F(MemoryStates, ARecordingTellsOfThemAsTheEngineDid) {
  step();
  apply(act::StartRecording{});
  ASSERT_TRUE(shown().recording.is_recording);
  ASSERT_GE(step_until([](const StateSnapshot& state) { return state.state == BlockState::kCached; }), 0);
  const auto live = shown().snapshot;
  const std::vector<ui::ShownState> states = shown().states;
  apply(act::StopRecording{});
  apply(act::OpenRecording{workspace_->take_effects().written});
  for (int i = 0; i < 2'000 && shown().source != ui::MemorySource::kRecording; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    workspace_->tick(i, state_);
  }
  ASSERT_EQ(shown().source, ui::MemorySource::kRecording);
  EXPECT_EQ(shown().pool.num_states, traffic_.pool().num_states);
  EXPECT_EQ(shown().pool.bytes_per_state, 640);
  ASSERT_EQ(shown().states.size(), states.size());
  for (std::size_t i = 0; i < states.size(); ++i) {
    SCOPED_TRACE("state " + std::to_string(i));
    EXPECT_EQ(shown().snapshot->states[i].state, live->states[i].state);
    EXPECT_EQ(shown().snapshot->states[i].position, live->states[i].position);
    EXPECT_EQ(shown().states[i].owners.size(), states[i].owners.size());
    EXPECT_EQ(shown().states[i].position, states[i].position);
    EXPECT_EQ(shown().states[i].keeper, states[i].keeper);
  }
}

TEST_F(MemoryStates, ADenseModelShowsNothingOfThem) {
  metrics::EngineTraffic dense(21);
  EngineDescription description;
  description.block_size = dense.pool().block_size;
  description.num_blocks = dense.pool().num_blocks;
  workspace_->attach(description, dense.core().recorder(), {}, state_);
  dense.step();
  workspace_->fold(
      dense.core().recorder()->read_since(0, 0), std::make_shared<KvSnapshot>(dense.core().snapshot()),
      [](RequestId) { return std::nullopt; }, state_);
  EXPECT_TRUE(shown().states.empty());
  EXPECT_TRUE(shown().host_states.empty());
  for (const ui::HealthFigure& figure : shown().health) {
    EXPECT_NE(std::string(figure.id), "states");
    EXPECT_NE(std::string(figure.id), "checkpoints");
  }
}

// ---- what is told

BlockEvent state_event(Kind kind, std::uint64_t sequence, std::int32_t state, std::int32_t aux = 0) {
  return {.step = 1, .sequence = sequence, .block = state, .aux = aux, .kind = kind};
}

TEST(StateStories, ACheckpointIsToldWithItsPlaceAndWhoGoesOnFromIt) {
  const std::int32_t system = checkpoint_aux(812, CheckpointReason::kSystemPrompt);
  EXPECT_EQ(
      told_stories({state_event(Kind::kStateTake, 1, 0), state_event(Kind::kStateKeep, 1, 0, system),
                    state_event(Kind::kStateResume, 2, 0, 812), state_event(Kind::kStateMiss, 2, -1, 48)}),
      (std::vector<std::string>{
          "Alan kept a checkpoint behind its system prompt, at token 812",
          "Ada resumed at token 812 of Alan; 48 tokens recomputed, because no checkpoint stood later"}));
  const std::int32_t next = checkpoint_aux(900, CheckpointReason::kNextTurn);
  EXPECT_EQ(
      told_stories({state_event(Kind::kStateKeep, 1, 0, next), state_event(Kind::kStateForget, 2, 0, 1)}),
      (std::vector<std::string>{"Alan kept a checkpoint for the next turn, at token 900",
                                "Ada evicted the checkpoint at token 900 of Alan"}));
  EXPECT_EQ(told_stories({state_event(Kind::kStateMiss, 2, -1, 1)}),
            (std::vector<std::string>{"Ada recomputed 1 token: no checkpoint stood there"}));
  EXPECT_TRUE(
      told_stories({state_event(Kind::kStateKeep, 1, 0, next), state_event(Kind::kStateForget, 0, 0, 0)})
          .size() == 1)
      << "what nobody evicted is no news";
}

}  // namespace
}  // namespace octavo::app
