#include "app/window/chat/chat_workspace.h"

#include <algorithm>
#include <variant>

#include "app/window/give_action.h"

namespace octavo::app {

ChatWorkspace::ChatWorkspace(const Clock& clock, std::function<std::int64_t()> unix_time_ms,
                             SamplingParams& sampling, TokenBook& tokens, ui::UiState& state)
    : state_(state),
      keeper_(std::move(unix_time_ms)),
      chats_(keeper_, sampling, state),
      context_(chats_, state),
      drafts_(chats_, context_),
      answers_(clock, chats_, context_, tokens, state),
      summaries_(chats_),
      questions_(chats_, answers_, context_, drafts_, summaries_, state),
      long_chats_(chats_, questions_, state),
      trash_(chats_, answers_, context_, state),
      branches_(chats_, context_, state),
      presets_(chats_, context_, keeper_, sampling, state.model.sampling_advice, effects_,
               state.library.presets),
      folders_(chats_, keeper_, state.library),
      search_(chats_, keeper_, state),
      exports_(chats_, effects_),
      files_(chats_, drafts_, effects_, state) {
  answers_.set_when_ended([this](ChatId chat_id) { questions_.send_queued(chat_id); });
  summaries_.set_when_ended(
      [this](ChatId chat_id, const std::string& problem) { questions_.take_summary(chat_id, problem); });
}

void ChatWorkspace::apply(const ui::actions::ChatAction& action) {
  const ChatId shown = state_.active_chat;
  std::visit(
      [this](const auto& one) {
        give_action(one, chats_, drafts_, questions_, long_chats_, summaries_, trash_, branches_, presets_,
                    folders_, search_, exports_);
      },
      action);
  if (state_.active_chat != shown) context_.count(state_.active_chat);  // a copy was never counted
}

void ChatWorkspace::update() {
  chats_.keep();
  const bool listed_others = shown_.show(chats_, answers_, state_);
  if (listed_others || is_another_day()) show_days();
  branches_.show_tree();
}

bool ChatWorkspace::is_another_day() const {
  const std::int64_t now_ms = keeper_.unix_time_ms();
  const ui::ChatLibraryState& library = state_.library;
  return library.days.empty() || now_ms >= library.tomorrow_ms || now_ms < library.days.front().begin_ms;
}

void ChatWorkspace::show_days() {
  const std::int64_t now_ms = keeper_.unix_time_ms();
  std::int64_t oldest_ms = now_ms;
  for (const ui::ChatState& chat : state_.chats) oldest_ms = std::min(oldest_ms, chat.updated_ms);
  state_.library.days = day_spans(now_ms, oldest_ms);
  state_.library.tomorrow_ms = day_begin_ms(now_ms, 1);
}

void ChatWorkspace::show_banner(ui::BannerKind kind, const std::string& sentence) {
  state_.banner = ui::Banner{kind, sentence};
}

// ---- one engine after the other

void ChatWorkspace::attach_engine(Engine& engine, const PlanContext& plan_context) {
  summaries_.stop_all();
  answers_.attach_engine(engine);
  context_.set_plan_context(plan_context);
  questions_.set_plan_context(plan_context);
  chats_.begin_anew();
  if (chats_.list().empty()) chats_.begin();
  // Another vocabulary counts otherwise, and questions that waited for an engine have one.
  const std::vector<ChatId> ids = chats_.list();
  for (const ChatId id : ids) {
    if (chats_.find(id)->kept.loaded) context_.count(id);
    questions_.send_queued(id);
  }
}

void ChatWorkspace::detach_engine() {
  summaries_.forget_all();
  answers_.detach_engine();
  context_.set_plan_context({});
  questions_.set_plan_context({});
  drafts_.set_count_attachment({});
}

// ---- the store

void ChatWorkspace::attach_store(ChatStore& store) {
  keeper_.attach_store(store);
  chats_.wait_for_store();
}

bool ChatWorkspace::poll_store() {
  if (keeper_.store() == nullptr) return false;
  auto reports = keeper_.store()->take_reports();
  for (StoreReport& report : reports) {
    std::visit([this](auto& r) { take_report(r); }, report);
  }
  const bool submitted = answers_.submit_saved();
  return !reports.empty() || submitted;
}

void ChatWorkspace::take_report(const StoreOpened& report) {
  const StoreContents& contents = report.contents;
  chats_.skip_ids(contents.last_chat);
  for (const ChatHead& head : contents.chats) {
    if (ChatRecord* record = chats_.add_stored(head)) drafts_.restore(record->draft, head.draft);
  }
  folders_.add_stored(contents);
  presets_.add_stored(contents);
  chats_.note_store_opened();
  if (chats_.list().empty() && answers_.engine() != nullptr) chats_.begin();
  if (!chats_.list().empty() && !chats_.is_listed(state_.active_chat)) chats_.show(chats_.list().front());
}

void ChatWorkspace::take_report(const StoreProblemChanged& report) {
  const bool had_problem = !state_.library.problem.empty();
  state_.library.problem = report.problem.sentence;
  state_.library.read_only = report.problem && !report.problem.passing();
  if (report.problem) {
    show_banner(report.problem.passing() ? ui::BannerKind::kError : ui::BannerKind::kNotice,
                report.problem.sentence);
  } else if (had_problem) {
    show_banner(ui::BannerKind::kNotice, "All chats are saved again.");
  }
}

void ChatWorkspace::take_report(const StoreNotice& report) {
  show_banner(ui::BannerKind::kNotice, report.sentence);
  if (!report.save_everything_again) return;
  folders_.keep_everything_again();
  presets_.keep_everything_again();
  chats_.keep_everything_again();
}

void ChatWorkspace::take_report(ChatLoaded& report) {
  const ChatId id = report.chat_id;
  if (!chats_.take_loaded(id, std::move(report.chat))) return;
  branches_.take_loaded(id);
  if (state_.active_chat == id) context_.count(id);
  exports_.export_loaded();
  questions_.send_queued(id);
}

void ChatWorkspace::take_plan(PlanMade made) {
  if (made.purpose.kind == PlanPurpose::Kind::kShown) return context_.take(made.purpose.chat_id, made.plan);
  questions_.take_plan(std::move(made));
}

void ChatWorkspace::fold(const EngineEvent& event) {
  if (!summaries_.fold(event)) answers_.fold(event);
}

void ChatWorkspace::take_imported(std::vector<Chat> chats) {
  chats_.add_imported(std::move(chats));
  context_.count(state_.active_chat);
}

// ---- for the Compare workspace

const Chat* ChatWorkspace::chat(ChatId chat_id) const {
  return chats_.is_listed(chat_id) ? &chats_.find(chat_id)->chat : nullptr;
}

void ChatWorkspace::edit(ChatId chat_id, const std::function<void(Chat&)>& change) {
  Chat& chat = chats_.change(chat_id, Changed::kMessages)->chat;
  const std::size_t num_before = chat.messages().size();
  change(chat);
  for (std::uint64_t id = num_before + 1; id <= chat.messages().size(); ++id)
    chat.find(MessageId{id})->created_ms = keeper_.unix_time_ms();
  context_.count(chat_id);
}

}  // namespace octavo::app
