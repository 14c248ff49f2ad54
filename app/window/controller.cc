#include "app/window/controller.h"

#include <algorithm>
#include <chrono>
#include <variant>

#include "app/window/give_action.h"
#include "app/window/server/served_engine.h"

namespace octavo::app {

Controller::Controller(const Clock& clock, const Settings& settings,
                       std::function<std::int64_t()> wall_clock_ms, const SeedSource& draw_seed)
    : clock_(clock),
      settings_(settings),
      chat_(clock, std::move(wall_clock_ms), settings_.sampling, memory_workspace_.tokens(), state_),
      compare_(clock, draw_seed, chat_, settings_.sampling, state_),
      batch_(draw_seed, settings_.sampling, state_),
      two_models_(chat_, state_),
      models_(engines_, settings.recent_models, state_),
      server_(settings_.ui, state_),
      desktop_(memory_workspace_, compare_, settings_, state_),
      files_(settings.recent_folders, state_.files),
      file_questions_({.exports = {}, .recordings = default_recordings_folder()}, files_, state_),
      reports_(
          memory_workspace_, compare_, [this](RequestId id) { return chat_.answers().chat_of(id); }, state_) {
  memory_workspace_.name_others([this](RequestId request, std::int32_t output_index) {
    const auto name = compare_.comparison().name_of(request, output_index);
    if (name) return name;
    const auto of_batch = batch_.name_of(request);
    return of_batch ? of_batch : memory_workspace_.requests().name_of(request);
  });
  state_.settings = settings.ui;
}

// After everything that can change what is drawn.
void Controller::update() {
  take_memory_effects();
  chat_.update();
  state_.picker.num_running = static_cast<std::int32_t>(chat_.answers().num_running()) +
                              (compare_.running() ? 1 : 0) + (batch_.running() ? 1 : 0);
  notices_.update(state_.banner, clock_.now_us());
  answer_watch_.update(state_.chats, clock_.now_us());
}

// ---- the banner

void Controller::show_banner(ui::Banner banner) {
  state_.banner = std::move(banner);
  notices_.update(state_.banner, clock_.now_us());
}

void Controller::show_written(std::string sentence, std::string path) {
  show_banner(
      {.text = std::move(sentence), .offer = ui::BannerOffer::kShowInFolder, .path = std::move(path)});
}

void Controller::settle(ui::BannerTopic topic) { ui::settle(state_.banner, topic); }

void Controller::take_memory_effects() {
  MemoryEffects effects = memory_workspace_.take_effects();
  if (effects.problem) show_banner(ui::BannerKind::kError, *effects.problem);
  if (effects.notice && !effects.written.empty()) {
    show_written(*effects.notice, effects.written);
  } else if (effects.notice) {
    show_banner(ui::BannerKind::kNotice, *effects.notice);
  }
  if (effects.picture) picture_ = std::move(effects.picture);
  Engine* engine = engines_.newest();
  if (effects.changes_watched_block && engine != nullptr) engine->watch_block(effects.watched_block);
}

Effects Controller::take_effects() {
  FileEffects files = files_.take_effects();
  Effects effects{.desktop = desktop_.take_effects(),
                  .chats = chat_.take_effects(),
                  .models = models_.take_effects(),
                  .listing = std::move(files.listing),
                  .two_models = two_models_.take_effects(),
                  .server = server_.take_effects(),
                  .exported_comparison = compare_.take_export(),
                  .prompts_file = batch_.take_wanted_file(),
                  .long_answers = answer_watch_.take_ended(),
                  .picture = std::exchange(picture_, std::nullopt)};
  if (auto batch = batch_.take_export()) effects.exported_comparison = std::move(batch);
  effects.settings_changed = effects.desktop.settings_changed || effects.chats.settings_changed ||
                             effects.models.settings_changed || effects.server.settings_changed ||
                             files.recent_changed;
  return effects;
}

Settings Controller::settings() const {
  Settings settings = settings_;
  settings.recent_models = models_.recent();
  settings.recent_folders = files_.recent();
  return settings;
}

// ---- what a person asked for

void Controller::route(const ui::actions::CompareAction& action) {
  std::visit([this](const auto& one) { give_action(one, compare_, batch_); }, action);
}

void Controller::route(const ui::actions::ModelAction& action) {
  std::visit([this](const auto& one) { models_.apply(one); }, action);
}

void Controller::route(const ui::actions::DesktopAction& action) {
  std::visit([this](const auto& one) { give_action(one, desktop_, chat_, files_, file_questions_, server_); },
             action);
}

void Controller::route(const ui::actions::TwoModelsAction& action) {
  std::visit([this](const auto& one) { two_models_.apply(one); }, action);
  if (std::holds_alternative<ui::actions::ChooseSecondModel>(action)) models_.choose_second();
}

void Controller::apply(const ui::Action& action) {
  if (file_questions_.asks_first(action)) return;
  const auto shown = std::pair(state_.workspace, state_.memory_workspace.page);
  std::visit([this](const auto& of_area) { route(of_area); }, action);
  const bool shows_other = std::pair(state_.workspace, state_.memory_workspace.page) != shown;
  if (shows_other && engines_.newest() != nullptr) reports_.expect();
  if (const auto chosen = files_.take_chosen()) return apply(*chosen);
  update();
  if (engines_.newest() != nullptr) memory_workspace_.show_chats(state_);  // one may have gone, or come back
}

void Controller::take_listed(FolderListed listed) {
  files_.take(std::move(listed));
  if (const auto chosen = files_.take_chosen()) apply(*chosen);
}

void Controller::take_read_files(FilesRead read) {
  if (read.reader == FilesFor::kBatch) {
    for (ReadFile& file : read.files)
      batch_.take_file(std::move(file.name), std::move(file.text), file.problem);
    return update();
  }
  chat_.take_read_files(std::move(read), [this](const ReadFile& file) { open_elsewhere(file); });
  update();
}

void Controller::open_elsewhere(const ReadFile& file) {
  if (file.kind == FileKind::kModel) return apply(ui::actions::OpenModelFile{file.path});
  apply(ui::actions::OpenRecording{file.path});
  apply(ui::actions::ShowWorkspace{ui::Workspace::kMemory});
}

// ---- the store

void Controller::attach_store(ChatStore& store) { chat_.attach_store(store); }

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
  models_.describe(engine.description());
  server_.show_model(served_model_names(engine.description().model).front());
  two_models_.set_first(engine.description().model.path);
  compare_.attach_engine(engine, plan_context);
  batch_.attach_engine(engine, plan_context);
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
  batch_.detach_engine();
  engines_.detach_all();
  server_.show_model({});
  update();
}

