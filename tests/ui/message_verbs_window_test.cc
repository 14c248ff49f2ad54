// What can be done with messages and chats beside asking, by mouse and by keyboard.

#include <imgui.h>

#include <cstdlib>
#include <ctime>
#include <string>

#include "app/chat/chat.h"
#include "tests/ui/window_fixture.h"

namespace octavo::testing {
namespace {

using ui::Activity;
using ui::AnswerOffer;

class MessageVerbsWindow : public WindowTest {
 protected:
  MessageVerbsWindow() {
    ::setenv("TZ", "UTC0", 1);
    ::tzset();
  }

  void ask(const std::string& text) {
    application_->controller().apply(ui::actions::SendMessage{chat().id, text});
    ASSERT_TRUE(loop_until([this] { return chat().activity == Activity::kIdle; }));
    draw_frames(2);
  }
  void ask_and_stop(const std::string& text, std::size_t num_bytes) {
    application_->controller().apply(ui::actions::SendMessage{chat().id, text});
    ASSERT_TRUE(loop_until(
        [&] { return chat().messages.size() >= 2 && chat().messages.back().text.size() >= num_bytes; }));
    application_->controller().apply(ui::actions::StopAnswer{chat().id});
    ASSERT_TRUE(loop_until([this] { return chat().activity == Activity::kIdle; }));
    draw_frames(2);
  }
  const ui::MessageState& last() const { return chat().messages.back(); }
  void choose_in_palette(const char* name) {
    play([&](ImGuiTestContext* context) {
      context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_K);
      context->Yield(3);
      context->KeyChars(name);
      context->Yield(2);
      context->KeyPress(ImGuiKey_Enter);
      context->Yield(4);
    });
  }
};

const char* const kQuestion = "Why does a pool of blocks waste less memory than one long range?";
const char* const kAnswer =
    "A range has to be as long as the longest answer could become. Blocks are taken one by one, as the "
    "answer grows, so that only the last of them is partly empty.";

TEST_F(MessageVerbsWindow, AStoppedAnswerContinuesByButtonAndByKey) {
  open({}, large_settings());
  engine_->answers = {kAnswer, " And so it goes on.", " To the end."};
  ask_and_stop(kQuestion, 60);
  EXPECT_EQ(last().offer, AnswerOffer::kContinue);
  write_screenshot("verbs-continue");
  const std::string before = last().text;
  play([](ImGuiTestContext* context) { context->ItemClick("**/continue_answer"); });
  ASSERT_TRUE(loop_until([&] { return last().text == before + " And so it goes on."; }));
  ASSERT_TRUE(loop_until([this] { return chat().activity == Activity::kIdle; }));
  engine_->answers = {std::string(80, 'x'), "by key"};
  ask_and_stop("again", 8);
  const std::string begun = last().text;
  play([](ImGuiTestContext* context) { context->KeyPress(ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_G); });
  ASSERT_TRUE(loop_until([&] { return last().text == begun + "by key"; }));
}

TEST_F(MessageVerbsWindow, AQuestionWithoutAnAnswerIsAnswered) {
  open({}, large_settings());
  app::Chat imported;
  imported.has_sampling = false;
  imported.append(app::kRootMessage, Role::kUser, kQuestion);
  application_->controller().take_imported({imported});
  engine_->answers = {kAnswer};
  draw_frames(3);
  write_screenshot("verbs-generate");
  play([](ImGuiTestContext* context) { context->ItemClick("**/continue_answer"); });
  ASSERT_TRUE(loop_until([this] { return chat().messages.size() == 2 && last().text == kAnswer; }));
}

TEST_F(MessageVerbsWindow, AnAnswerIsEditedAndContinued) {
  open({}, large_settings());
  engine_->answers = {kAnswer, " the rest of it."};
  ask(kQuestion);
  play([this](ImGuiTestContext* context) {
    context->ItemClick("**/edit_answer");
    context->Yield(3);
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_End);
    context->KeyChars(" I say.");
    context->Yield(2);
  });
  write_screenshot("verbs-edit-answer");
  play([this](ImGuiTestContext* context) {
    context->ItemClick("**/save_answer");
    context->Yield(3);
    IM_CHECK_STR_EQ(last().text.c_str(), (std::string(kAnswer) + " I say.").c_str());
    IM_CHECK_EQ(last().num_siblings, 2);
    context->KeyPress(ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_U);
    context->Yield(3);
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_A);
    context->KeyChars("In short:");
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_Enter);
    context->Yield(3);
  });
  ASSERT_TRUE(loop_until([this] { return last().text == "In short: the rest of it."; }));
  ASSERT_TRUE(loop_until([this] { return chat().activity == Activity::kIdle; }));
  EXPECT_EQ(last().num_siblings, 3);
  write_screenshot("verbs-edited");
}

