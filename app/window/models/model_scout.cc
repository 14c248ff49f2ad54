#include "app/window/models/model_scout.h"

#include <algorithm>
#include <set>
#include <system_error>
#include <utility>

#include "app/remote/remote_engine.h"
#include "app/window/models/model_inside.h"
#include "app/window/models/model_title.h"
#include "engine/base/home_folder.h"
#include "engine/base/text.h"
#include "engine/model/model_files.h"
#include "engine/runner/runner_plan.h"

namespace octavo::app {
namespace {

namespace fs = std::filesystem;

constexpr int kDeepestFolder = 3;  // below the models folder: organisation/name/file
constexpr std::size_t kMostRows = 500;

std::string shown_text(const fs::path& path) { return sanitise_utf8(path.string()); }

// Nobody is asked for it: whether the server is there shows when it is used.
ui::ModelRow remote_row(const std::string& path) {
  ui::ModelRow row;
  row.path = path;
  row.name = row.file_name = model_title(path, {});
  row.folder = sanitise_utf8(path.substr(0, path.find('#')));
  row.summary = "remote · " + row.folder;
  row.is_read = true;
  return row;
}

ui::ModelInside remote_inside(const std::string& path) {
  ui::ModelInside inside;
  inside.is_remote = true;
  inside.name = model_title(path, {});
  inside.facts = {{"Server", sanitise_utf8(path.substr(0, path.find('#')))},
                  {"Model", inside.name},
                  {"Memory", "on the server"}};
  inside.memory.fit = ui::ModelFit::kFits;
  inside.path = path;
  return inside;
}

ui::ModelRow new_row(const fs::path& path) {
  ui::ModelRow row;
  row.path = path.string();
  row.file_name = shown_text(path.filename());
  row.folder = shown_text(path.parent_path());
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  row.is_present = !error || fs::is_directory(path, error);  // of a folder, files are counted when it is read
  row.file_bytes = size == static_cast<std::uintmax_t>(-1) ? 0 : static_cast<std::int64_t>(size);
  return row;
}

// The models of a folder and of those below it. Links to folders are not followed: they may lead in circles.
void add_models_below(const fs::path& folder, int depth, std::vector<fs::path>& models) {
  const std::vector<fs::path> found = model::models_in(folder);
  models.insert(models.end(), found.begin(), found.end());
  if (depth == 0 || models.size() > kMostRows) return;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_directory(ignored) && !entry->is_symlink(ignored))
      add_models_below(entry->path(), depth - 1, models);
  }
}

// A row shows its file anyway; what is wrong with it has to fit beside.
std::string without_path(const std::string& message, const std::string& path) {
  for (const std::string& name : {escape_for_message(path), escape_for_message(path, 1000)}) {
    if (message.starts_with(name + ": ")) return message.substr(name.size() + 2);
  }
  return message;
}

}  // namespace

ScoutPlaces default_scout_places() {
  return {.models_folder = model::models_folder(),
          .default_model = model::default_model_path(),
          .home = home_folder(),
          .available_bytes = runner::available_memory_bytes,
          .other_programs = hub::model_places()};
}

ModelScout::ModelScout(ScoutPlaces places, std::function<void()> wake_up)
    : places_(std::move(places)), wake_up_(std::move(wake_up)), thread_([this] { run(); }) {}

ModelScout::~ModelScout() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void ModelScout::give(ScoutJob job) {
  {
    const std::lock_guard lock(mutex_);
    if (auto* list = std::get_if<ListModels>(&job)) {
      list_ = std::move(*list);
    } else {
      look_ = std::get<LookInside>(std::move(job));
    }
  }
  changed_.notify_one();
}

std::vector<ScoutReport> ModelScout::take_reports() {
  const std::lock_guard lock(mutex_);
  return std::exchange(reports_, {});
}

void ModelScout::report(ScoutReport report) {
  {
    const std::lock_guard lock(mutex_);
    reports_.push_back(std::move(report));
  }
  wake_up_();
}

void ModelScout::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || has_work(); });
    if (stopping_) return;
    if (look_) {
      LookInside job = *std::exchange(look_, std::nullopt);
      lock.unlock();
      const std::uint64_t serial = job.serial;
      report(InsideRead{serial, look(std::move(job))});
    } else if (list_) {
      const ListModels job = *std::exchange(list_, std::nullopt);
      lock.unlock();
      std::vector<ui::ModelRow> rows = list(job);
      report(ModelsListed{rows});
      lock.lock();
      unread_.assign(rows.begin(), rows.end());
      if (rows.empty()) reports_.push_back(AllRowsRead{});
      continue;
    } else {
      ui::ModelRow row = std::move(unread_.front());
      unread_.pop_front();
      const bool is_last = unread_.empty();
      lock.unlock();
      read(row);
      report(ModelRowRead{std::move(row)});
      if (is_last) report(AllRowsRead{});
    }
    lock.lock();
  }
}

