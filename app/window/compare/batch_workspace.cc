#include "app/window/compare/batch_workspace.h"

#include <vector>

#include "app/window/compare/batch_export.h"
#include "app/window/compare/compared_settings.h"
#include "app/window/compare/prompt_list.h"
#include "engine/base/ascii.h"
#include "engine/base/text.h"

namespace octavo::app {

BatchWorkspace::BatchWorkspace(const SeedSource& draw_seed, const SamplingParams& sampling,
                               ui::UiState& state)
    : draw_seed_(draw_seed), state_(state), batch_(draw_seed, state.batch) {
  const SamplingParams start = sampling_to_compare(sampling);
  state.batch.setup = two_settings({start, {}});
}

void BatchWorkspace::attach_engine(Engine& engine, PlanContext plan_context) {
  batch_.attach_engine(engine, std::move(plan_context), "Stopped because the model was switched.");
}

void BatchWorkspace::detach_engine() { batch_.detach_engine("Stopped because the model was unloaded."); }

void BatchWorkspace::apply(const ui::actions::ChangeBatch& a) {
  if (a.settings.empty() || a.settings.size() > ui::kMostCompared) return;
  state_.batch.setup = a.settings;
  state_.batch.setup_seed = a.seed;
}

void BatchWorkspace::apply(const ui::actions::RunBatch& a) {
  if (vote_ || batch_.running()) return;
  auto prompts = read_prompts(a.prompts, a.format);
  if (!prompts) return batch_.refuse(prompts.error().message);
  batch_.run(*std::move(prompts), state_.batch.setup, state_.batch.setup_seed);
}

void BatchWorkspace::take_file(std::string name, std::string text, const std::string& problem) {
  if (!problem.empty()) return batch_.refuse(problem);
  ui::PromptFile& file = state_.batch.file;
  const bool is_table = ascii_lower_case(name).ends_with(".csv");
  file = {.name = std::move(name),
          .text = std::move(text),
          .format = is_table ? ui::PromptFormat::kCsv : ui::PromptFormat::kLines,
          .number = file.number + 1};
  state_.batch.problem.clear();
}

void BatchWorkspace::apply(const ui::actions::ExportBatch& a) {
  if (state_.batch.rows.empty()) return;
  if (vote_) {
    state_.banner = ui::Banner{ui::BannerKind::kNotice,
                               "The file would name the settings of each answer. End the vote, then export."};
    return;
  }
  const bool json = a.format == ui::actions::BatchFormat::kJson;
  export_ = ExportedComparison{a.path, json ? batch_to_json(state_.batch) : batch_to_csv(state_.batch)};
}

// ---- the vote

void BatchWorkspace::apply(const ui::actions::StartVote&) {
  if (vote_ || batch_.running() || state_.batch.settings.size() < 2) return;
  vote_.emplace(state_.batch, draw_seed_());
  state_.batch.result.reset();
  if (vote_->num_ballots() > 0) return show_vote();
  vote_.reset();
  state_.batch.problem = "No prompt has an answer from all settings. Run the batch to its end, then vote.";
}

void BatchWorkspace::apply(const ui::actions::CastVote& a) {
  if (!vote_ || (a.place && *a.place >= state_.batch.settings.size())) return;
  vote_->cast(a.place);
  show_vote();
}

void BatchWorkspace::apply(const ui::actions::UndoVote&) {
  if (!vote_) return;
  vote_->undo();
  show_vote();
}

// The next ballot, or what all of them say.
void BatchWorkspace::show_vote() {
  if (vote_->over()) return end_vote();
  state_.batch.vote = vote_->shown(state_.batch);
}

void BatchWorkspace::end_vote() {
  if (!vote_) return;
  state_.batch.result = vote_->result();
  state_.batch.vote.reset();
  vote_.reset();
}

}  // namespace octavo::app
