// A person in front of the Chat workspace.

#include <imgui.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "tests/ui/window_fixture.h"

namespace octavo::testing {
namespace {

using ChatWindow = WindowTest;
using octavo::ui::Activity;

void type_and_enter(ImGuiTestContext* context, const char* text) {
  context->KeyChars(text);
  context->KeyPress(ImGuiKey_Enter);
  context->Yield(3);
}

TEST_F(ChatWindow, TypedQuestionIsAnsweredOnScreen) {
  open();
  engine_->answers.push_back("Blocks of sixteen tokens, taken one at a time.");
  play([](ImGuiTestContext* context) { type_and_enter(context, "Why blocks?"); });
  ASSERT_TRUE(
      loop_until([this] { return chat().activity == Activity::kIdle && chat().messages.size() == 2; }));
  EXPECT_EQ(chat().messages[0].text, "Why blocks?");
  EXPECT_EQ(chat().messages[1].text, "Blocks of sixteen tokens, taken one at a time.");
  EXPECT_EQ(chat().title, "Why blocks?");
  EXPECT_EQ(chat().messages[1].figures.stop_reason, "finished");
  EXPECT_EQ(chat().messages[1].figures.seed, 7u);
  ASSERT_EQ(engine_->requests().size(), 1u);
  EXPECT_DOUBLE_EQ(engine_->requests()[0].sampling.temperature, 0.7);
}

TEST_F(ChatWindow, ShiftEnterMakesALineAndEnterSends) {
  open();
  play([](ImGuiTestContext* context) {
    context->KeyChars("first");
    context->KeyPress(ImGuiMod_Shift | ImGuiKey_Enter);
    type_and_enter(context, "second");
  });
  ASSERT_FALSE(chat().messages.empty());
  EXPECT_EQ(chat().messages[0].text, "first\nsecond");
}

TEST_F(ChatWindow, ControlEnterSendsWhenChosen) {
  app::Settings settings = test_settings();
  settings.ui.send_key = ui::SendKey::kControlEnter;
  open({}, settings);
  play([this](ImGuiTestContext* context) {
    type_and_enter(context, "one");
    IM_CHECK(chat().messages.empty());
    context->KeyChars("two");
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_Enter);
    context->Yield(3);
  });
  ASSERT_FALSE(chat().messages.empty());
  EXPECT_EQ(chat().messages[0].text, "one\ntwo");
}

TEST_F(ChatWindow, TwoChatsGenerateAtTheSameTime) {
  open();
  engine_->answers = {std::string(4000, 'a'), std::string(4000, 'b')};
  play([this](ImGuiTestContext* context) {
    type_and_enter(context, "the first chat");
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_N);
    context->Yield(4);
    type_and_enter(context, "the second chat");
    context->Yield(4);
    IM_CHECK_EQ(static_cast<int>(state().chats.size()), 2);
    for (const auto& chat : state().chats) {
      IM_CHECK(chat.activity == Activity::kGenerating);
    }
    const std::size_t first = state().chats[0].messages.back().text.size();
    const std::size_t second = state().chats[1].messages.back().text.size();
    context->Yield(10);
    IM_CHECK_GT(state().chats[0].messages.back().text.size(), first);
    IM_CHECK_GT(state().chats[1].messages.back().text.size(), second);
  });
}

