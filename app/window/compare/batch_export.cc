#include "app/window/compare/batch_export.h"

#include <cstddef>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "app/chat/sampling_json.h"
#include "app/chat/template_values_json.h"
#include "app/json/csv_field.h"

namespace octavo::app {
namespace {

// By row; nullptr: there was no vote about it.
std::vector<const ui::VotedBallot*> votes_of(const ui::BatchState& batch) {
  std::vector<const ui::VotedBallot*> votes(batch.rows.size(), nullptr);
  if (!batch.result) return votes;
  for (const ui::VotedBallot& ballot : batch.result->ballots) votes[ballot.row] = &ballot;
  return votes;
}

std::optional<double> mean_logprob(const ui::BatchCell& cell) {
  if (cell.num_tokens == 0) return std::nullopt;
  return cell.sum_logprob / cell.num_tokens;
}

nlohmann::json cell_to_json(const ui::BatchCell& cell, std::size_t setting) {
  nlohmann::json json;
  json["settings"] = ui::settings_name(setting);
  json["seed"] = cell.seed;
  json["text"] = cell.text;
  json["num_tokens"] = cell.num_tokens;
  json["num_prompt_tokens"] = cell.num_prompt_tokens;
  json["num_computed_tokens"] = cell.num_computed_tokens;
  if (const auto mean = mean_logprob(cell)) json["mean_logprob"] = *mean;
  if (!cell.finish.empty()) json["finish"] = cell.finish;
  if (!cell.error.empty()) json["error"] = cell.error;
  return json;
}

nlohmann::json result_to_json(const ui::VoteResult& result) {
  nlohmann::json json{{"seed", result.seed},
                      {"interval", "95 %, Wilson's score method"},
                      {"num_ballots", result.ballots.size()},
                      {"num_left_out", result.num_left_out}};
  json["scores"] = nlohmann::json::array();
  for (std::size_t i = 0; i < result.scores.size(); ++i) {
    const ui::VoteScore& score = result.scores[i];
    json["scores"].push_back({{"settings", ui::settings_name(i)},
                              {"wins", score.num_wins},
                              {"ties", score.num_ties},
                              {"losses", score.num_losses},
                              {"share", score.share},
                              {"low", score.low},
                              {"high", score.high}});
  }
  return json;
}

const char* vote_word(const ui::VotedBallot* vote, std::size_t setting) {
  if (vote == nullptr) return "";
  if (!vote->winner) return "tie";
  return *vote->winner == setting ? "win" : "loss";
}

}  // namespace

std::string batch_to_json(const ui::BatchState& batch) {
  nlohmann::json json{{"format", "octavo-batch"}, {"version", 1}};
  json["settings"] = nlohmann::json::array();
  for (std::size_t i = 0; i < batch.settings.size(); ++i) {
    json["settings"].push_back(
        {{"name", ui::settings_name(i)},
         {"sampling", sampling_to_json(batch.settings[i].sampling)},
         {"system_prompt", batch.settings[i].system_prompt},
         {"template_values", template_values_to_json(batch.settings[i].template_values)}});
  }
  const auto votes = votes_of(batch);
  json["prompts"] = nlohmann::json::array();
  for (std::size_t row = 0; row < batch.rows.size(); ++row) {
    nlohmann::json prompt{{"prompt", batch.rows[row].prompt}, {"answers", nlohmann::json::array()}};
    for (std::size_t i = 0; i < batch.rows[row].cells.size(); ++i)
      prompt["answers"].push_back(cell_to_json(batch.rows[row].cells[i], i));
    if (const ui::VotedBallot* vote = votes[row])
      prompt["vote"] = vote->winner ? ui::settings_name(*vote->winner) : "tie";
    json["prompts"].push_back(std::move(prompt));
  }
  if (batch.result) json["vote"] = result_to_json(*batch.result);
  return json.dump(2, ' ', /*ensure_ascii=*/false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string batch_to_csv(const ui::BatchState& batch) {
  std::string text =
      "prompt,settings,differences,system_prompt,seed,answer,tokens,mean_logprob,finish,error,vote\r\n";
  const auto votes = votes_of(batch);
  for (std::size_t row = 0; row < batch.rows.size(); ++row) {
    for (std::size_t i = 0; i < batch.rows[row].cells.size(); ++i) {
      const ui::BatchCell& cell = batch.rows[row].cells[i];
      char mean[40] = "";
      if (const auto value = mean_logprob(cell)) std::snprintf(mean, sizeof mean, "%.6g", *value);
      for (const std::string& field :
           {batch.rows[row].prompt, ui::settings_name(i), batch.differences[i],
            batch.settings[i].system_prompt, std::to_string(cell.seed), cell.text,
            std::to_string(cell.num_tokens), std::string(mean), cell.finish, cell.error})
        text += csv_field(field) + ",";
      text += vote_word(votes[row], i) + std::string("\r\n");
    }
  }
  return text;
}

}  // namespace octavo::app
