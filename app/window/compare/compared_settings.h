// Settings that are compared: what differs between them, in words. Pure.
#pragma once

#include <string>
#include <vector>

#include "app/chat/context_plan.h"
#include "engine/api/request.h"
#include "ui/compare_state.h"

namespace octavo::app {

// What stands in a column's head where its settings differ from any of the others': "temperature 0.8 · top-p
// 0.9". The seed is shown by itself.
std::string settings_differences(const ui::ComparedSettings& settings,
                                 const std::vector<ui::ComparedSettings>& all);

// What these messages begin with as the system's; empty: nothing.
std::string system_prompt_of(const std::vector<ChatMessage>& messages);

// Whether a question is sent as these settings ask for it, and making it so. Those that send alike share a
// plan.
bool sends_alike(const ContextQuestion& question, const ui::ComparedSettings& settings);
void send_as(ContextQuestion& question, const ui::ComparedSettings& settings);

// Answers that are compared are read side by side: a longer one than 256 tokens is asked for in the set-up.
SamplingParams sampling_to_compare(const SamplingParams& sampling);

// To begin with: these, and the same with another temperature, greedy or not.
std::vector<ui::ComparedSettings> two_settings(const ui::ComparedSettings& first);

}  // namespace octavo::app
