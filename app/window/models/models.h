// What the window says of models: the one that answers, loads, and the picker.
//
// Owns the picker and the catalogue. Writes model, picker, catalogue and banner of the state. UI thread;
// loads nothing itself: what it wants done comes out of `take_effects`. The engines and the state must
// outlive it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/window/models/catalogue.h"
#include "app/window/models/engines.h"
#include "app/window/models/model_picker.h"
#include "app/window/models/remote_models.h"
#include "engine/base/result.h"
#include "ui/model_actions.h"
#include "ui/state.h"

namespace octavo::app {

struct ModelEffects {
  bool load_again = false;  // the model that was tried last
  bool cancel_loading = false;
  bool continue_on_cpu = false;  // the present model
  // The pool of the present model.
  std::optional<ui::actions::RunningAnswers> lend_tiny_pool = {}, give_back_pool = {};
  bool settings_changed = false;
  std::vector<ScoutJob> scout_jobs = {};
  std::optional<ModelLoadRequest> load = {};  // another model
  std::vector<RemoteJob> remote_jobs = {};
  CatalogueEffects catalogue = {};
};

class Models {
 public:
  Models(const Engines& engines, std::vector<RecentModel> recent, ui::UiState& state);

  // What the options of this start have in common for every model.
  void set_base(const EngineOptions& options) { picker_.set_base(options); }
  const std::vector<RecentModel>& recent() const { return picker_.recent(); }

  void apply(const ui::actions::LoadModel&) { effects_.load_again = true; }
  void apply(const ui::actions::CancelLoading&);
  void apply(const ui::actions::ContinueOnCpu&);
  void apply(const ui::actions::OpenModelPicker&);
  void apply(const ui::actions::OpenModelFile& a);
  void apply(const ui::actions::LoadModelFile& a) { picker_.load(a.path); }
  void apply(const ui::actions::AskAboutTinyPool& a);
  void apply(const ui::actions::LendTinyPool& a);
  void apply(const ui::actions::GiveBackPool& a);
  // The picker, for the model that is held against the present one.
  void choose_second();
  void apply(const ui::actions::ModelPickerAction& a);
  void apply(const ui::actions::RemoteModelAction& a);
  void apply(const ui::actions::CatalogueAction& a);
  Catalogue& catalogue() { return catalogue_; }
  void take_scouted(ScoutReport report);
  void take_remote(const RemoteListed& listed) { remote_.take(listed); }
  void take_remote(const RemoteLoadTold& told) { remote_.take(told); }

  // The engine that answers from now on.
  void describe(const EngineDescription& description);
  // Whether its pool is a tiny one.
  void note_pool(bool is_tiny) { state_.tiny_pool.is_lent = is_tiny; }
  // A model loads, beside the present one if there is one.
  void show_loading(const std::string& path, double fraction);
  void note_loaded(const std::string& path, std::int64_t unix_time_ms);
  // The present model goes on, as do all chats. REQUIRES: there is one
  void show_load_failed(const std::string& path, const Error& error);
  // No model: `path` may be empty, `problem` is one sentence or empty.
  void show_no_model(const std::string& path, const std::string& problem);
  // The device of an engine was lost. What it owes fails at once, and so does everything that it is asked
  // from now on.
  void offer_cpu(const Error& lost);

  ModelEffects take_effects();

 private:
  void show_banner(ui::BannerKind kind, std::string sentence);
  PresentMemory present_memory() const;
  void open_picker(ui::ModelPurpose purpose);

  const Engines& engines_;
  ui::UiState& state_;
  ModelPicker picker_;
  RemoteModels remote_;
  Catalogue catalogue_;
  ModelEffects effects_;
};

}  // namespace octavo::app
