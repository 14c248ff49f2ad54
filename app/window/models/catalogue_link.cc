#include "app/window/models/catalogue_link.h"

#include <algorithm>
#include <utility>

#include "app/hub/hub_cache.h"
#include "app/hub/recommended_models.h"
#include "engine/base/overloaded.h"
#include "engine/model/model_files.h"

namespace octavo::app {
namespace {

constexpr int kMostFound = 40;
constexpr const char* kMainBranch = "main";

std::string path_of(const Result<std::filesystem::path>& found) {
  return found ? found->string() : std::string();
}

}  // namespace

CatalogueLink::CatalogueLink(hub::HubPlace place, const Clock& clock,
                             std::function<std::int64_t()> available_bytes, hub::CheckHeader check,
                             std::function<void()> wake_up)
    : place_(std::move(place)),
      clock_(clock),
      available_bytes_(std::move(available_bytes)),
      check_(std::move(check)),
      wake_up_(std::move(wake_up)),
      jobs_([this](CatalogueJob job) { return perform(std::move(job)); }, wake_up_, JobsLeft::kDropped),
      downloads_([this](const DownloadWanted& wanted) { return perform_download(wanted); }, wake_up_,
                 JobsLeft::kDropped) {}

CatalogueLink::~CatalogueLink() { stopping_ = true; }

void CatalogueLink::give(CatalogueJob job) {
  newest_[job.what.index()] = job.serial;
  jobs_.give(std::move(job));
}

void CatalogueLink::download(DownloadWanted wanted, hub::DownloadWish wish) {
  wish_ = wish;
  downloads_.give(std::move(wanted));
}

std::optional<hub::DownloadProgress> CatalogueLink::take_progress() {
  const std::lock_guard lock(mutex_);
  return std::exchange(progress_, std::nullopt);
}

void CatalogueLink::note(const hub::DownloadProgress& progress) {
  {
    const std::lock_guard lock(mutex_);
    progress_ = progress;
  }
  wake_up_();
}

std::optional<CatalogueReport> CatalogueLink::perform(CatalogueJob job) {
  const std::size_t kind = job.what.index();
  const auto is_stopped = [this, kind, serial = job.serial] { return stopping_ || newest_[kind] != serial; };
  if (is_stopped()) return std::nullopt;
  hub::HubClient client(place_, clock_, is_stopped);
  CatalogueReport report{.what = {}, .serial = job.serial};
  std::visit(
      Overloaded{
          [&](const JudgeMachine&) { report.what = judge(); },
          [&](const SearchJob& search) { report.what = SearchDone{client.search(search.text, kMostFound)}; },
          [&](const RepositoryJob& repository) { report.what = read(client, repository); },
          [&](const LookJob& look) {
            const auto preview = hub::look_into(client, look.repository, look.model, check_);
            report.what = LookDone{look.model.path, preview ? hub::plan_need(*preview, {}, available_bytes_())
                                                            : Result<hub::ModelNeed>(preview.error())};
          }},
      job.what);
  if (is_stopped()) return std::nullopt;
  return report;
}

MachineJudged CatalogueLink::judge() const {
  MachineJudged judged{.available_bytes = available_bytes_()};
  for (const hub::RecommendedModel& model : hub::recommended_models().models)
    judged.here.push_back(path_of(model::find_model(model.repository + ":" + model.type)));
  judged.first_here = path_of(model::find_model({}));
  return judged;
}

RepositoryRead CatalogueLink::read(hub::HubClient& client, const RepositoryJob& job) const {
  RepositoryRead read{.repository = client.repository(job.name, kMainBranch)};
  read.available_bytes = available_bytes_();
  if (!read.repository) return read;
  const hub::HubRepository& repository = *read.repository;
  auto chosen = hub::choose_model(repository, job.file);
  if (!chosen) chosen = hub::choose_model(repository, {});
  if (chosen) read.chosen = chosen->path;
  for (const hub::GgufModel& model : hub::gguf_models(repository.files)) {
    const bool is_here = std::ranges::all_of(model.files, [&](const hub::HubFile& file) {
      return hub::is_here(place_.cache, repository.name, file);
    });
    const auto path = hub::snapshot_path(place_.cache, repository, model.files.front());
    std::error_code ignored;
    read.here.push_back(is_here && std::filesystem::exists(path, ignored) ? path.string() : std::string());
  }
  return read;
}

// What no machine runs is not worth its download.
std::optional<DownloadEnded> CatalogueLink::perform_download(const DownloadWanted& wanted) {
  const auto is_stopped = [this] { return stopping_ || wish_ != hub::DownloadWish::kGoOn; };
  if (wish_ ==
      hub::DownloadWish::kCancel) {  // of one that had paused: what came of it goes, without a network
    if (begun_) hub::remove_incomplete(place_.cache, *begun_);
    return DownloadEnded{Error{ErrorCode::kCancelled, "the download was cancelled"}};
  }
  hub::HubClient client(place_, clock_, is_stopped);
  auto repository = client.repository(wanted.repository, kMainBranch);
  if (!repository) return DownloadEnded{repository.error()};
  auto chosen = hub::choose_model(*repository, wanted.file);
  if (!chosen) return DownloadEnded{chosen.error()};
  repository->files = chosen->files;
  if (const auto preview = hub::look_into(client, *repository, *chosen, check_); !preview)
    return DownloadEnded{preview.error()};
  begun_ = *repository;
  hub::DownloadOptions options;
  options.on_progress = [this](const hub::DownloadProgress& progress) {
    note(progress);
    return stopping_ ? hub::DownloadWish::kPause : wish_.load();
  };
  const auto path = hub::download(place_, *repository, clock_, options);
  if (stopping_) return std::nullopt;
  if (!path) return DownloadEnded{path.error()};
  return DownloadEnded{path->string()};
}

}  // namespace octavo::app
