// Turns what a person asked into engine calls, and what the engine reports into what is drawn. Owns the
// conversations of this window; an answer goes on whether its chat is shown or not.
//
// UI thread. Holds no window and draws nothing: tests drive it with a scripted engine and a manual clock.
// What only the application can do (clipboard, loading, saving) comes out of `take_effects`.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/conversation/conversation.h"
#include "app/window/memory_fold.h"
#include "app/window/settings.h"
#include "engine/base/clock.h"
#include "engine/engine.h"
#include "ui/actions.h"
#include "ui/state.h"

namespace octavo::app {

// What the controller wants done outside of it.
struct Effects {
  std::optional<std::string> clipboard;
  bool load_model = false;
  bool cancel_loading = false;
  bool settings_changed = false;
};

class Controller {
 public:
  // Counts tokens of a conversation, later or at once, and hands the result to `fold_token_count`.
  using CountTokens = std::function<void(ui::SessionId, std::vector<ChatMessage>)>;

  // The clock must outlive the controller.
  Controller(const Clock& clock, const Settings& settings);

  // The engine, loaded; it must outlive the controller or `detach_engine`. Opens the first chat.
  void attach_engine(Engine& engine, CountTokens count_tokens);
  void detach_engine();

  void show_loading(const std::string& path, double fraction);
  // No model: `path` may be empty, `problem` is one sentence or empty.
  void show_no_model(const std::string& path, const std::string& problem);
  void show_banner(ui::BannerKind kind, std::string text);

  void apply(const ui::Action& action);
  // Everything that the engine has reported. True when something that is drawn changed.
  bool poll_engine();

  void fold(const EngineEvent& event);
  void fold_token_count(ui::SessionId session_id, std::int32_t num_tokens);

  // Whether the engine owes a report that comes without a wake-up.
  bool wants_poll() const { return polls_left_ > 0; }
  // Whether any answer is being generated.
  bool busy() const { return !answers_.empty(); }

  const ui::UiState& state() const { return state_; }
  // nullptr when there is none. For tests and for export.
  const Conversation* conversation(ui::SessionId session_id) const;
  Settings settings() const;
  Effects take_effects() { return std::exchange(effects_, {}); }

 private:
  struct Session {
    Conversation conversation;
    std::deque<std::string> queued;
    std::string draft;
    std::optional<RequestId> answering;
    bool failed = false;  // the last answer did
  };
  // One answer on its way.
  struct Answer {
    ui::SessionId session_id;
    MessageId message_id;
    bool admitted = false;
    std::int32_t num_prompt_tokens = 0;
    std::int32_t num_cached_tokens = 0;
    std::int32_t num_tokens = 0;
    std::int64_t submitted_us = 0;
    std::int64_t first_token_us = 0;
    std::int64_t newest_token_us = 0;
    StopReason stop_reason = {};
  };
  struct Deleted {
    Session session;
    ui::SessionState shown;
    std::size_t index = 0;
  };

  // Actions; the rest is handled in `apply`.
  ui::SessionId new_session();
  void select_neighbour(std::int32_t offset);
  void delete_session(ui::SessionId session_id);
  void undo_delete();
  void send(ui::SessionId session_id, const std::string& text);
  void ask(ui::SessionId session_id, MessageId parent, const std::string& text);
  void answer(ui::SessionId session_id, MessageId question);
  void regenerate(ui::SessionId session_id, MessageId message_id);
  void stop(ui::SessionId session_id);
  void change_settings(const ui::SettingsState& settings);
  void change_sampling(ui::SessionId session_id, const SamplingParams& sampling);

  // Events.
  void fold_event(const RequestAccepted& event);
  void fold_event(const BeamsAdvanced&) {}  // the window asks for no beams
  void fold_event(const RequestAdmitted& event);
  void fold_event(const TokensGenerated& event);
  void fold_event(const RequestPreempted& event);
  void fold_event(const OutputFinished& event);
  void fold_event(const RequestFinished& event);
  void fold_event(const RequestFailed& event);
  void finish(RequestId request_id, const RequestMetrics& metrics, const std::string& error);
  void drop_end_token(const Answer& answer, Message& message) const;

  // Keeping what is shown in step with what is known.
  Session* find_session(ui::SessionId session_id);
  ui::SessionState* shown_session(ui::SessionId session_id);
  ui::MessageState* shown_message(ui::SessionId session_id, MessageId message_id);
  ui::MessageState message_state(const Session& session, const Message& message) const;
  void show_messages(ui::SessionId session_id);
  void show_title(ui::SessionId session_id);
  void show_queue(ui::SessionId session_id);
  void show_answer_figures(const Answer& answer);
  void show_activity();
  void show_context(ui::SessionId session_id, std::int32_t num_tokens);
  void count_context(ui::SessionId session_id);
  ui::AnswerFigures figures_of(const Message& message) const;
  std::optional<ui::SessionId> session_of(RequestId request_id) const;
  bool fold_reports();

  const Clock& clock_;
  Settings settings_;
  Engine* engine_ = nullptr;
  CountTokens count_tokens_;
  ui::UiState state_;
  Effects effects_;
  std::map<ui::SessionId, Session> sessions_;
  std::map<RequestId, Answer> answers_;
  std::map<RequestId, ui::SessionId>
      request_sessions_;  // also of ended requests: late events still find their chat
  std::optional<Deleted> deleted_;
  MemoryFold memory_;
  std::uint64_t next_session_ = 1;
  std::uint64_t step_mark_ = 0, event_mark_ = 0;
  std::int64_t newest_step_ = -1;
  int polls_left_ = 0;
};

}  // namespace octavo::app
