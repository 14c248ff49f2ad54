#include "app/window/models/model_picker.h"

#include <algorithm>
#include <limits>

#include "app/window/models/model_title.h"
#include "engine/base/text.h"

namespace octavo::app {
namespace {

namespace act = ui::actions;

constexpr std::int64_t kMostMebibytes = std::int64_t{1} << 24;  // 16 TiB

}  // namespace

void ModelPicker::set_base(const EngineOptions& options) {
  base_ = options;
  state_.options = {.max_model_len = options.max_model_len.value_or(0),
                    .kv_cache_mebibytes = options.kv_cache_memory.value_or(0),
                    .kv_cache_dtype = options.kv_cache_dtype,
                    .activation_dtype = options.activation_dtype};
}

// A recording is of the engine that the command line asked for: another one would write over it.
EngineOptions ModelPicker::options_of(const std::string& path) const {
  const ui::ModelLoadOptions& chosen = state_.options;
  EngineOptions options = base_;
  options.model = path;
  options.record.clear();
  options.kv_cache_dtype = chosen.kv_cache_dtype;
  options.activation_dtype = chosen.activation_dtype;
  options.max_model_len.reset();
  if (chosen.max_model_len > 0) options.max_model_len = chosen.max_model_len;
  options.kv_cache_memory.reset();
  if (chosen.kv_cache_mebibytes > 0) {
    options.num_kv_blocks.reset();
    options.kv_cache_memory = chosen.kv_cache_mebibytes;
  }
  return options;
}

void ModelPicker::open(const std::string& present_path, ui::ModelPurpose purpose) {
  state_.open = true;
  state_.purpose = purpose;
  list_models();
  if (state_.inside.path.empty()) {
    if (!present_path.empty()) choose(present_path);
  } else {
    look_inside();  // memory may be another by now
  }
}

void ModelPicker::open_file(const std::string& path) {
  state_.open = true;
  state_.purpose = ui::ModelPurpose::kAnswers;
  list_models();
  choose(path);
}

void ModelPicker::apply(const act::ModelPickerAction& action) {
  std::visit([this](const auto& a) { apply_one(a); }, action);
}

void ModelPicker::list_models() {
  state_.scanning = true;
  effects_.jobs.push_back(ListModels{recent_});
}

void ModelPicker::choose(const std::string& path) {
  if (state_.inside.path != path) {
    state_.inside = {};
    state_.inside.path = path;
  }
  look_inside();
}

void ModelPicker::look_inside() {
  state_.inside.reading = true;
  effects_.jobs.push_back(LookInside{options_of(state_.inside.path), present_, ++newest_look_});
}

ui::ModelRow* ModelPicker::find_row(const std::string& path) {
  const auto found =
      std::find_if(state_.rows.begin(), state_.rows.end(), [&](const auto& row) { return row.path == path; });
  return found == state_.rows.end() ? nullptr : &*found;
}

// ---- what a person asked

void ModelPicker::apply_one(const act::CloseModelPicker&) { state_.open = false; }

void ModelPicker::apply_one(const act::ChooseModel& a) {
  if (!a.path.empty()) choose(a.path);
}

void ModelPicker::apply_one(const act::ForgetModel& a) {
  std::erase_if(recent_, [&](const RecentModel& model) { return model.path == a.path; });
  std::erase_if(state_.rows, [&](const ui::ModelRow& row) { return row.path == a.path && !row.is_present; });
  if (state_.inside.path == a.path) state_.inside = {};
  effects_.recent_models_changed = true;
}

void ModelPicker::apply_one(const act::ChangeLoadOptions& a) {
  ui::ModelLoadOptions options = a.options;
  const std::int32_t longest = state_.inside.context_length;
  options.max_model_len = std::max(options.max_model_len, 0);
  if (longest > 0 && options.max_model_len >= longest) options.max_model_len = 0;
  options.kv_cache_mebibytes = std::clamp<std::int64_t>(options.kv_cache_mebibytes, 0, kMostMebibytes);
  if (options == state_.options) return;
  state_.options = options;
  if (!state_.inside.path.empty()) look_inside();
}

void ModelPicker::apply_one(const act::LoadChosenModel& a) {
  const ui::ModelInside& inside = state_.inside;
  const ui::ModelFit fit = inside.memory.fit;
  const bool can_load = fit == ui::ModelFit::kFits || fit == ui::ModelFit::kFitsAlone;
  if (inside.path.empty() || inside.reading || !inside.problem.empty() || !can_load) return;
  ModelLoadRequest request{{options_of(inside.path)}, a.running};
  EngineOptions& options = request.load.options;
  // As large as was shown, whatever becomes free meanwhile.
  if (!options.kv_cache_memory) options.num_kv_blocks = inside.memory.num_blocks;
  if (fit == ui::ModelFit::kFitsAlone) request.running = act::RunningAnswers::kStop;
  effects_.load = std::move(request);
}

void ModelPicker::load(const std::string& path) {
  effects_.load = ModelLoadRequest{{options_of(path)}, act::RunningAnswers::kFinish};
}

// ---- what the scout found

void ModelPicker::take(ScoutReport report) {
  std::visit([this](auto& r) { take_one(r); }, report);
}

// What is known of a row stays until it is read again.
void ModelPicker::take_one(ModelsListed& report) {
  for (ui::ModelRow& row : report.rows) {
    const ui::ModelRow* before = find_row(row.path);
    if (before == nullptr || before->file_bytes != row.file_bytes || !row.is_present) continue;
    row.is_read = before->is_read;
    row.name = before->name;
    row.summary = before->summary;
    row.problem = before->problem;
  }
  state_.rows = std::move(report.rows);
  if (state_.inside.path.empty() && !state_.rows.empty()) choose(state_.rows.front().path);
}

void ModelPicker::take_one(ModelRowRead& report) {
  if (ui::ModelRow* row = find_row(report.row.path)) *row = std::move(report.row);
}

void ModelPicker::take_one(AllRowsRead&) { state_.scanning = false; }

void ModelPicker::take_one(InsideRead& report) {
  if (report.serial != newest_look_) return;
  state_.inside = std::move(report.inside);
  if (state_.inside.name.empty()) state_.inside.name = model_title(state_.inside.path, {});
  const std::int32_t longest = state_.inside.context_length;
  if (longest > 0 && state_.options.max_model_len >= longest) {  // chosen for a model with a longer context
    state_.options.max_model_len = 0;
    look_inside();
  }
}

// ---- loads

void ModelPicker::show_loading(const std::string& path, double fraction) {
  const bool is_cancelling = state_.loading && state_.loading->path == path && state_.loading->is_cancelling;
  const ui::ModelRow* row = find_row(path);
  const bool is_inside = state_.inside.path == path && !state_.inside.name.empty();
  state_.loading = ui::ModelLoading{.path = path,
                                    .name = is_inside                              ? state_.inside.name
                                            : row != nullptr && !row->name.empty() ? row->name
                                                                                   : model_title(path, {}),
                                    .fraction = fraction,
                                    .is_cancelling = is_cancelling};
}

void ModelPicker::show_cancelling() {
  if (state_.loading) state_.loading->is_cancelling = true;
}

void ModelPicker::note_loaded(const std::string& path, std::int64_t unix_time_ms) {
  state_.loading.reset();
  std::erase_if(recent_, [&](const RecentModel& model) { return model.path == path; });
  recent_.insert(recent_.begin(), {path, unix_time_ms});
  if (recent_.size() > kMostRecentModels) recent_.resize(kMostRecentModels);
  effects_.recent_models_changed = true;
  if (state_.open) list_models();
}

void ModelPicker::note_failed(const std::string& path, const std::string& problem) {
  state_.loading.reset();
  if (ui::ModelRow* row = find_row(path)) row->problem = sanitise_utf8(problem);
}

}  // namespace octavo::app
