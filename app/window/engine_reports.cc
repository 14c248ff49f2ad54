#include "app/window/engine_reports.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <variant>

namespace octavo::app {
namespace {

// The engine may still owe a snapshot; it is looked for this often before only a wake-up is waited for.
constexpr int kPollsAfterWork = 20;

}  // namespace

EngineReports::EngineReports(MemoryWorkspace& memory, CompareWorkspace& compare, ChatOfRequest chat_of,
                             ui::UiState& state)
    : memory_workspace_(memory), compare_(compare), chat_of_(std::move(chat_of)), state_(state) {}

void EngineReports::expect() { polls_left_ = kPollsAfterWork; }

void EngineReports::forget_engine() {
  memory_workspace_.detach();
  memory_workspace_.tokens() = {};
  state_.memory = {};
  for (ui::ChatState& shown : state_.chats) shown.memory = {};
  step_mark_ = event_mark_ = 0;
}

void EngineReports::learn(const EngineEvent& event) {
  if (const auto* admitted = std::get_if<RequestAdmitted>(&event))
    memory_workspace_.learn(*admitted, chat_of_, state_);
}

// The whole pool only for whoever shows it: the Memory workspace, and the columns of a comparison.
SnapshotScope EngineReports::wanted_scope(const Engine& engine) const {
  const bool compares = state_.workspace == ui::Workspace::kCompare || compare_.running();
  const bool shows_pool = state_.workspace == ui::Workspace::kMemory || (compares && compare_.asks(engine));
  return shows_pool ? SnapshotScope::kPool : SnapshotScope::kSequences;
}

bool EngineReports::take(Engine& engine, bool busy) {
  if (MemoryWorkspace::asks_for_experts(state_))
    memory_workspace_.count_experts(engine.take_expert_choices(), chat_of_);
  const SnapshotScope scope = wanted_scope(engine);
  const auto snapshot = engine.kv_snapshot(scope);
  const auto trace = engine.trace_since(step_mark_, event_mark_);
  step_mark_ = trace.next_step_mark;
  event_mark_ = trace.next_event_mark;
  const bool fresh = snapshot != nullptr && snapshot != state_.memory.snapshot;
  if (fresh) state_.memory.snapshot = snapshot;
  const bool has_news = fresh || !trace.steps.empty() || !trace.block_events.empty();
  if (has_news) {
    if (compare_.asks(engine)) compare_.comparison().fold_trace(trace);
    if (fresh && compare_.asks(engine)) compare_.comparison().fold_snapshot(*snapshot);
    memory_workspace_.fold(trace, fresh ? snapshot : nullptr, chat_of_, state_);
  }
  const bool up_to_date =
      snapshot != nullptr && snapshot->event_mark >= event_mark_ && snapshot->scope() >= scope;
  polls_left_ = up_to_date && !busy ? 0 : std::max(0, polls_left_ - 1);
  return has_news;
}

}  // namespace octavo::app
