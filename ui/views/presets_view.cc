#include "ui/views/presets_view.h"

#include <imgui.h>

#include <utility>

#include "engine/base/format.h"
#include "ui/chat_actions.h"
#include "ui/desktop_actions.h"
#include "ui/state.h"
#include "ui/views/dialog.h"
#include "ui/widgets/controls.h"
#include "ui/widgets/template_switches.h"

namespace octavo::ui {
namespace {

constexpr float kWidth = 780, kHeight = 710, kListWidth = 220, kRowHeight = 50, kBetween = 20;

// "temperature 0.7 · top-p 0.95"
std::string summary(const PresetState& preset) {
  return preset.sampling.temperature == 0 ? std::string("greedy")
                                          : "temperature " + short_number(preset.sampling.temperature) +
                                                " · top-p " + short_number(preset.sampling.top_p);
}

const PresetState* find_preset(const UiState& state, PresetId id) {
  for (const PresetState& preset : state.library.presets) {
    if (preset.id == id && id != PresetId{}) return &preset;
  }
  return nullptr;
}

}  // namespace

void PresetsView::choose(const PresetState& preset) {
  edited_ = preset;
  fields_.forget();
  sure_to_delete_ = false;
}

// A new one is chosen as soon as it is there; one that is gone no longer.
void PresetsView::follow(const UiState& state) {
  const auto& presets = state.library.presets;
  if (choose_newest_ && presets.size() > num_known_) {
    choose(presets.back());
    choose_newest_ = false;
    focus_name_ = true;
  }
  num_known_ = presets.size();
  if (find_preset(state, edited_.id) != nullptr) return;
  if (presets.empty())
    edited_ = {};
  else
    choose(presets.front());
}

void PresetsView::draw(const Frame& frame, const UiState& state) {
  const bool open = state.desktop.presets_open;
  if (!begin_dialog(frame, {.id = "presets_panel", .title = "Presets", .width = kWidth, .height = kHeight},
                    open))
    return;
  follow(state);
  const ImVec2 extent = ImGui::GetContentRegionAvail(), low = ImGui::GetCursorScreenPos();
  const float list = frame.px(kListWidth), between = frame.px(kBetween);
  draw_list(frame, state, {list, extent.y});
  ImGui::SetCursorScreenPos({low.x + list + between, low.y});
  draw_editor(frame, state, {extent.x - list - between, extent.y});
  if (end_dialog(frame, open)) frame.actions.push(actions::ShowPresets{false});
}

void PresetsView::draw_list(const Frame& frame, const UiState& state, ImVec2 extent) {
  ImGui::BeginChild("preset_list", extent, ImGuiChildFlags_NavFlattened);
  const ChatState* chat = active_chat(state);
  const ButtonOptions make{.icon = Icon::kPlus,
                           .width = extent.x / frame.theme.scale,
                           .enabled = chat != nullptr,
                           .align_left = true,
                           .help = "Create a preset from this chat's system prompt, sampling and thinking"};
  if (button(frame, "new_preset", "New from this chat", make) && chat != nullptr) {
    const std::string name = "Preset " + std::to_string(state.library.presets.size() + 1);
    frame.actions.push(
        actions::SavePreset{{PresetId{}, name, chat->system_prompt, chat->sampling, chat->template_values}});
    choose_newest_ = true;
  }
  gap(frame, 10);
  ImDrawList* list = ImGui::GetWindowDrawList();
  for (const PresetState& preset : state.library.presets) {
    ImGui::PushID(static_cast<int>(preset.id.value));
    const ImVec2 low = ImGui::GetCursorScreenPos();
    const float width = ImGui::GetContentRegionAvail().x, height = frame.px(kRowHeight);
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, frame.px(2)});
    if (ImGui::InvisibleButton("preset", {width, height}, ImGuiButtonFlags_EnableNav)) choose(preset);
    ImGui::PopStyleVar();
    const bool chosen = preset.id == edited_.id;
    if (chosen || ImGui::IsItemHovered()) {
      list->AddRectFilled(low, {low.x + width, low.y + height},
                          with_alpha(frame.theme.raised, chosen ? 1.0f : 0.6f),
                          frame.px(size::kRadiusControl));
    }
    draw_text(frame, list, {low.x + frame.px(10), low.y + frame.px(5)},
              {.em = 14, .colour = frame.theme.text}, preset.name.empty() ? "Untitled" : preset.name,
              width - frame.px(20));
    draw_text(frame, list, {low.x + frame.px(10), low.y + frame.px(26)}, tiny_text(frame), summary(preset),
              width - frame.px(20));
    ImGui::PopID();
  }
  ImGui::EndChild();
}

void PresetsView::draw_editor(const Frame& frame, const UiState& state, ImVec2 extent) {
  ImGui::BeginChild("preset_editor", extent, ImGuiChildFlags_NavFlattened);
  const float width = ImGui::GetContentRegionAvail().x;
  if (edited_.id == PresetId{}) {
    paragraph(frame, small_text(frame),
              "No presets yet. A preset saves a system prompt, sampling and thinking settings to use in "
              "other chats.",
              width);
    ImGui::EndChild();
    return;
  }
  draw_buttons(frame, state, width);
  gap(frame, 14);
  ImGui::PushID(static_cast<int>(edited_.id.value));  // what is typed belongs to this one
  line(frame, small_text(frame), "Name");
  gap(frame, 4);
  if (std::exchange(focus_name_, false)) take_keyboard("##preset_name");
  bool changed =
      text_field(frame, "##preset_name", edited_.name, "Name", width, ImGuiInputTextFlags_AutoSelectAll);
  gap(frame, 12);
  line(frame, small_text(frame), "System prompt");
  gap(frame, 4);
  const Face face = frame.face(FontFace::kRegular, size::kText);
  changed |=
      text_area(frame, "##preset_prompt", edited_.system_prompt, {width, face.size * 5 + frame.px(16)});
  gap(frame, 14);
  for (const TemplateSwitch& one : state.model.template_switches) {
    changed |= template_switch(frame, one, edited_.template_values, "", width);
    gap(frame, 14);
  }
  changed |= fields_.draw(frame, edited_.sampling, width);
  ImGui::PopID();
  if (changed) frame.actions.push(actions::SavePreset{edited_});
  ImGui::EndChild();
}

void PresetsView::draw_buttons(const Frame& frame, const UiState& state, float width) {
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const ButtonOptions apply{.kind = ButtonKind::kPrimary,
                            .enabled = active_chat(state) != nullptr,
                            .help = "Use this preset's system prompt, sampling and thinking in this chat"};
  if (button(frame, "apply_preset", "Use in this chat", apply))
    frame.actions.push(actions::ApplyPreset{state.active_chat, edited_.id});
  const char* const text = sure_to_delete_ ? "Delete permanently" : "Delete";
  const ButtonOptions erase{.icon = Icon::kTrash};
  const float needed = button_width(frame, text, erase);
  if (button_width(frame, "Use in this chat", apply) + frame.px(8) + needed <= width) {
    ImGui::SetCursorScreenPos({low.x + width - needed, low.y});
  } else {
    gap(frame, 8);
  }
  if (!button(frame, "erase_preset", text, erase)) return;
  if (sure_to_delete_) frame.actions.push(actions::ErasePreset{edited_.id});
  sure_to_delete_ = !sure_to_delete_;
}

}  // namespace octavo::ui
