// Routes what a person asked for to the workspace that it concerns, and what engines report to whoever waits
// for it; the parts write what is drawn.
//
// UI thread. Holds no window and draws nothing: tests drive it with a scripted engine and a manual clock.
// What only the application can do (clipboard, loading, saving) comes out of `take_effects`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/window/answer_watch.h"
#include "app/window/chat/chat_workspace.h"
#include "app/window/compare/batch_workspace.h"
#include "app/window/compare/compare_workspace.h"
#include "app/window/desktop.h"
#include "app/window/engine_reports.h"
#include "app/window/file_browsing.h"
#include "app/window/file_questions.h"
#include "app/window/memory/memory_workspace.h"
#include "app/window/models/models.h"
#include "app/window/notice_timer.h"
#include "app/window/server/server_panel.h"
#include "app/window/settings.h"
#include "app/window/two_models/two_models.h"
#include "engine/base/clock.h"
#include "engine/engine.h"
#include "ui/actions.h"
#include "ui/state.h"

namespace octavo::app {

// What the controller wants done outside of it.
struct Effects {
  DesktopEffects desktop = {};
  ChatEffects chats = {};
  ModelEffects models = {};
  std::optional<ListFolder> listing = {};  // for the file browser
  TwoModelsEffects two_models = {};
  ServerEffects server = {};
  std::optional<ExportedComparison> exported_comparison = {};
  std::optional<std::string> prompts_file = {};       // whose text `take_read_files` is given
  std::vector<LongAnswer> long_answers = {};          // that have ended
  std::optional<std::filesystem::path> picture = {};  // where a PNG of the window is wanted
  bool settings_changed = false;                      // by any of the parts
};

class Controller {
 public:
  // The clock must outlive the controller; `wall_clock_ms` dates messages and chats.
  Controller(const Clock& clock, const Settings& settings,
             std::function<std::int64_t()> wall_clock_ms = unix_time_ms,
             const SeedSource& draw_seed = octavo::draw_seed);

  // The engine, loaded; it must outlive the controller or `detach_engine`. Opens the first chat.
  // The engine before it finishes what it was asked, and must live on as long as `uses` says;
  // everything new goes to this one.
  void attach_engine(Engine& engine, PlanContext plan_context);
  bool uses(const Engine& engine) const { return engines_.uses(engine); }
  // What is under way is interrupted, and can be continued with the next engine.
  void detach_engine();
  // After the engine was attached.
  void set_attachment_counter(CountAttachment count) { chat_.set_count_attachment(std::move(count)); }
  // What `plan_context` was asked for.
  void fold_plan(PlanMade made);
  void fold_attachment_count(ChatId chat_id, std::uint64_t attachment_id, std::int32_t num_tokens);

  // Where the chats are kept; it must outlive the controller's use. Without one they live as long as the
  // window. Attach it before the engine, and the engine when `store_opened`: ids of new chats follow those of
  // old ones.
  void attach_store(ChatStore& store);
  // Gives the store all that it was not told yet, before it ends.
  void finish_saving() { chat_.finish_saving(); }
  bool all_given_to_store() const { return chat_.all_given_to_store(); }
  bool store_opened() const { return chat_.store_opened(); }
  // Everything that the store has reported, and the messages that it has saved since. True when something
  // that is drawn changed.
  bool poll_store();
  // Chats that were read from a file, as new ones; the last is shown.
  void take_imported(std::vector<Chat> chats);
  // What dropped, named and attached files turned out to be.
  void take_read_files(FilesRead read);

  // Where what is asked of the engine stands that was attached last, for the list of requests.
  void attach_requests(std::shared_ptr<RequestLog> log) {
    memory_workspace_.requests().attach(std::move(log));
  }

  // What the engine that was attached last was made from, where its model is a file here: experiments on
  // this computer make theirs from it.
  void attach_options(const EngineOptions& options) { memory_workspace_.evaluation().set_engine(options); }

  Models& models() { return models_; }
  ServerPanel& server() { return server_; }
  TwoModels& two_models() { return two_models_; }
  void show_banner(ui::BannerKind kind, std::string text) { show_banner(ui::Banner{kind, std::move(text)}); }
  void show_banner(ui::Banner banner);
  // A notice that something was written, with the way to it.
  void show_written(std::string sentence, std::string path);
  // What was said of this holds no longer.
  void settle(ui::BannerTopic topic);
  // When a notice leaves, should nothing else happen; nullopt: there is none.
  std::optional<std::int64_t> notice_due_us() const { return notices_.due_us(); }
  // Time went on. True when a notice has left.
  bool tick() { return notices_.update(state_.banner, clock_.now_us()); }

  // What kSystem means from now on.
  void set_system_theme(ui::ThemeName theme) { state_.desktop.system_theme = theme; }
  // Where exports begin.
  void set_export_folder(std::filesystem::path folder) {
    file_questions_.set_export_folder(std::move(folder));
  }
  void take_listed(FolderListed listed);

  void apply(const ui::Action& action);
  // Everything that the engines have reported. True when something that is drawn changed.
  bool poll_engine();
  void fold(const EngineEvent& event);

  // Whether the engine owes a report that comes without a wake-up.
  bool wants_poll() const {
    return reports_.expects() || memory_workspace_.wants_tick() || state_.server.num_answering > 0;
  }
  // Draws the chats under the headings of another day, once it has begun. True when it has.
  bool turn_day();
  // Whether any answer is being generated.
  bool busy() const { return chat_.busy() || compare_.running() || batch_.running(); }

  const ui::UiState& state() const { return state_; }
  // nullptr when there is none. For tests.
  const Chat* chat(ChatId chat_id) const { return chat_.chat(chat_id); }
  Settings settings() const;
  Effects take_effects();

 private:
  void route(const ui::actions::ChatAction& action) { chat_.apply(action); }
  void route(const ui::actions::CompareAction& action);
  void route(const ui::actions::MemoryAction& action) { memory_workspace_.apply(action, state_); }
  void route(const ui::actions::ModelAction& action);
  void route(const ui::actions::DesktopAction& action);
  void route(const ui::actions::TwoModelsAction& action);
  void open_elsewhere(const ReadFile& file);
  bool is_used(const Engine& engine) const;
  bool poll_retired();
  void take_event(const EngineEvent& event);
  RequestName name_of(RequestId request_id);
  void take_memory_effects();
  void update();

  const Clock& clock_;
  Settings settings_;
  ui::UiState state_;
  std::optional<std::filesystem::path> picture_;
  Engines engines_;
  MemoryWorkspace memory_workspace_;
  ChatWorkspace chat_;
  CompareWorkspace compare_;
  BatchWorkspace batch_;
  TwoModels two_models_;
  Models models_;
  ServerPanel server_;
  Desktop desktop_;
  FileBrowsing files_;
  FileQuestions file_questions_;
  NoticeTimer notices_;
  AnswerWatch answer_watch_;
  EngineReports reports_;
};

}  // namespace octavo::app
