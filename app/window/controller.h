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

#include "app/window/chat/chat_workspace.h"
#include "app/window/compare/compare_workspace.h"
#include "app/window/desktop.h"
#include "app/window/engine_reports.h"
#include "app/window/memory/memory_workspace.h"
#include "app/window/models/models.h"
#include "app/window/settings.h"
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
  std::optional<ExportedComparison> exported_comparison = {};
  std::optional<std::filesystem::path> picture = {};  // where a PNG of the window is wanted
  bool settings_changed = false;                      // by any of the parts
};

class Controller {
 public:
  // The clock must outlive the controller.
  Controller(const Clock& clock, const Settings& settings);

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
  void attach_store(ChatStore& store, std::function<std::int64_t()> unix_time_ms);
  bool store_opened() const { return chat_.store_opened(); }
  // Everything that the store has reported, and the messages that it has saved since. True when something
  // that is drawn changed.
  bool poll_store();
  // Chats that were read from a file, as new ones; the last is shown.
  void take_imported(std::vector<Chat> chats);
  // What dropped, named and attached files turned out to be.
  void take_read_files(FilesRead read);

  Models& models() { return models_; }
  void show_banner(ui::BannerKind kind, std::string text) {
    state_.banner = ui::Banner{kind, std::move(text)};
  }

  void apply(const ui::Action& action);
  // Everything that the engines have reported. True when something that is drawn changed.
  bool poll_engine();
  void fold(const EngineEvent& event);

  // Whether the engine owes a report that comes without a wake-up.
  bool wants_poll() const { return reports_.expects() || memory_workspace_.wants_tick(); }
  // Whether any answer is being generated.
  bool busy() const { return chat_.busy() || compare_.running(); }

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
  void open_elsewhere(const ReadFile& file);
  bool is_used(const Engine& engine) const;
  bool poll_retired();
  void take_event(const EngineEvent& event);
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
  Models models_;
  Desktop desktop_;
  EngineReports reports_;
};

}  // namespace octavo::app
