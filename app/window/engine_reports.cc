#include "app/window/engine_reports.h"

#include <memory>
#include <utility>

namespace octavo::app {
namespace {

// After the last event the engine may still owe a snapshot; it is asked for this often before it is let be.
constexpr int kPollsAfterWork = 20;

}  // namespace

EngineReports::EngineReports(MemoryWorkspace& memory, CompareWorkspace& compare, ChatOfRequest chat_of,
                             ui::UiState& state)
    : memory_workspace_(memory), compare_(compare), chat_of_(std::move(chat_of)), state_(state) {
  memory_workspace_.name_others([this](RequestId request, std::int32_t output_index) {
    return compare_.comparison().name_of(request, output_index);
  });
}

void EngineReports::expect() { polls_left_ = kPollsAfterWork; }

void EngineReports::forget_engine() {
  memory_workspace_.detach();
  memory_workspace_.tokens() = {};
  memory_.forget_engine();
  state_.memory = {};
  for (ui::ChatState& shown : state_.chats) shown.memory = {};
  step_mark_ = event_mark_ = 0;
  newest_step_ = -1;
}

// The whole pool only for whoever shows it: the Memory workspace, and the columns of a comparison.
SnapshotScope EngineReports::wanted_scope(const Engine& engine) const {
  const bool compares = state_.workspace == ui::Workspace::kCompare || compare_.running();
  const bool shows_pool = state_.workspace == ui::Workspace::kMemory || (compares && compare_.asks(engine));
  return shows_pool ? SnapshotScope::kPool : SnapshotScope::kSequences;
}

bool EngineReports::take(Engine& engine, bool busy) {
  const SnapshotScope scope = wanted_scope(engine);
  if (polls_left_ == 0) return false;
  --polls_left_;
  const auto snapshot = engine.kv_snapshot(scope);
  const auto trace = engine.trace_since(step_mark_, event_mark_);
  step_mark_ = trace.next_step_mark;
  event_mark_ = trace.next_event_mark;
  if (!trace.steps.empty()) newest_step_ = trace.steps.back().step;
  const bool fresh = snapshot != nullptr && snapshot != state_.memory.snapshot;
  if (fresh) memory_.learn_sequences(*snapshot, chat_of_);
  memory_.fold_trace(trace);
  if (compare_.asks(engine)) compare_.comparison().fold_trace(trace);
  if (fresh && compare_.asks(engine)) compare_.comparison().fold_snapshot(*snapshot);
  if (fresh) memory_.fold_snapshot(snapshot, state_);
  memory_workspace_.fold(trace, fresh ? snapshot : nullptr, chat_of_, state_);
  const bool up_to_date = state_.memory.snapshot != nullptr && state_.memory.snapshot->step >= newest_step_ &&
                          state_.memory.snapshot->scope() >= scope;
  if (up_to_date && !busy) polls_left_ = 0;
  return fresh || !trace.steps.empty() || !trace.block_events.empty();
}

}  // namespace octavo::app
