// The window's own program for measurements: the shipped Application and engine, on settings and chats of
// their own.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/window/application.h"
#include "engine/base/clock.h"

namespace octavo::bench {

enum class Pixels { kDrawn, kLeftOut };

class BarWindow {
 public:
  // With the default model, loaded when this returns, unless the factory says otherwise. 1600 x 1000 pixels.
  //   hub  address of the hub that downloads come from, into the window's own folder; empty: the usual ones
  static Result<std::unique_ptr<BarWindow>> open(app::EngineFactory factory, Pixels pixels,
                                                 const std::string& hub = {});
  ~BarWindow();
  BarWindow(const BarWindow&) = delete;
  BarWindow& operator=(const BarWindow&) = delete;

  app::Application& application() { return *application_; }
  app::Controller& controller() { return application_->controller(); }
  const ui::UiState& state() const { return application_->controller().state(); }

  // Turns of the program's loop until `done`. An error after `seconds`.
  Result<void> loop_until(const std::function<bool()>& done, double seconds = 120);
  void loop_for(double seconds);

  // A chat with one question, sent.
  ChatId ask(const std::string& question, std::int32_t max_tokens);
  bool is_idle() const;

 private:
  BarWindow() = default;

  SteadyClock clock_;
  std::filesystem::path folder_;
  std::unique_ptr<app::Application> application_;
};

// A million characters.
constexpr int kLongChatMessages = 2'000;
app::Chat long_chat();

// Of the calling thread, and of the whole process: processor time, so that other programs do not count.
double thread_seconds();
double process_seconds();
double wall_seconds();

double median(std::vector<double> values);
double largest(const std::vector<double>& values);

}  // namespace octavo::bench
