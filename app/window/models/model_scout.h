// Looks for models and into them on a thread of its own: folders may be on a slow disk, and a header with its
// vocabulary takes a tenth of a second. Of several jobs of one kind only the newest is done; the headers of a
// list are read when there is nothing else to do.
//
// Thread: calls from the window's; `wake_up` is called from the scouting one.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "app/hub/local_models.h"
#include "app/probe/probe.h"
#include "app/window/settings.h"
#include "engine/api/engine_options.h"
#include "engine/model_preview.h"
#include "ui/model_state.h"

namespace octavo::app {

// ---- what it is asked

struct ListModels {
  std::vector<RecentModel> recent;
};

// What the engine that is loaded now has of the machine's memory; zeros without one.
struct PresentMemory {
  std::int64_t resident_bytes = 0;   // comes back when it goes
  std::int64_t unwritten_bytes = 0;  // it may still take
};

struct LookInside {
  EngineOptions options;  // `model` is the file
  PresentMemory present;
  std::uint64_t serial = 0;
};

using ScoutJob = std::variant<ListModels, LookInside>;

// ---- what it reports

struct ModelsListed {
  std::vector<ui::ModelRow> rows;  // their headers follow one by one
};
struct ModelRowRead {
  ui::ModelRow row;
};
struct AllRowsRead {};
struct InsideRead {
  std::uint64_t serial = 0;
  ui::ModelInside inside;
};
using ScoutReport = std::variant<ModelsListed, ModelRowRead, AllRowsRead, InsideRead>;

// Where a scout looks, and what it takes for the machine's free memory.
struct ScoutPlaces {
  std::filesystem::path models_folder;
  std::filesystem::path default_model;
  std::filesystem::path home;
  std::function<std::int64_t()> available_bytes;
  // Asked before a file is opened here; empty: nobody is.
  std::function<Result<ProbeReport>(const std::string& path, ProbeDepth depth)> probe = {};
  std::vector<hub::ModelPlace> other_programs = {};  // whose models are listed, too
};
ScoutPlaces default_scout_places();

class ModelScout {
 public:
  ModelScout(ScoutPlaces places, std::function<void()> wake_up);
  // Waits for the job in progress.
  ~ModelScout();
  ModelScout(const ModelScout&) = delete;
  ModelScout& operator=(const ModelScout&) = delete;

  void give(ScoutJob job);
  // Since the last call, in order.
  std::vector<ScoutReport> take_reports();

 private:
  void run();
  bool has_work() const { return list_ || look_ || !unread_.empty(); }
  void report(ScoutReport report);

  std::vector<ui::ModelRow> list(const ListModels& job) const;
  Result<ModelDescription> describe(const std::string& path) const;
  void read(ui::ModelRow& row) const;
  ui::ModelInside look(LookInside job);
  Result<void> open_preview(const std::string& path);

  const ScoutPlaces places_;
  const std::function<void()> wake_up_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<ListModels> list_;  // guarded by mutex_, as are the next four
  std::optional<LookInside> look_;
  std::deque<ui::ModelRow> unread_;
  std::vector<ScoutReport> reports_;
  bool stopping_ = false;
  // Of the scouting thread: the file that was looked into last stays open, for other options.
  std::unique_ptr<ModelPreview> preview_;
  std::string preview_path_;
  std::string preview_check_;  // what checked it, for a person
  std::uintmax_t preview_bytes_ = 0;
  std::filesystem::file_time_type preview_time_ = {};
  std::thread thread_;
};

}  // namespace octavo::app