// Recent ones first, newest first; then the others by name.
std::vector<ui::ModelRow> ModelScout::list(const ListModels& job) const {
  std::vector<ui::ModelRow> rows;
  std::set<fs::path> known, folders;
  const auto add = [&](const fs::path& path, std::int64_t used_ms) {
    std::error_code ignored;
    const fs::path same = fs::weakly_canonical(path, ignored);
    if (rows.size() >= kMostRows || !known.insert(same.empty() ? path : same).second) return;
    ui::ModelRow& row = rows.emplace_back(new_row(path));
    row.last_used_ms = used_ms;
    row.is_default = path == places_.default_model;
  };
  for (const RecentModel& model : job.recent) {
    if (is_remote_model(model.path)) {
      rows.push_back(remote_row(model.path));
      rows.back().last_used_ms = model.used_ms;
      continue;
    }
    add(model.path, model.used_ms);
    folders.insert(fs::path(model.path).parent_path());
  }
  std::vector<fs::path> others;
  add_models_below(places_.models_folder, kDeepestFolder, others);
  for (const fs::path& folder : folders) {
    const std::vector<fs::path> beside = model::models_in(folder);
    others.insert(others.end(), beside.begin(), beside.end());
  }
  std::stable_sort(others.begin(), others.end(),
                   [](const fs::path& a, const fs::path& b) { return a.filename() < b.filename(); });
  for (const fs::path& path : others) add(path, 0);
  for (const hub::LocalModel& model : hub::find_local_models(places_.other_programs)) {
    const std::size_t before = rows.size();
    add(model.path, 0);
    if (rows.size() == before) continue;
    rows.back().owner = hub::owner_name(model.owner);
    if (model.owner == hub::ModelOwner::kOllama)
      rows.back().file_name = model.name;  // the file's is a checksum
  }
  return rows;
}

Result<ModelDescription> ModelScout::describe(const std::string& path) const {
  if (places_.probe) OCTAVO_TRY_VOID(places_.probe(path, ProbeDepth::kHeader));
  return read_model_description(path);
}

void ModelScout::read(ui::ModelRow& row) const {
  if (row.is_read) return;  // a remote one
  row.is_read = true;
  if (!row.is_present) {
    row.problem = "The file no longer exists.";
    return;
  }
  const auto description = describe(row.path);
  if (!description) {
    row.problem = sanitise_utf8(without_path(description.error().message, row.path));
    return;
  }
  row.name = model_title(*description);
  row.summary = model_summary(*description);
  row.file_bytes = description->file_bytes;
}

// A file that was replaced since is another one: it stays open only for other options.
Result<void> ModelScout::open_preview(const std::string& path) {
  std::error_code ignored;
  const std::uintmax_t bytes = fs::file_size(path, ignored);
  const fs::file_time_type time = fs::last_write_time(path, ignored);
  const bool is_same = preview_ != nullptr && preview_path_ == path && preview_bytes_ == bytes &&
                       preview_time_ == time && !ignored;
  if (is_same) return {};
  preview_.reset();
  preview_check_.clear();
  if (places_.probe) {
    OCTAVO_TRY(const ProbeReport report, places_.probe(path, ProbeDepth::kWhole));
    preview_check_ = confinement_text(report.confinement);
  }
  OCTAVO_TRY(ModelPreview opened, ModelPreview::open(path));
  preview_ = std::make_unique<ModelPreview>(std::move(opened));
  preview_path_ = path;
  preview_bytes_ = bytes;
  preview_time_ = time;
  return {};
}

ui::ModelInside ModelScout::look(LookInside job) {
  if (is_remote_model(job.options.model)) return remote_inside(job.options.model);
  job.options.model = expand_home(job.options.model, places_.home).string();
  ui::ModelInside inside;
  if (const auto opened = open_preview(job.options.model); opened) {
    inside = model_inside(*preview_);
    if (!preview_check_.empty()) inside.facts.push_back({"Checked", preview_check_});
    inside.memory = model_memory(*preview_, job.options, job.present, places_.available_bytes());
  } else {
    inside.problem = sanitise_utf8(opened.error().message);
  }
  inside.path = job.options.model;
  return inside;
}

}  // namespace octavo::app