TEST_F(MessageVerbsWindow, AnAnswerIsBegunFromItsQuestionsMenu) {
  open({}, large_settings());
  ask(kQuestion);
  engine_->answers = {" blocks are small."};
  play([](ImGuiTestContext* context) {
    context->ItemClick("**/message_more");
    context->Yield(3);
    context->ItemClick("//$FOCUSED/begin_answer");
    context->Yield(4);
    context->KeyChars("Because");
    context->Yield(2);
  });
  write_screenshot("verbs-begin-answer");
  play([](ImGuiTestContext* context) { context->ItemClick("**/continue_edit"); });
  ASSERT_TRUE(loop_until([this] { return last().text == "Because blocks are small."; }));
  ASSERT_TRUE(loop_until([this] { return chat().activity == Activity::kIdle; }));
  engine_->answers = {" by keys alone."};
  choose_in_palette("write how the answer begins");
  play([](ImGuiTestContext* context) {
    context->KeyChars("Begun");
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_Enter);
  });
  ASSERT_TRUE(loop_until([this] { return last().text == "Begun by keys alone."; }));
}

TEST_F(MessageVerbsWindow, ADeletedBranchComesBack) {
  open({}, large_settings());
  for (const char* text : {"one", "two", "three"}) ask(text);
  ImVec2 more;
  play([&](ImGuiTestContext* context) {
    more = context->ItemInfo("**/message_more").RectFull.GetCenter();  // of the first question
  });
  // Pressed by hand: what a script has opened is closed at its end.
  ImGui::GetIO().AddMousePosEvent(more.x, more.y);
  for (const bool down : {true, false}) {
    ImGui::GetIO().AddMouseButtonEvent(ImGuiMouseButton_Left, down);
    draw_frames(2);
  }
  write_screenshot("verbs-menu");
  play([this](ImGuiTestContext* context) {
    context->KeyPress(ImGuiKey_Escape);
    context->ItemClick("**/message_more");
    context->Yield(3);
    context->ItemClick("//$FOCUSED/delete_branch");
    context->Yield(3);
    IM_CHECK(chat().messages.empty());
  });
  write_screenshot("verbs-deleted");
  play([this](ImGuiTestContext* context) {
    context->ItemClick("**/undo_delete");
    context->Yield(3);
    IM_CHECK_EQ(chat().messages.size(), 6u);
  });
  choose_in_palette("delete the last message");
  EXPECT_EQ(chat().messages.size(), 5u);
  play([this](ImGuiTestContext* context) {
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_Z);
    context->Yield(3);
    IM_CHECK_EQ(chat().messages.size(), 6u);
  });
}

TEST_F(MessageVerbsWindow, AChatIsDuplicatedByMenuAndPalette) {
  open({}, large_settings());
  ask(kQuestion);
  application_->controller().apply(ui::actions::RenameChat{chat().id, "Blocks"});
  play([this](ImGuiTestContext* context) {
    context->ItemClick("**/more");
    context->Yield(3);
    context->ItemClick("//$FOCUSED/duplicate");
    context->Yield(4);
    IM_CHECK_STR_EQ(chat().title.c_str(), "Blocks (copy)");
  });
  write_screenshot("verbs-duplicate");
  choose_in_palette("duplicate this chat");
  EXPECT_EQ(chat().title, "Blocks (copy) (copy)");
  EXPECT_EQ(state().chats.size(), 3u);
  EXPECT_EQ(chat().messages.size(), 2u);
}

