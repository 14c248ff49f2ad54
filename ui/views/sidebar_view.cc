#include "ui/views/sidebar_view.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "engine/base/format.h"
#include "ui/chat_actions.h"
#include "ui/desktop_actions.h"
#include "ui/model_actions.h"
#include "ui/state.h"
#include "ui/views/download_view.h"
#include "ui/views/server_view.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

constexpr float kMargin = 12;
constexpr float kModelCardHeight = 86;
constexpr float kUndoHeight = 44;

// The whole card opens the models.
void draw_model_button(const Frame& frame, const ModelState& model, bool has_tiny_pool) {
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const ImVec2 extent = ImGui::GetContentRegionAvail();
  ImGui::SetNextItemAllowOverlap();
  if (ImGui::InvisibleButton("open_models", extent, ImGuiButtonFlags_EnableNav))
    frame.actions.push(actions::OpenModelPicker{});
  if (ImGui::IsItemHovered() || ImGui::IsItemFocused()) {
    const float margin = frame.px(6);
    ImGui::GetWindowDrawList()->AddRectFilled({low.x - margin, low.y - margin},
                                              {low.x + extent.x + margin, low.y + extent.y + margin},
                                              frame.theme.raised, frame.px(size::kRadiusControl));
  }
  if (model.phase == ModelPhase::kReady) {
    tooltip(frame, "Choose another model (Ctrl+M)\n" + model.details + "\n" + model.path +
                       (model.is_demonstration ? "\nThis small model is a demonstration." : "") +
                       (has_tiny_pool ? "\nA tiny pool is lent: the Memory workspace gives it back." : ""));
  } else {
    tooltip(frame, "Choose a model (Ctrl+M)");
  }
  ImGui::SetCursorScreenPos(low);
}

// In place of the pool's levels while another model loads.
void draw_loading(const Frame& frame, const ModelLoading& loading, float width) {
  two_part_bar(frame, static_cast<float>(loading.fraction), 0, width, frame.px(8));
  gap(frame, 5);
  line(frame, tiny_text(frame),
       (loading.is_cancelling ? "Cancelling " : "Loading ") + loading.name + " · " +
           percent_text(std::floor(loading.fraction * 100.0) / 100.0),
       width);
}

void draw_model_card(const Frame& frame, const UiState& state, float width) {
  const ModelState& model = state.model;
  begin_card(frame, "model", {width, frame.px(kModelCardHeight)}, 13);
  const float inner = ImGui::GetContentRegionAvail().x;
  draw_model_button(frame, model, state.tiny_pool.is_lent);
  const ImVec2 top = ImGui::GetCursorScreenPos();
  TextStyle name = small_text(frame);
  name.colour = frame.theme.text;
  name.em = 13.5f;
  const TextStyle tiny = tiny_text(frame);
  const float quantisation = text_width(frame, tiny, model.quantisation);
  const bool has_model = model.phase == ModelPhase::kReady;
  line(frame, name, has_model ? std::string_view(model.name) : "No model",
       inner - quantisation - frame.px(8));
  ImDrawList* list = ImGui::GetWindowDrawList();
  draw_text(frame, list, {top.x + inner - quantisation, top.y + frame.px(1)}, tiny, model.quantisation);
  gap(frame, 7);
  if (state.picker.loading) {
    draw_loading(frame, *state.picker.loading, inner);
    return end_card();
  }
  if (!has_model) {
    gap(frame, 8);
    line(frame, tiny, "Choose one to get answers", inner);
    return end_card();
  }
  if (model.is_remote) {
    line(frame, tiny, "Runs on another server", inner);
    return end_card();
  }
  const LevelPoint levels = newest_levels(*state.memory.timeline);
  const auto fraction = [&](std::int32_t blocks) {
    return model.num_blocks > 0 ? static_cast<double>(blocks) / model.num_blocks : 0.0;
  };
  two_part_bar(frame, static_cast<float>(fraction(levels.used)), static_cast<float>(fraction(levels.cached)),
               inner, frame.px(8));
  gap(frame, 5);
  const ImVec2 bottom = ImGui::GetCursorScreenPos();
  line(frame, tiny,
       percent_text(fraction(levels.used)) + " used · " + percent_text(fraction(levels.cached)) + " cached");
  tooltip(frame, "KV memory: blocks in use, and cached blocks that can still be reused.");
  TextStyle total_style = tiny;
  if (state.tiny_pool.is_lent) total_style.colour = readable(frame.theme.warning, frame.theme.panel);
  const std::string total = (state.tiny_pool.is_lent ? "tiny · " : "") + with_thousands(model.num_blocks);
  draw_text(frame, list, {bottom.x + inner - text_width(frame, tiny, total), bottom.y}, total_style, total);
  end_card();
}

void draw_undo(const Frame& frame, const std::string& deleted, float width) {
  begin_card(frame, "undo", {width, frame.px(kUndoHeight)}, 0);
  const ImVec2 low = ImGui::GetCursorScreenPos();
  ImGui::SetCursorScreenPos({low.x + frame.px(12), low.y + frame.px(12)});
  const ButtonOptions undo{.height = 28};
  const float buttons = button_width(frame, "Undo", undo) + frame.px(2 + 28 + 8);
  line(frame, tiny_text(frame), "Deleted " + deleted, width - buttons - frame.px(12 + 8));
  ImGui::SetCursorScreenPos({low.x + width - buttons, low.y + frame.px(8)});
  if (button(frame, "undo_delete", "Undo", undo)) frame.actions.push(actions::UndoDelete{});
  beside(frame, 2);
  const ButtonOptions dismiss{
      .kind = ButtonKind::kPlain, .icon = Icon::kClose, .height = 28, .help = "Dismiss"};
  if (button(frame, "dismiss_undo", "", dismiss)) frame.actions.push(actions::DismissUndo{});
  end_card();
}

