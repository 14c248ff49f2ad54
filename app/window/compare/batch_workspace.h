// The batch of the Compare workspace: what a person asks for about it, the blind vote, and its exports. While
// a vote is under way nothing leaves that names the settings of an answer.
//
// Owns the batch. Writes batch and banner of the state. UI thread. What the constructor takes must outlive
// the workspace, an engine until it is detached.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "app/window/compare/batch.h"
#include "app/window/compare/blind_vote.h"
#include "app/window/compare/comparison_export.h"
#include "ui/compare_actions.h"
#include "ui/state.h"

namespace octavo::app {

class BatchWorkspace {
 public:
  // Settings begin with `sampling`, greedy and as it is.
  BatchWorkspace(const SeedSource& draw_seed, const SamplingParams& sampling, ui::UiState& state);

  void attach_engine(Engine& engine, PlanContext plan_context);
  void detach_engine();

  void apply(const ui::actions::ChangeBatch& a);
  void apply(const ui::actions::RunBatch& a);
  void apply(const ui::actions::StopBatch&) { batch_.stop(); }
  void apply(const ui::actions::ReadPrompts& a) { wanted_file_ = a.path; }
  void apply(const ui::actions::ExportBatch& a);
  void apply(const ui::actions::StartVote&);
  void apply(const ui::actions::CastVote& a);
  void apply(const ui::actions::UndoVote&);
  void apply(const ui::actions::EndVote&) { end_vote(); }

  void take_plan(PlanMade made) { batch_.take_plan(std::move(made)); }
  bool fold(const EngineEvent& event) { return batch_.fold(event); }
  void finish_poll() { batch_.finish_poll(); }
  bool running() const { return batch_.running(); }
  std::optional<std::string> name_of(RequestId request_id) const { return batch_.name_of(request_id); }

  // What became of the file that was wanted. `problem`: why it cannot be read, one sentence; empty: it can.
  void take_file(std::string name, std::string text, const std::string& problem);
  std::optional<std::string> take_wanted_file() { return std::exchange(wanted_file_, std::nullopt); }
  std::optional<ExportedComparison> take_export() { return std::exchange(export_, std::nullopt); }

 private:
  void show_vote();
  void end_vote();

  SeedSource draw_seed_;
  ui::UiState& state_;
  Batch batch_;
  std::optional<BlindVote> vote_;
  std::optional<std::string> wanted_file_;
  std::optional<ExportedComparison> export_;
};

}  // namespace octavo::app
