#include "ui/views/memory/experts_view.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "engine/base/format.h"
#include "ui/memory_actions.h"
#include "ui/views/memory/memory_parts.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

constexpr float kLabel = 62, kSummary = 96, kRow = 15, kMostRow = 30, kLeastCell = 4, kMostCell = 64;
constexpr float kLeastWithSummary = 420;  // below it the summary is in the tooltip of a layer alone
constexpr float kLegendBar = 150;

ImU32 colour_of(const Theme& theme, float heat) {
  if (heat <= 0) return theme.free;
  // Through the accent towards the text's colour: lightness goes one way all along.
  return heat < 0.6f ? mix(theme.free, theme.accent, 0.15f + heat * 0.85f / 0.6f)
                     : mix(theme.accent, theme.text, (heat - 0.6f) * 1.6f);
}

std::int64_t choices_of_layer(const ExpertHeat& heat) { return heat.num_tokens * heat.num_used; }

double share_of(const ExpertHeat& heat, std::uint32_t count) {
  return static_cast<double>(count) / static_cast<double>(std::max<std::int64_t>(1, choices_of_layer(heat)));
}

std::string name_of(const UiState& state, ChatId chat) {
  if (chat == ChatId{}) return "all chats";
  const ChatState* const shown = find_chat(state, chat);
  return shown == nullptr ? "one chat" : shown->title;
}

// The chat after this one; after the last, all of them.
ChatId next_chat(const ExpertHeat& heat) {
  const auto next = std::ranges::upper_bound(heat.chats, heat.chat);
  return next == heat.chats.end() ? ChatId{} : *next;
}

void draw_heading(const Frame& frame, const UiState& state) {
  const ExpertHeat* const heat = state.memory_workspace.experts.heat.get();
  const ExpertsState& experts = state.memory_workspace.experts;
  std::string note =
      std::to_string(experts.num_used) + " of " + std::to_string(experts.num_experts) + " for each token";
  if (heat != nullptr) note += " · " + count_text(heat->num_tokens, "token") + " counted";
  heading_line(frame, "Experts", note);
  gap(frame, 6);
  const std::string of = "of: " + name_of(state, heat == nullptr ? ChatId{} : heat->chat);
  if (chip(frame, "experts_of", of, {.max_width = frame.px(220)}) && heat != nullptr)
    frame.actions.push(actions::ChooseExpertsOf{next_chat(*heat)});
  tooltip(frame, "Whose tokens are counted: all chats, or one after the other");
  beside(frame, 8);
  if (chip(frame, "experts_restart", "Start over")) frame.actions.push(actions::RestartExperts{});
  tooltip(frame, "Forget what was counted");
}

// The bar of colours with what nobody chose, an even spread and the largest share.
void draw_legend(const Frame& frame, const ExpertHeat& heat) {
  const double most = share_of(heat, heat.most), even = 1.0 / heat.num_experts;
  const TextStyle style = tiny_text(frame);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float height = frame.px(10);
  const float width = std::min(frame.px(kLegendBar), ImGui::GetContentRegionAvail().x * 0.4f);
  ImDrawList* list = ImGui::GetWindowDrawList();
  const std::string none = "0 %";
  draw_text(frame, list, at, style, none);
  const float left = at.x + text_width(frame, style, none) + frame.px(8);
  constexpr int kParts = 30;
  for (int i = 0; i < kParts; ++i) {
    const auto part = [&](int index) {
      return std::round(left + width * static_cast<float>(index) / kParts);
    };
    list->AddRectFilled({part(i), at.y + frame.px(4)}, {part(i + 1), at.y + frame.px(4) + height},
                        colour_of(frame.theme, (static_cast<float>(i) + 0.5f) / kParts));
  }
  if (even <= most) {
    const float x = left + width * heat_of_share(even, most);
    list->AddRectFilled({x - 1, at.y + frame.px(1)}, {x + 1, at.y + frame.px(7) + height}, frame.theme.text);
  }
  const std::string text = percent_text(most) + " · line: evenly spread, " + percent_text(even);
  const float room = at.x + ImGui::GetContentRegionAvail().x - (left + width + frame.px(8));
  draw_text(frame, list, {left + width + frame.px(8), at.y}, style, text, std::max(1.0f, room));
  ImGui::Dummy({ImGui::GetContentRegionAvail().x, frame.px(22)});
  tooltip(frame, "Share of a layer's choices that went to one expert. The largest share is " +
                     percent_text(most) + "; evenly spread, each would have " + percent_text(even) + ".");
}

struct Layout {
  float label, summary, row, cell;
};

Layout layout_of(const Frame& frame, const ExpertHeat& heat, float width, float height) {
  Layout layout{.label = frame.px(kLabel),
                .summary = width >= frame.px(kLeastWithSummary) ? frame.px(kSummary) : 0.0f,
                .row = std::clamp(std::floor(height / static_cast<float>(heat.layers.size())), frame.px(kRow),
                                  frame.px(kMostRow)),
                .cell = 0};
  const float room = width - layout.label - layout.summary;
  layout.cell = std::clamp(std::floor(room / static_cast<float>(heat.num_experts)), frame.px(kLeastCell),
                           frame.px(kMostCell));
  return layout;
}

