// The window's program: opens it, loads the model beside it, and runs until it is closed.
//
// Thread: the main one.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "app/store/chat_store.h"
#include "app/window/chat_transfer.h"
#include "app/window/controller.h"
#include "app/window/frame_pacing.h"
#include "app/window/model_loader.h"
#include "app/window/settings.h"
#include "app/window/token_counter.h"
#include "app/window/window.h"
#include "engine/base/clock.h"
#include "ui/views.h"

namespace octavo::app {

struct WindowOptions {
  EngineOptions engine;       // `model` is a file; empty: there is none
  std::string model_problem;  // why there is none, one sentence; shown with what to do
  std::string recording;      // a file to look at in the Memory workspace; empty: none
  std::filesystem::path settings_path = default_settings_path();
  std::filesystem::path chats_path = default_chats_path();  // empty: chats live as long as the window
  std::filesystem::path export_folder = default_export_folder();
};

// Runs the window until it is closed. An Error when it could not be opened, above all without a display.
Result<void> run_window(const WindowOptions& options);

class Application {
 public:
  // The clock must outlive the application.
  static Result<std::unique_ptr<Application>> start(const WindowOptions& options, EngineFactory factory,
                                                    const Clock& clock);
  ~Application();
  Application(const Application&) = delete;
  Application& operator=(const Application&) = delete;

  // One turn of the loop: sleeps while there is nothing to do, takes in what happened, draws when something
  // changed. False when the window was closed.
  bool step() { return step_for(-1); }
  // The same, but sleeps no longer than this; below 0: no limit.
  bool step_for(double seconds);

  // Takes in what happened since the last turn, without waiting. True when something that is drawn changed.
  bool update();
  // Draws a frame whether it is due or not.
  void draw_frame();

  std::uint64_t num_frames_drawn() const { return num_frames_drawn_; }
  Controller& controller() { return controller_; }
  Window& window() { return *window_; }
  ui::Views& views() { return views_; }

 private:
  Application(const WindowOptions& options, EngineFactory factory, const Clock& clock,
              std::unique_ptr<Window> window, const LoadedSettings& settings);

  void load_model();
  bool update_loading();
  void take_engine(std::unique_ptr<Engine> engine);
  bool update_token_counts();
  void apply_actions();
  void perform_effects();
  void open_chats();
  bool update_chats();
  void save_settings_now();
  void save_comparison(const ExportedComparison& comparison);
  void save_picture(const std::filesystem::path& path);
  double seconds_to_wait(std::int64_t now_us) const;
  bool update_due(std::int64_t now_us) const;
  void wake_up();

  const WindowOptions options_;
  const Clock& clock_;
  std::unique_ptr<Window> window_;
  ui::Views views_;
  ui::ActionSink actions_;
  FramePacing pacing_;
  Controller controller_;
  // Set by other threads until the next turn has seen it, so that a burst of reports wakes the window once.
  std::atomic<bool> woken_ = false;
  std::unique_ptr<ChatStore> store_;
  std::unique_ptr<ChatTransfer> transfer_;
  ModelLoader loader_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<TokenCounter> token_counter_;  // below the engine: its tokenizer is the engine's
  std::uint64_t num_frames_drawn_ = 0;
  std::int64_t next_update_us_ = 0;
};

}  // namespace octavo::app
