// Where the keyboard goes: back to the composer after everything that was in front of it, and no key is lost,
// however fast it comes. Notices cover nothing and leave.

#include <imgui.h>
#include <imgui_internal.h>

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/ui/window_fixture.h"
#include "ui/commands.h"

namespace octavo::testing {
namespace {

namespace act = ui::actions;

class KeyboardWindow : public WindowTest {
 protected:
  ManualClock manual_clock_;  // outlives the window, which a test may give it to
  void apply(const ui::Action& action) { application_->controller().apply(action); }
  void ask(const std::string& text) {
    apply(act::SendMessage{chat().id, text});
    ASSERT_TRUE(loop_until([this] {
      return chat().activity == ui::Activity::kIdle && chat().messages.size() >= 2 &&
             !chat().messages.back().streaming;
    }));
  }
  // What arrives when a person types now, from within a script.
  std::string typed(ImGuiTestContext* context, const char* text) {
    context->KeyChars(text);
    context->Yield(3);
    return chat().draft;
  }
  // All in one poll of the display, as a fast hand or a program sends them; which is let go first is chance.
  enum class LetsGo { kKeyFirst, kModifiersFirst };
  static void press_at_once(ImGuiKeyChord chord, LetsGo lets_go = LetsGo::kModifiersFirst) {
    ImGuiIO& io = ImGui::GetIO();
    const auto key = static_cast<ImGuiKey>(chord & ~ImGuiMod_Mask_);
    const auto send = [&](bool down) {
      if ((chord & ImGuiMod_Ctrl) != 0) io.AddKeyEvent(ImGuiMod_Ctrl, down);
      if ((chord & ImGuiMod_Shift) != 0) io.AddKeyEvent(ImGuiMod_Shift, down);
    };
    send(true);
    io.AddKeyEvent(key, true);
    if (lets_go == LetsGo::kModifiersFirst) send(false);
    io.AddKeyEvent(key, false);
    if (lets_go == LetsGo::kKeyFirst) send(false);
  }
};

// Each way to something that takes the keyboard, and whether it is there.
struct Opened {
  const char* name;
  std::function<void(ImGuiTestContext*)> open;
  std::function<bool(const ui::UiState&)> is_open;
};

std::vector<Opened> all_in_front() {
  const auto chord = [](ImGuiKeyChord keys) {
    return [keys](ImGuiTestContext* context) { context->KeyPress(keys); };
  };
  const auto click = [](const char* id) {
    return [id](ImGuiTestContext* context) { context->ItemClick(id); };
  };
  const auto popup = [](const ui::UiState&) {
    return ImGui::IsPopupOpen(nullptr, ImGuiPopupFlags_AnyPopupId | ImGuiPopupFlags_AnyPopupLevel);
  };
  constexpr ImGuiKeyChord kControl = ImGuiMod_Ctrl, kBoth = ImGuiMod_Ctrl | ImGuiMod_Shift;
  return {
      {"settings", chord(kControl | ImGuiKey_Comma), [](const auto& s) { return s.settings_open; }},
      {"keys", chord(kControl | ImGuiKey_Slash), [](const auto& s) { return s.desktop.keys_open; }},
      {"models", chord(kControl | ImGuiKey_M), [](const auto& s) { return s.picker.open; }},
      {"models by click", click("**/open_models"), [](const auto& s) { return s.picker.open; }},
      {"attach", chord(kBoth | ImGuiKey_A), [](const auto& s) { return s.files.open; }},
      {"palette", chord(kControl | ImGuiKey_K), [](const auto& s) { return s.palette_open; }},
      {"search", chord(kBoth | ImGuiKey_F), [](const auto& s) { return s.search_open; }},
      {"tree", chord(kBoth | ImGuiKey_B), [](const auto& s) { return s.desktop.tree_open; }},
      {"find", chord(kControl | ImGuiKey_F), [](const auto&) { return ImGui::GetIO().WantTextInput; }},
      {"menu of a chat", click("**/more"), popup},
      {"rename", chord(ImGuiKey_F2), [](const auto&) { return ImGui::GetIO().WantTextInput; }},
      {"editor", click("**/edit"), [](const auto&) { return ImGui::GetIO().WantTextInput; }},
  };
}

TEST_F(KeyboardWindow, TheComposerHasTheKeyboardAgainAfterEverything) {
  open();
  ask("hello");
  for (const Opened& opened : all_in_front()) {
    apply(act::ChangeDraft{chat().id, ""});
    play([&](ImGuiTestContext* context) {
      opened.open(context);
      context->Yield(6);
      IM_CHECK_SILENT(opened.is_open(state()));
      context->SetRef("octavo");
      context->KeyPress(ImGuiKey_Escape);
      context->Yield(5);
    });
    std::string draft;
    play([&](ImGuiTestContext* context) { draft = typed(context, "x"); });
    EXPECT_TRUE(draft.ends_with("x")) << opened.name << ": " << draft;
    play([&](ImGuiTestContext* context) { context->KeyPress(ImGuiKey_Backspace); });
  }
}

// Alt+1 within one frame is not Alt alone, and what had the keyboard on another page is not looked for for
// ever.
TEST_F(KeyboardWindow, TabGoesOnAfterThePageThatHadTheKeyboardIsGone) {
  open();
  const ImGuiContext& imgui = *ImGui::GetCurrentContext();
  play([&](ImGuiTestContext* context) {
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_2);
    context->Yield(6);
    for (const ImGuiKeyChord page : {ImGuiMod_Alt | ImGuiKey_1, ImGuiMod_Alt | ImGuiKey_4}) {
      context->KeyPress(page);
      context->Yield(6);
      std::set<ImGuiID> reached;
      for (int i = 0; i < 4; ++i) {
        context->KeyPress(ImGuiKey_Tab);
        context->Yield(4);
        IM_CHECK(imgui.NavCursorVisible);
        IM_CHECK(imgui.NavIdIsAlive);
        reached.insert(imgui.NavId);
      }
      IM_CHECK_EQ(reached.size(), 4u);
    }
  });
}

// Nothing has the keyboard after a click beside all fields, or in another workspace.
TEST_F(KeyboardWindow, WhatIsTypedGoesToTheComposerWhereverThePointerWas) {
  open();
  ask("hello");
  std::string draft;
  play([&](ImGuiTestContext* context) {
    context->ItemClick("**/chat_settings");
    context->Yield(3);
    context->ItemClick("**/chat_settings");
    context->Yield(6);
    draft = typed(context, "one");
  });
  EXPECT_EQ(draft, "one") << "behind the settings that were closed";
  play([&](ImGuiTestContext* context) {
    context->MouseMoveToPos({700, 300});
    context->MouseClick();
    context->Yield(3);
    IM_CHECK(!ImGui::GetIO().WantTextInput);
    draft = typed(context, " two three");
  });
  EXPECT_EQ(draft, "onetwo three") << "a space begins no text; nothing behind it is lost";
  apply(act::ShowWorkspace{ui::Workspace::kMemory});
  draw_frames(3);
  apply(act::ShowWorkspace{ui::Workspace::kChat});
  play([&](ImGuiTestContext* context) {
    context->Yield(5);
    draft = typed(context, "!");
  });
  EXPECT_EQ(draft, "onetwo three!");
}

TEST_F(KeyboardWindow, PresetsGiveTheKeyboardBack) {
  open();
  apply(act::ShowPresets{true});
  std::string draft;
  play([&](ImGuiTestContext* context) {
    context->Yield(4);
    context->KeyPress(ImGuiKey_Escape);
    context->Yield(5);
    draft = typed(context, "x");
  });
  EXPECT_EQ(draft, "x");
}

TEST_F(KeyboardWindow, TheCursorStandsAtTheEndOfWhatIsEditedAndOfADraft) {
  open();
  ask("say this");
  play([](ImGuiTestContext* context) {
    context->ItemClick("**/edit");
    context->Yield(4);
    context->KeyChars(" again");
    context->Yield(2);
    context->ItemClick("**/send_edit");
  });
  ASSERT_TRUE(loop_until([this] { return chat().messages[0].text == "say this again"; }));
  std::string draft;
  play([&](ImGuiTestContext* context) {
    context->ItemClick("**/##draft");
    context->KeyChars("half a");
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_Comma);
    context->Yield(4);
    context->KeyPress(ImGuiKey_Escape);
    context->Yield(5);
    draft = typed(context, " question");
  });
  EXPECT_EQ(draft, "half a question");
}

