// What a desktop program needs around the chat, in a real window: dropped files, attachments, presets,
// branches, and a second start.

#include <GLFW/glfw3.h>
#include <imgui.h>
#include <imgui_internal.h>

#include <atomic>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "app/chat/chat_json.h"
#include "app/window/platform/first_window.h"
#include "engine/base/format.h"
#include "tests/ui/window_fixture.h"

namespace octavo::testing {
namespace {

namespace act = ui::actions;

class DesktopWindow : public WindowTest {
 protected:
  void open_kept(const app::Settings& settings = test_settings()) {
    chats_path_ = folder_ / "data" / "chats.db";
    open({}, settings);
  }
  void apply(ui::Action action) { application_->controller().apply(action); }
  std::string write(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return (folder_ / name).string();
  }
  // As GLFW tells of it.
  void drop(const std::vector<std::string>& paths) {
    auto* handle = static_cast<GLFWwindow*>(ImGui::GetMainViewport()->PlatformHandle);
    const GLFWdropfun callback = glfwSetDropCallback(handle, nullptr);
    glfwSetDropCallback(handle, callback);
    ASSERT_NE(callback, nullptr);
    std::vector<const char*> names;
    for (const std::string& path : paths) names.push_back(path.c_str());
    callback(handle, static_cast<int>(names.size()), names.data());
  }
  bool answered() {
    return loop_until([this] {
      return chat().activity == ui::Activity::kIdle && chat().messages.size() >= 2 &&
             !chat().messages.back().streaming;
    });
  }
  // From within a script.
  void wait_for_listing(ImGuiTestContext* context) const {
    context->Yield(2);
    for (int i = 0; i < 500 && state().files.reading; ++i) context->Yield();
    context->Yield(2);
  }
  void ask(const std::string& text) {
    apply(act::SendMessage{chat().id, text});
    ASSERT_TRUE(answered());
  }
};

TEST_F(DesktopWindow, DroppedTextsBecomeChipsAndGoWithTheMessage) {
  open_kept();
  drop({write("notes.txt", "alpha\nbeta\n"), write("plan.md", "# Plan\n")});
  ASSERT_TRUE(loop_until([this] {
    return chat().attachments.size() == 2 && chat().attachments[0].num_tokens &&
           chat().attachments[1].num_tokens;
  }));
  EXPECT_EQ(chat().attachments[0].name, "notes.txt");
  EXPECT_EQ(chat().attachments[0].num_bytes, 11);
  EXPECT_EQ(chat().attachments[0].num_tokens, 3);  // four bytes a token here
  ASSERT_TRUE(state().banner);
  EXPECT_EQ(state().banner->text, "Attached notes.txt and plan.md.");
  play([this](ImGuiTestContext* context) {
    context->KeyChars("What is in them?");
    context->KeyPress(ImGuiKey_Enter);
    context->Yield(4);
  });
  ASSERT_TRUE(answered());
  EXPECT_TRUE(chat().attachments.empty());
  const auto& sent = std::get<ChatPrompt>(engine_->requests().back().prompt).messages.back();
  EXPECT_EQ(sent.content,
            "What is in them?\n\n```file: notes.txt\nalpha\nbeta\n```\n\n```file: plan.md\n# Plan\n```");
  const ui::MessageState& shown = chat().messages.front();
  EXPECT_EQ(shown.text, "What is in them?");
  ASSERT_EQ(shown.attachments.size(), 2u);
  EXPECT_EQ(shown.attachments[1].name, "plan.md");
}

TEST_F(DesktopWindow, AChipIsRemovedByItsCross) {
  open();
  drop({write("a.txt", "a"), write("b.txt", "b")});
  ASSERT_TRUE(loop_until([this] { return chat().attachments.size() == 2; }));
  const auto second = chat().attachments[1].id;
  play([](ImGuiTestContext* context) {
    context->ItemClick("**/remove_attachment");
    context->Yield(2);
  });
  ASSERT_EQ(chat().attachments.size(), 1u);
  EXPECT_EQ(chat().attachments[0].id, second);
}

TEST_F(DesktopWindow, AttachmentsOfADraftAreThereAfterTheWindowWasClosed) {
  open_kept();
  ask("a chat");
  apply(act::ChangeDraft{chat().id, "half a question"});
  drop({write("a.txt", "contents\n")});
  ASSERT_TRUE(loop_until([this] { return chat().attachments.size() == 1; }));
  application_.reset();
  open();
  EXPECT_EQ(chat().draft, "half a question");
  ASSERT_EQ(chat().attachments.size(), 1u);
  EXPECT_EQ(chat().attachments[0].name, "a.txt");
}

TEST_F(DesktopWindow, AnEditedQuestionKeepsItsFiles) {
  open();
  drop({write("a.txt", "contents\n")});
  ASSERT_TRUE(loop_until([this] { return chat().attachments.size() == 1; }));
  ask("first");
  apply(act::EditMessage{chat().id, chat().messages.front().id, "second"});
  ASSERT_TRUE(answered());
  EXPECT_EQ(chat().messages.front().text, "second");
  ASSERT_EQ(chat().messages.front().attachments.size(), 1u);
  EXPECT_EQ(std::get<ChatPrompt>(engine_->requests().back().prompt).messages.back().content,
            "second\n\n```file: a.txt\ncontents\n```");
}

TEST_F(DesktopWindow, ADropOfManyKindsSaysWhatHappened) {
  open_kept();
  app::Chat other;
  other.append(app::kRootMessage, Role::kUser, "from elsewhere");
  drop({write("chat.json", app::chat_to_json(other)), write("note.txt", "n")});
  ASSERT_TRUE(loop_until([this] { return state().chats.size() == 2; }));
  EXPECT_EQ(chat().title, "from elsewhere");
  EXPECT_EQ(state().banner->text, "Attached note.txt. Imported 1 chat from chat.json.");
  drop({write("picture.png", std::string("\x89PNG\0\0", 6)), (folder_ / "none").string()});
  ASSERT_TRUE(
      loop_until([this] { return state().banner && state().banner->kind == ui::BannerKind::kError; }));
  EXPECT_NE(state().banner->text.find("picture.png is not UTF-8 text"), std::string::npos);
  EXPECT_NE(state().banner->text.find("; 1 other file could not be used."), std::string::npos);
}

TEST_F(DesktopWindow, ADroppedModelOpensTheListOfModels) {
  open();
  drop({write("model.gguf", "GGUF and nothing more")});
  EXPECT_TRUE(loop_until([this] { return state().picker.open; }));
}

TEST_F(DesktopWindow, TheKeyAsksForAPath) {
  open();
  const std::string path = write("typed.txt", "typed\n");
  play([&](ImGuiTestContext* context) {
    context->KeyPress(ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_A);
    context->Yield(4);
    IM_CHECK(state().files.open);
    context->KeyChars(path.c_str());
    wait_for_listing(context);
    context->KeyPress(ImGuiKey_Enter);
    for (int i = 0; i < 200 && state().files.open; ++i) context->Yield();
    IM_CHECK(!state().files.open);
  });
  EXPECT_TRUE(loop_until([this] { return chat().attachments.size() == 1; }));
  play([&](ImGuiTestContext* context) {
    context->ItemClick("**/show_attach");
    context->Yield(4);
    context->KeyPress(ImGuiKey_Escape);
    context->Yield(4);
    IM_CHECK(!state().files.open);
  });
}

// ---- presets

TEST_F(DesktopWindow, APresetIsMadeChangedAppliedAndDeleted) {
  open_kept();
  apply(act::ChangeSystemPrompt{chat().id, "Be brief."});
  SamplingParams sampling = chat().sampling;
  sampling.temperature = 0.2;
  apply(act::ChangeSampling{chat().id, sampling});
  play([this](ImGuiTestContext* context) {
    apply(act::ShowPresets{true});
    context->Yield(4);
    context->SetRef("presets_panel");
    context->ItemClick("**/new_preset");
    context->Yield(6);
    context->KeyChars("Short answers");
    context->Yield(4);
  });
  ASSERT_EQ(state().library.presets.size(), 1u);
  EXPECT_EQ(state().library.presets[0].name, "Short answers");
  EXPECT_EQ(state().library.presets[0].system_prompt, "Be brief.");
  EXPECT_EQ(state().library.presets[0].sampling.temperature, 0.2);
  apply(act::ChangeSystemPrompt{chat().id, ""});
  play([this](ImGuiTestContext* context) {
    context->SetRef("presets_panel");
    context->ItemClick("**/apply_preset");
    context->Yield(2);
    IM_CHECK_STR_EQ(chat().system_prompt.c_str(), "Be brief.");
    context->ItemClick("**/erase_preset");
    context->Yield(2);
    IM_CHECK_EQ(state().library.presets.size(), 1u);
    context->ItemClick("**/erase_preset");
    context->Yield(2);
    IM_CHECK_EQ(state().library.presets.size(), 0u);
    context->KeyPress(ImGuiKey_Escape);
    context->Yield(2);
    IM_CHECK(!state().desktop.presets_open);
  });
}

// ---- branches

TEST_F(DesktopWindow, TheTreeShowsEveryBranchAndGoesThere) {
  open();
  ask("one");
  ask("two");
  const MessageId first_two = chat().messages[2].id;
  apply(act::EditMessage{chat().id, first_two, "two, otherwise"});
  ASSERT_TRUE(answered());
  apply(act::Regenerate{chat().id, chat().messages[1].id});
  ASSERT_TRUE(answered());
  apply(act::ShowTree{true});
  ASSERT_NE(state().desktop.tree, nullptr);
  const ui::BranchTree& tree = *state().desktop.tree;
  ASSERT_EQ(tree.messages.size(), 7u);
  EXPECT_EQ(tree.num_branches, 3);
  EXPECT_EQ(tree.messages[0].excerpt, "one");
  EXPECT_EQ(tree.messages[0].last_child, 6u);
  EXPECT_EQ(tree.messages[6].parent, 0u);
  EXPECT_EQ(tree.messages[6].lane, 1);
  EXPECT_TRUE(tree.messages[6].on_shown_path);
  EXPECT_FALSE(tree.messages[1].on_shown_path);
  EXPECT_EQ(tree.messages[2].lane, 2);
  EXPECT_EQ(tree.messages[2].id, first_two);
  EXPECT_NE(tree.messages[1].note.find("SmolLM2"), std::string::npos) << tree.messages[1].note;
  apply(act::ShowTree{false});
  draw_frames(2);
  // From the end of the shown path to its parent, down to the first child, and on.
  play([&](ImGuiTestContext* context) {
    context->KeyPress(ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_B);
    context->Yield(4);
    IM_CHECK(state().desktop.tree_open);
    context->KeyPress(ImGuiKey_LeftArrow);
    context->KeyPress(ImGuiKey_RightArrow);
    context->KeyPress(ImGuiKey_DownArrow);
    context->KeyPress(ImGuiKey_Enter);
    context->Yield(4);
    IM_CHECK_EQ(chat().messages.size(), 4u);
    IM_CHECK(chat().messages[2].id == first_two);
    context->KeyPress(ImGuiKey_Escape);
    context->Yield(2);
    IM_CHECK(!state().desktop.tree_open);
  });
}

TEST_F(DesktopWindow, AClickInTheTreeGoesToTheBranch) {
  open();
  ask("one");
  const MessageId first_answer = chat().messages[1].id;
  apply(act::Regenerate{chat().id, first_answer});
  ASSERT_TRUE(answered());
  ASSERT_NE(chat().messages[1].id, first_answer);
  apply(act::ShowTree{true});
  play([&](ImGuiTestContext* context) {
    context->Yield(2);
    context->ItemClick(("**/$$" + std::to_string(first_answer.value) + "/branch_message").c_str());
    context->Yield(2);
    IM_CHECK(chat().messages[1].id == first_answer);
  });
}

// ---- the list of chats

TEST_F(DesktopWindow, AChatIsDraggedToAnotherPlaceAndIntoAFolder) {
  open_kept();
  ask("one");
  for (const char* title : {"two", "three"}) {
    apply(act::NewChat{});
    ask(title);
  }
  apply(act::CreateFolder{"Work"});
  play([](ImGuiTestContext* context) {
    context->Yield(10);
    context->KeyPress(ImGuiKey_Enter);  // the name is as it should be
    context->Yield(6);
  });
  ASSERT_EQ(state().chats[0].title, "three");
  const auto row = [](std::uint64_t id) { return "**/$$" + std::to_string(id) + "/chat"; };
  const std::uint64_t three = state().chats[0].id.value, one = state().chats[2].id.value;
  play([&](ImGuiTestContext* context) {
    const ImRect target = context->ItemInfo(row(one).c_str()).RectFull;
    context->MouseMove(row(three).c_str());
    context->MouseDown(0);
    context->MouseLiftDragThreshold();
    context->MouseMoveToPos({target.GetCenter().x, target.Max.y - 4});
    context->Yield(2);
    context->MouseUp(0);
    context->Yield(2);
    IM_CHECK_STR_EQ(state().chats[2].title.c_str(), "three");
    IM_CHECK_STR_EQ(state().chats[0].title.c_str(), "two");
    context->ItemDragAndDrop(row(one).c_str(), "**/folder");
    context->Yield(2);
  });
  const ui::ChatState* moved = ui::find_chat(state(), ChatId{one});
  ASSERT_EQ(state().library.folders.size(), 1u);
  EXPECT_EQ(moved->folder, state().library.folders[0].id);
  application_.reset();
  open();
  ASSERT_EQ(state().chats.size(), 3u);
  EXPECT_EQ(state().chats[2].id.value, three);
}

TEST_F(DesktopWindow, ControlZBringsTheNewestDeletionBackUnlessATextIsBeingWritten) {
  open_kept();
  ask("keep me");
  const ChatId id = chat().id;
  apply(act::DeleteChat{id});
  play([&](ImGuiTestContext* context) {
    context->Yield(4);
    context->KeyChars("draft");
    context->Yield(2);
    const auto press_until_draft = [&](ImGuiKeyChord chord, const std::string& wanted) {
      for (int i = 0; i < 8 && chat().draft != wanted; ++i) {
        context->KeyPress(chord);
        context->Yield(2);
      }
      return chat().draft == wanted;
    };
    // The field undoes and redoes what was typed.
    IM_CHECK(press_until_draft(ImGuiMod_Ctrl | ImGuiKey_Z, ""));
    IM_CHECK(press_until_draft(ImGuiMod_Ctrl | ImGuiKey_Y, "draft"));
    IM_CHECK(press_until_draft(ImGuiMod_Ctrl | ImGuiKey_Z, ""));
    IM_CHECK(state().deleted.has_value());
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_Z);
    context->Yield(4);
    IM_CHECK(!state().deleted.has_value());
    IM_CHECK(ui::find_chat(state(), id) != nullptr);
  });
}

TEST_F(DesktopWindow, EscapeClosesTheFindBarBeforeItStopsTheAnswer) {
  open();
  engine_->steps_allowed = 2;
  apply(act::SendMessage{chat().id, "a long answer, please"});
  ASSERT_TRUE(loop_until([this] { return chat().activity == ui::Activity::kGenerating; }));
  play([this](ImGuiTestContext* context) {
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_F);
    context->Yield(4);
    context->KeyChars("long");
    context->KeyPress(ImGuiKey_Escape);
    context->Yield(4);
    IM_CHECK(chat().activity == ui::Activity::kGenerating);
    IM_CHECK(!context->ItemExists("**/find_close"));
  });
  play([](ImGuiTestContext* context) {
    context->KeyPress(ImGuiKey_Escape);
    context->Yield(4);
  });
  engine_->steps_allowed = -1;
  ASSERT_TRUE(answered());
  EXPECT_EQ(chat().messages.back().figures.stop_reason, "stopped");
}

