#include "app/window/application.h"

#include <imgui.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "app/window/memory/memory_export.h"
#include "app/window/platform/open_link.h"
#include "app/window/platform/png.h"
#include "engine/base/text.h"

namespace octavo::app {
namespace {

constexpr std::int64_t kOwedReportUs = 50'000;
// The wall clock may jump, and stands beside the one that waits: it is looked at this often, at the least.
constexpr double kLongestWait = 3600;
// A fast engine reports hundreds of times a second; taking that in more often than it is drawn would only
// cost tokens. A little longer than FramePacing's frame, so that both happen in one waking. What comes after
// a silence is taken in at once.
constexpr std::int64_t kUpdateUs = 35'000;

}  // namespace

Result<std::unique_ptr<Application>> Application::start(const WindowOptions& options, EngineFactory factory,
                                                        const Clock& clock) {
  const LoadedSettings settings = load_settings(options.settings_path);
  OCTAVO_TRY(auto window, Window::open("Octavo", {settings.settings.width, settings.settings.height}));
  return std::unique_ptr<Application>(
      new Application(options, std::move(factory), clock, std::move(window), settings));
}

Application::Application(const WindowOptions& options, EngineFactory factory, const Clock& clock,
                         std::unique_ptr<Window> window, const LoadedSettings& settings)
    : options_(options),
      clock_(clock),
      window_(std::move(window)),
      controller_(clock_, settings.settings, options_.unix_time_ms),
      bus_(options_.bus_address, [this] { wake_up(); }),
      door_(options_.unix_time_ms, [this] { wake_up(); }),
      loader_(std::move(factory), [this] { wake_up(); }) {
  controller_.set_system_theme(theme_without_bus(std::getenv("GTK_THEME")));
  open_chats();
  file_reader_ = std::make_unique<FileReader>([this] { wake_up(); });
  folder_reader_ = std::make_unique<FolderReader>(options_.model_places.home, [this] { wake_up(); });
  controller_.set_export_folder(options_.export_folder);
  if (!options_.socket_path.empty())
    first_window_ = FirstWindow::listen(options_.socket_path, [this] { wake_up(); });
  if (!settings.notice.empty()) controller_.show_banner(ui::BannerKind::kNotice, settings.notice);
  scout_ = std::make_unique<ModelScout>(options_.model_places, [this] { wake_up(); });
  remote_link_ =
      std::make_unique<RemoteLink>(RemoteKeys(options_.bus_address, remote_keys_path(options_.settings_path)),
                                   clock_, [this] { wake_up(); });
  const auto& probe = options_.model_places.probe;
  hub::CheckHeader check;
  if (probe) {
    check = [probe](const std::filesystem::path& path) -> Result<void> {
      OCTAVO_TRY_VOID(probe(path.string(), ProbeDepth::kHeader));
      return {};
    };
  }
  catalogue_link_ =
      std::make_unique<CatalogueLink>(options_.hub_place, clock_, options_.model_places.available_bytes,
                                      std::move(check), [this] { wake_up(); });
  controller_.models().catalogue().begin(catalogue_link_->place());
  two_models_worker_ = std::make_unique<TwoModelsWorker>([this] { wake_up(); });
  server_ = std::make_unique<ServerRunner>(door_, [this] { wake_up(); });
  const std::filesystem::path& settings_path = options_.settings_path;
  controller_.server().begin(settings_path.empty() ? settings_path
                                                   : settings_path.parent_path() / "server-key");
  controller_.models().set_base(options_.engine);
  controller_.two_models().set_base(options_.engine);
  load_first_model(settings.settings.recent_models);
  if (!options_.recording.empty()) controller_.apply(ui::actions::OpenRecording{options_.recording});
  if (!options_.files.empty()) controller_.apply(ui::actions::OpenFiles{options_.files});
  perform_effects();
}

Application::~Application() {
  save_settings_now();
  door_.lead_to(nullptr, "the window is being closed");
  if (served_ != nullptr) served_->cancel_all();
  server_.reset();
  controller_.finish_saving();
  controller_.detach_engine();  // it reads the engines
}

void Application::open_chats() {
  transfer_ = std::make_unique<ChatTransfer>([this] { wake_up(); });
  if (options_.chats_path.empty()) return;
  StoreOptions store;
  store.paths.database = options_.chats_path;
  store.unix_time_ms = options_.unix_time_ms;
  store_ = std::make_unique<ChatStore>(std::move(store), clock_, [this] { wake_up(); });
  controller_.attach_store(*store_);
}

bool Application::step_for(double seconds) {
  wakes_by_itself_ = expects_report_;  // before woken_ is read: see wake_up
  const double wait = seconds_to_wait(clock_.now_us());
  window_->wait_events(seconds < 0 ? wait : std::min(wait, seconds));
  const std::int64_t now_us = clock_.now_us();
  if (window_->take_input() || window_->has_queued_input()) pacing_.on_input(now_us);
  if (auto dropped = window_->take_dropped(); !dropped.empty()) {
    controller_.apply(ui::actions::OpenFiles{std::move(dropped)});
    perform_effects();
  }
  if (update_due(now_us)) {
    expects_report_ = update();
    if (expects_report_) pacing_.on_change(now_us);
  } else if (now_us >= next_update_us_) {
    expects_report_ = false;
  }
  if (controller_.turn_day()) pacing_.on_change(now_us);
  if (pacing_.frame_due(now_us) && !window_->hidden()) draw_frame();
  return !window_->should_close();
}

bool Application::update_due(std::int64_t now_us) const {
  if (controller_.notice_due_us() && now_us >= *controller_.notice_due_us()) return true;
  if (woken_) return now_us >= next_update_us_;
  return controller_.wants_poll() && now_us >= next_update_us_ + kOwedReportUs;
}

double Application::seconds_to_wait(std::int64_t now_us) const {
  const double change = seconds_to_change(now_us);
  const std::int64_t day_ms = controller_.state().library.tomorrow_ms - options_.unix_time_ms();
  const double day = std::clamp(static_cast<double>(day_ms) / 1e3, 0.0, kLongestWait);
  return change < 0 ? day : std::min(change, day);
}

// Until something is due for other reasons than the time of day; below 0: nothing is.
double Application::seconds_to_change(std::int64_t now_us) const {
  double frame = window_->hidden() ? -1 : pacing_.seconds_to_wait(now_us);
  if (const auto leaves = controller_.notice_due_us()) {
    const double left = static_cast<double>(std::max<std::int64_t>(0, *leaves - now_us)) / 1e6;
    frame = frame < 0 ? left : std::min(frame, left);
  }
  const bool looks = woken_ || expects_report_;
  if (!looks && !controller_.wants_poll()) return frame;
  const std::int64_t due_us = looks ? next_update_us_ : next_update_us_ + kOwedReportUs;
  const double update = static_cast<double>(std::max<std::int64_t>(0, due_us - now_us)) / 1e6;
  return frame < 0 ? update : std::min(frame, update);
}

bool Application::update() {
  woken_ = false;
  next_update_us_ = clock_.now_us() + kUpdateUs;
  bool changed = update_loading();
  changed |= controller_.poll_engine();
  close_retired();
  changed |= update_scouted();
  changed |= update_two_models();
  changed |= update_server();
  changed |= update_remote();
  changed |= update_catalogue();
  changed |= update_token_counts();
  changed |= update_chats();
  changed |= update_files();
  changed |= update_folders();
  changed |= update_desktop();
  changed |= controller_.tick();
  changed |= answer_other_starts();
  return changed;
}

bool Application::update_chats() {
  const bool reported = controller_.poll_store();
  perform_effects();  // an export may have waited for what was read
  auto transfers = transfer_->take_results();
  for (TransferResult& result : transfers) {
    controller_.take_imported(std::move(result.imported));
    if (result.written.empty()) {
      controller_.show_banner(result.failed ? ui::BannerKind::kError : ui::BannerKind::kNotice,
                              result.sentence);
    } else {
      controller_.show_written(result.sentence, result.written);
    }
  }
  return reported || !transfers.empty();
}

// Texts become attachments of a chat: not before the chats are there.
bool Application::update_files() {
  if (!controller_.store_opened() || controller_.state().model.phase == ui::ModelPhase::kLoading)
    return false;
  auto results = file_reader_->take_results();
  for (FilesRead& read : results) controller_.take_read_files(std::move(read));
  if (!results.empty()) perform_effects();
  return !results.empty();
}

bool Application::update_folders() {
  auto listed = folder_reader_->take_listed();
  for (FolderListed& one : listed) controller_.take_listed(std::move(one));
  if (!listed.empty()) perform_effects();
  return !listed.empty();
}

bool Application::update_desktop() {
  const auto theme = bus_.take_theme();
  if (theme) controller_.set_system_theme(*theme);
  const bool pressed = bus_.take_pressed();
  if (pressed) {
    window_->come_to_front();
    controller_.apply(ui::actions::SelectChat{told_chat_});
  }
  return theme.has_value() || pressed;
}

// Who looks at the window sees it.
void Application::tell_of(const LongAnswer& answer) {
  if (!controller_.state().settings.notifies || window_->is_in_front()) return;
  told_chat_ = answer.chat_id;
  bus_.notify({answer.failed ? "An answer has failed" : "An answer is ready", "“" + answer.title + "”"});
}

bool Application::answer_other_starts() {
  if (first_window_ == nullptr) return false;
  const auto starts = first_window_->take_starts();
  for (const OtherStart& start : starts) {
    window_->come_to_front();
    if (!start.files.empty()) controller_.apply(ui::actions::OpenFiles{start.files});
  }
  if (!starts.empty()) perform_effects();
  return !starts.empty();
}

void Application::draw_frame() {
  const std::int64_t now_us = clock_.now_us();
  ImGui::GetIO().ConfigInputTextCursorBlink = pacing_.caret_blinks(now_us);
  window_->draw_frame([this] { views_.draw(controller_.state(), actions_, window_->content_scale()); });
  window_->present();
  ++num_frames_drawn_;
  pacing_.on_frame(now_us, ImGui::GetIO().WantTextInput);
  if (views_.wants_frame()) pacing_.on_change(now_us);
  apply_actions();
}

void Application::apply_actions() {
  const auto actions = actions_.take();
  if (actions.empty()) return;
  for (const ui::Action& action : actions) controller_.apply(action);
  pacing_.on_input(clock_.now_us());  // what an action changed is drawn at once
  perform_effects();
}

void Application::perform_effects() {
  Effects effects = controller_.take_effects();
  if (effects.settings_changed) save_settings_now();
  if (effects.exported_comparison) save_comparison(*effects.exported_comparison);
  if (effects.prompts_file)
    file_reader_->read(
        {.reader = FilesFor::kBatch, .as = ReadAs::kText, .paths = {*std::move(effects.prompts_file)}});
  if (effects.picture) save_picture(*effects.picture);
  for (const LongAnswer& answer : effects.long_answers) tell_of(answer);
  if (effects.listing) folder_reader_->give(*std::move(effects.listing));
  perform(effects.desktop);
  perform(std::move(effects.chats));
  perform(std::move(effects.models));
  perform(std::move(effects.two_models));
  perform(effects.server);
}

void Application::perform(const DesktopEffects& effects) {
  if (effects.clipboard) ImGui::SetClipboardText(effects.clipboard->c_str());
  const auto tell = [this](const Result<void>& opened) {
    if (!opened) controller_.show_banner(ui::BannerKind::kError, opened.error().message);
  };
  if (effects.open_link) tell(open_link(*effects.open_link));
  if (effects.show_in_folder) tell(show_in_folder(*effects.show_in_folder));
}

void Application::perform(ChatEffects effects) {
  for (ChatExport& chats : effects.exports) transfer_->export_chats(std::move(chats));
  if (effects.import_path) transfer_->import_chats(*std::move(effects.import_path));
  for (FilesToRead& files : effects.files_to_read) file_reader_->read(std::move(files));
}

bool Application::update_token_counts() {
  if (!present_.token_counter) return false;
  auto plans = present_.token_counter->take_plans();
  for (PlanMade& made : plans) controller_.fold_plan(std::move(made));
  const auto counts = present_.token_counter->take_attachment_counts();
  for (const AttachmentCount& count : counts)
    controller_.fold_attachment_count(count.chat_id, count.attachment_id, count.num_tokens);
  return !plans.empty() || !counts.empty();
}

void Application::save_settings_now() {
  Settings settings = controller_.settings();
  const WindowSize size = window_->size();
  settings.width = size.width;
  settings.height = size.height;
  const auto saved = save_settings(options_.settings_path, settings);
  if (saved) return controller_.settle(ui::BannerTopic::kSettings);
  controller_.show_banner(
      {.kind = ui::BannerKind::kError, .text = saved.error().message, .topic = ui::BannerTopic::kSettings});
}

// What the frame before showed.
void Application::save_picture(const std::filesystem::path& path) {
  const Picture picture = window_->read_pixels();
  const auto written =
      write_export(path, png_bytes(picture.width, picture.height, PixelKind::kColour, picture.pixels));
  if (!written) return controller_.show_banner(ui::BannerKind::kError, written.error().message);
  controller_.show_written("Exported to " + escape_for_message(path.string()) + ".", path.string());
}

void Application::save_comparison(const ExportedComparison& comparison) {
  const auto written = write_export(comparison.path, comparison.content);
  if (!written) return controller_.show_banner(ui::BannerKind::kError, written.error().message);
  controller_.show_written("Exported to " + escape_for_message(comparison.path) + ".", comparison.path);
}

// Waking goes through the display, whose process takes its time from the engine. While reports come one after
// the other the window looks by itself; it says so before it looks whether it was woken, and here it is the
// other way round, so that one of them sees the other.
void Application::wake_up() {
  if (!woken_.exchange(true) && !wakes_by_itself_) Window::wake_up();
}

}  // namespace octavo::app
