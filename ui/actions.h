// What a person asked for, as values. Views put them into an ActionSink while they draw; the controller takes
// them out after the frame.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/api/sampling_params.h"
#include "ui/state.h"

namespace octavo::ui::actions {

struct ShowWorkspace {
  Workspace workspace;
};
struct NewSession {};
struct SelectSession {
  SessionId session_id;
};
struct SelectNeighbour {  // +1: the next one in the list, -1: the one before; goes round
  std::int32_t offset;
};
struct RenameSession {
  SessionId session_id;
  std::string title;
};
struct DeleteSession {
  SessionId session_id;
};
struct UndoDelete {};
struct DismissUndo {};

struct SendMessage {  // starts an answer, or queues while one is generated
  SessionId session_id;
  std::string text;
};
struct ChangeDraft {  // so that the context meter counts it
  SessionId session_id;
  std::string text;
};
struct RemoveQueued {
  SessionId session_id;
  std::size_t index;
};
struct StopAnswer {
  SessionId session_id;
};
struct Regenerate {  // another answer beside this one
  SessionId session_id;
  std::uint64_t message_id;
};
struct EditMessage {  // another message of the user beside this one, and an answer to it
  SessionId session_id;
  std::uint64_t message_id;
  std::string text;
};
struct ShowSibling {
  SessionId session_id;
  std::uint64_t message_id;
  std::int32_t offset;
};
struct CopyText {
  std::string text;
};

struct ChangeSystemPrompt {
  SessionId session_id;
  std::string text;
};
struct ChangeSampling {
  SessionId session_id;
  SamplingParams sampling;
};
struct ShowSampling {
  bool open;
};

struct ShowSettings {
  bool open;
};
struct ChangeSettings {
  SettingsState settings;
};
struct DismissBanner {};

struct LoadModel {};  // again, after a failure or a cancelled load
struct CancelLoading {};

using Action =
    std::variant<ShowWorkspace, NewSession, SelectSession, SelectNeighbour, RenameSession, DeleteSession,
                 UndoDelete, DismissUndo, SendMessage, ChangeDraft, RemoveQueued, StopAnswer, Regenerate,
                 EditMessage, ShowSibling, CopyText, ChangeSystemPrompt, ChangeSampling, ShowSampling,
                 ShowSettings, ChangeSettings, DismissBanner, LoadModel, CancelLoading>;

}  // namespace octavo::ui::actions

namespace octavo::ui {

using Action = actions::Action;

// UI thread only.
class ActionSink {
 public:
  void push(Action action) { actions_.push_back(std::move(action)); }
  std::vector<Action> take() { return std::exchange(actions_, {}); }

 private:
  std::vector<Action> actions_;
};

}  // namespace octavo::ui
