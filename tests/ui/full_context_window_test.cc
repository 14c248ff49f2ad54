// A chat that outgrows its context, on the screen.

#include <imgui.h>

#include <string>

#include "tests/ui/window_fixture.h"

namespace octavo::testing {
namespace {

class FullContextWindow : public WindowTest {
 protected:
  void ask(const std::string& text) {
    const std::size_t before = chat().messages.size();
    play([&](ImGuiTestContext* context) {
      context->ItemClick("**/##draft");
      context->KeyChars(text.c_str());
      context->KeyPress(ImGuiKey_Enter);
      context->Yield(2);
    });
    ASSERT_TRUE(loop_until([&] {
      return chat().messages.size() == before + 2 && chat().activity == ui::Activity::kIdle &&
             !chat().messages.back().streaming;
    }));
  }
  // The messages around the place where the context begins.
  void show_cut() {
    const auto begin = static_cast<std::size_t>(chat().context.num_left);
    application_->controller().apply(ui::actions::ShowMessage{chat().id, chat().messages.at(begin - 2).id});
    draw_frames(5);
  }
  void ask_until_full() {
    for (int turn = 1; chat().context.num_left == 0; ++turn) {
      ASSERT_LT(turn, 40);
      engine_->answers = {
          "Blocks hold sixteen tokens each, and a table says where they are. That was answer " +
          std::to_string(turn) + "."};
      ask("What is a block, and who owns it? This is question " + std::to_string(turn) + ".");
      ASSERT_FALSE(HasFatalFailure());
    }
    // Two more turns in the same context.
    for (const char* text : {"And then?", "And after that?"}) {
      engine_->answers = {"Then the next block is taken from the free list."};
      ask(text);
    }
  }
};

TEST_F(FullContextWindow, TheCutIsDrawnAndThePolicyChosen) {
  open({.max_model_len = 512}, large_settings());
  ask_until_full();
  EXPECT_GT(chat().context.num_left, 0);
  show_cut();
  write_screenshot("context-cut");
  play([this](ImGuiTestContext* context) {
    context->ItemClick("**/chat_settings");
    context->Yield(3);
    context->ItemClick("**/policy_summarise");
    context->Yield(3);
    IM_CHECK(chat().context_policy == ContextPolicy::kSummarise);
  });
  engine_->answers = {};
  for (int turn = 0; chat().summary.empty(); ++turn) {
    ASSERT_LT(turn, 40);
    ask("Tell me more about block " + std::to_string(turn) + " and about who shares it with whom.");
  }
  ASSERT_TRUE(loop_until([this] { return chat().activity == ui::Activity::kIdle; }));
  show_cut();
  write_screenshot("context-summary");
  play([this](ImGuiTestContext* context) {
    context->ItemClick("**/##summary");
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_A);
    context->KeyChars("They asked about blocks.");
    context->Yield(3);
    IM_CHECK_EQ(chat().summary, "They asked about blocks.");
  });
}

TEST_F(FullContextWindow, WhatCannotBeSentIsSaidAndStaysInTheDraft) {
  open({.max_model_len = 512}, large_settings());
  const std::string text(3'000, 'x');
  play([&](ImGuiTestContext* context) {
    context->ItemClick("**/##draft");
    ImGui::SetClipboardText(text.c_str());
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_V);
    context->KeyPress(ImGuiKey_Enter);
    context->Yield(3);
  });
  ASSERT_TRUE(loop_until([this] { return !chat().context.refusal.empty(); }));
  EXPECT_TRUE(chat().messages.empty());
  draw_frames(3);
  write_screenshot("context-refusal");
  play([this](ImGuiTestContext* context) {
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_A);
    context->KeyChars("short");
    context->Yield(10);
    context->KeyPress(ImGuiKey_Enter);
    context->Yield(3);
  });
  ASSERT_TRUE(loop_until([this] { return chat().messages.size() == 2; }));
  EXPECT_EQ(chat().messages[0].text, "short");
}

TEST_F(FullContextWindow, AnAnswerThatFilledTheContextContinues) {
  app::Settings settings = large_settings();
  open({.max_model_len = 512}, settings);
  ui::actions::ChangeSampling change{chat().id, chat().sampling};
  change.sampling.max_tokens = 4'000;
  application_->controller().apply(change);
  std::string text;
  while (text.size() < 2'500) text += "A long answer goes on and on, until the context is full. ";
  engine_->answers = {text, "That was all."};
  ask("Tell me everything.");
  EXPECT_EQ(chat().messages.back().figures.stop_reason, "the context is full");
  draw_frames(3);
  write_screenshot("context-full");
  play([](ImGuiTestContext* context) { context->ItemClick("**/continue_answer"); });
  ASSERT_TRUE(loop_until([this] { return chat().messages.back().text.ends_with("That was all."); }));
}

}  // namespace
}  // namespace octavo::testing
