// Runs the whole application in a real window, with the ImGui Test Engine as the person in front of it.
#pragma once

#include <gtest/gtest.h>
#include <imgui_te_context.h>
#include <imgui_te_engine.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "app/window/application.h"
#include "tests/window/fake_engine.h"

namespace octavo::testing {

class WindowTest : public ::testing::Test {
 protected:
  using Script = std::function<void(ImGuiTestContext*)>;

  void SetUp() override;
  void TearDown() override;

  // Opens the window with a scripted engine, which is loaded when this returns. Skips the test without a
  // display.
  void open(FakeEngine::Options options = {}, const app::Settings& settings = test_settings());
  void open_with(app::EngineFactory factory, const std::string& model, const app::Settings& settings);
  // The same, while the model is still being loaded.
  void open_loading(app::EngineFactory factory, const std::string& model, const app::Settings& settings);
  // Before another one is opened.
  void close_window();

  // Draws frames while the script acts as a person; returns when it is done.
  void play(const Script& script);
  void draw_frames(int count);
  // Turns of the real loop until `done` or 20 s are over.
  bool loop_until(const std::function<bool()>& done);

  // Every text of the newest frame, a line each; loop_until() draws none.
  std::string words_shown();
  // Writes what the window shows to tests/output/NAME.png.
  void write_screenshot(const std::string& name);

  // Calls shoot(how the picture's name ends) in the dark and the light theme, at 100 % and 150 %.
  void in_every_look(const std::function<void(const std::string& look)>& shoot);

  static app::Settings test_settings();
  static app::Settings large_settings();  // of the mock-ups' size
  // As the templates of Qwen and gpt-oss have them.
  static std::vector<TemplateSwitch> thinking_switches();
  const ui::UiState& state() const { return application_->controller().state(); }
  const ui::ChatState& chat() const { return *ui::active_chat(state()); }

  std::chrono::milliseconds between_frames_{5};
  SteadyClock steady_clock_;
  const Clock* clock_ = &steady_clock_;  // what the application and a scripted engine are given
  std::unique_ptr<app::Application> application_;
  FakeEngine* engine_ = nullptr;  // owned by the application
  std::filesystem::path folder_;
  // Where models are looked for: in folders below `folder_`, with 8 GiB of free memory.
  app::ScoutPlaces model_places() const;
  hub::HubPlace hub_place_{.endpoint = "http://127.0.0.1:9"};  // where nobody answers; cache below `folder_`
  std::filesystem::path socket_path_;  // where a second start finds the window; empty: nowhere
  std::int64_t unix_time_ms_ = 0;      // what the wall clock says; 0: the time
  std::filesystem::path chats_path_;   // empty: the window forgets its chats; below `folder_` to keep them

 private:
  ImGuiTestEngine* test_engine_ = nullptr;
};

}  // namespace octavo::testing