TEST_F(ChatWindow, EscapeStopsTheAnswerAndKeepsWhatWasTyped) {
  open();
  engine_->answers = {std::string(400'000, 'x')};
  play([this](ImGuiTestContext* context) {
    type_and_enter(context, "go on for ever");
    context->Yield(6);
    IM_CHECK(chat().activity == Activity::kGenerating);
    context->KeyChars("and then");
    context->Yield(2);
    context->KeyPress(ImGuiKey_Escape);
    context->Yield(4);
    IM_CHECK(chat().activity == Activity::kIdle);
    IM_CHECK_STR_EQ(chat().messages.back().figures.stop_reason.c_str(), "stopped");
    IM_CHECK(!chat().messages.back().text.empty());
    context->KeyPress(ImGuiKey_Enter);
    context->Yield(4);
    IM_CHECK_STR_EQ(chat().messages[2].text.c_str(), "and then");
  });
}

TEST_F(ChatWindow, RegenerateAddsABranchAndArrowsWalkThem) {
  open();
  engine_->answers = {"first answer", "second answer"};
  play([this](ImGuiTestContext* context) {
    type_and_enter(context, "say something");
    context->Yield(12);
    context->ItemClick("**/regenerate");
    context->Yield(12);
    IM_CHECK_STR_EQ(chat().messages.back().text.c_str(), "second answer");
    IM_CHECK_EQ(chat().messages.back().num_siblings, 2);
    context->ItemClick("**/previous_branch");
    context->Yield(2);
    IM_CHECK_STR_EQ(chat().messages.back().text.c_str(), "first answer");
    context->ItemClick("**/next_branch");
    context->Yield(2);
    IM_CHECK_STR_EQ(chat().messages.back().text.c_str(), "second answer");
  });
}

TEST_F(ChatWindow, EditingAQuestionKeepsTheOldBranch) {
  open();
  play([this](ImGuiTestContext* context) {
    type_and_enter(context, "old question");
    context->Yield(12);
    context->ItemClick("**/edit");
    context->Yield(3);
    context->KeyCharsReplace("new question");
    context->ItemClick("**/send_edit");
    context->Yield(16);
    IM_CHECK_STR_EQ(chat().messages[0].text.c_str(), "new question");
    IM_CHECK_STR_EQ(chat().messages[1].text.c_str(), "You said: new question");
    IM_CHECK_EQ(chat().messages[0].num_siblings, 2);
    context->ItemClick("**/previous_branch");
    context->Yield(2);
    IM_CHECK_STR_EQ(chat().messages[0].text.c_str(), "old question");
    IM_CHECK_STR_EQ(chat().messages[1].text.c_str(), "You said: old question");
  });
}

TEST_F(ChatWindow, QuestionsQueueWhileAnAnswerIsGenerated) {
  open();
  engine_->answers = {std::string(400, 'a'), "the second answer"};
  play([this](ImGuiTestContext* context) {
    type_and_enter(context, "first");
    context->KeyChars("second");
    context->Yield(2);
    context->ItemClick("**/send");
    context->Yield(2);
    IM_CHECK_EQ(static_cast<int>(chat().queued.size()), 1);
    IM_CHECK_STR_EQ(chat().queued[0].c_str(), "second");
  });
  ASSERT_TRUE(
      loop_until([this] { return chat().activity == Activity::kIdle && chat().messages.size() == 4; }));
  EXPECT_EQ(chat().messages[2].text, "second");
  EXPECT_EQ(chat().messages[3].text, "the second answer");
  EXPECT_TRUE(chat().queued.empty());
}

TEST_F(ChatWindow, AQuestionCanBeSentWhileTheModelIsLoaded) {
  chats_path_ = folder_ / "chats.db";
  open();
  play([](ImGuiTestContext* context) { type_and_enter(context, "before"); });
  ASSERT_TRUE(
      loop_until([this] { return chat().activity == Activity::kIdle && chat().messages.size() == 2; }));
  close_window();
  std::atomic<bool> is_loaded = false;
  const auto factory = [&](const EngineOptions&, LoadProgress progress) -> Result<std::unique_ptr<Engine>> {
    while (progress(0.4) && !is_loaded) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    auto engine = std::make_unique<FakeEngine>();
    engine->clock = clock_;
    return std::unique_ptr<Engine>(std::move(engine));
  };
  open_loading(factory, "/models/slow.gguf", test_settings());
  ASSERT_TRUE(loop_until([this] {
    return state().model.load_fraction > 0.3 && ui::active_chat(state()) != nullptr &&
           chat().messages.size() == 2;
  }));
  draw_frames(3);
  EXPECT_NE(words_shown().find("It is sent when the model is loaded."), std::string::npos) << words_shown();
  play([this](ImGuiTestContext* context) {
    type_and_enter(context, "meanwhile");
    IM_CHECK_EQ(static_cast<int>(chat().queued.size()), 1);
    IM_CHECK_EQ(static_cast<int>(chat().messages.size()), 2);
  });
  write_screenshot("chat-while-loading");
  is_loaded = true;
  ASSERT_TRUE(
      loop_until([this] { return chat().activity == Activity::kIdle && chat().messages.size() == 4; }));
  EXPECT_EQ(chat().messages[3].text, "You said: meanwhile");
  EXPECT_TRUE(chat().queued.empty());
}

TEST_F(ChatWindow, ChatsAreRenamedDeletedAndBroughtBack) {
  open();
  play([this](ImGuiTestContext* context) {
    type_and_enter(context, "a chat to lose");
    context->Yield(12);
    context->KeyPress(ImGuiKey_F2);
    context->Yield(3);
    context->KeyCharsReplaceEnter("Kept name");
    context->Yield(3);
    IM_CHECK_STR_EQ(chat().title.c_str(), "Kept name");
    context->ItemClick("**/more");
    context->Yield(3);
    context->ItemClick("//$FOCUSED/delete");
    context->Yield(3);
    IM_CHECK(chat().messages.empty());
    context->ItemClick("**/undo_delete");
    context->Yield(3);
    IM_CHECK_STR_EQ(chat().title.c_str(), "Kept name");
    IM_CHECK_EQ(static_cast<int>(chat().messages.size()), 2);
  });
}

TEST_F(ChatWindow, ShortcutsReachEverything) {
  open();
  play([this](ImGuiTestContext* context) {
    type_and_enter(context, "one");
    context->Yield(10);
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_N);
    context->Yield(3);
    IM_CHECK_EQ(static_cast<int>(state().chats.size()), 2);
    const ChatId second = state().active_chat;
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_Tab);
    context->Yield(3);
    IM_CHECK(state().active_chat != second);
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_PageUp);
    context->Yield(3);
    IM_CHECK(state().active_chat == second);
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_3);
    context->Yield(3);
    IM_CHECK(state().workspace == ui::Workspace::kMemory);
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_1);
    context->Yield(3);
    IM_CHECK(state().workspace == ui::Workspace::kChat);
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_B);
    context->Yield(3);
    IM_CHECK(!state().settings.sidebar_shown);
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_Comma);
    context->Yield(4);
    IM_CHECK(state().settings_open);
    context->KeyPress(ImGuiKey_Escape);
    context->Yield(4);
    IM_CHECK(!state().settings_open);
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_Equal);
    context->Yield(3);
    IM_CHECK_GT(state().settings.ui_scale, 1.05);
  });
}

