#include "ui/views/sampling_view.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "ui/chat_actions.h"
#include "ui/desktop_actions.h"
#include "ui/widgets/controls.h"
#include "ui/widgets/sampling_controls.h"

namespace octavo::ui {
namespace {

struct Preset {
  const char* id;
  const char* label;
  double temperature, top_p, min_p;
  std::int32_t top_k;
};
constexpr Preset kPresets[] = {
    {"preset_precise", "Precise", 0.2, 0.9, 0.0, 0},
    {"preset_balanced", "Balanced", 0.7, 0.95, 0.0, 0},
    {"preset_creative", "Creative", 1.0, 1.0, 0.05, 0},
};

bool is_preset(const SamplingParams& sampling, const Preset& preset) {
  return sampling.temperature == preset.temperature && sampling.top_p == preset.top_p &&
         sampling.min_p == preset.min_p && sampling.top_k == preset.top_k;
}

bool draw_presets(const Frame& frame, SamplingParams& sampling, float width) {
  bool changed = false;
  const float each = (width - frame.px(12)) / 3.0f / frame.theme.scale;
  for (const Preset& preset : kPresets) {
    if (&preset != kPresets) beside(frame, 6);
    const ButtonKind kind = is_preset(sampling, preset) ? ButtonKind::kPrimary : ButtonKind::kOutline;
    if (!button(frame, preset.id, preset.label, {.kind = kind, .width = std::floor(each), .height = 30}))
      continue;
    sampling.temperature = preset.temperature;
    sampling.top_p = preset.top_p;
    sampling.min_p = preset.min_p;
    sampling.top_k = preset.top_k;
    changed = true;
  }
  return changed;
}

}  // namespace

void SamplingView::draw(const Frame& frame, const ChatState& chat) {
  // A preset changes them from outside while this is open.
  const bool changed_elsewhere = chat.system_prompt != known_prompt_ || chat.sampling.seed != known_seed_;
  known_prompt_ = chat.system_prompt;
  known_seed_ = chat.sampling.seed;
  if (edited_chat_ != chat.id || (changed_elsewhere && !ImGui::IsAnyItemActive())) {
    edited_chat_ = chat.id;
    system_prompt_ = chat.system_prompt;
    seed_text_ = chat.sampling.seed ? std::to_string(*chat.sampling.seed) : std::string();
  }
  const float width = ImGui::GetContentRegionAvail().x;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  heading_line(frame, "Chat settings");
  const ImVec2 below = ImGui::GetCursorScreenPos();
  ImGui::SetCursorScreenPos({at.x + width - frame.px(26), at.y - frame.px(3)});
  const ButtonOptions close{.kind = ButtonKind::kPlain, .icon = Icon::kClose, .height = 26, .help = "Close"};
  if (button(frame, "close_sampling", "", close)) frame.actions.push(actions::ShowSampling{false});
  ImGui::SetCursorScreenPos(below);
  gap(frame, 10);
  draw_system_prompt(frame, chat, width);
  gap(frame, 16);
  draw_context_policy(frame, chat, width);
  gap(frame, 16);
  SamplingParams sampling = chat.sampling;
  bool changed = draw_presets(frame, sampling, width);
  gap(frame, 8);
  if (button(frame, "show_presets", "Your presets", {.width = width / frame.theme.scale, .height = 30}))
    frame.actions.push(actions::ShowPresets{true});
  gap(frame, 16);
  changed |= sampling_sliders(frame, sampling, width);
  changed |= seed_field(frame, sampling, seed_text_, width);
  if (changed) frame.actions.push(actions::ChangeSampling{chat.id, sampling});
}

void SamplingView::draw_system_prompt(const Frame& frame, const ChatState& chat, float width) {
  line(frame, small_text(frame), "System prompt");
  tooltip(frame, "Instructions for the model. Changes apply from your next message.");
  gap(frame, 4);
  const Face face = frame.face(FontFace::kRegular, size::kText);
  if (text_area(frame, "##system_prompt", system_prompt_, {width, face.size * 5 + frame.px(16)})) {
    frame.actions.push(actions::ChangeSystemPrompt{chat.id, system_prompt_});
  }
}

void SamplingView::draw_context_policy(const Frame& frame, const ChatState& chat, float width) {
  line(frame, small_text(frame), "When the context is full");
  tooltip(
      frame,
      "Roll: the oldest messages are no longer sent. Summarise: the model sums them up, and the summary is "
      "sent "
      "in their place. Stop: nothing is left out, and further questions are refused. Nothing is deleted.");
  gap(frame, 4);
  constexpr ContextPolicy kPolicies[] = {ContextPolicy::kRoll, ContextPolicy::kSummarise,
                                         ContextPolicy::kStop};
  constexpr const char* kLabels[] = {"Roll", "Summarise", "Stop"};
  constexpr const char* kIds[] = {"policy_roll", "policy_summarise", "policy_stop"};
  const auto now = static_cast<std::size_t>(
      std::find(std::begin(kPolicies), std::end(kPolicies), chat.context_policy) - std::begin(kPolicies));
  const std::size_t chosen = segments(frame, "context_policy", kLabels, kIds, now, width);
  if (chosen != now) frame.actions.push(actions::ChangeContextPolicy{chat.id, kPolicies[chosen]});
  if (chat.summary.empty() || chat.summarising) return;
  gap(frame, 10);
  line(frame, small_text(frame), "Summary of what was left out");
  gap(frame, 4);
  if (edited_chat_ != chat.id || chat.summary != known_summary_) summary_ = chat.summary;
  known_summary_ = chat.summary;
  const Face face = frame.face(FontFace::kRegular, size::kText);
  if (text_area(frame, "##summary", summary_, {width, face.size * 5 + frame.px(16)})) {
    known_summary_ = summary_;
    frame.actions.push(actions::ChangeSummary{chat.id, summary_});
  }
}

}  // namespace octavo::ui
