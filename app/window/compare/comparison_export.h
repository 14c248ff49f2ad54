// A comparison as a file: the question, and every answer with its seed and settings, so that it can be drawn
// again.
//
// JSON, version 1: {"format": "octavo-comparison", "version": 1, "kind": "samples", "messages": [{"role",
// "content"}], "num_prompt_tokens", "columns": [{"name", "seed", "output_index", "sampling", "system_prompt",
// "template_values", "text", "token_ids", "logprobs", "num_forced", "cumulative_logprob", "mean_logprob",
// "score", "finish", "error", "tokens_per_second"}]}. What is not known is absent. Log-probabilities are the
// model's own, natural.
#pragma once

#include <string>

#include "ui/compare_state.h"

namespace octavo::app {

std::string comparison_to_json(const ui::ComparisonState& comparison);
std::string comparison_to_markdown(const ui::ComparisonState& comparison);

struct ExportedComparison {
  std::string path;
  std::string content;
};

}  // namespace octavo::app
