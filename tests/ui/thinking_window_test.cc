// A person who reads answers that were thought about, that hold formulas, or that go round in circles.

#include <imgui.h>

#include <string>

#include "tests/ui/window_fixture.h"
#include "ui/widgets/parts_layout.h"

namespace octavo::testing {
namespace {

using octavo::ui::Activity;
namespace act = ui::actions;

constexpr const char* kThoughtful =
    "<think>\nThe person asks for **two** words. I could say hello.\n\n- hello there\n- good "
    "day\n</think>\n\n"
    "Hello there.";

class AnswerWindow : public WindowTest {
 protected:
  void ask(const std::string& answer) {
    engine_->answers.push_back(answer);
    application_->controller().apply(act::SendMessage{state().active_chat, "Say two words"});
  }
  void ask_and_wait(const std::string& answer) {
    ask(answer);
    ASSERT_TRUE(loop_until([this] { return chat().activity == Activity::kIdle; }));
    draw_frames(3);
  }
  static std::string copied_by(ImGuiTestContext* context, const char* button) {
    ImGui::SetClipboardText("nothing");
    context->ItemClick(button);
    context->Yield(2);
    return ImGui::GetClipboardText();
  }
};

TEST_F(AnswerWindow, ThinkingIsFoldedUntilItIsOpened) {
  open();
  ask_and_wait(kThoughtful);
  ASSERT_EQ(chat().messages.back().parts.size(), 2u);
  write_screenshot("thinking-folded");
  play([](ImGuiTestContext* context) {
    context->ItemClick("**/thought");
    context->Yield(2);
  });
  write_screenshot("thinking-open");
  EXPECT_EQ(ui::said_text(chat().messages.back()), "Hello there.");
  play([](ImGuiTestContext* context) {
    IM_CHECK_STR_EQ(copied_by(context, "**/copy_plain").c_str(), "Hello there.");
  });
}

// What is folded is not selected with the rest; what is open is.
TEST_F(AnswerWindow, SelectedThinkingIsCopied) {
  open();
  ask_and_wait(kThoughtful);
  play([](ImGuiTestContext* context) {
    const auto copied = [&] {
      context->MouseMoveToPos({ImGui::GetMainViewport()->Size.x * 0.5f, 300});
      context->MouseClick();
      context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_A);
      context->Yield(2);
      ImGui::SetClipboardText("nothing");
      context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_C);
      context->Yield(2);
      return std::string(ImGui::GetClipboardText());
    };
    IM_CHECK_STR_EQ(copied().c_str(), "Say two words\n\nHello there.");
    context->KeyPress(ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_T);
    context->Yield(3);
    IM_CHECK_STR_EQ(copied().c_str(),
                    "Say two words\n\nThe person asks for two words. I could say hello.\n\n- hello there\n- "
                    "good day\n\nHello there.");
  });
}

TEST_F(AnswerWindow, ThinkingThatRunsShowsItsTime) {
  open();
  engine_->steps_allowed = 8;
  ask(kThoughtful);
  ASSERT_TRUE(loop_until([this] {
    return chat().messages.size() == 2 && !chat().messages.back().parts.empty() &&
           chat().messages.back().parts.front().duration_ms.has_value();
  }));
  draw_frames(2);
  EXPECT_TRUE(chat().messages.back().parts.front().open);
  write_screenshot("thinking-runs");
}

TEST_F(AnswerWindow, FormulasStandAsTheyWereWritten) {
  open();
  ask_and_wait(
      "The sum \\(a_1 * b_1 * c\\) is the *inner* product, $x_i^2$ a square, and $5 or $10 the price.\n"
      "\\[\n\\sum_{i=1}^{n} a_i * b_i = \\frac{1}{2}\n\\]\n"
      "So we are done:\n\n$$E = m c^2$$\n\n- in a list, too: \\(\\alpha_1 * \\beta_1\\)\n");
  write_screenshot("formulas");
  play([](ImGuiTestContext* context) {
    IM_CHECK_STR_EQ(copied_by(context, "**/copy_code").c_str(),
                    "\\[\n\\sum_{i=1}^{n} a_i * b_i = \\frac{1}{2}\n\\]");
  });
}

TEST_F(AnswerWindow, ACircleIsToldAndCanBeStopped) {
  open();
  std::string circle = "Once upon a time. ";
  for (int i = 0; i < 400; ++i)
    circle += "And then the very same thing happened to the very same one again. ";
  engine_->steps_allowed = 400;
  ask(circle);
  ASSERT_TRUE(loop_until([this] { return chat().messages.size() == 2 && chat().messages.back().repeats; }));
  draw_frames(3);
  write_screenshot("answer-repeats");
  play([this](ImGuiTestContext* context) {
    context->ItemClick("**/stop_repeats");
    context->Yield(2);
    engine_->steps_allowed = -1;
  });
  ASSERT_TRUE(loop_until([this] { return chat().activity == Activity::kIdle; }));
  EXPECT_EQ(chat().messages.back().figures.stop_reason, "stopped, it repeated itself");
  draw_frames(3);
  write_screenshot("answer-repeated");
}

}  // namespace
}  // namespace octavo::testing