TEST_F(KeyboardWindow, EveryChordArrivesWhenAllItsKeysComeAtOnce) {
  open();
  ask("hello");
  std::size_t num_chords = 0;
  for (const ui::Command& command : ui::commands()) {
    for (const ImGuiKeyChord chord : {command.chord, command.another_chord}) {
      if (chord == 0 || !command.available(state())) continue;
      ++num_chords;
      for (const LetsGo lets_go : {LetsGo::kKeyFirst, LetsGo::kModifiersFirst}) {
        int num_seen = 0;
        press_at_once(chord, lets_go);
        for (int frame = 0; frame < 6; ++frame)
          application_->window().draw_frame([&] { num_seen += ImGui::IsKeyChordPressed(chord) ? 1 : 0; });
        EXPECT_EQ(num_seen, 1) << command.name
                               << (lets_go == LetsGo::kKeyFirst ? "" : ", modifiers go first");
      }
    }
  }
  EXPECT_GT(num_chords, 15u);
}

TEST_F(KeyboardWindow, TwoChordsAndAWordInOnePollAllArrive) {
  open();
  draw_frames(3);
  press_at_once(ImGuiMod_Ctrl | ImGuiKey_Comma);  // opens the settings
  press_at_once(ImGuiMod_Ctrl | ImGuiKey_Comma);  // and closes them
  press_at_once(ImGuiMod_Ctrl | ImGuiKey_2);
  press_at_once(ImGuiMod_Ctrl | ImGuiKey_B);
  EXPECT_TRUE(application_->window().has_queued_input());
  // Nothing else wakes the window: it goes on by itself until all was taken in.
  EXPECT_TRUE(loop_until([this] { return !application_->window().has_queued_input(); }));
  EXPECT_TRUE(loop_until([this] { return state().workspace == ui::Workspace::kCompare; }));
  EXPECT_TRUE(loop_until([this] { return !state().settings.sidebar_shown; }));
  EXPECT_FALSE(state().settings_open);
}

