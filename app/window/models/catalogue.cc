#include "app/window/models/catalogue.h"

#include <algorithm>

#include "app/hub/recommended_models.h"
#include "engine/base/format.h"
#include "engine/base/text.h"
#include "engine/model/model_files.h"

namespace octavo::app {
namespace {

namespace act = ui::actions;

ui::CatalogueFit shown_fit(hub::ModelFit fit) {
  switch (fit) {
    case hub::ModelFit::kFits: return ui::CatalogueFit::kFits;
    case hub::ModelFit::kSlow: return ui::CatalogueFit::kSlow;
    case hub::ModelFit::kNever: break;
  }
  return ui::CatalogueFit::kNever;
}

ui::CatalogueRow recommended_row(const hub::RecommendedModel& model) {
  return {.repository = model.repository,
          .name = model.name,
          .file = model.type,
          .note = model.type + " · " + model.licence,
          .bytes = model.bytes};
}

ui::CatalogueRow found_row(const hub::HubModel& model) {
  std::string note = with_thousands(model.downloads) + " downloads";
  if (!model.licence.empty()) note += " · " + model.licence;
  if (model.gate == hub::Gate::kAsks) note += " · gated";
  return {.repository = model.name, .name = model.name, .note = std::move(note)};
}

ui::DownloadPhase shown_phase(hub::DownloadStage stage) {
  switch (stage) {
    case hub::DownloadStage::kWaiting: return ui::DownloadPhase::kWaiting;
    case hub::DownloadStage::kReceiving: return ui::DownloadPhase::kReceiving;
    case hub::DownloadStage::kRetrying: return ui::DownloadPhase::kRetrying;
    case hub::DownloadStage::kVerifying: break;
  }
  return ui::DownloadPhase::kVerifying;
}

}  // namespace

Catalogue::Catalogue(ui::CatalogueState& state) : state_(state) {}

void Catalogue::begin(const hub::HubPlace& place) {
  state_.host = place.host();
  state_.is_offline = place.is_offline;
  state_.list_date = hub::recommended_models().date;
  state_.recommended.clear();
  for (const hub::RecommendedModel& model : hub::recommended_models().models)
    state_.recommended.push_back(recommended_row(model));
  state_.first = {.repository = model::kDefaultModel.repository,
                  .name = "SmolLM2 135M Instruct",
                  .file = model::kDefaultModel.file,
                  .note = "Q4_1 · apache-2.0",
                  .bytes = model::kDefaultModel.bytes,
                  .fit = ui::CatalogueFit::kFits};
  judge_machine();
}

void Catalogue::judge_machine() { ask(JudgeMachine{}); }

void Catalogue::ask(decltype(CatalogueJob::what) what) {
  const std::size_t kind = what.index();
  effects_.jobs.push_back({std::move(what), ++newest_[kind]});
}

// ---- what a person asked

void Catalogue::apply(const act::CatalogueAction& action) {
  std::visit([this](const auto& a) { apply_one(a); }, action);
}

void Catalogue::apply_one(const act::OpenCatalogue&) {
  state_.open = true;
  judge_machine();  // memory may be another by now
}

void Catalogue::apply_one(const act::SearchHub& a) {
  state_.problem.clear();
  if (a.text.find_first_not_of(' ') == std::string::npos) {
    state_.query.reset();
    state_.found.clear();
    state_.is_searching = false;
    ++newest_[1];  // what is under way counts no more
    return;
  }
  state_.query = a.text;
  state_.is_searching = true;
  ask(SearchJob{a.text});
}

void Catalogue::apply_one(const act::ShowRepository& a) {
  state_.repository = {.name = a.name};
  state_.repository.is_reading = true;
  models_.clear();
  ask(RepositoryJob{a.name, a.file});
}

void Catalogue::apply_one(const act::ChooseHubFile& a) {
  state_.repository.chosen = a.path;
  look_at_chosen();
}

void Catalogue::look_at_chosen() {
  for (std::size_t i = 0; i < models_.size(); ++i) {
    ui::CatalogueFile& file = state_.repository.files[i];
    file.is_checking = false;
    if (file.path != state_.repository.chosen || file.is_checked || !models_[i].is_whole) continue;
    file.is_checking = true;
    ask(LookJob{repository_, models_[i]});
  }
}

std::string Catalogue::path_here(const act::GetModel& a) const {
  if (state_.repository.name == a.repository) {
    for (const ui::CatalogueFile& file : state_.repository.files)
      if (file.path == a.file && !file.here.empty()) return file.here;
  }
  for (const ui::CatalogueRow& row : state_.recommended)
    if (row.repository == a.repository && row.file == a.file) return row.here;
  const bool is_first = state_.first.repository == a.repository && state_.first.file == a.file;
  return is_first ? state_.first.here : std::string();
}

void Catalogue::apply_one(const act::GetModel& a) {
  if (std::string here = path_here(a); !here.empty()) {
    effects_.load_path = std::move(here);
    return;
  }
  if (is_running(state_.download.phase)) return;  // one at a time: the view says so
  state_.download = {
      .phase = ui::DownloadPhase::kAsking, .repository = a.repository, .file = a.file, .name = a.name};
  cancels_ = false;
  effects_.download = DownloadWanted{a.repository, a.file};
}

void Catalogue::apply_one(const act::PauseDownload&) {
  if (is_running(state_.download.phase)) effects_.wish = hub::DownloadWish::kPause;
}

void Catalogue::apply_one(const act::ResumeDownload&) {
  ui::DownloadState& download = state_.download;
  if (download.phase != ui::DownloadPhase::kPaused && download.phase != ui::DownloadPhase::kFailed) return;
  download.phase = ui::DownloadPhase::kAsking;
  download.sentence.clear();
  cancels_ = false;
  effects_.download = DownloadWanted{download.repository, download.file};
}

// One that does not run begins again for as long as it takes to remove what has come.
void Catalogue::apply_one(const act::CancelDownload&) {
  ui::DownloadState& download = state_.download;
  if (download.phase == ui::DownloadPhase::kNone || download.phase == ui::DownloadPhase::kDone) return;
  cancels_ = true;
  effects_.wish = hub::DownloadWish::kCancel;
  if (is_running(download.phase)) return;
  const bool has_bytes = download.received > 0;
  if (has_bytes && download.phase == ui::DownloadPhase::kPaused) {
    effects_.download = DownloadWanted{download.repository, download.file};
    download.phase = ui::DownloadPhase::kAsking;
  } else {
    download = {};
  }
}

void Catalogue::apply_one(const act::DismissDownload&) {
  if (!is_running(state_.download.phase)) state_.download = {};
}

// ---- what came

void Catalogue::take(const CatalogueReport& report) {
  if (report.serial != newest_[report.what.index()]) return;
  std::visit([this](const auto& r) { take_one(r); }, report.what);
}

void Catalogue::take_one(const MachineJudged& report) {
  const hub::RecommendedModels& list = hub::recommended_models();
  for (std::size_t i = 0; i < list.models.size() && i < state_.recommended.size(); ++i) {
    const hub::RecommendedModel& model = list.models[i];
    const hub::ModelNeed need = hub::estimate_need(model.bytes, model.read_bytes, report.available_bytes);
    state_.recommended[i].fit = shown_fit(need.fit);
    state_.recommended[i].here = i < report.here.size() ? report.here[i] : std::string();
  }
  state_.first.here = report.first_here;
  state_.better.reset();
  const hub::RecommendedModel* const best =
      hub::best_model_for(list, report.available_bytes, hub::kUsualReadBytesPerS);
  if (best != nullptr)
    state_.better = state_.recommended[static_cast<std::size_t>(best - list.models.data())];
}

void Catalogue::take_one(const SearchDone& report) {
  state_.is_searching = false;
  state_.found.clear();
  if (!report.models) {
    state_.problem = sanitise_utf8(report.models.error().message);
    return;
  }
  for (const hub::HubModel& model : *report.models) state_.found.push_back(found_row(model));
}

void Catalogue::take_one(const RepositoryRead& report) {
  ui::CatalogueRepository& shown = state_.repository;
  shown.is_reading = false;
  if (!report.repository) {
    shown.problem = sanitise_utf8(report.repository.error().message);
    return;
  }
  repository_ = *report.repository;
  shown.licence = repository_.licence;
  shown.is_gated = repository_.gate == hub::Gate::kAsks;
  shown.chosen = report.chosen;
  models_ = hub::gguf_models(repository_.files);
  shown.files.clear();
  for (std::size_t i = 0; i < models_.size(); ++i) {
    const hub::GgufModel& model = models_[i];
    const hub::ModelNeed need = hub::estimate_need(model.bytes, model.bytes, report.available_bytes);
    ui::CatalogueFile file{.path = model.path, .type = model.type, .bytes = model.bytes};
    file.fit = model.is_whole ? shown_fit(need.fit) : ui::CatalogueFit::kUnsupported;
    file.sentence = model.is_whole ? need.sentence + ", by its size" : "Some of its files are missing";
    if (i < report.here.size()) file.here = report.here[i];
    shown.files.push_back(std::move(file));
  }
  if (models_.empty())
    shown.problem = "This repository has no GGUF file. Search for another one of the model.";
  look_at_chosen();
}

void Catalogue::take_one(const LookDone& report) {
  for (ui::CatalogueFile& file : state_.repository.files) {
    if (file.path != report.path) continue;
    file.is_checking = false;
    file.is_checked = true;
    file.fit = report.need ? shown_fit(report.need->fit) : ui::CatalogueFit::kUnsupported;
    file.sentence = report.need ? report.need->sentence : sanitise_utf8(report.need.error().message);
  }
}

void Catalogue::show_progress(const hub::DownloadProgress& progress) {
  ui::DownloadState& download = state_.download;
  if (!is_running(download.phase)) return;
  download.phase = shown_phase(progress.stage);
  download.received = progress.received;
  download.total = progress.total;
  download.bytes_per_s = progress.bytes_per_s;
  download.seconds_left = progress.seconds_left;
  download.sentence = sanitise_utf8(progress.trouble);
}

void Catalogue::note_loaded(const std::string& path) {
  if (state_.download.phase == ui::DownloadPhase::kDone && state_.download.path == path) state_.download = {};
}

void Catalogue::take(const DownloadEnded& ended) {
  ui::DownloadState& download = state_.download;
  if (ended.path) {
    download.phase = ui::DownloadPhase::kDone;
    download.sentence.clear();
    download.path = *ended.path;
    effects_.load_path = *ended.path;
    state_.open = false;
    judge_machine();
  } else if (cancels_) {
    download = {};
  } else if (ended.path.error().code == ErrorCode::kCancelled) {
    download.phase = ui::DownloadPhase::kPaused;
    download.sentence.clear();
  } else {
    download.phase = ui::DownloadPhase::kFailed;
    download.sentence = sanitise_utf8(ended.path.error().message);
  }
}

}  // namespace octavo::app
