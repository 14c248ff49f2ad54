// The controller's part that has to do with models: which engine is asked, how one takes another's place
// while chats go on, and the model picker.

#include <algorithm>
#include <utility>

#include "app/window/controller.h"
#include "app/window/models/model_title.h"
#include "engine/base/format.h"
#include "engine/base/text.h"
#include "engine/model_preview.h"

namespace octavo::app {
namespace {

// After the last event the engine may still owe a snapshot; it is asked for this often before it is let be.
constexpr int kPollsAfterChange = 20;

std::string model_details(const EngineDescription& description) {
  return parameters_text(description.model.num_parameters) + " parameters · " + description.device + " " +
         description.isa + " · " + count_text(description.threads, "thread");
}

}  // namespace

// ---- one engine after the other

void Controller::attach_engine(Engine& engine, CountTokens count_tokens) {
  if (engine_ != nullptr && is_used(*engine_)) retired_.push_back(engine_);
  forget_memory();
  engine_ = &engine;
  count_tokens_ = std::move(count_tokens);
  if (!comparison_.running()) attach_comparison();
  describe_model();
  polls_left_ = kPollsAfterChange;
  const tokenizer::Tokenizer& vocabulary = engine.tokenizer();
  memory_workspace_.attach(
      engine.description(), engine.history(),
      [&vocabulary](TokenId id) { return vocabulary.token_bytes(id); }, state_);
  if (state_.chats.empty()) new_chat();
  count_everything();
  show_running();
}

// Blocks, sequences and token ids are the new engine's from now on; answers under way stay with theirs.
void Controller::forget_memory() {
  memory_workspace_.detach();
  memory_workspace_.tokens() = {};
  request_chats_.clear();
  memory_.forget_engine();
  state_.memory = {};
  for (ui::ChatState& shown : state_.chats) shown.memory = {};
  step_mark_ = event_mark_ = 0;
  newest_step_ = -1;
}

bool Controller::is_used(const Engine& engine) const {
  const bool answers = std::any_of(answers_.begin(), answers_.end(),
                                   [&](const auto& entry) { return entry.second.engine == &engine; });
  return answers || (comparison_engine_ == &engine && comparison_.running());
}

bool Controller::uses(const Engine& engine) const {
  return &engine == engine_ || std::find(retired_.begin(), retired_.end(), &engine) != retired_.end();
}

bool Controller::poll_retired() {
  bool heard = false;
  for (Engine* const engine : retired_) {
    const auto events = engine->poll(std::chrono::microseconds(0));
    for (const EngineEvent& event : events) take_event(event);
    heard |= !events.empty();
  }
  if (!comparison_.running()) attach_comparison();
  std::erase_if(retired_, [this](const Engine* engine) { return !is_used(*engine); });
  return heard;
}

// The comparison asks the newest engine. What it knows as token ids of another
// one is forgotten; its texts stay.
void Controller::attach_comparison() {
  if (engine_ == nullptr || comparison_engine_ == engine_) return;
  if (comparison_engine_ != nullptr) {
    comparison_.stop();
    comparison_.detach_engine("Another model was asked before this was done.");
  }
  comparison_engine_ = engine_;
  comparison_.attach_engine(*engine_);
}

void Controller::describe_model() {
  const EngineDescription& description = engine_->description();
  ui::ModelState& model = state_.model;
  model = {.phase = ui::ModelPhase::kReady, .name = model_title(description.model)};
  model.path = sanitise_utf8(description.model.path);
  model.quantisation = description.model.quantisation;
  model.details = model_details(description);
  model.block_size = description.block_size;
  model.num_blocks = description.num_blocks;
  model.bytes_per_block = description.bytes_per_block;
  model.max_model_len = description.max_model_len;
}

// Another vocabulary counts otherwise, and questions that waited for an engine have one.
void Controller::count_everything() {
  std::vector<ChatId> ids;
  for (const ui::ChatState& shown : state_.chats) ids.push_back(shown.id);
  for (const ChatId id : ids) {
    if (find_chat(id)->kept.loaded) count_context(id);
    send_queued(id);
  }
}

void Controller::detach_engine() {
  memory_workspace_.detach();
  interrupt_answers();
  engine_ = comparison_engine_ = nullptr;
  retired_.clear();
  comparison_.detach_engine("The model was unloaded before this was done.");
  count_tokens_ = {};
  count_attachment_ = {};
  answers_.clear();
  for (auto& [id, open_chat] : chats_) open_chat.answering.reset();
  show_running();
}

void Controller::show_running() {
  state_.picker.num_running =
      static_cast<std::int32_t>(answers_.size() + submissions_.size()) + (comparison_.running() ? 1 : 0);
}

// ---- loads

void Controller::show_loading(const std::string& path, double fraction) {
  picker_.show_loading(path, fraction);
  if (engine_ != nullptr) return;
  state_.model.phase = ui::ModelPhase::kLoading;
  state_.model.path = sanitise_utf8(path);
  state_.model.load_fraction = fraction;
  state_.model.problem.clear();
}

void Controller::note_model_loaded(const std::string& path, std::int64_t unix_time_ms) {
  picker_.note_loaded(path, unix_time_ms);
  if (retired_.empty()) {
    if (state_.picker.open) show_banner(ui::BannerKind::kNotice, state_.model.name + " answers from now on.");
  } else {
    show_banner(ui::BannerKind::kNotice,
                state_.model.name +
                    " answers from now on; answers that were begun finish on the model "
                    "before.");
  }
  state_.picker.open = false;
  take_picker_effects();
}

void Controller::show_load_failed(const std::string& path, const Error& error) {
  const std::string name = state_.picker.loading ? state_.picker.loading->name : model_title(path, {});
  if (error.code == ErrorCode::kCancelled) {
    picker_.note_ended();
    show_banner(ui::BannerKind::kNotice,
                "Loading " + name + " was cancelled; " + state_.model.name + " goes on answering.");
    return;
  }
  picker_.note_failed(path, error.message);
  show_banner(ui::BannerKind::kError, name + " could not be loaded, and " + state_.model.name +
                                          " goes on answering: " + sanitise_utf8(error.message));
}

// What a lost device owes fails at once, and so does everything that it is asked from now on.
void Controller::offer_cpu(const Error& lost) {
  if (engine_ == nullptr || engine_->description().device == "cpu") return;
  show_banner(ui::BannerKind::kError, sanitise_utf8(lost.message));
  state_.banner->offer = ui::BannerOffer::kContinueOnCpu;
}

void Controller::show_no_model(const std::string& path, const std::string& problem) {
  picker_.note_ended();
  state_.model = {.problem = problem, .path = sanitise_utf8(path)};
}

// ---- the picker

PresentMemory Controller::present_memory() const {
  if (engine_ == nullptr) return {};
  const KvTotals totals = engine_->kv_totals();
  return {resident_bytes(engine_->description(), totals),
          unwritten_pool_bytes(engine_->description(), totals)};
}

void Controller::pick_model(const ui::actions::ModelAction& action) {
  namespace act = ui::actions;
  picker_.set_present(present_memory());
  show_running();
  if (std::holds_alternative<act::OpenModelPicker>(action)) {
    picker_.open(engine_ != nullptr ? engine_->description().model.path : std::string());
  } else if (const auto* file = std::get_if<act::OpenModelFile>(&action)) {
    picker_.open_file(file->path);
  } else {
    picker_.apply(std::get<act::ModelPickerAction>(action));
  }
  take_picker_effects();
}

void Controller::take_scouted(ScoutReport report) {
  picker_.take(std::move(report));
  take_picker_effects();
}

void Controller::take_picker_effects() {
  ModelPickerEffects effects = picker_.take_effects();
  for (ScoutJob& job : effects.jobs) effects_.scout_jobs.push_back(std::move(job));
  if (effects.load) effects_.load = std::move(effects.load);
  effects_.settings_changed |= effects.recent_models_changed;
}

}  // namespace octavo::app
