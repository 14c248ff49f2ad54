// Two models over one text in the window, on real engines of tiny models: the second is chosen with the model
// picker, a text is read, and its worst token is looked at and forked into a chat.

#include <imgui.h>

#include <fstream>
#include <string>

#include "tests/support/gguf_writer.h"
#include "tests/ui/window_fixture.h"

namespace octavo::testing {
namespace {

class TwoModelsWindow : public WindowTest {
 protected:
  void open_models() {
    if (IsSkipped()) return;
    std::filesystem::create_directories(folder_ / "models");
    first_ = (folder_ / "models/Fox-1M.F32.gguf").string();
    second_ = (folder_ / "models/Fox-1M.Q8_0.gguf").string();
    test::make_tiny_llama(7, {}).write(first_);
    test::make_tiny_llama(8, {.weight_type = kernels::TensorType::kQ8_0}).write(second_);
    open_with(Engine::create, first_, large_settings());
    ASSERT_EQ(state().model.phase, ui::ModelPhase::kReady) << state().model.problem;
  }
  const ui::TwoModelsState& shown() const { return state().two_models; }
  // Without a script, whose end would close the card.
  void click_here(ImVec2 place) {
    ImGui::GetIO().AddMousePosEvent(place.x, place.y);
    draw_frames(2);
    for (const bool down : {true, false}) {
      ImGui::GetIO().AddMouseButtonEvent(0, down);
      draw_frames(2);
    }
  }

  std::string first_, second_;
};

constexpr const char* kText =
    "The quick brown fox jumps over the lazy dog.\nIt runs into the house, and then it is out again: nobody "
    "in the house has seen it, and the dog is asleep on the other side of the river.";

TEST_F(TwoModelsWindow, AreComparedTokenByTokenAndForked) {
  open_models();
  if (IsSkipped()) return;
  application_->controller().apply(ui::actions::ShowWorkspace{ui::Workspace::kCompare});
  play([](ImGuiTestContext* context) {
    context->ItemClick("**/two_models");
    context->Yield(2);
    context->ItemClick("**/choose_second");
    context->Yield(2);
  });
  EXPECT_TRUE(shown().open);
  EXPECT_EQ(state().picker.purpose, ui::ModelPurpose::kComparison);
  application_->controller().apply(ui::actions::ModelPickerAction(ui::actions::ChooseModel{second_}));
  application_->update();
  draw_frames(1);
  ASSERT_TRUE(loop_until([this] { return !state().picker.inside.reading && !state().picker.scanning; }));
  ASSERT_EQ(state().picker.inside.problem, "");
  play([](ImGuiTestContext* context) {
    context->ItemClick("**/compare_model");
    context->Yield(2);
  });
  EXPECT_FALSE(state().picker.open);
  ASSERT_TRUE(loop_until([this] { return shown().can_compare; })) << shown().problem;
  EXPECT_NE(shown().needs, "") << "memory is shown before anything is loaded";
  std::ofstream(folder_ / "text.txt", std::ios::binary) << kText;
  application_->controller().apply(ui::actions::ReadTextToCompare{(folder_ / "text.txt").string()});
  application_->update();
  draw_frames(1);
  ASSERT_TRUE(loop_until([this] { return shown().text == kText; })) << shown().problem;
  EXPECT_EQ(shown().source, "text.txt");
  play([](ImGuiTestContext* context) {
    context->ItemClick("**/compare_models");
    context->Yield();
  });
  ASSERT_TRUE(loop_until([this] { return shown().result.has_value(); })) << shown().problem;
  EXPECT_EQ(shown().result->text.text, kText);
  draw_frames(2);
  write_screenshot("two-models");
  ImVec2 row{};
  play([&row](ImGuiTestContext* context) {
    context->ItemClick("**/mark_3");
    row = context->ItemInfo("**/$$0/worst_token").RectFull.GetCenter();
  });
  click_here(row);
  const std::size_t worst = shown().result->worst[0];
  EXPECT_EQ(application_->views().two_models().text().shown_token(), worst);
  write_screenshot("two-models-card");
  const std::string instead = shown().result->figures[worst - 1].a.best[0].text;
  const std::size_t num_chats = state().chats.size();
  play([](ImGuiTestContext* context) {
    context->ItemClick("//$FOCUSED/$$0/$$0/alternative");
    context->Yield(3);
  });
  EXPECT_EQ(state().workspace, ui::Workspace::kChat);
  EXPECT_GE(state().chats.size(), num_chats);
  const std::uint32_t begin = shown().result->text.tokens[worst].begin;
  EXPECT_EQ(chat().messages.back().text, std::string(kText).substr(0, begin) + instead);
}

TEST_F(TwoModelsWindow, ShowsProgressAndStopsWhenItIsCancelled) {
  open_models();
  if (IsSkipped()) return;
  auto& controller = application_->controller();
  controller.apply(ui::actions::ShowTwoModels{true});
  controller.apply(ui::actions::TakeSecondModel{second_});
  application_->update();
  draw_frames(1);
  ASSERT_TRUE(loop_until([this] { return shown().can_compare; })) << shown().problem;
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += "the fox again ";
  controller.apply(ui::actions::CompareTwoModels{text});
  application_->update();
  draw_frames(1);
  ASSERT_TRUE(loop_until([this] { return shown().phase == ui::TwoModelsPhase::kComparing; }));
  write_screenshot("two-models-progress");
  play([](ImGuiTestContext* context) { context->ItemClick("**/cancel_comparison"); });
  ASSERT_TRUE(loop_until([this] { return shown().phase == ui::TwoModelsPhase::kSetUp; }));
  EXPECT_FALSE(shown().result);
  EXPECT_EQ(shown().problem, "");
}

}  // namespace
}  // namespace octavo::testing
