// From the start of the process to the first frame on the screen, and from there to the first token.

#include "engine/model/model_files.h"
#include "tests/bench/window/bar_window.h"
#include "tests/bench/window/bars.h"

namespace octavo::bench {

// The steps of app/window/run_window.cc, pixels included.
Rows measure_cold_start(std::int64_t started_ns) {
  const double started = static_cast<double>(started_ns) * 1e-9;
  const SteadyClock clock;
  app::WindowOptions options;
  options.engine.model = model::default_model_path().string();
  options.settings_path = std::filesystem::temp_directory_path() / "octavo-bars-no-settings.json";
  options.chats_path.clear();
  OCTAVO_TRY(auto application, app::Application::start(options, Engine::create, clock));
  const auto& state = application->controller().state();
  while (application->num_frames_drawn() == 0) application->step_for(0.05);
  const double first_frame = wall_seconds();
  while (state.model.phase == ui::ModelPhase::kLoading) application->step_for(0.05);
  if (state.model.phase != ui::ModelPhase::kReady) return Error{ErrorCode::kIo, state.model.problem};
  const ChatId id = state.active_chat;
  application->controller().apply(ui::actions::SendMessage{id, "What is the capital of Japan?"});
  const auto has_answer = [&] {
    const ui::ChatState* chat = ui::find_chat(state, id);
    return chat->messages.size() == 2 && !chat->messages.back().text.empty();
  };
  while (!has_answer() && wall_seconds() - first_frame < 60) application->step_for(0.05);
  if (!has_answer()) return Error{ErrorCode::kIo, "there was no answer within 60 s"};
  const double frame_s = first_frame - started, token_s = wall_seconds() - first_frame;
  return std::vector<BarRow>{{"cold start: start of the process to the first frame",
                              number(frame_s, 2) + " s", "< 1 s", frame_s < 1},
                             {"cold start: from there to the first token of the default model",
                              number(token_s, 2) + " s", "< 2 s", token_s < 2}};
}

}  // namespace octavo::bench
