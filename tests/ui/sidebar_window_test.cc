// The command palette, the list of chats with its menus, the trash and the search, by keyboard and mouse.

#include <imgui.h>

#include <algorithm>
#include <set>
#include <string>

#include "tests/ui/window_fixture.h"
#include "ui/commands.h"
#include "ui/views/command_palette.h"

namespace octavo::testing {
namespace {

class SidebarWindow : public WindowTest {
 protected:
  // Kept on disk: only chats that are can go to the trash.
  void open_kept(const app::Settings& settings = test_settings()) {
    chats_path_ = folder_ / "chats.db";
    open({}, settings);
  }

  void ask(ImGuiTestContext* context, const char* text) {
    context->KeyChars(text);
    context->KeyPress(ImGuiKey_Enter);
    context->Yield(4);
  }

  void choose_in_menu(ImGuiTestContext* context, const char* item) {
    context->ItemClick("**/more");
    context->Yield(2);
    context->ItemClick(item);
    context->Yield(4);
  }
};

TEST(Commands, EachHasANameOfItsOwnAndNoTwoShareAKey) {
  std::set<std::string> names;
  std::set<ImGuiKeyChord> chords;
  for (const ui::Command& command : ui::commands()) {
    EXPECT_TRUE(names.insert(command.name).second) << command.name;
    for (const ImGuiKeyChord chord : {command.chord, command.another_chord}) {
      if (chord == 0) continue;
      EXPECT_TRUE(chords.insert(chord).second) << command.name;
      EXPECT_STRNE(command.keys, "") << command.name;
    }
  }
}

TEST(Commands, ThePaletteFindsEveryWordInAnyOrderAndCase) {
  ui::UiState state;
  state.model.phase = ui::ModelPhase::kReady;
  ui::ChatState chat;
  chat.id = ChatId{7};
  chat.title = "Über ##Blöcke %n";
  state.chats.push_back(chat);
  const auto found = ui::palette_entries(state, "BLÖCKE über");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].chat_id, ChatId{7});
  EXPECT_EQ(ui::palette_entries(state, "theme dark").size(), 1u);
  EXPECT_TRUE(ui::palette_entries(state, "no such thing").empty());
  EXPECT_GT(ui::palette_entries(state, "").size(), 10u);
}

TEST(Commands, WhatBeginsWithTheWordsComesFirst) {
  ui::UiState state;
  state.model.phase = ui::ModelPhase::kReady;
  const auto found = ui::palette_entries(state, "chat");
  ASSERT_FALSE(found.empty());
  EXPECT_STREQ(found[0].command->name, "Chat");
}

TEST_F(SidebarWindow, PaletteOpensByKeyAndRunsACommand) {
  open();
  play([this](ImGuiTestContext* context) {
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_K);
    context->Yield(4);
    IM_CHECK(state().palette_open);
    context->KeyChars("light theme");
    context->Yield(2);
    context->KeyPress(ImGuiKey_Enter);
    context->Yield(4);
    IM_CHECK(!state().palette_open);
    IM_CHECK(state().settings.theme == ui::ThemeName::kLight);
  });
}

TEST_F(SidebarWindow, EscapeClosesThePaletteAndWhatWasTypedStays) {
  open();
  play([this](ImGuiTestContext* context) {
    context->KeyChars("half a question");
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_K);
    context->Yield(4);
    context->KeyChars("memory");
    context->KeyPress(ImGuiKey_Escape);
    context->Yield(4);
    IM_CHECK(!state().palette_open);
    IM_CHECK(state().workspace == ui::Workspace::kChat);
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_K);
    context->Yield(4);
    IM_CHECK(state().palette_open);
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_K);
    context->Yield(4);
    IM_CHECK(!state().palette_open);
  });
}

TEST_F(SidebarWindow, PaletteGoesToAChatByItsTitle) {
  open();
  play([this](ImGuiTestContext* context) {
    ask(context, "apples");
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_N);
    context->Yield(4);
    ask(context, "oranges");
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_K);
    context->Yield(4);
    context->KeyChars("appl");
    context->Yield(2);
    context->KeyPress(ImGuiKey_Enter);
    context->Yield(4);
  });
  EXPECT_EQ(chat().title, "apples");
}

TEST_F(SidebarWindow, SearchFindsTextsAndOpensTheMessage) {
  open_kept();
  engine_->answers = {"The walrus sleeps.", "Nothing of note."};
  const auto answered = [this] {
    return chat().activity == ui::Activity::kIdle && chat().messages.size() == 2;
  };
  play([this](ImGuiTestContext* context) { ask(context, "about the sea"); });
  ASSERT_TRUE(loop_until(answered));
  play([this](ImGuiTestContext* context) {
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_N);
    context->Yield(4);
    ask(context, "about the land");
  });
  ASSERT_TRUE(loop_until(answered));
  play([this](ImGuiTestContext* context) {
    context->KeyPress(ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_F);
    context->Yield(4);
    IM_CHECK(state().search_open);
    context->KeyChars("WALRUS");
    context->Yield(4);
  });
  ASSERT_TRUE(loop_until([this] { return state().library.search.hits.size() == 1; }))
      << state().library.search.query << ": " << state().library.search.hits.size() << " hits, "
      << state().library.search.running << " " << state().library.problem;
  write_screenshot("search-dark");
  play([this](ImGuiTestContext* context) {
    context->ItemClick("**/hit");
    context->Yield(4);
    IM_CHECK_STR_EQ(chat().title.c_str(), "about the sea");
  });
}

