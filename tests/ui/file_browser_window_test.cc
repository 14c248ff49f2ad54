// The file browser as a person uses it: attaching, exporting, replacing, importing.

#include <imgui.h>

#include <fstream>
#include <iterator>
#include <string>

#include "app/chat/chat_json.h"
#include "tests/ui/window_fixture.h"

namespace octavo::testing {
namespace {

namespace act = ui::actions;

class FileBrowserWindow : public WindowTest {
 protected:
  void apply(const ui::Action& action) { application_->controller().apply(action); }
  void write(const std::string& name, const std::string& bytes) const {
    std::filesystem::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }
  std::string read(const std::string& name) const {
    std::ifstream file(folder_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void ask(const std::string& text) {
    apply(act::SendMessage{chat().id, text});
    ASSERT_TRUE(loop_until([this] {
      return chat().activity == ui::Activity::kIdle && chat().messages.size() >= 2 &&
             !chat().messages.back().streaming;
    }));
  }
  // From within a script: until what was asked of the disk is there.
  void wait(ImGuiTestContext* context) const {
    context->Yield(2);
    for (int i = 0; i < 2'000 && state().files.reading; ++i) context->Yield();
    context->Yield(3);
  }
};

TEST_F(FileBrowserWindow, AFileIsAttachedByClicksAlone) {
  write("Documents/notes.txt", "alpha");
  open();
  play([this](ImGuiTestContext* context) {
    context->ItemClick("**/show_attach");
    wait(context);
    context->SetRef("file_browser");
    context->ItemClick("**/place");  // the home folder
    wait(context);
    IM_CHECK_STR_EQ(state().files.entries.at(0).name.c_str(), "Documents");
    context->ItemClick("**/file_row");
    wait(context);
    IM_CHECK_EQ(state().files.entries.size(), 1u);
    context->ItemClick("**/file_row");
    for (int i = 0; i < 500 && state().files.open; ++i) context->Yield();
    IM_CHECK(!state().files.open);
  });
  ASSERT_TRUE(loop_until([this] { return chat().attachments.size() == 1; }));
  EXPECT_EQ(chat().attachments[0].name, "notes.txt");
  // The next time it begins where this file was.
  apply(act::AskForFile{act::FileWish::kAttach});
  ASSERT_TRUE(loop_until([this] { return !state().files.reading; }));
  EXPECT_EQ(state().files.folder, (folder_ / "Documents").string());
  in_every_look([&](const std::string& look) { write_screenshot("file-browser-" + look); });
}

TEST_F(FileBrowserWindow, AnExportAsksBeforeItReplacesAFile) {
  write("export me.md", "precious");
  open();
  ask("export me");
  apply(act::ExportChat{chat().id, act::ChatFormat::kMarkdown, {}});
  play([this](ImGuiTestContext* context) {
    wait(context);
    context->KeyPress(ImGuiKey_Enter);
    wait(context);
    IM_CHECK_STR_EQ(state().files.overwrites.c_str(), "export me.md");
  });
  write_screenshot("file-browser-replace");
  play([this](ImGuiTestContext* context) {
    context->SetRef("file_browser");
    context->ItemClick("**/keep_file");
    wait(context);
    IM_CHECK(state().files.open);
    IM_CHECK_STR_EQ(read("export me.md").c_str(), "precious");
    context->KeyPress(ImGuiKey_Enter);
    wait(context);
    context->ItemClick("**/replace_file");
    for (int i = 0; i < 500 && state().files.open; ++i) context->Yield();
    IM_CHECK(!state().files.open);
  });
  ASSERT_TRUE(loop_until([this] { return state().banner.has_value(); }));
  EXPECT_NE(read("export me.md").find("export me"), std::string::npos);
  EXPECT_EQ(state().banner->offer, ui::BannerOffer::kShowInFolder);
  EXPECT_EQ(state().banner->path, (folder_ / "export me.md").string());
  write_screenshot("exported");
}

TEST_F(FileBrowserWindow, ChatsAreImportedByThePalettesCommand) {
  app::Chat other;
  other.append(app::kRootMessage, Role::kUser, "from elsewhere");
  write("chat.json", app::chat_to_json(other));
  open();
  play([this](ImGuiTestContext* context) {
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_K);
    context->Yield(4);
    context->KeyChars("import");
    context->Yield(2);
    context->KeyPress(ImGuiKey_Enter);
    wait(context);
    IM_CHECK(state().files.open);
    context->SetRef("file_browser");
    context->ItemClick("**/file_row");
    for (int i = 0; i < 500 && state().chats.size() < 2; ++i) context->Yield();
  });
  EXPECT_EQ(chat().title, "from elsewhere");
}

}  // namespace
}  // namespace octavo::testing