TEST_F(KeyboardWindow, AModifierBehindAKeyMakesNoChord) {
  open();
  draw_frames(3);
  ImGuiIO& io = ImGui::GetIO();
  int num_plain = 0, num_chords = 0;
  io.AddKeyEvent(ImGuiKey_2, true);
  io.AddKeyEvent(ImGuiMod_Ctrl, true);
  io.AddKeyEvent(ImGuiKey_2, false);
  io.AddKeyEvent(ImGuiMod_Ctrl, false);
  for (int frame = 0; frame < 6; ++frame) {
    application_->window().draw_frame([&] {
      num_plain += ImGui::IsKeyChordPressed(ImGuiKey_2) ? 1 : 0;
      num_chords += ImGui::IsKeyChordPressed(ImGuiMod_Ctrl | ImGuiKey_2) ? 1 : 0;
    });
  }
  EXPECT_EQ(num_plain, 1);
  EXPECT_EQ(num_chords, 0);
}

TEST_F(KeyboardWindow, TheWheelTurnsWithTheModifierThatWasHeld) {
  open();
  draw_frames(3);
  ImGuiIO& io = ImGui::GetIO();
  float turned = 0;
  io.AddKeyEvent(ImGuiMod_Ctrl, true);
  io.AddMouseWheelEvent(0, 1);
  io.AddKeyEvent(ImGuiMod_Ctrl, false);
  for (int frame = 0; frame < 4; ++frame)
    application_->window().draw_frame(
        [&] { turned += ImGui::GetIO().KeyCtrl ? ImGui::GetIO().MouseWheel : 0; });
  EXPECT_EQ(turned, 1);
}

