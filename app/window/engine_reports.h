// Asks an engine for its snapshot and its trace, and gives them to what shows memory: the chats' meters, the
// Memory workspace and the comparison.
//
// UI thread. What the constructor takes must outlive it.
#pragma once

#include <cstdint>

#include "app/window/compare/compare_workspace.h"
#include "app/window/memory/memory_workspace.h"
#include "engine/engine.h"
#include "ui/state.h"

namespace octavo::app {

class EngineReports {
 public:
  // `chat_of` tells which chat a request belongs to.
  EngineReports(MemoryWorkspace& memory, CompareWorkspace& compare, ChatOfRequest chat_of,
                ui::UiState& state);

  // Another engine's blocks, sequences and marks count from now on.
  void forget_engine();
  // The engine did something, or will, or another view is shown: it owes reports.
  void expect();
  // An event of the engine that is asked.
  void learn(const EngineEvent& event);
  bool expects() const { return polls_left_ > 0; }
  // Asks at every call: the engine then tells of each change as soon as it is there, so that the last state
  // is never missed. True when something that is drawn changed. The chats must be drawn: their memory is
  // written into them.
  bool take(Engine& engine, bool busy);

 private:
  SnapshotScope wanted_scope(const Engine& engine) const;

  MemoryWorkspace& memory_workspace_;
  CompareWorkspace& compare_;
  const ChatOfRequest chat_of_;
  ui::UiState& state_;
  std::uint64_t step_mark_ = 0, event_mark_ = 0;
  int polls_left_ = 0;
};

}  // namespace octavo::app
