// The catalogue's own logic: what a person asked of it, and what its threads report, into ui::CatalogueState.
// What it wants done comes out of `take_effects`.
//
// A value type without file, thread or socket. UI thread. Nothing is asked of the hub before a person
// searches, looks at a repository or downloads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "app/hub/download.h"
#include "app/hub/model_look.h"
#include "engine/base/result.h"
#include "ui/catalogue_state.h"
#include "ui/model_actions.h"

namespace octavo::app {

// ---- what it asks

struct JudgeMachine {};  // what of the recommended ones fits, and is here: no network
struct SearchJob {
  std::string text;
};
struct RepositoryJob {
  std::string name;
  std::string file;  // chosen; empty: the usual one
};
struct LookJob {
  hub::HubRepository repository;
  hub::GgufModel model;
};
struct CatalogueJob {
  std::variant<JudgeMachine, SearchJob, RepositoryJob, LookJob> what;
  std::uint64_t serial = 0;  // of its kind: older ones are not waited for
};

struct DownloadWanted {
  std::string repository;
  std::string file;
};

// ---- what comes of it

struct MachineJudged {
  std::int64_t available_bytes = 0;
  std::vector<std::string> here = {};  // paths of recommended models, as the list is ordered; empty: not here
  std::string first_here = {};         // of the default model
};
struct SearchDone {
  Result<std::vector<hub::HubModel>> models = std::vector<hub::HubModel>{};
};
struct RepositoryRead {
  Result<hub::HubRepository> repository = hub::HubRepository{};
  std::string chosen = {};             // path of the chosen model; empty: there is none
  std::vector<std::string> here = {};  // as hub::gguf_models orders them
  std::int64_t available_bytes = 0;
};
struct LookDone {
  std::string path;
  Result<hub::ModelNeed> need = hub::ModelNeed{};
};
struct CatalogueReport {
  std::variant<MachineJudged, SearchDone, RepositoryRead, LookDone> what;
  std::uint64_t serial = 0;
};
struct DownloadEnded {
  Result<std::string> path = std::string();
};

struct CatalogueEffects {
  std::vector<CatalogueJob> jobs;
  std::optional<DownloadWanted> download;
  std::optional<hub::DownloadWish> wish;  // for the download under way
  std::optional<std::string> load_path;   // a model to be opened beside the present one
};

class Catalogue {
 public:
  explicit Catalogue(ui::CatalogueState& state);

  // What is contacted, should somebody ask for it. Begins to judge this machine.
  void begin(const hub::HubPlace& place);

  void apply(const ui::actions::CatalogueAction& action);
  void take(const CatalogueReport& report);
  void show_progress(const hub::DownloadProgress& progress);
  void take(const DownloadEnded& ended);
  // A model answers now: of its download nothing is left to say.
  void note_loaded(const std::string& path);

  CatalogueEffects take_effects() { return std::exchange(effects_, {}); }

 private:
  void apply_one(const ui::actions::OpenCatalogue&);
  void apply_one(const ui::actions::CloseCatalogue&) { state_.open = false; }
  void apply_one(const ui::actions::SearchHub& a);
  void apply_one(const ui::actions::ShowRepository& a);
  void apply_one(const ui::actions::ChooseHubFile& a);
  void apply_one(const ui::actions::GetModel& a);
  void apply_one(const ui::actions::PauseDownload&);
  void apply_one(const ui::actions::ResumeDownload&);
  void apply_one(const ui::actions::CancelDownload&);
  void apply_one(const ui::actions::DismissDownload&);

  void take_one(const MachineJudged& report);
  void take_one(const SearchDone& report);
  void take_one(const RepositoryRead& report);
  void take_one(const LookDone& report);

  void judge_machine();
  void look_at_chosen();
  void ask(decltype(CatalogueJob::what) what);
  std::string path_here(const ui::actions::GetModel& a) const;

  ui::CatalogueState& state_;
  hub::HubRepository repository_;       // that is shown
  std::vector<hub::GgufModel> models_;  // of it
  std::uint64_t newest_[4] = {};        // serials, by kind of job
  bool cancels_ = false;                // the download under way is not wanted any more
  CatalogueEffects effects_;
};

}  // namespace octavo::app