bool Controller::is_used(const Engine& engine) const {
  return chat_.uses(engine) || (compare_.running() && compare_.asks(engine));
}

void Controller::fold_plan(PlanMade made) {
  if (made.purpose.kind == PlanPurpose::Kind::kComparison) {
    compare_.take_plan(std::move(made));
  } else if (made.purpose.kind == PlanPurpose::Kind::kBatch) {
    batch_.take_plan(std::move(made));
  } else {
    chat_.take_plan(std::move(made));
  }
  update();
}

void Controller::fold_attachment_count(ChatId chat_id, std::uint64_t attachment_id, std::int32_t num_tokens) {
  chat_.take_attachment_count(chat_id, attachment_id, num_tokens);
  update();
}

bool Controller::turn_day() {
  const bool turned = chat_.is_another_day();
  if (turned) update();
  return turned;
}

// ---- what engines report

bool Controller::poll_engine() {
  const bool moved = memory_workspace_.tick(clock_.now_us(), state_);
  bool heard = false;
  Engine* engine = engines_.newest();
  if (engine != nullptr) {
    heard = poll_retired();
    const auto events = engine->poll(std::chrono::microseconds(0));
    for (const EngineEvent& event : events) {
      take_event(event);
      reports_.learn(event);
    }
    compare_.finish_poll();
    batch_.finish_poll();
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

RequestName Controller::name_of(RequestId request_id) {
  if (const auto chat_id = chat_.answers().chat_of(request_id)) {
    const ui::ChatState* chat = ui::find_chat(state_, *chat_id);
    return {.route = "chat", .client = chat != nullptr ? chat->title : std::string(), .chat_id = *chat_id};
  }
  if (const auto name = compare_.comparison().name_of(request_id, 0))
    return {.route = "comparison", .client = *name};
  if (const auto name = batch_.name_of(request_id)) return {.route = "batch", .client = *name};
  return {.route = "summary", .client = "Summary of a chat"};
}

void Controller::take_event(const EngineEvent& event) {
  if (const auto* accepted = std::get_if<RequestAccepted>(&event))
    memory_workspace_.requests().name(accepted->request_id, name_of(accepted->request_id));
  const auto* failed = std::get_if<RequestFailed>(&event);
  if (failed != nullptr && failed->error.code == ErrorCode::kDeviceLost) models_.offer_cpu(failed->error);
  if (!compare_.fold(event) && !batch_.fold(event)) chat_.fold(event);
}

}  // namespace octavo::app
