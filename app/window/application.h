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
  std::filesystem::path settings_path = default_settings_path();
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

 private:
  Application(const WindowOptions& options, EngineFactory factory, const Clock& clock,
              std::unique_ptr<Window> window, const LoadedSettings& settings);

  void load_model();
  bool update_loading();
  void take_engine(std::unique_ptr<Engine> engine);
  bool update_token_counts();
  void apply_actions();
  void save_settings_now();
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
  ModelLoader loader_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<TokenCounter> token_counter_;  // below the engine: its tokenizer is the engine's
  std::uint64_t num_frames_drawn_ = 0;
  std::int64_t next_update_us_ = 0;
};

}  // namespace octavo::app
