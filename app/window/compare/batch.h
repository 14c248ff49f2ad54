// Many prompts, each answered with several settings: asks the engine, and folds what it reports into
// ui::BatchState.
//
// All settings of a prompt are submitted together, so that the engine computes the blocks of the prompt once:
// the others wait a few steps and find them (ARCHITECTURE.md, "Policy without machinery"). They have one
// seed, that of the batch plus the number of the prompt. Prompts follow each other while no more than
// `kMostUnderWay` answers are under way: a chat's question does not wait behind the whole batch.
//
// UI thread. The state must outlive the batch, the engine until `detach_engine`.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/window/plan_context.h"
#include "engine/base/draw_seed.h"
#include "engine/engine.h"
#include "ui/batch_state.h"

namespace octavo::app {

class Batch {
 public:
  static constexpr std::size_t kMostUnderWay = 16;

  Batch(SeedSource draw_seed, ui::BatchState& state) : draw_seed_(std::move(draw_seed)), state_(&state) {}

  // What still runs for another engine ends with the sentence `why`.
  void attach_engine(Engine& engine, PlanContext plan_context, const std::string& why);
  void detach_engine(const std::string& why);

  // What stands in the grid gives way. `seed`: none is drawn. REQUIRES: prompts and settings
  void run(std::vector<std::string> prompts, std::vector<ui::ComparedSettings> settings,
           std::optional<std::uint64_t> seed);
  // Why nothing can be run.
  void refuse(std::string problem) { state_->problem = std::move(problem); }
  void stop() { end_all("Stopped."); }
  bool running() const { return state_->running; }

  void take_plan(PlanMade made);
  // False when the event belongs to no request of the batch.
  bool fold(const EngineEvent& event);
  // After the events of a poll: asks for what there is room for.
  void finish_poll();

  // "Batch · Prompt 12". The settings are not named: a vote may follow.
  std::optional<std::string> name_of(RequestId request_id) const;

 private:
  struct Place {
    std::size_t row = 0, setting = 0;
  };
  // What the settings with one system prompt send for a row.
  struct Plan {
    std::uint64_t id = 0;
    ContextQuestion question = {};
    std::vector<std::size_t> settings = {};
    std::optional<ChatPrompt> prompt = {};
  };

  void ask_more();
  void plan_row(std::size_t row);
  void submit_row(std::size_t row);
  void end_all(const std::string& why);
  void end_cell(ui::BatchCell& cell, ui::ColumnPhase phase, std::string finish, std::string error);
  void count_progress();
  ui::BatchCell& cell_at(const Place& place) { return state_->rows[place.row].cells[place.setting]; }

  void fold_event(ui::BatchCell& cell, const RequestAccepted& event);
  void fold_event(ui::BatchCell& cell, const RequestAdmitted& event);
  void fold_event(ui::BatchCell& cell, const TokensGenerated& event);
  void fold_event(ui::BatchCell& cell, const BeamsAdvanced& event);
  void fold_event(ui::BatchCell& cell, const RequestPreempted& event);
  void fold_event(ui::BatchCell&, const PromptProgress&) {}  // nobody here asks for these
  void fold_event(ui::BatchCell&, const EmbeddingComputed&) {}
  void fold_event(ui::BatchCell& cell, const OutputFinished& event);
  void fold_event(ui::BatchCell& cell, const RequestFinished& event);
  void fold_event(ui::BatchCell& cell, const RequestFailed& event);

  SeedSource draw_seed_;
  ui::BatchState* state_;
  Engine* engine_ = nullptr;
  PlanContext plan_context_;
  std::map<RequestId, Place> under_way_;
  std::size_t next_row_ = 0;             // that was not planned yet
  std::optional<std::size_t> planning_;  // the row whose plans are made
  std::vector<Plan> plans_;              // of that row
  std::uint64_t next_plan_id_ = 1;
};

}  // namespace octavo::app
