#include "ui/views/sampling_view.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/format.h"
#include "ui/chat_actions.h"
#include "ui/desktop_actions.h"
#include "ui/widgets/controls.h"
#include "ui/widgets/template_switches.h"

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

// "temperature 0.6, top-p 0.95"
std::string advice_text(const SamplingAdvice& advice) {
  std::string text;
  const auto add = [&](const char* what, const std::string& value) {
    text += (text.empty() ? "" : ", ") + std::string(what) + " " + value;
  };
  if (advice.temperature) add("temperature", short_number(*advice.temperature));
  if (advice.top_p) add("top-p", short_number(*advice.top_p));
  if (advice.top_k) add("top-k", *advice.top_k <= 0 ? "off" : std::to_string(*advice.top_k));
  if (advice.min_p) add("min-p", short_number(*advice.min_p));
  if (advice.presence_penalty) add("presence penalty", short_number(*advice.presence_penalty));
  if (advice.repetition_penalty) add("repetition penalty", short_number(*advice.repetition_penalty));
  return text;
}

// What the model's makers say; nothing where nothing is known. True when it was taken.
bool draw_advice(const Frame& frame, const SamplingAdvice& advice, SamplingParams& sampling, float width) {
  if (advice.empty()) return false;
  const bool followed = follows(sampling, advice);
  line(frame, small_text(frame), followed ? "The model's advice, in use" : "The model's advice");
  tooltip(frame, "What the makers of this model recommend. New chats begin with it.");
  gap(frame, 4);
  TextStyle style = small_text(frame);
  style.colour = frame.theme.text;
  paragraph(frame, style, advice_text(advice), width);
  if (!followed) gap(frame, 6);
  const bool taken = !followed && button(frame, "use_advice", "Use the model's advice",
                                         {.width = width / frame.theme.scale, .height = 30});
  if (taken) sampling = with_advice(sampling, advice);
  gap(frame, 16);
  return taken;
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

void SamplingView::draw(const Frame& frame, const ChatState& chat, const ModelState& model) {
  if (edited_chat_ != chat.id) fields_.forget();
  // A preset changes it from outside while this is open.
  const bool changed_elsewhere = chat.system_prompt != known_prompt_;
  known_prompt_ = chat.system_prompt;
  if (edited_chat_ != chat.id || (changed_elsewhere && !ImGui::IsAnyItemActive())) {
    edited_chat_ = chat.id;
    system_prompt_ = chat.system_prompt;
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
  draw_switches(frame, chat, model, width);
  draw_context_policy(frame, chat, width);
  gap(frame, 16);
  SamplingParams sampling = chat.sampling;
  bool changed = draw_presets(frame, sampling, width);
  gap(frame, 8);
  if (button(frame, "show_presets", "Your presets", {.width = width / frame.theme.scale, .height = 30}))
    frame.actions.push(actions::ShowPresets{true});
  gap(frame, 16);
  changed |= draw_advice(frame, model.sampling_advice, sampling, width);
  ImGui::PushID(static_cast<int>(chat.id.value));  // what is typed belongs to this one
  changed |= fields_.draw(frame, sampling, width);
  ImGui::PopID();
  if (changed) frame.actions.push(actions::ChangeSampling{chat.id, sampling});
}

void SamplingView::draw_switches(const Frame& frame, const ChatState& chat, const ModelState& model,
                                 float width) {
  TemplateValues values = chat.template_values;
  for (const TemplateSwitch& one : model.template_switches) {
    const bool changed = template_switch(frame, one, values, " Applies from your next message.", width);
    gap(frame, 16);
    if (!changed) continue;
    const auto told = values.find(one.name);
    frame.actions.push(actions::ChangeTemplateValue{
        chat.id, one.name, told != values.end() ? std::optional(told->second) : std::nullopt});
  }
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
