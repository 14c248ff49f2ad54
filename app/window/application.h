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
#include "app/window/chat/chat_transfer.h"
#include "app/window/chat/file_reader.h"
#include "app/window/chat/token_counter.h"
#include "app/window/controller.h"
#include "app/window/folder_reader.h"
#include "app/window/models/catalogue_link.h"
#include "app/window/models/engine_closer.h"
#include "app/window/models/model_loader.h"
#include "app/window/models/model_scout.h"
#include "app/window/models/remote_link.h"
#include "app/window/platform/desktop_bus.h"
#include "app/window/platform/first_window.h"
#include "app/window/platform/frame_pacing.h"
#include "app/window/platform/window.h"
#include "app/window/server/served_engine.h"
#include "app/window/server/server_door.h"
#include "app/window/server/server_runner.h"
#include "app/window/settings.h"
#include "app/window/two_models/two_models_worker.h"
#include "engine/base/clock.h"
#include "ui/views.h"

namespace octavo::app {

struct WindowOptions {
  EngineOptions engine;  // `model` is a file; empty: there is none
  // Nobody named a model: the one that this window used last comes before `engine.model`.
  bool prefers_recent_model = false;
  std::string model_problem;       // why one that was asked for is not there, one sentence; empty: none was
  std::string recording;           // a file to look at in the Memory workspace; empty: none
  std::vector<std::string> files;  // to be opened: texts, chats, recordings, models
  // Where later starts find this window; empty: they do not.
  std::filesystem::path socket_path;
  std::string bus_address;  // of the desktop's message bus; empty: there is none
  std::filesystem::path settings_path = default_settings_path();
  std::filesystem::path chats_path = default_chats_path();  // empty: chats live as long as the window
  std::filesystem::path export_folder = default_export_folder();
  ScoutPlaces model_places = default_scout_places();
  hub::HubPlace hub_place = hub::hub_place_from_environment();        // for the catalogue
  std::function<std::int64_t()> unix_time_ms = octavo::unix_time_ms;  // the wall clock
  std::string version = {};                                           // of the program, for its clients
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

  void load_first_model(const std::vector<RecentModel>& recent);
  void load_model(ModelLoadRequest request);
  void load_on_cpu();
  void lend_tiny_pool(ui::actions::RunningAnswers running);
  void give_back_pool(ui::actions::RunningAnswers running);
  void start_loading(const ModelLoad& load, std::vector<HeldEngine> first = {});
  bool update_loading();
  void end_loading(Result<std::unique_ptr<Engine>> result);
  void take_engine(std::unique_ptr<Engine> engine);
  void take_failure(const Error& error);
  void close_retired();
  std::vector<HeldEngine> let_go_of_engines();
  bool update_scouted();
  bool update_two_models();
  bool update_server();
  void lead_programs();
  bool update_remote();
  bool update_catalogue();
  PlanContext plan_by_counting();
  PlanContext plan_at_once();  // without counting
  bool update_token_counts();
  void apply_actions();
  void perform_effects();
  void perform(const DesktopEffects& effects);
  void perform(ChatEffects effects);
  void perform(ModelEffects effects);
  bool update_folders();
  bool update_desktop();
  void tell_of(const LongAnswer& answer);
  void perform(TwoModelsEffects effects);
  void perform(const ServerEffects& effects);
  void open_chats();
  bool update_chats();
  bool update_files();
  bool answer_other_starts();
  void save_settings_now();
  void save_comparison(const ExportedComparison& comparison);
  void save_picture(const std::filesystem::path& path);
  double seconds_to_wait(std::int64_t now_us) const;
  double seconds_to_change(std::int64_t now_us) const;
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
  std::atomic<bool> wakes_by_itself_ = false;  // soon: nobody need wake the window
  std::unique_ptr<ChatStore> store_;
  std::unique_ptr<ChatTransfer> transfer_;
  std::unique_ptr<FileReader> file_reader_;
  std::unique_ptr<FolderReader> folder_reader_;
  DesktopBus bus_;
  ChatId told_chat_{};                         // that the newest notification is about
  std::unique_ptr<FirstWindow> first_window_;  // none in a window that is not the first
  ServerDoor door_;                            // before the engines, whose services write to it
  EngineCloser closer_;
  ModelLoader loader_;
  HeldEngine present_;
  ServedEngine* served_ = nullptr;             // present_'s reader
  std::vector<HeldEngine> retired_;            // that still have answers to finish
  ModelLoad loading_;                          // what is loaded now, or was tried last
  ModelLoad loaded_;                           // what the present engine was made from
  std::optional<ModelLoad> fallback_;          // what is loaded again should this load fail
  std::optional<ModelLoadRequest> next_load_;  // once the load that was cancelled for it has ended
  std::unique_ptr<ModelScout> scout_;
  std::unique_ptr<RemoteLink> remote_link_;
  std::unique_ptr<CatalogueLink> catalogue_link_;
  std::unique_ptr<TwoModelsWorker> two_models_worker_;
  std::unique_ptr<ServerRunner> server_;  // ends before the engines that answer
  std::uint64_t shown_log_ = 0;           // version of the door's lines that are shown
  std::uint64_t num_frames_drawn_ = 0;
  std::int64_t next_update_us_ = 0;
  bool expects_report_ = false;  // the last update found something: so will the next
};

}  // namespace octavo::app
