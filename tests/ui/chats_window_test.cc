// The whole application with its chats on the disk: closed and opened again.

#include "tests/ui/window_fixture.h"

namespace octavo::testing {
namespace {

namespace act = ui::actions;

class ChatsWindow : public WindowTest {
 protected:
  void SetUp() override {
    WindowTest::SetUp();
    chats_path_ = folder_ / "data" / "chats.db";
  }
  void apply(ui::Action action) { application_->controller().apply(action); }
};

TEST_F(ChatsWindow, ChatsAreThereAfterTheWindowWasClosed) {
  open();
  const auto first = chat().id;
  apply(act::SendMessage{first, "the first chat"});
  ASSERT_TRUE(loop_until([this] { return chat().messages.size() == 2 && !chat().messages[1].streaming; }));
  apply(act::NewChat{});
  engine_->steps_allowed = 3;
  apply(act::SendMessage{chat().id, "the second chat"});
  ASSERT_TRUE(
      loop_until([this] { return chat().messages.size() == 2 && chat().messages[1].text.size() > 8; }));
  application_.reset();

  open();
  ASSERT_EQ(state().chats.size(), 2u);
  ASSERT_TRUE(loop_until(
      [this] { return state().chats[0].messages.size() == 2 && state().chats[1].messages.size() == 2; }));
  EXPECT_EQ(chat().title, "the second chat");
  EXPECT_TRUE(chat().messages[1].interrupted);
  EXPECT_EQ(state().chats[1].id, first);
  EXPECT_EQ(state().chats[1].messages[1].text, "You said: the first chat");
  draw_frames(2);
  apply(act::ContinueAnswer{chat().id, chat().messages[1].id});
  EXPECT_TRUE(
      loop_until([this] { return !chat().messages[1].streaming && !chat().messages[1].interrupted; }));
}

TEST_F(ChatsWindow, ASecondWindowReadsOnlyAndSaysSo) {
  app::FileLock other;
  std::filesystem::create_directories(chats_path_.parent_path());
  ASSERT_EQ(other.take(app::StorePaths{chats_path_}.lock()), app::LockOutcome::kLocked);
  open();
  EXPECT_TRUE(state().library.read_only);
  ASSERT_TRUE(state().banner.has_value());
  EXPECT_EQ(
      state().banner->text,
      "These chats are open in another Octavo window. You can read them here, but nothing new is saved.");
  apply(act::SendMessage{chat().id, "chatting goes on"});
  ASSERT_TRUE(loop_until([this] { return chat().messages.size() == 2 && !chat().messages[1].streaming; }));
}

TEST_F(ChatsWindow, AnExportLandsInTheFolderAndCanBeImported) {
  open();
  apply(act::SendMessage{chat().id, "to be exported"});
  ASSERT_TRUE(loop_until([this] { return chat().messages.size() == 2 && !chat().messages[1].streaming; }));
  apply(act::ExportChat{chat().id, act::ChatFormat::kJson, ""});
  play([this](ImGuiTestContext* context) {
    context->Yield(4);
    IM_CHECK(state().files.open);
    context->KeyPress(ImGuiKey_Enter);
  });
  ASSERT_TRUE(loop_until([this] {
    application_->draw_frame();
    return state().banner.has_value();
  }));
  EXPECT_EQ(state().banner->offer, ui::BannerOffer::kShowInFolder);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "to be exported.json"));
  apply(act::ImportChats{(folder_ / "to be exported.json").string()});
  ASSERT_TRUE(loop_until([this] {
    application_->draw_frame();
    return state().chats.size() == 2;
  }));
  EXPECT_EQ(chat().messages.size(), 2u);
}

}  // namespace
}  // namespace octavo::testing
