#include "ui/views/model_picker.h"

#include <algorithm>
#include <cmath>

#include "engine/base/ascii.h"
#include "engine/base/format.h"
#include "ui/desktop_actions.h"
#include "ui/model_actions.h"
#include "ui/state.h"
#include "ui/views/dialog.h"
#include "ui/views/model_inside_view.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

constexpr float kWidth = 1040, kHeight = 724, kListWidth = 392;
constexpr float kRowHeight = 62, kPadding = 24;

bool holds_all_words(const std::string& text, const std::string& query) {
  for (std::size_t at = 0; at < query.size();) {
    const std::size_t begin = query.find_first_not_of(' ', at);
    if (begin == std::string::npos) break;
    const std::size_t end = std::min(query.find(' ', begin), query.size());
    if (text.find(query.substr(begin, end - begin)) == std::string::npos) return false;
    at = end;
  }
  return true;
}

bool is_present_model(const UiState& state, const ModelRow& row) {
  return state.model.phase == ModelPhase::kReady && row.path == state.model.path;
}

const std::string& row_title(const ModelRow& row) { return row.name.empty() ? row.file_name : row.name; }

std::string row_note(const UiState& state, const ModelRow& row) {
  if (is_present_model(state, row)) return "in use";
  if (row.is_default) return "demonstration";
  return row.last_used_ms > 0 ? "recent" : row.owner;
}

// True when chosen. A line of the list, as wide as the list, with its background.
bool list_line(const Frame& frame, const char* id, ImVec2 extent, bool is_chosen) {
  const ImVec2 low = ImGui::GetCursorScreenPos();
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
  const bool pressed = ImGui::InvisibleButton(id, extent, ImGuiButtonFlags_EnableNav);
  ImGui::PopStyleVar();
  const bool is_lit = ImGui::IsItemHovered() || ImGui::IsItemFocused();
  if (!is_chosen && !is_lit) return pressed;
  const ImVec2 high{low.x + extent.x, low.y + extent.y - frame.px(2)};
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(low, high, is_chosen ? frame.theme.raised : with_alpha(frame.theme.raised, 0.6f),
                      frame.px(size::kRadiusControl));
  if (is_chosen)
    list->AddRect(low, high, mix(frame.theme.line, frame.theme.accent, 0.6f), frame.px(size::kRadiusControl));
  return pressed;
}

void begin_part(const Frame& frame, const char* id, ImVec2 extent) {
  ImGui::PushStyleVar(ImGuiStyleVar_ChildRounding, 0.0f);
  ImGui::PushStyleColor(ImGuiCol_ChildBg, IM_COL32_BLACK_TRANS);
  ImGui::BeginChild(id, extent, ImGuiChildFlags_NavFlattened);
  ImGui::PopStyleColor();
  ImGui::PopStyleVar();
  (void)frame;
}

}  // namespace

std::vector<std::size_t> model_rows_matching(const std::vector<ModelRow>& rows, std::string_view query) {
  const std::string words = ascii_lower_case(query);
  std::vector<std::size_t> matching;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const ModelRow& row = rows[i];
    if (holds_all_words(
            ascii_lower_case(row.name + "\n" + row.file_name + "\n" + row.folder + "\n" + row.summary),
            words))
      matching.push_back(i);
  }
  return matching;
}

void ModelPickerView::draw(const Frame& frame, const UiState& state) {
  const ModelPickerState& picker = state.picker;
  if (picker.open && !was_open_) {
    query_.clear();
    scroll_to_chosen_ = true;
  }
  was_open_ = picker.open;
  const DialogOptions dialog{
      .id = "model_picker", .title = "Models", .width = kWidth, .height = kHeight, .scrolls = false};
  if (!begin_dialog(frame, dialog, picker.open)) return;
  const float width = ImGui::GetContentRegionAvail().x;
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const float height = ImGui::GetContentRegionAvail().y;
  const float list_width = std::min(frame.px(kListWidth), std::floor(width * 0.42f));
  begin_part(frame, "models", {list_width, height});
  draw_list(frame, state, {list_width, height});
  ImGui::EndChild();
  const float left = low.x + list_width + frame.px(kPadding);
  ImGui::GetWindowDrawList()->AddLineV(left - std::floor(frame.px(kPadding) * 0.5f), low.y, low.y + height,
                                       frame.theme.line);
  ImGui::SetCursorScreenPos({left, low.y});
  begin_part(frame, "inside", {low.x + width - left, height});
  draw_model_inside(frame, state);
  ImGui::EndChild();
  files_.draw(frame, state.files);  // in front of this one, as the next two
  remote_.draw(frame, picker.remote);
  catalogue_.draw(frame, state);
  if (end_dialog(frame, picker.open)) frame.actions.push(actions::CloseModelPicker{});
}

// ---- the list