std::string cell_text(const ExpertHeat& heat, std::size_t layer, std::int32_t expert) {
  const std::uint32_t count =
      heat.counts[layer * static_cast<std::size_t>(heat.num_experts) + static_cast<std::size_t>(expert)];
  return "Layer " + std::to_string(heat.layers[layer]) + ", expert " + std::to_string(expert) + "\n" +
         with_thousands(count) + " of " + with_thousands(choices_of_layer(heat)) + " choices, " +
         percent_text(share_of(heat, count)) + "\nEvenly spread would be " +
         percent_text(1.0 / heat.num_experts);
}

std::string half_text(const ExpertHeat& heat, std::size_t layer) {
  return std::to_string(heat.num_for_half[layer]) + " of " + std::to_string(heat.num_experts) +
         " experts cover half of the choices of layer " + std::to_string(heat.layers[layer]);
}

// The cells of one layer that are within view.
void draw_layer(const Frame& frame, const ExpertHeat& heat, std::size_t layer, const Layout& layout,
                ImVec2 low, float from, float to) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const double most = share_of(heat, heat.most);
  const float space = layout.cell >= frame.px(8) ? 1.0f : 0.0f;
  const auto first = static_cast<std::int32_t>(std::max(0.0f, (from - low.x) / layout.cell));
  const auto end =
      std::min(heat.num_experts, static_cast<std::int32_t>(std::max(0.0f, (to - low.x) / layout.cell)) + 1);
  for (std::int32_t expert = first; expert < end; ++expert) {
    const std::uint32_t count =
        heat.counts[layer * static_cast<std::size_t>(heat.num_experts) + static_cast<std::size_t>(expert)];
    const float x = low.x + static_cast<float>(expert) * layout.cell;
    list->AddRectFilled({x, low.y}, {x + layout.cell - space, low.y + layout.row - 1},
                        colour_of(frame.theme, heat_of_share(share_of(heat, count), most)));
  }
}

// Names on the left and the summary on the right stay where they are while the cells scroll sideways.
void draw_pinned(const Frame& frame, const ExpertHeat& heat, std::size_t layer, const Layout& layout,
                 float left, float right, float y) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const TextStyle style = tiny_text(frame);
  const float top = y + std::floor((layout.row - line_pixels(frame, style)) * 0.5f) - 1;
  list->AddRectFilled({left, y - 1}, {left + layout.label, y + layout.row}, frame.theme.panel);
  draw_text(frame, list, {left, top}, style, "layer " + std::to_string(heat.layers[layer]), layout.label);
  if (layout.summary <= 0) return;
  list->AddRectFilled({right - layout.summary, y - 1}, {right, y + layout.row}, frame.theme.panel);
  draw_text(frame, list, {right - layout.summary + frame.px(8), top}, style,
            std::to_string(heat.num_for_half[layer]) + " cover half", layout.summary - frame.px(8));
}

void draw_rows(const Frame& frame, const ExpertHeat& heat) {
  ImGui::BeginChild("expert_rows", {0, 0}, ImGuiChildFlags_NavFlattened,
                    ImGuiWindowFlags_HorizontalScrollbar);
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const Layout layout = layout_of(frame, heat, room.x, room.y);
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  const float left = ImGui::GetWindowPos().x, top = ImGui::GetWindowPos().y;
  const float bottom = top + ImGui::GetWindowHeight();
  const ImVec2 cells{origin.x + layout.label, origin.y};
  const float width = layout.cell * static_cast<float>(heat.num_experts);
  const float right = left + std::min(room.x, layout.label + width + layout.summary);
  const ImVec2 extent{layout.label + width + layout.summary,
                      layout.row * static_cast<float>(heat.layers.size())};
  ImGui::InvisibleButton("experts", {std::max(1.0f, extent.x), std::max(1.0f, extent.y)});
  const bool is_pointed = ImGui::IsItemHovered();
  const ImVec2 mouse = ImGui::GetMousePos();
  for (std::size_t layer = 0; layer < heat.layers.size(); ++layer) {
    const float y = origin.y + static_cast<float>(layer) * layout.row;
    if (y + layout.row < top || y > bottom) continue;
    draw_layer(frame, heat, layer, layout, {cells.x, y}, left + layout.label, right - layout.summary);
    draw_pinned(frame, heat, layer, layout, left, right, y);
    if (!is_pointed || mouse.y < y || mouse.y >= y + layout.row) continue;
    const auto expert = static_cast<std::int32_t>(std::floor((mouse.x - cells.x) / layout.cell));
    const bool is_cell = mouse.x >= left + layout.label && mouse.x < right - layout.summary && expert >= 0 &&
                         expert < heat.num_experts;
    tooltip_now(frame, is_cell ? cell_text(heat, layer, expert) : half_text(heat, layer));
  }
  ImGui::EndChild();
}

}  // namespace

float heat_of_share(double share, double most) {
  return most <= 0 ? 0.0f : static_cast<float>(std::clamp(share / most, 0.0, 1.0));
}

void draw_experts(const Frame& frame, const UiState& state, ImVec2 extent) {
  const ExpertHeat* const heat = state.memory_workspace.experts.heat.get();
  begin_card(frame, "experts", extent);
  draw_heading(frame, state);
  gap(frame, 8);
  if (heat == nullptr || heat->num_tokens == 0) {
    draw_hint(frame,
              "Nothing is counted yet. While this page is open, it counts which experts the tokens of every "
              "step choose, those of prompts and those of answers. Ask something in a chat.");
  } else {
    draw_legend(frame, *heat);
    gap(frame, 4);
    draw_rows(frame, *heat);
  }
  end_card();
}

}  // namespace octavo::ui
