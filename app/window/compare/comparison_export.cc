#include "app/window/compare/comparison_export.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "app/chat/sampling_json.h"
#include "app/chat/template_values_json.h"

namespace octavo::app {
namespace {

const char* kind_name(ui::ComparisonKind kind) {
  switch (kind) {
    case ui::ComparisonKind::kSamples: return "samples";
    case ui::ComparisonKind::kBeams: return "beams";
    case ui::ComparisonKind::kSettings: return "settings";
  }
  return "";
}

nlohmann::json column_to_json(const ui::ComparedColumn& column) {
  nlohmann::json json;
  json["name"] = column.name;
  json["output_index"] = column.output_index;
  json["sampling"] = sampling_to_json(column.sampling);
  json["text"] = column.text;
  json["num_forced"] = column.num_forced;
  json["cumulative_logprob"] = column.cumulative_logprob();
  json["token_ids"] = nlohmann::json::array();
  json["logprobs"] = nlohmann::json::array();
  for (const ui::ComparedToken& token : column.tokens) {
    json["token_ids"].push_back(token.token_id);
    json["logprobs"].push_back(token.logprob);
  }
  if (!column.system_prompt.empty()) json["system_prompt"] = column.system_prompt;
  if (!column.template_values.empty())
    json["template_values"] = template_values_to_json(column.template_values);
  if (column.seed) json["seed"] = *column.seed;
  if (const auto mean = column.mean_logprob()) json["mean_logprob"] = *mean;
  if (column.score) json["score"] = *column.score;
  if (column.tokens_per_second) json["tokens_per_second"] = *column.tokens_per_second;
  if (!column.finish.empty()) json["finish"] = column.finish;
  if (!column.error.empty()) json["error"] = column.error;
  return json;
}

std::string decimals(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.3f", value);
  return text;
}

// A line of code that the text cannot leave: the fence is longer than any run of backticks in it.
std::string fenced(const std::string& text) {
  std::size_t longest = 2, run = 0;
  for (const char c : text) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  const std::string fence(longest + 1, '`');
  return fence + "text\n" + text + (text.ends_with('\n') ? "" : "\n") + fence + "\n";
}

std::string figures_line(const ui::ComparedColumn& column) {
  std::string line = std::to_string(column.tokens.size()) + " tokens";
  if (column.seed) {
    line = "seed " + std::to_string(*column.seed) + ", output " + std::to_string(column.output_index) +
           " · " + line;
  }
  if (const auto mean = column.mean_logprob()) line += " · mean log-probability " + decimals(*mean);
  if (column.score) line += " · score " + decimals(*column.score);
  if (!column.finish.empty()) line += " · " + column.finish;
  if (!column.error.empty()) line += " · " + column.error;
  return line;
}

}  // namespace

std::string comparison_to_json(const ui::ComparisonState& comparison) {
  nlohmann::json json;
  json["format"] = "octavo-comparison";
  json["version"] = 1;
  json["kind"] = kind_name(comparison.shown_kind);
  json["num_prompt_tokens"] = comparison.num_prompt_tokens;
  json["messages"] = nlohmann::json::array();
  for (const ChatMessage& message : comparison.messages)
    json["messages"].push_back(
        {{"role", std::string(role_name(message.role))}, {"content", message.content}});
  json["columns"] = nlohmann::json::array();
  for (const ui::ComparedColumn& column : comparison.columns)
    json["columns"].push_back(column_to_json(column));
  return json.dump(2, ' ', /*ensure_ascii=*/false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string comparison_to_markdown(const ui::ComparisonState& comparison) {
  std::string text = "# Comparison: " + std::string(kind_name(comparison.shown_kind)) + "\n\n## Question\n\n";
  text += fenced(comparison.question);
  for (const ui::ComparedColumn& column : comparison.columns) {
    text += "\n## " + column.name + "\n\n" + figures_line(column) + "\n\n";
    if (!column.differences.empty()) text += column.differences + "\n\n";
    text += fenced(column.text);
  }
  return text;
}

}  // namespace octavo::app
