// The model picker's own logic: what a person asked of it, and what the scout found, into
// ui::ModelPickerState. What it wants done comes out of `take_effects`: jobs for the scout, and a load.
//
// A value type without file, thread or engine. UI thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/window/models/model_scout.h"
#include "app/window/models/tiny_pool.h"
#include "app/window/settings.h"
#include "engine/api/engine_options.h"
#include "ui/model_actions.h"
#include "ui/model_state.h"

namespace octavo::app {

struct ModelPickerEffects {
  std::vector<ScoutJob> jobs;
  std::optional<ModelLoadRequest> load;
  bool recent_models_changed = false;
};

class ModelPicker {
 public:
  explicit ModelPicker(ui::ModelPickerState& state) : state_(state) {}

  // What stays the same from one model to the next: device, threads, block size and the like.
  void set_base(const EngineOptions& options);
  void set_recent(std::vector<RecentModel> recent) { recent_ = std::move(recent); }
  const std::vector<RecentModel>& recent() const { return recent_; }
  // The engine that is loaded now; asked for again whenever it may have changed.
  void set_present(const PresentMemory& present) { present_ = present; }

  // `present_path` is chosen when nothing else is; empty: there is no model.
  void open(const std::string& present_path, ui::ModelPurpose purpose = ui::ModelPurpose::kAnswers);
  void open_file(const std::string& path);
  // Without a look at it: what speaks against it ends the load.
  void load(const std::string& path);
  void apply(const ui::actions::ModelPickerAction& action);
  void take(ScoutReport report);

  // A load began, went on, ended well or did not.
  void show_loading(const std::string& path, double fraction);
  void show_cancelling();
  void note_loaded(const std::string& path, std::int64_t unix_time_ms);
  void note_failed(const std::string& path, const std::string& problem);
  void note_ended() { state_.loading.reset(); }

  ModelPickerEffects take_effects() { return std::exchange(effects_, {}); }

 private:
  void apply_one(const ui::actions::CloseModelPicker& a);
  void apply_one(const ui::actions::ChooseModel& a);
  void apply_one(const ui::actions::ForgetModel& a);
  void apply_one(const ui::actions::ChangeLoadOptions& a);
  void apply_one(const ui::actions::LoadChosenModel& a);

  void take_one(ModelsListed& report);
  void take_one(ModelRowRead& report);
  void take_one(AllRowsRead& report);
  void take_one(InsideRead& report);

  void list_models();
  void choose(const std::string& path);
  void look_inside();
  EngineOptions options_of(const std::string& path) const;
  ui::ModelRow* find_row(const std::string& path);

  ui::ModelPickerState& state_;
  EngineOptions base_;
  std::vector<RecentModel> recent_;  // newest first
  PresentMemory present_;
  ModelPickerEffects effects_;
  std::uint64_t newest_look_ = 0;
};

}  // namespace octavo::app