TEST_F(ChatWindow, SettingsPanelChangesThemeAndIsRemembered) {
  open();
  play([this](ImGuiTestContext* context) {
    context->ItemClick("**/settings");
    context->Yield(4);
    context->SetRef("settings_panel");
    context->ItemClick("**/light");
    context->Yield(3);
    IM_CHECK(state().settings.theme == ui::ThemeName::kLight);
    context->ItemClick("**/close_dialog");
    context->Yield(3);
  });
  EXPECT_EQ(app::load_settings(folder_ / "settings.json").settings.ui.theme, ui::ThemeName::kLight);
}

TEST_F(ChatWindow, SamplingPanelChangesTheNextRequest) {
  open();
  play([this](ImGuiTestContext* context) {
    context->ItemClick("**/chat_settings");
    context->Yield(3);
    context->ItemClick("**/preset_precise");
    context->Yield(2);
    context->ItemClick("**/##system_prompt");
    context->KeyChars("Answer in verse.");
    context->Yield(2);
    context->ItemClick("**/##draft");
    type_and_enter(context, "hello");
    context->Yield(6);
  });
  ASSERT_EQ(engine_->requests().size(), 1u);
  EXPECT_DOUBLE_EQ(engine_->requests()[0].sampling.temperature, 0.2);
  const auto& messages = std::get<ChatPrompt>(engine_->requests()[0].prompt).messages;
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_EQ(messages[0].role, Role::kSystem);
  EXPECT_EQ(messages[0].content, "Answer in verse.");
}