// Why chats are not saved.
TextStyle problem_text(const Frame& frame) { return {.em = size::kTiny, .colour = frame.theme.warning}; }

float problem_height(const Frame& frame, const UiState& state, float width) {
  if (state.library.problem.empty()) return 0;
  return paragraph_height(frame, problem_text(frame), state.library.problem, width) + frame.px(8);
}

}  // namespace

void SidebarView::draw(const Frame& frame, const UiState& state) {
  const float outer = frame.px(size::kSidebar), margin = frame.px(kMargin);
  ImGui::PushStyleColor(ImGuiCol_ChildBg, frame.theme.panel);
  ImGui::PushStyleVar(ImGuiStyleVar_ChildRounding, 0.0f);
  ImGui::BeginChild("sidebar", {outer, 0}, ImGuiChildFlags_NavFlattened, ImGuiWindowFlags_NoScrollbar);
  ImGui::PopStyleVar();
  ImGui::PopStyleColor();
  const ImVec2 low = ImGui::GetWindowPos();
  const float height = ImGui::GetWindowHeight(), width = outer - 2 * margin;
  ImGui::GetWindowDrawList()->AddLineV(low.x + outer - 1, low.y, low.y + height, frame.theme.line);

  ImGui::SetCursorScreenPos({low.x + margin, low.y + frame.px(16)});
  ImGui::BeginGroup();
  draw_top(frame, state, width);
  if (state.search_open) search_.draw_field(frame, state, width);
  ImGui::EndGroup();
  const float list_top = ImGui::GetCursorScreenPos().y;
  const bool undo = state.deleted.has_value();
  const bool server = state.server.phase != ServerPhase::kOff;
  const float problem = problem_height(frame, state, width);
  const float download = download_height(frame, state.catalogue.download, width);
  const float bottom = frame.px(kModelCardHeight + 16 + (undo ? kUndoHeight + 8 : 0) +
                                (server ? kServerLineHeight + 6 : 0) + (download > 0 ? download + 8 : 0)) +
                       problem;
  const ImVec2 extent{width, low.y + height - bottom - list_top - frame.px(8)};
  ImGui::SetCursorScreenPos({low.x + margin, list_top});
  if (state.search_open && !state.library.search.query.empty()) {
    search_.draw_hits(frame, state, extent);
  } else {
    chats_.draw(frame, state, extent);
  }
  float y = low.y + height - bottom;
  if (problem > 0) {
    ImGui::SetCursorScreenPos({low.x + margin, y});
    paragraph(frame, problem_text(frame), state.library.problem, width);
    y += problem;
  }
  if (undo) {
    ImGui::SetCursorScreenPos({low.x + margin, y});
    draw_undo(frame, *state.deleted, width);
    y += frame.px(kUndoHeight + 8);
  }
  if (download > 0) {
    ImGui::SetCursorScreenPos({low.x + margin, y});
    draw_download(frame, state.catalogue.download, width);
    y += frame.px(download + 8);
  }
  if (server) {
    ImGui::SetCursorScreenPos({low.x + margin, y});
    draw_server_line(frame, state.server, width);
    y += frame.px(kServerLineHeight + 6);
  }
  ImGui::SetCursorScreenPos({low.x + margin, y});
  draw_model_card(frame, state, width);
  ImGui::EndChild();
}

bool SidebarView::take_ended() {
  const bool renamed = chats_.take_ended(), searched = search_.take_ended();
  return renamed || searched;
}

void SidebarView::draw_top(const Frame& frame, const UiState& state, float width) {
  constexpr std::array kLabels = {"Chat", "Compare", "Memory"};
  constexpr std::array kIds = {"chat", "compare", "memory"};
  const auto before = static_cast<std::size_t>(state.workspace);
  const std::size_t after = segments(frame, "workspace", kLabels, kIds, before, width);
  if (after != before) frame.actions.push(actions::ShowWorkspace{static_cast<Workspace>(after)});
  gap(frame, 12);
  const float square = 38;
  const ButtonOptions new_chat{.icon = Icon::kPlus,
                               .width = (width - frame.px(2 * (square + 8))) / frame.theme.scale,
                               .height = square,
                               .align_left = true,
                               .help = "New chat (Ctrl+N)"};
  if (button(frame, "new_chat", "New chat", new_chat)) frame.actions.push(actions::NewChat{});
  beside(frame, 8);
  const ButtonOptions search{
      .icon = Icon::kSearch, .height = square, .help = "Search all chats (Ctrl+Shift+F)"};
  if (button(frame, "search", "", search)) frame.actions.push(actions::ShowSearch{!state.search_open});
  beside(frame, 8);
  const ButtonOptions settings{.icon = Icon::kGear, .height = square, .help = "Settings (Ctrl+,)"};
  if (button(frame, "settings", "", settings)) frame.actions.push(actions::ShowSettings{true});
  gap(frame, 10);
}

}  // namespace octavo::ui