void ModelPickerView::draw_list(const Frame& frame, const UiState& state, ImVec2 extent) {
  const ModelPickerState& picker = state.picker;
  if (ImGui::IsWindowAppearing()) take_keyboard("##model_query");
  text_field(frame, "##model_query", query_, "Search your models", extent.x);
  gap(frame, 8);
  const std::vector<std::size_t> matching = model_rows_matching(picker.rows, query_);
  move_choice(frame, state, matching);
  const bool stacks_buttons = extent.x < frame.px(370);
  const float bottom = frame.px(stacks_buttons ? 130 : 44);
  begin_part(frame, "rows", {extent.x, ImGui::GetContentRegionAvail().y - bottom});
  const float inner = ImGui::GetContentRegionAvail().x;
  for (const std::size_t index : matching) {
    ImGui::PushID(static_cast<int>(index));
    draw_row(frame, state, picker.rows[index], inner);
    ImGui::PopID();
  }
  if (matching.empty() && !picker.scanning) {
    paragraph(frame, small_text(frame),
              picker.rows.empty() ? "No models found yet. Choose “Get models…” to download one."
                                  : "No matching models.",
              inner);
  }
  scroll_to_chosen_ = false;
  ImGui::EndChild();
  gap(frame, 10);
  const ButtonOptions get{
      .kind = ButtonKind::kPrimary, .icon = Icon::kSearch, .help = "Find and download models"};
  if (button(frame, "open_catalogue", "Get models…", get)) frame.actions.push(actions::OpenCatalogue{});
  if (stacks_buttons) {
    gap(frame, 8);
  } else {
    beside(frame, 8);
  }
  const ButtonOptions open{.icon = Icon::kFolder, .help = "Choose a .gguf file on your disk"};
  if (button(frame, "open_file", "Open file…", open))
    frame.actions.push(actions::AskForFile{actions::FileWish::kOpenModel});
  if (stacks_buttons) {
    gap(frame, 8);
  } else {
    beside(frame, 8);
  }
  if (button(frame, "remote_model", "Remote…", {.help = "Use a model that runs on another server"}))
    frame.actions.push(actions::OpenRemoteDialog{});
  if (picker.scanning) {
    beside(frame, 12);
    const ImVec2 at = ImGui::GetCursorScreenPos();
    draw_text(frame, ImGui::GetWindowDrawList(), {at.x, at.y + frame.px(7)}, tiny_text(frame),
              "Looking for models…");
  }
}

void ModelPickerView::draw_row(const Frame& frame, const UiState& state, const ModelRow& row, float width) {
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const bool is_chosen = row.path == state.picker.inside.path;
  if (list_line(frame, "model_row", {width, frame.px(kRowHeight)}, is_chosen))
    frame.actions.push(actions::ChooseModel{row.path});
  tooltip(frame, row.folder + "/" + row.file_name + (row.problem.empty() ? "" : "\n" + row.problem));
  if (is_chosen && scroll_to_chosen_) ImGui::SetScrollHereY(0.5f);
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float left = low.x + frame.px(12), right = low.x + width - frame.px(12);
  TextStyle title = small_text(frame);
  title.em = 14;
  title.colour = row.problem.empty() ? frame.theme.text : frame.theme.muted;
  TextStyle tiny = tiny_text(frame);
  const std::string note = row_note(state, row);
  TextStyle noted = tiny;
  const ImU32 behind = is_chosen ? frame.theme.raised : frame.theme.panel;
  if (is_present_model(state, row)) noted.colour = readable(frame.theme.accent, behind);
  const float note_width = text_width(frame, noted, note);
  draw_text(frame, list, {left, low.y + frame.px(9)}, title, row_title(row),
            right - left - note_width - frame.px(8));
  draw_text(frame, list, {right - note_width, low.y + frame.px(11)}, noted, note);
  const std::string bytes = row.is_present ? bytes_text(row.file_bytes) : std::string();
  const float bytes_width = text_width(frame, tiny, bytes);
  draw_text(frame, list, {right - bytes_width, low.y + frame.px(33)}, tiny, bytes);
  if (!row.problem.empty()) tiny.colour = frame.theme.error;
  const std::string& below = !row.problem.empty()  ? row.problem
                             : row.summary.empty() ? row.folder
                                                   : row.summary;
  draw_text(frame, list, {left, low.y + frame.px(33)}, tiny, below, right - left - bytes_width - frame.px(8));
}

// The arrows walk the list while the search has the keyboard.
void ModelPickerView::move_choice(const Frame& frame, const UiState& state,
                                  const std::vector<std::size_t>& matching) {
  if (!ImGui::IsWindowFocused(ImGuiFocusedFlags_RootAndChildWindows) || matching.empty()) return;
  const bool down = ImGui::IsKeyPressed(ImGuiKey_DownArrow), up = ImGui::IsKeyPressed(ImGuiKey_UpArrow);
  if (!ImGui::GetIO().WantTextInput || down == up) return;
  const std::vector<ModelRow>& rows = state.picker.rows;
  const auto chosen = std::find_if(matching.begin(), matching.end(), [&](std::size_t index) {
    return rows[index].path == state.picker.inside.path;
  });
  std::size_t next = 0;
  if (chosen != matching.end()) {
    const auto at = static_cast<std::size_t>(chosen - matching.begin());
    next = (at + (down ? 1 : matching.size() - 1)) % matching.size();
  }
  scroll_to_chosen_ = true;
  frame.actions.push(actions::ChooseModel{rows[matching[next]].path});
}

}  // namespace octavo::ui