TEST_F(MessageVerbsWindow, ChatsStandUnderTheirDays) {
  unix_time_ms_ = 1'795'500'000'000;  // 24 November 2026, 06:00
  chats_path_ = folder_ / "chats.db";
  open({}, large_settings());
  std::vector<app::Chat> chats;
  const std::int64_t day = 86'400'000;
  for (const auto& [title, days_ago] :
       {std::pair{"Paging in operating systems", 400}, std::pair{"A poem about spring", 40},
        std::pair{"Copy-on-write", 12}, std::pair{"Beam search", 4},
        std::pair{"Which blocks are shared", 1}}) {
    app::Chat& chat = chats.emplace_back();
    chat.title = title;
    for (const Role role : {Role::kUser, Role::kAssistant}) {
      app::Message& message =
          *chat.find(chat.append(chat.active_leaf(), role, role == Role::kUser ? kQuestion : kAnswer));
      message.created_ms = unix_time_ms_ - days_ago * day;
      message.finish_reason = FinishReason::kStop;
    }
  }
  application_->controller().take_imported(chats);
  application_->controller().apply(ui::actions::NewChat{});
  ask(kQuestion);
  draw_frames(3);
  std::vector<std::string> labels;
  for (const DaySpan& span : state().library.days) labels.push_back(span.label);
  EXPECT_EQ(labels.at(0), "Today");
  EXPECT_EQ(labels.back(), "October 2025");
  write_screenshot("verbs-days");
  // Midnight: what was today is yesterday, without a word from anybody.
  const std::uint64_t before = application_->num_frames_drawn();
  unix_time_ms_ = state().library.tomorrow_ms;
  EXPECT_TRUE(loop_until([&] { return application_->num_frames_drawn() > before; }));
  EXPECT_EQ(state().library.days[0].begin_ms, unix_time_ms_);
  EXPECT_LT(chat().updated_ms, unix_time_ms_);
  write_screenshot("verbs-days-later");
  play([this](ImGuiTestContext* context) {
    application_->controller().apply(ui::actions::SelectChat{state().chats[2].id});
    context->Yield(3);
  });
  write_screenshot("verbs-times");
}

TEST_F(MessageVerbsWindow, AChatOffersItsModelAndLoadsItByOneClick) {
  open({.name = "Qwen3 0.6B", .path = "/models/Qwen3-0.6B-Q8_0.gguf"}, large_settings());
  ask(kQuestion);
  FakeEngine other({.first_request = 1000});  // that answers from here on
  application_->controller().attach_engine(other, [](const app::PlanWanted&) {});
  draw_frames(3);
  EXPECT_TRUE(ui::has_other_model(state(), chat()));
  write_screenshot("verbs-model-offer");
  EXPECT_FALSE(state().picker.loading.has_value()) << "nothing is loaded unasked";
  play([](ImGuiTestContext* context) { context->ItemClick("**/load_chat_model"); });
  ASSERT_TRUE(loop_until([this] { return !ui::has_other_model(state(), chat()); }));
  EXPECT_EQ(state().model.name, "Qwen3 0.6B");
}

TEST_F(MessageVerbsWindow, NewChatsBeginAsTheSettingsSay) {
  open({}, large_settings());
  application_->controller().apply(ui::actions::SavePreset{{PresetId{}, "Poet", "Rhyme.", chat().sampling}});
  play([this](ImGuiTestContext* context) {
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_Comma);
    context->Yield(3);
    context->SetRef("//$FOCUSED");
    context->ItemClick("##default_system_prompt");
    context->KeyChars("Answer in one sentence.");
    context->Yield(2);
  });
  write_screenshot("verbs-settings");
  play([this](ImGuiTestContext* context) {
    context->KeyPress(ImGuiKey_Escape);
    context->Yield(4);
    IM_CHECK(!state().settings_open);
    IM_CHECK_STR_EQ(state().settings.system_prompt.c_str(), "Answer in one sentence.");
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_N);
    context->Yield(3);
    IM_CHECK_STR_EQ(chat().system_prompt.c_str(), "Answer in one sentence.");
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_Comma);
    context->Yield(3);
    context->ItemClick("//$FOCUSED/default_preset");
    context->Yield(3);
    context->ItemClick("//$FOCUSED/$$1/preset");
    context->Yield(3);
  });
  write_screenshot("verbs-settings-preset");
  play([this](ImGuiTestContext* context) {
    context->KeyPress(ImGuiKey_Escape);
    context->Yield(4);
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_N);
    context->Yield(3);
    IM_CHECK_STR_EQ(chat().system_prompt.c_str(), "Rhyme.");
  });
  EXPECT_EQ(app::load_settings(folder_ / "settings.json").settings.ui.system_prompt,
            "Answer in one sentence.");
}

}  // namespace
}  // namespace octavo::testing
