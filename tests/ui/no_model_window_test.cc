// The window without a model, and without a display.

#include <imgui.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>

#include "tests/support/environment.h"
#include "tests/ui/window_fixture.h"

namespace octavo::testing {
namespace {

using NoModelWindow = WindowTest;

TEST_F(NoModelWindow, SaysWhatToDoWhenThereIsNoModel) {
  open_with([](const EngineOptions&, LoadProgress) -> Result<std::unique_ptr<Engine>> { return Error{}; }, "",
            test_settings());
  EXPECT_EQ(state().model.phase, ui::ModelPhase::kNone);
  write_screenshot("no-model");
}

TEST_F(NoModelWindow, FailedLoadShowsTheSentenceAndCanBeTriedAgain) {
  int num_loads = 0;
  const auto factory = [&](const EngineOptions&, LoadProgress) -> Result<std::unique_ptr<Engine>> {
    if (num_loads++ == 0)
      return Error{ErrorCode::kDamagedFile, "x.gguf: it ends after 12 bytes: fetch it again"};
    return std::unique_ptr<Engine>(std::make_unique<FakeEngine>());
  };
  open_with(factory, "x.gguf", test_settings());
  EXPECT_EQ(state().model.problem, "x.gguf: it ends after 12 bytes: fetch it again");
  play([](ImGuiTestContext* context) {
    context->ItemClick("**/load_again");
    context->Yield(2);
  });
  EXPECT_TRUE(loop_until([this] { return state().model.phase == ui::ModelPhase::kReady; }));
}

TEST_F(NoModelWindow, ChatsAreReadSearchedAndExportedWithoutAModel) {
  chats_path_ = folder_ / "chats.db";
  open();
  const auto apply = [this](const ui::Action& action) { application_->controller().apply(action); };
  apply(ui::actions::SendMessage{chat().id, "what is a needle"});
  ASSERT_TRUE(loop_until([this] { return chat().messages.size() == 2 && !chat().messages[1].streaming; }));
  application_.reset();
  open_with([](const EngineOptions&, LoadProgress) -> Result<std::unique_ptr<Engine>> { return Error{}; }, "",
            test_settings());
  ASSERT_TRUE(loop_until([this] { return ui::active_chat(state()) != nullptr && !chat().messages.empty(); }));
  EXPECT_EQ(chat().messages[0].text, "what is a needle");
  in_every_look([&](const std::string& look) { write_screenshot("chats-without-model-" + look); });
  play([this](ImGuiTestContext* context) {
    context->KeyPress(ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_F);
    context->Yield(4);
    context->KeyChars("needle");
    for (int i = 0; i < 1'000 && state().library.search.hits.empty(); ++i) context->Yield();
    context->KeyPress(ImGuiKey_Escape);
    context->Yield(4);
  });
  EXPECT_FALSE(state().library.search.running);
  apply(
      ui::actions::ExportChat{chat().id, ui::actions::ChatFormat::kMarkdown, (folder_ / "read.md").string()});
  EXPECT_TRUE(loop_until([this] {
    application_->draw_frame();
    return std::filesystem::exists(folder_ / "read.md");
  }));
  // What is typed stays a draft; the way to a model is one click.
  play([this](ImGuiTestContext* context) {
    context->ItemClick("**/##draft");
    context->KeyChars("later");
    context->KeyPress(ImGuiKey_Enter);
    context->Yield(3);
    IM_CHECK_STR_EQ(chat().draft.c_str(), "later");
    IM_CHECK_EQ(chat().messages.size(), 2u);
    context->ItemClick("**/choose_model");
    context->Yield(3);
    IM_CHECK(state().picker.open);
  });
}

TEST_F(NoModelWindow, TheDemonstrationSaysSoAndABetterModelIsOneClickAway) {
  open();
  EXPECT_TRUE(state().model.is_demonstration);
  in_every_look([&](const std::string& look) { write_screenshot("demonstration-" + look); });
  play([this](ImGuiTestContext* context) {
    context->ItemClick("**/better_model");
    context->Yield(3);
    IM_CHECK(state().picker.open);
    context->KeyPress(ImGuiKey_Escape);
    context->Yield(3);
  });
  application_.reset();
  open({.path = "/models/another.gguf"});
  EXPECT_FALSE(state().model.is_demonstration);
}

TEST_F(NoModelWindow, LoadingShowsProgressAndCanBeCancelled) {
  app::WindowOptions options;
  options.engine.model = "slow.gguf";
  options.settings_path = folder_ / "settings.json";
  options.chats_path.clear();
  options.export_folder = folder_;
  const auto factory = [](const EngineOptions&, LoadProgress progress) -> Result<std::unique_ptr<Engine>> {
    for (int i = 0; progress(i < 40 ? i / 100.0 : 0.4); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return Error{ErrorCode::kCancelled, "loading was cancelled"};
  };
  auto application = app::Application::start(options, factory, *clock_);
  ASSERT_TRUE(application);
  application_ = *std::move(application);
  ASSERT_TRUE(loop_until([this] { return state().model.load_fraction >= 0.35; }));
  write_screenshot("loading");
  play([](ImGuiTestContext* context) { context->ItemClick("**/cancel_loading"); });
  EXPECT_TRUE(loop_until([this] { return state().model.phase == ui::ModelPhase::kNone; }));
  EXPECT_EQ(state().model.problem, "loading was cancelled");
}

TEST(NoDisplay, IsOneSentenceThatNamesTheOtherWay) {
  const auto window = [] {
    const test::EnvironmentVariable nowhere("DISPLAY", ":4242");
    return app::Window::open("Octavo", {});
  }();
  ASSERT_FALSE(window);
  EXPECT_EQ(window.error().message.find("no display"), 0u);
  EXPECT_NE(window.error().message.find("use `octavo chat` in the terminal"), std::string::npos);
  EXPECT_EQ(window.error().message.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace octavo::testing