TEST_F(ChatWindow, IdleWindowDrawsNoFrames) {
  ManualClock clock;
  clock_ = &clock;
  open();
  play([](ImGuiTestContext* context) { type_and_enter(context, "hello"); });
  const auto turns = [&](int count) {  // 50 ms each, for the window and for the clock
    for (int i = 0; i < count; ++i) {
      application_->step_for(0.05);
      clock.advance_us(50'000);
    }
  };
  turns(20);
  ASSERT_EQ(chat().activity, Activity::kIdle);
  clock.advance_us(6'000'000);  // the caret has stopped blinking
  turns(3);
  const std::uint64_t before = application_->num_frames_drawn();
  turns(20);
  EXPECT_EQ(application_->num_frames_drawn(), before);
  application_.reset();  // it reads the clock
}

TEST_F(ChatWindow, HostileTextIsShownAsText) {
  open();
  std::string hostile =
      "%n%s%p ##id ###id \x01\x02\x1b[31m \xe4\xbd\xa0\xe5\xa5\xbd \xf0\x9f\x98\x80 \xe2\x80\xae rtl ``` ** "
      "__ [x](javascript:1)\n";
  hostile += std::string(1 << 20, 'w');
  hostile += "\n" + std::string(20'000, '*') + std::string(20'000, '`') + std::string(5'000, '>');
  engine_->answers = {hostile};
  play([](ImGuiTestContext* context) {
    context->KeyChars("##title %n %s");
    context->KeyPress(ImGuiKey_Enter);
    context->Yield(4);
  });
  engine_->steps_allowed = 0;
  // The whole answer at once, as a reader that slept would get it.
  const std::uint64_t request = engine_->requests().size();
  application_->controller().fold(TokensGenerated{.request_id = RequestId{request},
                                                  .token_ids = {5},
                                                  .logprobs = {},
                                                  .top_logprobs = {},
                                                  .text = hostile});
  draw_frames(3);
  EXPECT_EQ(chat().title, "##title %n %s");
  play([](ImGuiTestContext* context) {
    context->KeyPress(ImGuiKey_PageUp, 3);
    context->Yield(2);
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_3);
    context->Yield(3);
  });
}

TEST_F(ChatWindow, LongTextInTheComposerStaysUsable) {
  open();
  const std::string line(1 << 20, 'q');
  play([&line](ImGuiTestContext* context) {
    ImGui::SetClipboardText(line.c_str());
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_V);
    context->Yield(3);
    context->KeyPress(ImGuiKey_Enter);
    context->Yield(4);
  });
  ASSERT_TRUE(loop_until([this] { return chat().activity != Activity::kWaiting; }));
  EXPECT_TRUE(chat().messages.empty()) << "it is far too long";
  EXPECT_EQ(chat().draft.size(), line.size());
}

TEST_F(ChatWindow, FailedRequestSaysWhyAndLeavesTheChatUsable) {
  open();
  engine_->lose_device();
  play([](ImGuiTestContext* context) { type_and_enter(context, "hello"); });
  ASSERT_TRUE(loop_until([this] { return chat().activity == Activity::kFailed; }));
  EXPECT_FALSE(chat().messages.back().error.empty());
}

TEST_F(ChatWindow, ReaderIsNotPulledToTheEndWhileTextStreams) {
  open();
  std::string text;
  for (int i = 0; i < 400; ++i) text += "Line " + std::to_string(i) + "\n\n";
  engine_->answers = {text, std::string(40'000, 'y')};
  play([this](ImGuiTestContext* context) {
    type_and_enter(context, "a long one");
    while (chat().activity != Activity::kIdle) application_->update();
    type_and_enter(context, "another");
    context->Yield(4);
    IM_CHECK(!context->ItemExists("**/jump_to_end"));
    context->KeyPress(ImGuiKey_PageUp, 2);
    context->Yield(4);
    IM_CHECK(context->ItemExists("**/jump_to_end"));
    context->ItemClick("**/jump_to_end");
    context->Yield(3);
    IM_CHECK(!context->ItemExists("**/jump_to_end"));
  });
}

}  // namespace
}  // namespace octavo::testing
