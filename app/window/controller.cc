#include "app/window/controller.h"

#include <algorithm>
#include <chrono>
#include <variant>

#include "app/window/give_action.h"

namespace octavo::app {

Controller::Controller(const Clock& clock, const Settings& settings)
    : clock_(clock),
      settings_(settings),
      chat_(clock, settings_.sampling, memory_workspace_.tokens(), state_),
      compare_(clock, chat_, settings_.sampling, state_),
      models_(engines_, settings.recent_models, state_),
      desktop_(memory_workspace_, compare_, settings_, state_),
      reports_(
          memory_workspace_, compare_, [this](RequestId id) { return chat_.answers().chat_of(id); }, state_) {
  state_.settings = settings.ui;
}

// After everything that can change what is drawn.
void Controller::update() {
  take_memory_effects();
  chat_.update();
  state_.picker.num_running =
      static_cast<std::int32_t>(chat_.answers().num_running()) + (compare_.running() ? 1 : 0);
}

void Controller::take_memory_effects() {
  MemoryEffects effects = memory_workspace_.take_effects();
  if (effects.problem) show_banner(ui::BannerKind::kError, *effects.problem);
  if (effects.notice) show_banner(ui::BannerKind::kNotice, *effects.notice);
  if (effects.picture) picture_ = std::move(effects.picture);
  Engine* engine = engines_.newest();
  if (effects.changes_watched_block && engine != nullptr) engine->watch_block(effects.watched_block);
}

Effects Controller::take_effects() {
  Effects effects{.desktop = desktop_.take_effects(),
                  .chats = chat_.take_effects(),
                  .models = models_.take_effects(),
                  .exported_comparison = compare_.take_export(),
                  .picture = std::exchange(picture_, std::nullopt)};
  effects.settings_changed =
      effects.desktop.settings_changed || effects.chats.settings_changed || effects.models.settings_changed;
  return effects;
}

Settings Controller::settings() const {
  Settings settings = settings_;
  settings.recent_models = models_.recent();
  return settings;
}

// ---- what a person asked for

void Controller::route(const ui::actions::CompareAction& action) {
  std::visit([this](const auto& one) { compare_.apply(one); }, action);
}

void Controller::route(const ui::actions::ModelAction& action) {
  std::visit([this](const auto& one) { models_.apply(one); }, action);
}

void Controller::route(const ui::actions::DesktopAction& action) {
  std::visit([this](const auto& one) { give_action(one, desktop_, chat_); }, action);
}

void Controller::apply(const ui::Action& action) {
  const ui::Workspace shown = state_.workspace;
  std::visit([this](const auto& of_area) { route(of_area); }, action);
  if (state_.workspace != shown && engines_.newest() != nullptr) reports_.expect();
  update();
}

void Controller::take_read_files(FilesRead read) {
  chat_.take_read_files(std::move(read), [this](const ReadFile& file) { open_elsewhere(file); });
  update();
}

void Controller::open_elsewhere(const ReadFile& file) {
  if (file.kind == FileKind::kModel) return apply(ui::actions::OpenModelFile{file.path});
  apply(ui::actions::OpenRecording{file.path});
  apply(ui::actions::ShowWorkspace{ui::Workspace::kMemory});
}

// ---- the store

void Controller::attach_store(ChatStore& store, std::function<std::int64_t()> unix_time_ms) {
  chat_.attach_store(store, std::move(unix_time_ms));
}

bool Controller::poll_store() {
  const bool changed = chat_.poll_store();
  update();
  return changed;
}

void Controller::take_imported(std::vector<Chat> chats) {
  chat_.take_imported(std::move(chats));
  update();
}

// ---- one engine after the other

void Controller::attach_engine(Engine& engine, PlanContext plan_context) {
  engines_.attach(engine);
  engines_.drop_retired([this](const Engine& before) { return is_used(before); });
  reports_.forget_engine();
  reports_.expect();
  compare_.attach_engine(engine);
  models_.describe(engine.description());
  const tokenizer::Tokenizer& vocabulary = engine.tokenizer();
  memory_workspace_.attach(
      engine.description(), engine.history(),
      [&vocabulary](TokenId id) { return vocabulary.token_bytes(id); }, state_);
  chat_.attach_engine(engine, std::move(plan_context));
  update();
}

void Controller::detach_engine() {
  memory_workspace_.detach();
  chat_.detach_engine();
  compare_.detach_engine();
  engines_.detach_all();
  update();
}

bool Controller::is_used(const Engine& engine) const {
  return chat_.uses(engine) || (compare_.running() && compare_.asks(engine));
}

void Controller::fold_plan(PlanMade made) {
  chat_.take_plan(std::move(made));
  update();
}

void Controller::fold_attachment_count(ChatId chat_id, std::uint64_t attachment_id, std::int32_t num_tokens) {
  chat_.take_attachment_count(chat_id, attachment_id, num_tokens);
  update();
}

// ---- what engines report

bool Controller::poll_engine() {
  const bool moved = memory_workspace_.tick(clock_.now_us(), state_);
  bool heard = false;
  Engine* engine = engines_.newest();
  if (engine != nullptr) {
    heard = poll_retired();
    const auto events = engine->poll(std::chrono::microseconds(0));
    for (const EngineEvent& event : events) take_event(event);
    compare_.comparison().finish_poll();
    if (!events.empty() || busy()) reports_.expect();
    heard |= !events.empty();
  }
  update();
  const bool reported = engine != nullptr && reports_.take(*engine, busy());
  return moved || heard || reported;
}

bool Controller::poll_retired() {
  bool heard = false;
  for (Engine* const engine : engines_.retired()) {
    const auto events = engine->poll(std::chrono::microseconds(0));
    for (const EngineEvent& event : events) take_event(event);
    heard |= !events.empty();
  }
  compare_.follow_engine();
  engines_.drop_retired([this](const Engine& engine) { return is_used(engine); });
  return heard;
}

void Controller::fold(const EngineEvent& event) {
  take_event(event);
  update();
}

void Controller::take_event(const EngineEvent& event) {
  const auto* failed = std::get_if<RequestFailed>(&event);
  if (failed != nullptr && failed->error.code == ErrorCode::kDeviceLost) models_.offer_cpu(failed->error);
  if (!compare_.comparison().fold(event)) chat_.fold(event);
}

}  // namespace octavo::app