TEST_F(KeyboardWindow, AllKeysAreShownByAKey) {
  open();
  play([this](ImGuiTestContext* context) {
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_Slash);
    context->Yield(4);
    IM_CHECK(state().desktop.keys_open);
  });
  in_every_look([&](const std::string& look) { write_screenshot("keys-" + look); });
  play([this](ImGuiTestContext* context) {
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_Slash);
    context->Yield(4);
    IM_CHECK(!state().desktop.keys_open);
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_Comma);
    context->Yield(4);
    context->SetRef("settings_panel");
    context->ItemClick("**/show_keys");
    context->Yield(4);
    IM_CHECK(state().desktop.keys_open);
    IM_CHECK(!state().settings_open);
  });
}

TEST_F(KeyboardWindow, TheThemeFollowsTheSystemUntilOneIsChosen) {
  open();
  EXPECT_EQ(state().settings.theme, ui::ThemeName::kSystem);
  const auto background = [this] {
    draw_frames(2);
    return ImGui::GetStyle().Colors[ImGuiCol_WindowBg].x;
  };
  const float dark = background();
  application_->controller().set_system_theme(ui::ThemeName::kLight);
  EXPECT_GT(background(), dark + 0.5f);
  play([](ImGuiTestContext* context) {
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_Comma);
    context->Yield(4);
  });
  write_screenshot("settings-as-the-system");
  float chosen = 0;  // a script's end puts the style back that it began with
  play([&](ImGuiTestContext* context) {
    context->SetRef("settings_panel");
    context->ItemClick("**/dark");
    context->Yield(3);
    chosen = ImGui::GetStyle().Colors[ImGuiCol_WindowBg].x;
  });
  EXPECT_EQ(chosen, dark);
}

// ---- the banner

TEST_F(KeyboardWindow, ANoticeTakesItsOwnSpaceAndLeaves) {
  clock_ = &manual_clock_;
  open();
  const auto top_of_body = [this] {
    draw_frames(2);
    const ImGuiWindow* window = ImGui::FindWindowByName("octavo");
    float lowest = 0;
    for (const ImGuiWindow* each : ImGui::GetCurrentContext()->Windows) {
      if (each->WasActive && each->ParentWindow == window &&
          std::string(each->Name).find("banner") != std::string::npos)
        lowest = each->Pos.y + each->Size.y;
    }
    return lowest;
  };
  EXPECT_EQ(top_of_body(), 0);
  application_->controller().show_written("1 chat written to /tmp/chat.md.", "/tmp/chat.md");
  EXPECT_GT(top_of_body(), 30);
  in_every_look([&](const std::string& look) { write_screenshot("notice-" + look); });
  // Everything below it can still be pressed.
  play([this](ImGuiTestContext* context) {
    context->ItemClick("**/chat_settings");
    context->Yield(2);
    IM_CHECK(state().sampling_open);
    context->ItemClick("**/close_sampling");
    context->Yield(2);
  });
  ASSERT_TRUE(state().banner);
  manual_clock_.advance_us(30'000'000);
  EXPECT_TRUE(loop_until([this] { return !state().banner; })) << "without anything else happening";
  application_->controller().show_banner(ui::BannerKind::kError, "Something went wrong, and stays.");
  manual_clock_.advance_us(3'600'000'000);
  draw_frames(3);
  EXPECT_TRUE(state().banner);
  write_screenshot("error-banner");
  play([](ImGuiTestContext* context) { context->ItemClick("**/dismiss_banner"); });
  EXPECT_FALSE(state().banner);
}

}  // namespace
}  // namespace octavo::testing
