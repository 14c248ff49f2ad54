// A batch as a file: every answer with its seed and settings, so that it can be drawn again, and the votes.
//
// JSON, version 1: {"format": "octavo-batch", "version": 1, "settings": [{"name", "sampling",
// "system_prompt", "template_values"}], "prompts": [{"prompt", "answers": [{"settings", "seed", "text",
// "num_tokens", "mean_logprob", "num_prompt_tokens", "num_computed_tokens", "finish", "error"}], "vote"}],
// "vote": {"seed", "interval", "scores": [{"settings", "wins", "ties", "losses", "share", "low", "high"}]}}.
// "vote" of a prompt is the name of settings or "tie". What is not known is absent.
//
// CSV as RFC 4180 has it, a row for each answer: prompt, settings, differences, system_prompt, seed, answer,
// tokens, mean_logprob, finish, error, vote ("win", "loss", "tie" or nothing).
#pragma once

#include <string>

#include "ui/batch_state.h"

namespace octavo::app {

std::string batch_to_json(const ui::BatchState& batch);
std::string batch_to_csv(const ui::BatchState& batch);

}  // namespace octavo::app
