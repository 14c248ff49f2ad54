// The states of recurrent layers and the experts of a tiny model that has both, in a real window; pictures of
// them.
#include <imgui.h>

#include <algorithm>
#include <string>

#include "tests/support/tiny_models.h"
#include "tests/ui/memory_scene.h"
#include "tests/ui/window_fixture.h"

namespace octavo::testing {
namespace {

namespace act = ui::actions;

class StatesWindow : public WindowTest {
 protected:
  void open_tiny(const std::string& name) {
    if (IsSkipped()) return;
    const auto path = folder_ / "model.gguf";
    test::make_tiny_model(test::tiny_model(name), {.context_length = 512}).write(path);
    app::Settings settings = large_settings();
    settings.sampling.max_tokens = 40;
    settings.sampling.ignore_eos = true;
    open_with(Engine::create, path.string(), settings);
    ASSERT_EQ(state().model.phase, ui::ModelPhase::kReady) << state().model.problem;
  }
  const ui::MemoryWorkspaceState& memory() const { return state().memory_workspace; }
  void apply(const ui::Action& action) { application_->controller().apply(action); }
  void ask(const std::string& text) {
    apply(act::SendMessage{chat().id, text});
    ASSERT_TRUE(loop_until([this] { return chat().activity == ui::Activity::kIdle; }));
  }
};

TEST_F(StatesWindow, AChatOfAHybridLeavesACheckpointThatTheNextTurnResumes) {
  open_tiny("qwen35moe");
  if (IsSkipped()) return;
  apply(act::ChangeSystemPrompt{chat().id, "abc abc abc abc abc abc abc abc"});
  ask("abc abc");
  ask("b a b a");
  apply(act::ShowWorkspace{ui::Workspace::kMemory});
  ASSERT_TRUE(loop_until([this] { return memory().snapshot != nullptr && !memory().states.empty(); }));
  draw_frames(3);
  const KvTotals& totals = memory().snapshot->totals;
  EXPECT_GE(totals.states.num_taken, 1);
  EXPECT_GE(totals.states.num_resumed, 1);
  const auto& stories = memory().timeline->stories;
  EXPECT_TRUE(std::ranges::any_of(
      stories, [](const ui::Story& story) { return story.kind == ui::StoryKind::kResumedState; }));
  EXPECT_NE(words_shown().find("Recurrent states"), std::string::npos);
  const auto& states = memory().snapshot->states;
  const auto kept = std::ranges::find(states, true, &StateSnapshot::is_checkpoint);
  ASSERT_NE(kept, states.end());
  const auto slot = static_cast<std::int32_t>(kept - states.begin());
  apply(act::HoverState{slot});
  EXPECT_FALSE(memory().hover.ranges.empty()) << "the words that the state knows are lit in the chat";
  apply(act::HoverState{-1});
  write_screenshot("memory-states-live");
  play([this](ImGuiTestContext* context) {
    const ImVec2 first = context->ItemInfo("**/state_cells").RectFull.Min;
    context->MouseMoveToPos({first.x + 4, first.y + 4});
    context->Yield(3);
    IM_CHECK(memory().hover.state == BlockId{0});
    context->MouseClick(0);
    context->Yield(3);
    IM_CHECK(memory().state_card.has_value());
    IM_CHECK_EQ(memory().state_card->state.value, 0);
  });
  apply(act::ChooseState{slot});
  draw_frames(3);
  EXPECT_NE(words_shown().find("Owned by"), std::string::npos) << words_shown();
  write_screenshot("memory-state-card");
  play([this](ImGuiTestContext* context) {
    context->KeyPress(ImGuiKey_Escape);
    context->Yield(3);
    IM_CHECK(!memory().state_card.has_value());
  });
}

TEST_F(StatesWindow, ExpertsAreCountedWhileTheirPageIsOpen) {
  open_tiny("qwen35moe");
  if (IsSkipped()) return;
  ask("abc");
  EXPECT_EQ(memory().experts.heat, nullptr) << "nobody asked";
  apply(act::ShowWorkspace{ui::Workspace::kMemory});
  play([this](ImGuiTestContext* context) {
    context->KeyPress(ImGuiKey_5);
    context->Yield(3);
    IM_CHECK_EQ(memory().page, ui::MemoryPage::kExperts);
  });
  EXPECT_NE(words_shown().find("Nothing is counted yet."), std::string::npos);
  ASSERT_TRUE(loop_until([this] { return !application_->controller().wants_poll(); }));
  ask("abc abc abc abc");
  ASSERT_TRUE(loop_until(
      [this] { return memory().experts.heat != nullptr && memory().experts.heat->num_tokens > 40; }));
  const ui::ExpertHeat& heat = *memory().experts.heat;
  EXPECT_EQ(heat.num_experts, 8);
  EXPECT_EQ(heat.num_used, 2);
  EXPECT_EQ(heat.layers.size(), 3u) << "the fourth only guesses";
  for (std::size_t layer = 0; layer < heat.layers.size(); ++layer) {
    std::int64_t sum = 0;
    for (std::size_t expert = 0; expert < 8; ++expert) sum += heat.counts[layer * 8 + expert];
    EXPECT_EQ(sum, heat.num_tokens * 2);
  }
  EXPECT_EQ(heat.chats, std::vector<ChatId>{chat().id});
  draw_frames(3);
  EXPECT_NE(words_shown().find("cover half"), std::string::npos) << words_shown();
  play([this](ImGuiTestContext* context) {
    context->ItemClick("**/experts_of");
    context->Yield(10);
  });
  ASSERT_TRUE(loop_until([this] { return memory().experts.heat->chat == chat().id; }));
  in_every_look([&](const std::string& look) { write_screenshot("memory-experts-" + look); });
  play([this](ImGuiTestContext* context) {
    context->ItemClick("**/experts_restart");
    context->Yield(10);
  });
  ASSERT_TRUE(loop_until([this] { return memory().experts.heat->num_tokens == 0; }));
}

TEST_F(StatesWindow, ADenseModelHasNeitherStatesNorAPageOfExperts) {
  open();
  if (IsSkipped()) return;
  apply(act::ShowWorkspace{ui::Workspace::kMemory});
  draw_frames(5);
  const std::string words = words_shown();
  EXPECT_EQ(words.find("Recurrent"), std::string::npos);
  EXPECT_EQ(words.find("Experts"), std::string::npos);
  play([this](ImGuiTestContext* context) {
    context->KeyPress(ImGuiKey_5);
    context->Yield(3);
    IM_CHECK_EQ(memory().page, ui::MemoryPage::kPools);
  });
}

TEST_F(StatesWindow, ThePickerShowsStatesAndExpertsBeforeLoading) {
  open({}, large_settings());
  if (IsSkipped()) return;
  const auto path = folder_ / "hybrid.gguf";
  test::make_tiny_model(test::tiny_model("qwen35moe")).write(path);
  apply(act::OpenModelFile{path.string()});
  application_->update();
  draw_frames(1);
  ASSERT_TRUE(loop_until([this] { return !state().picker.inside.reading && !state().picker.scanning; }));
  draw_frames(3);
  const std::string words = words_shown();
  EXPECT_NE(words.find("recurrent layers"), std::string::npos) << words;
  EXPECT_NE(words.find("each token uses 2"), std::string::npos) << words;
  write_screenshot("model-picker-hybrid");
}

TEST_F(StatesWindow, PicturesOfARecordingAndOfTheTour) {
  open({}, large_settings());
  if (IsSkipped()) return;
  const auto path = folder_ / "states.rec";
  MemoryScene(240, 120, 40).record(path, 900);
  apply(act::ShowWorkspace{ui::Workspace::kMemory});
  in_every_look([&](const std::string& look) {
    apply(act::OpenRecording{path.string()});
    ASSERT_TRUE(loop_until([this] { return memory().source == ui::MemorySource::kRecording; }));
    const auto& log = memory().timeline->log;
    ASSERT_NE(std::ranges::find(log, BlockEventKind::kStateSwapOut, &ui::LogLine::kind), log.end())
        << "the scene has to swap states";
    const auto keep = std::ranges::find(log, BlockEventKind::kStateKeep, &ui::LogLine::kind);
    ASSERT_NE(keep, log.end()) << "and to keep some";
    apply(act::SeekMark{keep->last_mark + 1});
    const auto& states = memory().snapshot->states;
    const auto kept = std::ranges::find_if(states, [](const StateSnapshot& state) {
      return state.is_checkpoint && state.last_block.value >= 0;
    });
    ASSERT_NE(kept, states.end());
    apply(act::ChooseState{static_cast<std::int32_t>(kept - states.begin())});
    apply(act::HoverState{static_cast<std::int32_t>(kept - states.begin())});
    write_screenshot("memory-states-" + look);
    apply(act::CloseRecording{});
    apply(act::ShowMemoryPage{ui::MemoryPage::kTour});
    apply(act::ShowChapter{10});
    for (int i = 0; i < 9; ++i) apply(act::MoveTour{+1});
    write_screenshot("memory-tour-states-" + look);
    apply(act::ShowMemoryPage{ui::MemoryPage::kPools});
  });
}

}  // namespace
}  // namespace octavo::testing
