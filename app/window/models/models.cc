#include "app/window/models/models.h"

#include <filesystem>

#include "app/remote/remote_engine.h"
#include "app/window/models/model_title.h"
#include "engine/base/format.h"
#include "engine/base/text.h"
#include "engine/model/model_files.h"
#include "engine/model_preview.h"

namespace octavo::app {
namespace {

std::string model_details(const EngineDescription& description) {
  if (is_remote(description)) return "runs elsewhere · " + description.model.path;
  return parameters_text(description.model.num_parameters) + " parameters · " + description.device + " " +
         description.isa + " · " + count_text(description.threads, "thread");
}

}  // namespace

Models::Models(const Engines& engines, std::vector<RecentModel> recent, ui::UiState& state)
    : engines_(engines), state_(state), picker_(state.picker), remote_(state), catalogue_(state.catalogue) {
  picker_.set_recent(std::move(recent));
}

void Models::show_banner(ui::BannerKind kind, std::string sentence) {
  state_.banner = ui::Banner{kind, std::move(sentence)};
}

void Models::describe(const EngineDescription& description) {
  ui::ModelState& model = state_.model;
  model = {.phase = ui::ModelPhase::kReady, .name = model_title(description.model)};
  model.path = sanitise_utf8(description.model.path);
  model.quantisation = description.model.quantisation;
  model.details = model_details(description);
  model.block_size = description.block_size;
  model.num_blocks = description.num_blocks;
  model.bytes_per_block = description.bytes_per_block;
  model.max_model_len = description.max_model_len;
  model.is_remote = is_remote(description);
  const auto remote = parse_remote_model(description.model.path);
  remote_.describe(model.is_remote && remote ? remote->address : std::string());
  model.is_demonstration =
      std::filesystem::path(description.model.path).filename() == model::default_model_path().filename();
  model.sampling_advice = description.model.sampling_advice;
  model.template_switches = description.model.template_switches;
}

// ---- loads

void Models::apply(const ui::actions::CancelLoading&) {
  effects_.cancel_loading = true;
  picker_.show_cancelling();
}

void Models::apply(const ui::actions::ContinueOnCpu&) {
  state_.banner.reset();
  effects_.continue_on_cpu = true;
}

void Models::show_loading(const std::string& path, double fraction) {
  picker_.show_loading(path, fraction);
  if (engines_.newest() != nullptr) return;
  state_.model.phase = ui::ModelPhase::kLoading;
  state_.model.path = sanitise_utf8(path);
  state_.model.load_fraction = fraction;
  state_.model.problem.clear();
}

void Models::note_loaded(const std::string& path, std::int64_t unix_time_ms) {
  ui::settle(state_.banner, ui::BannerTopic::kModel);
  picker_.note_loaded(path, unix_time_ms);
  catalogue_.note_loaded(path);
  if (!engines_.retired().empty()) {
    show_banner(ui::BannerKind::kNotice,
                state_.model.name + " is ready. Answers in progress finish on the previous model.");
  } else if (state_.picker.open) {
    show_banner(ui::BannerKind::kNotice, state_.model.name + " is ready.");
  }
  state_.picker.open = false;
}

void Models::show_load_failed(const std::string& path, const Error& error) {
  const std::string name = state_.picker.loading ? state_.picker.loading->name : model_title(path, {});
  if (error.code == ErrorCode::kCancelled) {
    picker_.note_ended();
    show_banner(ui::BannerKind::kNotice,
                "Loading " + name + " was cancelled; still using " + state_.model.name + ".");
    return;
  }
  picker_.note_failed(path, error.message);
  show_banner(ui::BannerKind::kError, name + " could not be loaded; still using " + state_.model.name + ": " +
                                          sanitise_utf8(error.message));
  state_.banner->topic = ui::BannerTopic::kModel;
}

void Models::offer_cpu(const Error& lost) {
  const Engine* engine = engines_.newest();
  if (engine == nullptr || engine->description().device == "cpu") return;
  show_banner(ui::BannerKind::kError, sanitise_utf8(lost.message));
  state_.banner->offer = ui::BannerOffer::kContinueOnCpu;
  state_.banner->topic = ui::BannerTopic::kModel;
}

void Models::show_no_model(const std::string& path, const std::string& problem) {
  picker_.note_ended();
  note_pool(/*is_tiny=*/false);
  state_.model = {.problem = problem, .path = sanitise_utf8(path)};
}

// ---- a tiny pool

void Models::apply(const ui::actions::AskAboutTinyPool& a) {
  const Engine* engine = engines_.newest();
  const bool has_pool = engine != nullptr && !is_remote(engine->description());
  state_.tiny_pool.question = has_pool ? a.question : ui::TinyPoolQuestion::kNone;
  if (!has_pool) return;
  const EngineDescription& present = engine->description();
  const EngineOptions tiny = with_tiny_pool({.block_size = present.block_size}, present.max_model_len);
  state_.tiny_pool.num_blocks = *tiny.num_kv_blocks;
  state_.tiny_pool.block_size = tiny.block_size;
}

void Models::apply(const ui::actions::LendTinyPool& a) {
  state_.tiny_pool.question = ui::TinyPoolQuestion::kNone;
  effects_.lend_tiny_pool = a.running;
}

void Models::apply(const ui::actions::GiveBackPool& a) {
  state_.tiny_pool.question = ui::TinyPoolQuestion::kNone;
  effects_.give_back_pool = a.running;
}

// ---- the picker

PresentMemory Models::present_memory() const {
  Engine* engine = engines_.newest();
  if (engine == nullptr) return {};
  const KvTotals totals = engine->kv_totals();
  return {resident_bytes(engine->description(), totals), unwritten_pool_bytes(engine->description(), totals)};
}

void Models::open_picker(ui::ModelPurpose purpose) {
  picker_.set_present(present_memory());
  const Engine* engine = engines_.newest();
  picker_.open(engine != nullptr ? engine->description().model.path : std::string(), purpose);
}

void Models::apply(const ui::actions::OpenModelPicker&) { open_picker(ui::ModelPurpose::kAnswers); }

void Models::choose_second() { open_picker(ui::ModelPurpose::kComparison); }

void Models::apply(const ui::actions::OpenModelFile& a) {
  picker_.set_present(present_memory());
  picker_.open_file(a.path);
}

void Models::apply(const ui::actions::ModelPickerAction& a) {
  picker_.set_present(present_memory());
  picker_.apply(a);
}

void Models::apply(const ui::actions::RemoteModelAction& a) {
  remote_.apply(a);
  RemoteEffects wanted = remote_.take_effects();
  for (RemoteJob& job : wanted.jobs) effects_.remote_jobs.push_back(std::move(job));
  if (wanted.load_path) picker_.load(*wanted.load_path);
}

void Models::apply(const ui::actions::CatalogueAction& a) { catalogue_.apply(a); }

void Models::take_scouted(ScoutReport report) { picker_.take(std::move(report)); }

ModelEffects Models::take_effects() {
  CatalogueEffects wanted = catalogue_.take_effects();
  if (wanted.load_path) {
    picker_.load(*wanted.load_path);
    state_.picker.open = false;
  }
  ModelEffects effects = std::exchange(effects_, {});
  effects.catalogue = std::move(wanted);
  ModelPickerEffects picked = picker_.take_effects();
  effects.scout_jobs = std::move(picked.jobs);
  effects.load = std::move(picked.load);
  effects.settings_changed = picked.recent_models_changed;
  return effects;
}

}  // namespace octavo::app
