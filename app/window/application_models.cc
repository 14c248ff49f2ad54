// The application's part that has to do with models: loads, the engines that they give, and their end.

#include <system_error>
#include <utility>

#include "app/remote/remote_engine.h"
#include "app/window/application.h"
#include "app/window/models/model_title.h"

namespace octavo::app {
namespace {

bool is_there(const std::string& path) {
  std::error_code ignored;
  return is_remote_model(path) || std::filesystem::is_regular_file(path, ignored) ||
         std::filesystem::is_directory(path, ignored);  // of a Hugging Face repository
}

}  // namespace

void Application::load_first_model(const std::vector<RecentModel>& recent) {
  EngineOptions first = options_.engine;
  const bool has_recent = options_.prefers_recent_model && !recent.empty() && is_there(recent.front().path);
  if (has_recent && recent.front().path != first.model) {
    if (!first.model.empty()) fallback_ = ModelLoad{first};
    first.model = recent.front().path;
  }
  if (first.model.empty()) {
    controller_.models().show_no_model({}, options_.model_problem);
  } else {
    start_loading({first});
  }
}

void Application::perform(ModelEffects effects) {
  if (effects.load_again) load_model({loading_});
  if (effects.load) load_model(*std::move(effects.load));
  if (effects.lend_tiny_pool) lend_tiny_pool(*effects.lend_tiny_pool);
  if (effects.give_back_pool) give_back_pool(*effects.give_back_pool);
  if (effects.continue_on_cpu) load_on_cpu();
  if (effects.cancel_loading) loader_.cancel();
  for (ScoutJob& job : effects.scout_jobs) scout_->give(std::move(job));
  for (RemoteJob& job : effects.remote_jobs) remote_link_->give(std::move(job));
  for (CatalogueJob& job : effects.catalogue.jobs) catalogue_link_->give(std::move(job));
  const auto wish = effects.catalogue.wish;
  if (effects.catalogue.download) {
    catalogue_link_->download(*std::move(effects.catalogue.download),
                              wish.value_or(hub::DownloadWish::kGoOn));
  } else if (wish) {
    catalogue_link_->wish(*wish);
  }
}

void Application::perform(TwoModelsEffects effects) {
  if (effects.cancel) two_models_worker_->cancel();
  for (TwoModelsJob& job : effects.jobs) two_models_worker_->give(std::move(job));
}

void Application::load_model(ModelLoadRequest request) {
  if (request.load.options.model.empty()) return;
  if (loader_.loading()) {
    loader_.cancel();
    next_load_ = std::move(request);
    return;
  }
  const bool stops = request.running == ui::actions::RunningAnswers::kStop && present_.engine != nullptr;
  if (!stops) return start_loading(request.load);
  fallback_ = loaded_;
  start_loading(request.load, let_go_of_engines());
}

// A tiny pool ends with its device.
void Application::load_on_cpu() {
  ModelLoad load{loaded_.own.value_or(loaded_.options)};
  load.options.device = Device::kCpu;
  load_model({std::move(load), ui::actions::RunningAnswers::kStop});
}

void Application::lend_tiny_pool(ui::actions::RunningAnswers running) {
  if (present_.engine == nullptr) return;
  auto load = tiny_pool_load(loaded_, present_.engine->description().max_model_len);
  if (load) load_model({*std::move(load), running});
}

void Application::give_back_pool(ui::actions::RunningAnswers running) {
  if (auto load = own_pool_load(loaded_)) load_model({*std::move(load), running});
}

void Application::start_loading(const ModelLoad& load, std::vector<HeldEngine> first) {
  loading_ = load;
  controller_.models().show_loading(load.options.model, 0.0);
  loader_.start(load.options, std::move(first));
}

// Answers under way are interrupted.
std::vector<HeldEngine> Application::let_go_of_engines() {
  controller_.detach_engine();
  served_ = nullptr;
  lead_programs();
  std::vector<HeldEngine> held = std::exchange(retired_, {});
  held.push_back(std::exchange(present_, {}));
  return held;
}

bool Application::update_loading() {
  // The window never has an engine before it has its chats.
  if (!loader_.loading() || !controller_.store_opened()) return false;
  auto result = loader_.take_result();
  if (result) {
    end_loading(*std::move(result));
  } else {
    controller_.models().show_loading(loading_.options.model, loader_.fraction());
  }
  return true;
}

void Application::end_loading(Result<std::unique_ptr<Engine>> result) {
  if (next_load_) {  // another model was wanted meanwhile
    if (result) closer_.close({.engine = *std::move(result), .token_counter = nullptr});
    load_model(*std::exchange(next_load_, std::nullopt));
  } else if (result) {
    take_engine(*std::move(result));
  } else {
    take_failure(result.error());
  }
}

void Application::take_failure(const Error& error) {
  if (present_.engine != nullptr) {
    fallback_.reset();
    return controller_.models().show_load_failed(loading_.options.model, error);
  }
  const std::string path = loading_.options.model;
  if (!fallback_) return controller_.models().show_no_model(path, error.message);
  start_loading(*std::exchange(fallback_, std::nullopt));
  if (error.code != ErrorCode::kCancelled) {
    controller_.show_banner(
        ui::BannerKind::kError,
        model_title(path, {}) + " could not be loaded; reloading the previous model: " + error.message);
  }
}

void Application::take_engine(std::unique_ptr<Engine> engine) {
  HeldEngine before = std::exchange(present_, {});
  const auto log =
      std::make_shared<RequestLog>(RequestLogOptions{.tokenizer = &engine->tokenizer(),
                                                     .block_size = engine->description().block_size,
                                                     .unix_time_ms = options_.unix_time_ms,
                                                     .clock = &clock_});
  auto shared =
      std::make_unique<SharedEngine>(std::move(engine), [log](const EngineEvent& event) { log->add(event); });
  auto served = std::make_unique<ServedEngine>(
      *shared, log,
      ServedEngineOptions{
          .unix_time_ms = options_.unix_time_ms, .clock = &clock_, .version = options_.version});
  served_ = served.get();
  present_.engine = std::move(shared);
  present_.reader = std::move(served);
  present_.engine->set_wake_up([this] { wake_up(); });
  present_.token_counter =
      std::make_unique<TokenCounter>(present_.engine->tokenizer(), [this] { wake_up(); });
  controller_.attach_engine(*present_.engine,
                            is_remote(present_.engine->description()) ? plan_at_once() : plan_by_counting());
  controller_.set_attachment_counter([this](ChatId chat_id, std::uint64_t attachment_id, std::string text) {
    present_.token_counter->count_attachment(chat_id, attachment_id, std::move(text));
  });
  controller_.attach_requests(log);
  lead_programs();
  if (before.engine != nullptr) retired_.push_back(std::move(before));
  loaded_ = loading_;
  if (!is_remote(present_.engine->description()))
    controller_.attach_options(loaded_.own.value_or(loaded_.options));
  fallback_.reset();
  controller_.models().note_pool(/*is_tiny=*/loaded_.own.has_value());
  controller_.models().note_loaded(loading_.options.model, options_.unix_time_ms());
  perform_effects();
  close_retired();
}

PlanContext Application::plan_by_counting() {
  return [this](PlanWanted wanted) { present_.token_counter->plan(std::move(wanted)); };
}

PlanContext Application::plan_at_once() {
  return [this](const PlanWanted& wanted) {
    controller_.fold_plan({wanted.purpose, plan_without_counting(wanted.question)});
  };
}

void Application::close_retired() {
  std::erase_if(retired_, [this](HeldEngine& held) {
    if (controller_.uses(*held.engine) || (held.reader && held.reader->is_busy())) return false;
    closer_.close(std::move(held));
    return true;
  });
}

bool Application::update_scouted() {
  auto reports = scout_->take_reports();
  for (ScoutReport& report : reports) controller_.models().take_scouted(std::move(report));
  if (!reports.empty()) perform_effects();
  return !reports.empty();
}

// The load is asked for while somebody looks.
bool Application::update_remote() {
  const ui::UiState& state = controller_.state();
  const bool is_watched = state.model.is_remote && state.workspace == ui::Workspace::kMemory;
  std::optional<WatchedServer> watched;
  if (is_watched) watched = WatchedServer{state.remote_load.address, state.model.name};
  remote_link_->watch(std::move(watched));
  const auto listed = remote_link_->take_listed();
  for (const RemoteListed& one : listed) controller_.models().take_remote(one);
  const auto loads = remote_link_->take_loads();
  for (const RemoteLoadTold& told : loads) controller_.models().take_remote(told);
  return !listed.empty() || !loads.empty();
}

bool Application::update_catalogue() {
  Catalogue& catalogue = controller_.models().catalogue();
  const auto progress = catalogue_link_->take_progress();
  if (progress) catalogue.show_progress(*progress);
  const auto reports = catalogue_link_->take_reports();
  for (const CatalogueReport& report : reports) catalogue.take(report);
  const auto ended = catalogue_link_->take_ended();
  for (const DownloadEnded& end : ended) catalogue.take(end);
  const bool changed = progress || !reports.empty() || !ended.empty();
  if (changed) perform_effects();
  return changed;
}

bool Application::update_two_models() {
  auto reports = two_models_worker_->take_reports();
  for (TwoModelsReport& report : reports) controller_.two_models().take(std::move(report));
  const bool moved = controller_.two_models().show_progress(two_models_worker_->progress());
  if (!reports.empty()) perform_effects();
  return moved || !reports.empty();
}

}  // namespace octavo::app
