#include "app/window/compare/batch.h"

#include <algorithm>
#include <variant>

#include "app/chat/finish_text.h"
#include "app/window/compare/compared_settings.h"
#include "app/window/memory/sequence_names.h"
#include "engine/base/hash.h"
#include "engine/base/text.h"

namespace octavo::app {

// ---- one engine after the other

void Batch::attach_engine(Engine& engine, PlanContext plan_context, const std::string& why) {
  end_all(why);
  engine_ = &engine;
  plan_context_ = std::move(plan_context);
}

void Batch::detach_engine(const std::string& why) {
  end_all(why);
  engine_ = nullptr;
  plan_context_ = {};
}

// ---- asking

void Batch::run(std::vector<std::string> prompts, std::vector<ui::ComparedSettings> settings,
                std::optional<std::uint64_t> seed) {
  if (engine_ == nullptr) return refuse("No model is loaded. Load one, then run the batch.");
  end_all({});
  const std::uint64_t first_seed = seed ? *seed : draw_seed_();
  state_->rows.clear();
  state_->differences.clear();
  state_->problem.clear();
  state_->result.reset();
  for (ui::ComparedSettings& each : settings) {
    each.sampling.n = 1;
    each.sampling.beam_width.reset();
    each.sampling.logprobs = 0;
  }
  for (const ui::ComparedSettings& each : settings)
    state_->differences.push_back(settings_differences(each, settings));
  for (std::string& prompt : prompts) {
    const ui::BatchCell cell{.seed = first_seed + state_->rows.size()};
    state_->rows.push_back(
        {.prompt = std::move(prompt), .cells = std::vector<ui::BatchCell>(settings.size(), cell)});
  }
  state_->settings = std::move(settings);
  state_->running = true;
  next_row_ = 0;
  count_progress();
  ask_more();
}

// The plan of a row may be there at once.
void Batch::ask_more() {
  const std::size_t each = state_->settings.size();
  while (state_->running && !planning_ && next_row_ < state_->rows.size() &&
         (under_way_.empty() || under_way_.size() + each <= kMostUnderWay))
    plan_row(next_row_++);
}

void Batch::plan_row(std::size_t row) {
  planning_ = row;
  plans_.clear();
  for (std::size_t i = 0; i < state_->settings.size(); ++i) {
    const ui::ComparedSettings& asked = state_->settings[i];
    auto plan = std::find_if(plans_.begin(), plans_.end(),
                             [&](const Plan& other) { return sends_alike(other.question, asked); });
    if (plan == plans_.end()) {
      plan = plans_.insert(plans_.end(), Plan{.id = next_plan_id_++});
      send_as(plan->question, asked);
      plan->question.path = {{{}, {Role::kUser, state_->rows[row].prompt, {}}, {}}};
      plan->question.context_len = engine_->description().max_model_len;
    }
    plan->question.max_tokens = std::max(plan->question.max_tokens, asked.sampling.max_tokens);
    plan->settings.push_back(i);
  }
  std::vector<PlanWanted> wanted;
  for (const Plan& plan : plans_) wanted.push_back({{PlanPurpose::Kind::kBatch, {}, plan.id}, plan.question});
  for (PlanWanted& one : wanted) plan_context_(std::move(one));
}

void Batch::take_plan(PlanMade made) {
  const auto plan = std::find_if(plans_.begin(), plans_.end(),
                                 [&](const Plan& each) { return each.id == made.purpose.asked_id; });
  if (plan == plans_.end() || !planning_) return;
  plan->prompt = std::move(made.plan.prompt);
  if (!made.plan.refusal.empty()) {
    for (const std::size_t setting : plan->settings)
      end_cell(cell_at({*planning_, setting}), ui::ColumnPhase::kFailed, "not asked", made.plan.refusal);
    plan->settings.clear();
  }
  if (std::any_of(plans_.begin(), plans_.end(), [](const Plan& each) { return !each.prompt; })) return;
  submit_row(*planning_);
  planning_.reset();
  ask_more();
}

// All that the planned row asks for, at once and side by side.
void Batch::submit_row(std::size_t row) {
  std::vector<GenerationRequest> requests;
  std::vector<Place> places;
  for (const Plan& plan : plans_) {
    for (const std::size_t setting : plan.settings) {
      GenerationRequest request;
      request.prompt = *plan.prompt;
      request.sampling = state_->settings[setting].sampling;
      request.sampling.seed = cell_at({row, setting}).seed;
      request.priority = RequestPriority::kBackground;  // nobody waits for a grid as for the chat beside it
      requests.push_back(std::move(request));
      places.push_back({row, setting});
    }
  }
  plans_.clear();
  const std::vector<RequestId> ids = engine_->submit_all(std::move(requests));
  for (std::size_t i = 0; i < ids.size(); ++i) under_way_.emplace(ids[i], places[i]);
}

void Batch::end_all(const std::string& why) {
  for (const auto& [id, place] : under_way_) engine_->cancel(id);
  under_way_.clear();
  plans_.clear();
  planning_.reset();
  for (ui::BatchRow& row : state_->rows) {
    for (ui::BatchCell& cell : row.cells) end_cell(cell, ui::ColumnPhase::kStopped, "stopped", why);
  }
  next_row_ = state_->rows.size();
  state_->running = false;
}

// Unless it has ended already.
void Batch::end_cell(ui::BatchCell& cell, ui::ColumnPhase phase, std::string finish, std::string error) {
  if (ui::has_ended(cell.phase)) return;
  cell.phase = phase;
  cell.finish = std::move(finish);
  cell.error = std::move(error);
}

void Batch::count_progress() {
  std::size_t all = 0, ended = 0;
  for (const ui::BatchRow& row : state_->rows) {
    for (const ui::BatchCell& cell : row.cells) {
      ++all;
      if (ui::has_ended(cell.phase)) ++ended;
    }
  }
  state_->progress = all == 0 ? 0 : static_cast<double>(ended) / static_cast<double>(all);
}

// ---- events

bool Batch::fold(const EngineEvent& event) {
  const auto found = under_way_.find(request_id_of(event));
  if (found == under_way_.end()) return false;
  ui::BatchCell& cell = cell_at(found->second);
  std::visit([&](const auto& kind) { fold_event(cell, kind); }, event);
  const bool over =
      std::holds_alternative<RequestFinished>(event) || std::holds_alternative<RequestFailed>(event);
  if (over) under_way_.erase(found);
  return true;
}

void Batch::finish_poll() {
  if (!state_->running) return;
  ask_more();
  count_progress();
  state_->running = !under_way_.empty() || planning_ || next_row_ < state_->rows.size();
}

void Batch::fold_event(ui::BatchCell& cell, const RequestAccepted& event) {
  cell.num_prompt_tokens = static_cast<std::int32_t>(event.prompt_token_ids.size());
}

void Batch::fold_event(ui::BatchCell& cell, const RequestAdmitted&) {
  cell.phase = ui::ColumnPhase::kRunning;
}

void Batch::fold_event(ui::BatchCell& cell, const TokensGenerated& event) {
  cell.phase = ui::ColumnPhase::kRunning;
  cell.text += event.text;
  cell.num_tokens += static_cast<std::int32_t>(event.token_ids.size());
  for (const float logprob : event.logprobs) cell.sum_logprob += static_cast<double>(logprob);
}

void Batch::fold_event(ui::BatchCell&, const BeamsAdvanced&) {}  // there are no beams here

void Batch::fold_event(ui::BatchCell& cell, const RequestPreempted&) {
  cell.phase = ui::ColumnPhase::kPreempted;
}

void Batch::fold_event(ui::BatchCell& cell, const OutputFinished& event) {
  const bool failed = event.finish_reason == FinishReason::kError;
  const bool stopped = event.finish_reason == FinishReason::kAbort;
  end_cell(cell,
           failed    ? ui::ColumnPhase::kFailed
           : stopped ? ui::ColumnPhase::kStopped
                     : ui::ColumnPhase::kFinished,
           finish_text(event.finish_reason, event.stop_reason), sanitise_utf8(event.detail));
}

void Batch::fold_event(ui::BatchCell& cell, const RequestFinished& event) {
  cell.num_computed_tokens = event.metrics.prompt.num_computed;
  end_cell(cell, ui::ColumnPhase::kStopped, "no answer", {});
}

void Batch::fold_event(ui::BatchCell& cell, const RequestFailed& event) {
  end_cell(cell, ui::ColumnPhase::kFailed, "failed", sanitise_utf8(event.error.message));
}

std::optional<std::string> Batch::name_of(RequestId request_id) const {
  const auto found = under_way_.find(request_id);
  if (found == under_way_.end()) return std::nullopt;
  return "Batch" + std::string(kBetweenNames) + "Prompt " + std::to_string(found->second.row + 1);
}

}  // namespace octavo::app
