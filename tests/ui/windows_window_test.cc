// What the layers with a window of a tiny model keep, in a real window: the strip of their pool, the marks of
// blocks, the card, what is told; pictures of them.
#include <imgui.h>

#include <algorithm>
#include <string>

#include "tests/support/tiny_models.h"
#include "tests/ui/memory_scene.h"
#include "tests/ui/window_fixture.h"

namespace octavo::testing {
namespace {

namespace act = ui::actions;

class WindowsWindow : public WindowTest {
 protected:
  void open_tiny(const std::string& name) {
    if (IsSkipped()) return;
    const auto path = folder_ / "model.gguf";
    test::make_tiny_model(test::tiny_model(name), {.context_length = 2'048, .window = 40}).write(path);
    app::Settings settings = large_settings();
    settings.sampling.max_tokens = 100;
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
  std::int32_t first_block(WindowPart part) const {
    const auto& blocks = memory().snapshot->blocks;
    const auto found = std::ranges::find_if(blocks, [&](const BlockSnapshot& block) {
      return block.state != BlockState::kFree && block.window == part;
    });
    return found == blocks.end() ? -1 : static_cast<std::int32_t>(found - blocks.begin());
  }
};

TEST_F(WindowsWindow, AChatLeavesBlocksBehindAndTheNextTurnResumes) {
  open_tiny("gemma3");
  if (IsSkipped()) return;
  apply(act::ChangeSystemPrompt{chat().id, "abc abc abc abc abc abc abc abc abc abc abc abc abc abc abc"});
  ask("abc abc");
  ask("b a b a");
  apply(act::ShowWorkspace{ui::Workspace::kMemory});
  ASSERT_TRUE(loop_until([this] { return memory().snapshot != nullptr && !memory().window_parts.empty(); }));
  draw_frames(3);
  EXPECT_EQ(memory().pool.window, 40);
  EXPECT_GT(memory().snapshot->totals.windows.num_left, 0);
  const auto& stories = memory().timeline->stories;
  const auto passed = std::ranges::find(stories, ui::StoryKind::kPassedWindow, &ui::Story::kind);
  ASSERT_NE(passed, stories.end());
  EXPECT_TRUE(std::ranges::any_of(stories, [](const ui::Story& story) {
    return story.kind == ui::StoryKind::kReused;
  })) << "the next turn";
  EXPECT_NE(words_shown().find("Window parts"), std::string::npos) << words_shown();
  EXPECT_NE(words_shown().find("window pool used"), std::string::npos) << words_shown();

  // A place lights its block and chooses it; the block lights its place.
  const std::int32_t kept = first_block(WindowPart::kCached);
  ASSERT_GE(kept, 0);
  play([this](ImGuiTestContext* context) {
    const ImVec2 first = context->ItemInfo("**/window_part_cells").RectFull.Min;
    context->MouseMoveToPos({first.x + 4, first.y + 4});
    context->Yield(3);
    IM_CHECK(memory().hover.block == memory().window_parts.front().block);
    context->MouseClick(0);
    context->Yield(3);
    IM_CHECK(memory().card.has_value());
    IM_CHECK(memory().card->block == memory().window_parts.front().block);
  });
  apply(act::ChooseBlock{kept});
  draw_frames(3);
  EXPECT_NE(words_shown().find("for layers that read everything"), std::string::npos);
  EXPECT_NE(words_shown().find("for layers with a window"), std::string::npos) << words_shown();
  EXPECT_NE(words_shown().find("Nobody reads its window part"), std::string::npos) << words_shown();
  write_screenshot("memory-windows-live");
  play([this](ImGuiTestContext* context) {
    context->KeyPress(ImGuiKey_Escape);
    for (int i = 0; i < 5; ++i) context->KeyPress(ImGuiKey_C);
    context->Yield(3);
  });
  EXPECT_NE(words_shown().find("colour: window"), std::string::npos) << words_shown();
  write_screenshot("memory-windows-colour");
}

TEST_F(WindowsWindow, AModelWithoutThemHasNoStripAndNoSuchColour) {
  open();
  if (IsSkipped()) return;
  apply(act::ShowWorkspace{ui::Workspace::kMemory});
  draw_frames(5);
  EXPECT_EQ(words_shown().find("Window parts"), std::string::npos);
  for (int i = 0; i < 6; ++i) {
    play([](ImGuiTestContext* context) {
      context->KeyPress(ImGuiKey_C);
      context->Yield(2);
    });
    EXPECT_EQ(words_shown().find("colour: window"), std::string::npos);
  }
}

TEST_F(WindowsWindow, PicturesOfARecordingAndOfTheTour) {
  open({}, large_settings());
  if (IsSkipped()) return;
  const auto path = folder_ / "windows.rec";
  MemoryScene(240, 120, 0, 150).record(path, 900);
  apply(act::ShowWorkspace{ui::Workspace::kMemory});
  in_every_look([&](const std::string& look) {
    apply(act::OpenRecording{path.string()});
    ASSERT_TRUE(loop_until([this] { return memory().source == ui::MemorySource::kRecording; }));
    const auto& log = memory().timeline->log;
    const auto out = std::ranges::find(log, BlockEventKind::kWindowSwapOut, &ui::LogLine::kind);
    ASSERT_NE(out, log.end()) << "the scene has to swap window parts";
    ASSERT_NE(std::ranges::find(log, BlockEventKind::kWindowClose, &ui::LogLine::kind), log.end())
        << "and to give up some";
    apply(act::SeekMark{out->last_mark + 1});
    const std::int32_t behind = first_block(WindowPart::kNone), kept = first_block(WindowPart::kCached);
    ASSERT_GE(behind, 0);
    ASSERT_GE(kept, 0);
    apply(act::ChooseBlock{behind});
    apply(act::HoverBlock{kept});
    write_screenshot("memory-windows-" + look);
    apply(act::CloseRecording{});
    apply(act::ShowMemoryPage{ui::MemoryPage::kTour});
    apply(act::ShowChapter{11});
    for (int i = 0; i < 12; ++i) apply(act::MoveTour{+1});
    write_screenshot("memory-tour-windows-" + look);
    apply(act::ShowMemoryPage{ui::MemoryPage::kPools});
  });
}

}  // namespace
}  // namespace octavo::testing
