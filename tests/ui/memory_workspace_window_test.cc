// A person in front of the Memory workspace: keys, the cursor, the tour, recordings; and pictures of all of
// it.

#include <imgui.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "tests/ui/drawn_text.h"
#include "tests/ui/memory_scene.h"
#include "tests/ui/window_fixture.h"
#include "tests/window/plan_at_once.h"

namespace octavo::testing {
namespace {

class MemoryWorkspace : public WindowTest {
 protected:
  const ui::MemoryWorkspaceState& memory_workspace() const { return state().memory_workspace; }

  // Two chats that share a start, both being answered, and the Memory workspace.
  void open_busy() {
    app::Settings large = test_settings();
    large.width = 1600;
    large.height = 1000;
    open({}, large);
    engine_->answers = {std::string(400, 'a'), std::string(400, 'b')};
    auto& controller = application_->controller();
    for (const char* end : {" first", " second"}) {
      controller.apply(ui::actions::NewChat{});
      controller.apply(ui::actions::SendMessage{state().active_chat, std::string(320, 'p') + end});
      draw_frames(6);
    }
    controller.apply(ui::actions::ShowWorkspace{ui::Workspace::kMemory});
    draw_frames(30);
    engine_->steps_allowed = 0;
    draw_frames(4);
  }

  void open_recording(const std::string& path) {
    application_->controller().apply(ui::actions::OpenRecording{path});
    ASSERT_TRUE(loop_until([this] { return memory_workspace().source == ui::MemorySource::kRecording; }));
  }
};

TEST_F(MemoryWorkspace, KeysMoveTheCursorAndTheViews) {
  open_busy();
  play([this](ImGuiTestContext* context) {
    IM_CHECK(memory_workspace().cursor.following);
    context->KeyPress(ImGuiKey_Space);
    context->Yield(2);
    IM_CHECK(!memory_workspace().cursor.following);
    const std::uint64_t paused = memory_workspace().cursor.mark;
    context->KeyPress(ImGuiKey_LeftArrow);
    context->Yield(2);
    const std::uint64_t before = memory_workspace().cursor.mark;
    IM_CHECK_LT(before, paused);
    context->KeyPress(ImGuiKey_RightArrow);
    context->Yield(2);
    IM_CHECK_GT(memory_workspace().cursor.mark, before);
    const std::uint64_t here = memory_workspace().cursor.mark;
    context->KeyPress(ImGuiMod_Shift | ImGuiKey_LeftArrow);
    context->Yield(2);
    IM_CHECK_EQ(memory_workspace().cursor.mark, here - 1);
    context->KeyPress(ImGuiMod_Shift | ImGuiKey_RightArrow);
    context->Yield(2);
    IM_CHECK_EQ(memory_workspace().cursor.mark, here);
    context->KeyPress(ImGuiKey_Home);
    context->Yield(2);
    IM_CHECK_EQ(memory_workspace().cursor.mark, memory_workspace().timeline->oldest_mark);
    IM_CHECK_EQ(memory_workspace().snapshot->figures.used_blocks, 0);
    context->KeyPress(ImGuiKey_RightBracket);
    context->Yield(2);
    IM_CHECK_EQ(memory_workspace().cursor.speed, 2.0);
    context->KeyPress(ImGuiKey_LeftBracket);
    context->Yield(2);
    IM_CHECK_EQ(memory_workspace().cursor.speed, 1.0);
    context->KeyPress(ImGuiKey_P);
    context->Yield(2);
    IM_CHECK(memory_workspace().cursor.playing);
    context->KeyPress(ImGuiKey_P);
    context->Yield(2);
    IM_CHECK(!memory_workspace().cursor.playing);
    context->KeyPress(ImGuiKey_End);
    context->Yield(2);
    IM_CHECK(memory_workspace().cursor.following);
    for (const ImGuiKey key :
         {ImGuiKey_Equal, ImGuiKey_Equal, ImGuiKey_Minus, ImGuiKey_0,      ImGuiKey_C,
          ImGuiKey_C,     ImGuiKey_C,     ImGuiKey_C,     ImGuiKey_C,      ImGuiKey_O,
          ImGuiKey_O,     ImGuiKey_O,     ImGuiKey_L,     ImGuiKey_L,      ImGuiKey_L,
          ImGuiKey_L,     ImGuiKey_L,     ImGuiKey_M,     ImGuiKey_M,      ImGuiKey_T,
          ImGuiKey_T,     ImGuiKey_E,     ImGuiKey_E,     ImGuiKey_PageUp, ImGuiKey_PageDown}) {
      context->KeyPress(key);
      context->Yield(2);
    }
    IM_CHECK(context->ItemExists("**/map"));
  });
}

TEST_F(MemoryWorkspace, ClickOnACellOpensItsCardAndEscapeClosesIt) {
  open_busy();
  play([this](ImGuiTestContext* context) {
    context->ItemClick("**/map", 0, ImGuiTestOpFlags_NoCheckHoveredId);
    context->Yield(3);
    IM_CHECK(memory_workspace().card.has_value());
    context->KeyPress(ImGuiKey_Escape);
    context->Yield(3);
    IM_CHECK(!memory_workspace().card.has_value());
  });
}

TEST_F(MemoryWorkspace, PointerOverABlockLightsItsWordsInEveryChatThatSharesIt) {
  open_busy();
  const auto& blocks = state().chats.front().memory.blocks;
  const auto shared =
      std::find_if(blocks.begin(), blocks.end(), [](const ui::ChatBlock& block) { return block.shared; });
  ASSERT_NE(shared, blocks.end());
  application_->controller().apply(ui::actions::HoverBlock{shared->block_id.value});
  // The scripted engine's tokenizer has no bytes for its tokens, so words stay dark; blocks are lit.
  EXPECT_EQ(memory_workspace().hover.blocks, std::vector<BlockId>{shared->block_id});
  application_->controller().apply(ui::actions::HoverBlock{-1});
  EXPECT_TRUE(memory_workspace().hover.blocks.empty());
}

TEST_F(MemoryWorkspace, EveryChipOfTheTimelineAndTheLogCanBePressed) {
  open_busy();
  play([this](ImGuiTestContext* context) {
    for (const char* id : {"**/event_back", "**/event_on", "**/step_back", "**/step_on", "**/play", "**/play",
                           "**/speed", "**/lanes", "**/follow", "**/follow", "**/colour", "**/order",
                           "**/kinds", "**/chats", "**/show_tree", "**/show_tables"}) {
      context->ItemClick(id);
      context->Yield(2);
    }
    IM_CHECK_EQ(memory_workspace().cursor.speed, 2.0);
  });
}

TEST_F(MemoryWorkspace, TourIsWalkedWithTheKeyboard) {
  open_busy();
  play([this](ImGuiTestContext* context) {
    context->KeyPress(ImGuiKey_3);
    context->Yield(3);
    IM_CHECK_EQ(memory_workspace().source, ui::MemorySource::kTour);
    std::int32_t chapters_seen = 0, last = -1;
    for (int i = 0; i < 500 && chapters_seen < 13; ++i) {
      if (memory_workspace().tour.chapter != last) ++chapters_seen;
      last = memory_workspace().tour.chapter;
      IM_CHECK(!memory_workspace().tour.sentence.empty());
      context->KeyPress(ImGuiKey_RightArrow);
      context->Yield(1);
    }
    IM_CHECK_EQ(chapters_seen, 13);
    context->KeyPress(ImGuiKey_LeftArrow);
    context->Yield(2);
    context->KeyPress(ImGuiKey_1);
    context->Yield(2);
    IM_CHECK_EQ(memory_workspace().source, ui::MemorySource::kLive);
  });
}

TEST_F(MemoryWorkspace, PaperComparisonRunsBesideTheWindowAndCanBeCancelled) {
  open_busy();
  play([this](ImGuiTestContext* context) {
    context->KeyPress(ImGuiKey_4);
    context->Yield(2);
    IM_CHECK_EQ(memory_workspace().paper_shape.sentence.find("26 GB, 64 %") != std::string::npos, true);
    context->ItemClick("**/run_paper");
    context->Yield(3);
    IM_CHECK(memory_workspace().evaluation.is_queue_running);
    context->ItemClick("**/cancel_paper");
  });
  EXPECT_TRUE(loop_until([this] { return !memory_workspace().evaluation.is_queue_running; }));
}

// Idle time is no line, what was released without a step is drawn, idle chats keep a row, and one engine's
// curves end where another's begin. Picture: memory-two-engines.png.
TEST_F(MemoryWorkspace, TimelineHasGapsAndABorderBetweenTwoEngines) {
  ManualClock clock;
  clock.advance_us(1'000'000);
  clock_ = &clock;
  FakeEngine second({.num_blocks = 512, .name = "Qwen2.5 0.5B Instruct", .first_request = 1'000});
  second.clock = &clock;
  open({.num_blocks = 128}, large_settings());
  auto& controller = application_->controller();
  const auto work = [&](int count) {
    for (int i = 0; i < count; ++i) {
      clock.advance_us(40'000);
      draw_frames(1);
    }
  };
  const auto ask = [&](FakeEngine& engine, const std::string& question) {
    engine.answers = {std::string(600, 'a')};
    controller.apply(ui::actions::SendMessage{state().active_chat, question});
  };
  ask(*engine_, std::string(800, 'p') + " first");
  work(80);
  controller.apply(ui::actions::StopAnswer{state().active_chat});
  work(2);
  EXPECT_FALSE(controller.busy());
  clock.advance_us(6'000'000);
  controller.apply(ui::actions::NewChat{});
  ask(*engine_, std::string(800, 'p') + " second");
  work(60);
  controller.apply(ui::actions::StopAnswer{state().active_chat});
  work(2);
  controller.apply(ui::actions::ShowWorkspace{ui::Workspace::kMemory});
  work(3);
  EXPECT_EQ(memory_workspace().snapshot->figures.used_blocks, 0) << "the last state is drawn";
  EXPECT_EQ(std::ranges::count_if(memory_workspace().lines, &ui::TableLine::is_ghost), 2);
  EXPECT_EQ(ui::newest_levels(*memory_workspace().timeline).used, 0);
  write_screenshot("memory-idle-chats");

  controller.attach_engine(second, plan_at_once(controller, second));
  clock.advance_us(3'000'000);
  ask(second, std::string(400, 'q'));
  work(40);
  ASSERT_NE(memory_workspace().timeline->before, nullptr);
  write_screenshot("memory-two-engines");
  const std::vector<DrawnText> texts = drawn_texts(application_->window());
  std::string words;
  for (const DrawnText& drawn : texts) words += drawn.text + "\n";
  EXPECT_NE(words.find("SmolLM2 135M Instruct ended"), std::string::npos) << words;
  application_.reset();  // before the engine that it asks
}

TEST_F(MemoryWorkspace, IdlePoolDrawsNoFrames) {
  open_busy();
  engine_->steps_allowed = -1;
  ASSERT_TRUE(loop_until([this] { return !application_->controller().busy(); }));
  ASSERT_TRUE(loop_until([this] { return !application_->controller().wants_poll(); }));
  const auto settled = std::chrono::steady_clock::now() + std::chrono::milliseconds(1'800);
  while (std::chrono::steady_clock::now() < settled) application_->step_for(0.05);
  const std::uint64_t before = application_->num_frames_drawn();
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(700);
  while (std::chrono::steady_clock::now() < end) application_->step_for(0.05);
  EXPECT_EQ(application_->num_frames_drawn() - before, 0u);
}

TEST_F(MemoryWorkspace, PicturesOfRecordingTourAndPaper) {
  open_busy();
  const auto path = folder_ / "scene.rec";
  MemoryScene scene;
  scene.record(path, 900);
  open_recording(path.string());
  auto& controller = application_->controller();
  const auto apply = [&](const ui::actions::MemoryAction& action) { controller.apply(action); };
  const auto& log = memory_workspace().timeline->log;
  const auto swap = std::find_if(
      log.begin(), log.end(), [](const ui::LogLine& line) { return line.kind == BlockEventKind::kSwapOut; });
  ASSERT_NE(swap, log.end()) << "the scene has to swap";
  const std::uint64_t after_swap = swap->last_mark + 1;
  in_every_look([&](const std::string& end) {
    if (memory_workspace().source != ui::MemorySource::kRecording) open_recording(path.string());
    apply(ui::actions::SeekMark{after_swap});
    apply(ui::actions::ChooseBlock{17});
    write_screenshot("memory-recording-" + end);
    apply(ui::actions::ChooseBlock{-1});
    play([](ImGuiTestContext* context) {
      context->KeyPress(ImGuiKey_T);
      context->KeyPress(ImGuiKey_C);
      context->KeyPress(ImGuiKey_C);
      context->KeyPress(ImGuiKey_C);
      context->KeyPress(ImGuiKey_C);
      context->KeyPress(ImGuiKey_O);
      context->KeyPress(ImGuiKey_M);
      context->Yield(2);
    });
    write_screenshot("memory-tree-" + end);
    play([](ImGuiTestContext* context) {
      context->KeyPress(ImGuiKey_T);
      context->KeyPress(ImGuiKey_C);
      context->KeyPress(ImGuiKey_O);
      context->KeyPress(ImGuiKey_O);
      context->KeyPress(ImGuiKey_M);
      context->Yield(2);
    });
    apply(ui::actions::CloseRecording{});
    apply(ui::actions::ShowMemoryPage{ui::MemoryPage::kTour});
    apply(ui::actions::ShowChapter{4});
    for (int i = 0; i < 5; ++i) apply(ui::actions::MoveTour{+1});
    write_screenshot("memory-tour-" + end);
    apply(ui::actions::ShowMemoryPage{ui::MemoryPage::kPaper});
    if (!memory_workspace().evaluation.is_queue_done) {
      apply(ui::actions::RunPaper{});
      ASSERT_TRUE(loop_until([this] { return memory_workspace().evaluation.rows.front().progress > 0.3; }));
      apply(ui::actions::CancelPaper{});
      ASSERT_TRUE(loop_until([this] { return !memory_workspace().evaluation.is_queue_running; }));
    }
    write_screenshot("memory-paper-" + end);
    apply(ui::actions::ShowMemoryPage{ui::MemoryPage::kPools});
  });
}

}  // namespace
}  // namespace octavo::testing