TEST_F(SidebarWindow, EscapeEndsTheSearch) {
  open_kept();
  play([this](ImGuiTestContext* context) {
    context->ItemClick("**/search");
    context->Yield(4);
    context->KeyChars("walrus");
    context->Yield(2);
    IM_CHECK_STR_EQ(state().library.search.query.c_str(), "walrus");
    context->KeyPress(ImGuiKey_Escape);
    context->Yield(4);
    IM_CHECK(!state().search_open);
    IM_CHECK(state().library.search.query.empty());
  });
}

TEST_F(SidebarWindow, MenuPinsAndMovesToANewFolder) {
  open_kept();
  play([this](ImGuiTestContext* context) {
    ask(context, "keep this");
    context->Yield(20);
    choose_in_menu(context, "//$FOCUSED/pin");
    IM_CHECK(chat().pinned);
    choose_in_menu(context, "//$FOCUSED/new_folder");
  });
  ASSERT_TRUE(loop_until([this] { return state().library.folders.size() == 1; }));
}

TEST_F(SidebarWindow, TrashKeepsAChatUntilItIsEmptied) {
  open_kept();
  play([this](ImGuiTestContext* context) {
    ask(context, "first");
    context->Yield(20);
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_N);
    context->Yield(4);
    ask(context, "second");
    context->Yield(20);
    choose_in_menu(context, "//$FOCUSED/delete");
  });
  ASSERT_TRUE(loop_until([this] { return state().library.trash.size() == 1; }));
  play([this](ImGuiTestContext* context) {
    context->ItemClick("**/trash");
    context->Yield(4);
  });
  write_screenshot("trash-dark");
  play([this](ImGuiTestContext* context) {
    context->ItemClick("**/restore");
    context->Yield(4);
  });
  ASSERT_TRUE(loop_until([this] { return state().library.trash.empty() && state().chats.size() == 2; }));
}

TEST_F(SidebarWindow, AHiddenSidebarIsBroughtBackByAButtonAndAKey) {
  open();
  play([this](ImGuiTestContext* context) {
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_B);
    context->Yield(3);
    IM_CHECK(!state().settings.sidebar_shown);
    IM_CHECK(!context->ItemExists("**/open_models"));
  });
  in_every_look([&](const std::string& look) { write_screenshot("sidebar-hidden-" + look); });
  for (const ui::Workspace workspace :
       {ui::Workspace::kChat, ui::Workspace::kCompare, ui::Workspace::kMemory}) {
    application_->controller().apply(ui::actions::ShowWorkspace{workspace});
    play([this](ImGuiTestContext* context) {
      context->ItemClick("**/show_sidebar");
      context->Yield(3);
      IM_CHECK(state().settings.sidebar_shown);
      IM_CHECK(context->ItemExists("**/open_models"));
      context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_B);
      context->Yield(3);
      context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_B);
      context->Yield(3);
      IM_CHECK(state().settings.sidebar_shown);
      context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_B);
      context->Yield(3);
    });
  }
}

TEST_F(SidebarWindow, InANarrowWindowTheSidebarCoversTheChatUntilOneIsChosen) {
  app::Settings settings = test_settings();
  settings.width = 520;
  open({}, settings);
  play([this](ImGuiTestContext* context) {
    IM_CHECK(!context->ItemExists("**/open_models"));
    context->ItemClick("**/show_sidebar");
    context->Yield(3);
    IM_CHECK(context->ItemExists("**/open_models"));
    IM_CHECK(!context->ItemExists("**/##draft"));
    context->ItemClick("**/leave_sidebar");
    context->Yield(3);
    IM_CHECK(context->ItemExists("**/##draft"));
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_B);
    context->Yield(3);
    IM_CHECK(context->ItemExists("**/open_models"));
  });
  write_screenshot("sidebar-narrow");
}

TEST_F(SidebarWindow, AWindowThatWasSavedOnALargerScreenFitsThisOne) {
  app::Settings settings = test_settings();
  settings.width = 9'000;
  settings.height = 7'000;
  open({}, settings);
  const app::WindowSize size = application_->window().size();
  EXPECT_LE(size.width, 4'000);
  EXPECT_LE(size.height, 3'000);
  EXPECT_GT(size.width, 600);
}

TEST_F(SidebarWindow, ANewFolderIsNamedAtOnceAndHoldsTheChatItWasMadeFor) {
  open();
  application_->controller().apply(ui::actions::RenameChat{chat().id, "“Quotes” 🙂 and letters"});
  play([](ImGuiTestContext* context) {
    context->ItemClick("**/more");
    context->Yield(3);
    context->ItemClick("//$FOCUSED/new_folder");
    context->Yield(5);
    context->KeyChars("Work");
    context->KeyPress(ImGuiKey_Enter);
    context->Yield(3);
  });
  ASSERT_EQ(state().library.folders.size(), 1u);
  EXPECT_EQ(state().library.folders[0].name, "Work");
  EXPECT_EQ(chat().folder, state().library.folders[0].id);
  in_every_look([&](const std::string& look) { write_screenshot("folder-" + look); });
  play([](ImGuiTestContext* context) {
    context->ItemClick("**/more");
    context->Yield(3);
    context->ItemClick("//$FOCUSED/no_folder");
    context->Yield(3);
  });
  EXPECT_EQ(chat().folder, FolderId{});
}

}  // namespace
}  // namespace octavo::testing