// ---- a second start

TEST_F(DesktopWindow, ASecondStartHandsItsFilesOver) {
  socket_path_ = folder_ / "window.socket";
  open();
  const std::string path = write("second.txt", "from the second start\n");
  std::atomic<bool> done = false;
  app::HandOver outcome = app::HandOver::kNobody;
  std::thread second([&] {
    outcome = app::hand_over(socket_path_, {path});
    done = true;
  });
  const bool attached = loop_until([&] { return done && chat().attachments.size() == 1; });
  second.join();
  EXPECT_EQ(outcome, app::HandOver::kTaken);
  EXPECT_TRUE(attached);
}

// ---- pictures

TEST_F(DesktopWindow, Pictures) {
  open_kept(large_settings());
  engine_->answers = {"Both describe the same plan, the second one in more detail.", "In short: they agree.",
                      "The first is a list, the second a text.", "They differ in the dates."};
  drop({write("notes.txt", std::string(2'000, 'n')), write("Plan for the summer.md", std::string(900, 'p'))});
  ASSERT_TRUE(loop_until([this] { return chat().attachments.size() == 2; }));
  ask("What do these two files have in common?");
  const MessageId answer = chat().messages.back().id, question = chat().messages.front().id;
  apply(act::Regenerate{chat().id, answer});
  ASSERT_TRUE(answered());
  ask("And where do they differ?");
  apply(act::EditMessage{chat().id, question, "Which of these files is newer, and how do you know?"});
  ASSERT_TRUE(answered());
  ask("Are you sure?");
  apply(act::ShowMessage{chat().id, answer});
  apply(act::SavePreset{{PresetId{}, "Short answers", "Answer in one sentence.", chat().sampling}});
  apply(act::SavePreset{{PresetId{}, "Translator", "Translate into German.", chat().sampling}});
  drop({write("report.csv", std::string(40'000, 'r')),
        write("a much longer name of a file that says what it is about.txt", "x"),
        write("main.cc", std::string(7'000, 'c')), write("letter.txt", std::string(3'000, 'l'))});
  ASSERT_TRUE(loop_until(
      [this] { return chat().attachments.size() == 4 && chat().attachments[3].num_tokens.has_value(); }));
  apply(act::DismissBanner{});
  in_every_look([&](const std::string& look) {
    write_screenshot("attachments-" + look);
    apply(act::ShowTree{true});
    write_screenshot("tree-" + look);
    apply(act::ShowTree{false});
    apply(act::ShowPresets{true});
    draw_frames(2);
    write_screenshot("presets-" + look);
    apply(act::ShowPresets{false});
    draw_frames(2);
    apply(act::AskForFile{act::FileWish::kAttach});
    ASSERT_TRUE(loop_until([this] { return !state().files.reading; }));
    draw_frames(2);
    write_screenshot("attach-" + look);
    apply(act::CloseFileBrowser{});
    draw_frames(2);
  });
}

}  // namespace
}  // namespace octavo::testing
