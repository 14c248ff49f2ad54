#include "tests/bench/window/bar_window.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>

#include "engine/model/model_files.h"

namespace octavo::bench {
namespace {

double seconds_of(clockid_t clock) {
  timespec time = {};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

std::filesystem::path new_folder() {
  std::string name = (std::filesystem::temp_directory_path() / "octavo-bars-XXXXXX").string();
  return ::mkdtemp(name.data()) != nullptr ? std::filesystem::path(name) : std::filesystem::path();
}

}  // namespace

double thread_seconds() { return seconds_of(CLOCK_THREAD_CPUTIME_ID); }
double process_seconds() { return seconds_of(CLOCK_PROCESS_CPUTIME_ID); }
double wall_seconds() { return seconds_of(CLOCK_MONOTONIC); }

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0.0 : values[values.size() / 2];
}

double largest(const std::vector<double>& values) {
  return values.empty() ? 0.0 : *std::max_element(values.begin(), values.end());
}

app::Chat long_chat() {
  constexpr std::size_t kMessageBytes = 500;
  const std::string paragraph =
      "With **blocks of sixteen tokens**, memory is taken one block at a time, and `block tables` say "
      "where.\n\n";
  app::Chat chat;
  MessageId last = chat.active_leaf();
  for (int i = 0; i < kLongChatMessages; ++i) {
    std::string text;
    while (text.size() < kMessageBytes) text += paragraph;
    last = chat.append(last, i % 2 == 0 ? Role::kUser : Role::kAssistant, text.substr(0, kMessageBytes));
  }
  return chat;
}

Result<std::unique_ptr<BarWindow>> BarWindow::open(app::EngineFactory factory, Pixels pixels,
                                                   const std::string& hub) {
  const std::filesystem::path model = model::default_model_path();
  if (!std::filesystem::exists(model)) {
    return Error{ErrorCode::kNotFound,
                 "the default model is not at " + model.string() + ": run packaging/setup"};
  }
  std::unique_ptr<BarWindow> window(new BarWindow());
  window->folder_ = new_folder();
  if (window->folder_.empty()) return Error{ErrorCode::kIo, "there is no room for temporary files"};
  app::Settings settings = app::default_settings();
  settings.width = 1600;
  settings.height = 1000;
  settings.sampling.ignore_eos = true;
  app::WindowOptions options;
  options.engine.model = model.string();
  options.settings_path = window->folder_ / "settings.json";
  options.chats_path.clear();
  options.export_folder = window->folder_;
  if (!hub.empty()) options.hub_place = {.endpoint = hub, .cache = window->folder_ / "hub"};
  OCTAVO_TRY_VOID(app::save_settings(options.settings_path, settings));
  OCTAVO_TRY(window->application_, app::Application::start(options, std::move(factory), window->clock_));
  if (pixels == Pixels::kLeftOut) window->application_->window().leave_out_pixels();
  OCTAVO_TRY_VOID(
      window->loop_until([&] { return window->state().model.phase != ui::ModelPhase::kLoading; }));
  if (window->state().model.phase != ui::ModelPhase::kReady)
    return Error{ErrorCode::kIo, "the default model did not load: " + window->state().model.problem};
  window->loop_for(0.3);
  return window;
}

BarWindow::~BarWindow() {
  application_.reset();
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

Result<void> BarWindow::loop_until(const std::function<bool()>& done, double seconds) {
  const double end = wall_seconds() + seconds;
  while (!done()) {
    if (wall_seconds() > end)
      return Error{ErrorCode::kIo, "it took longer than " + std::to_string(seconds) + " s"};
    application_->step_for(0.05);
  }
  return {};
}

void BarWindow::loop_for(double seconds) {
  const double end = wall_seconds() + seconds;
  for (double left = seconds; left > 0; left = end - wall_seconds()) application_->step_for(left);
}

ChatId BarWindow::ask(const std::string& question, std::int32_t max_tokens) {
  controller().apply(ui::actions::NewChat{});
  const ui::ChatState& chat = *ui::active_chat(state());
  const ChatId id = chat.id;
  SamplingParams sampling = chat.sampling;
  sampling.max_tokens = max_tokens;
  controller().apply(ui::actions::ChangeSampling{id, sampling});
  controller().apply(ui::actions::SendMessage{id, question});
  return id;
}

bool BarWindow::is_idle() const {
  return std::none_of(state().chats.begin(), state().chats.end(), ui::is_busy);
}

}  // namespace octavo::bench
