#include "ui/views/command_palette.h"

#include <algorithm>
#include <cmath>

#include "engine/base/text.h"
#include "ui/chat_actions.h"
#include "ui/desktop_actions.h"
#include "ui/state.h"
#include "ui/widgets/characters.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

constexpr float kWidth = 560, kRowHeight = 38, kMostRows = 9;
constexpr float kTop = 0.14f;  // of the window's height
constexpr const char* kPopup = "command_palette";

std::string folded(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = decode_utf8(text, at);
    append_utf8(result, fold_case(point.value));
    at += point.length;
  }
  return result;
}

std::vector<std::string> words_of(std::string_view query) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : folded(query)) {
    if (c != ' ') {
      word += c;
    } else if (!word.empty()) {
      words.push_back(std::exchange(word, {}));
    }
  }
  if (!word.empty()) words.push_back(std::move(word));
  return words;
}

bool holds_all(const std::string& text, const std::vector<std::string>& words) {
  return std::all_of(words.begin(), words.end(),
                     [&](const std::string& word) { return text.find(word) != std::string::npos; });
}

void run(const Frame& frame, const UiState& state, const PaletteEntry& entry) {
  frame.actions.push(actions::ShowPalette{false});
  if (entry.command != nullptr) {
    entry.command->run(state, frame.actions);
  } else {
    frame.actions.push(actions::ShowWorkspace{Workspace::kChat});
    frame.actions.push(actions::SelectChat{entry.chat_id});
  }
}

}  // namespace

std::vector<PaletteEntry> palette_entries(const UiState& state, std::string_view query) {
  const std::vector<std::string> words = words_of(query);
  std::vector<PaletteEntry> entries;
  std::vector<PaletteEntry> later;
  const auto add = [&](const PaletteEntry& entry) {
    const std::string name = folded(entry.name);
    if (!holds_all(name, words)) return;
    const bool begins = !words.empty() && name.starts_with(words.front());
    (begins ? entries : later).push_back(entry);
  };
  for (const Command& command : commands()) {
    // A command that opens this palette would be a joke.
    if (command.available(state) && command.chord != (ImGuiMod_Ctrl | ImGuiKey_K))
      add({&command, {}, command.name});
  }
  for (const ChatState& chat : state.chats) add({nullptr, chat.id, chat.title});
  entries.insert(entries.end(), later.begin(), later.end());
  return entries;
}

void CommandPalette::draw(const Frame& frame, const UiState& state) {
  if (state.palette_open && !was_open_) {
    query_.clear();
    selected_ = 0;
    ImGui::OpenPopup(kPopup);
  }
  was_open_ = state.palette_open;
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  const float width = std::min(frame.px(kWidth), viewport->Size.x - frame.px(32));
  ImGui::SetNextWindowPos({viewport->GetCenter().x, viewport->Pos.y + viewport->Size.y * kTop},
                          ImGuiCond_Always, {0.5f, 0.0f});
  ImGui::SetNextWindowSize({width, 0});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {frame.px(12), frame.px(12)});
  ImGui::PushStyleVar(ImGuiStyleVar_PopupRounding, frame.px(16));
  const bool shown = ImGui::BeginPopup(kPopup, ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings);
  ImGui::PopStyleVar(2);
  if (!shown) {
    if (state.palette_open) frame.actions.push(actions::ShowPalette{false});  // a click outside, or Escape
    was_open_ = false;
    return;
  }
  const float inner = ImGui::GetContentRegionAvail().x;
  draw_field(frame, inner);
  const std::vector<PaletteEntry> entries = palette_entries(state, query_);
  move_selection(entries.size());
  draw_entries(frame, state, entries, inner);
  const bool entered =
      ImGui::IsKeyPressed(ImGuiKey_Enter, false) || ImGui::IsKeyPressed(ImGuiKey_KeypadEnter, false);
  if (entered && selected_ < entries.size()) run(frame, state, entries[selected_]);
  // The field would take the first Escape for itself.
  if (ImGui::IsKeyPressed(ImGuiKey_Escape, false)) frame.actions.push(actions::ShowPalette{false});
  if (!state.palette_open) ImGui::CloseCurrentPopup();
  ImGui::EndPopup();
}

void CommandPalette::draw_field(const Frame& frame, float width) {
  if (ImGui::IsWindowAppearing()) ImGui::SetKeyboardFocusHere();
  if (text_field(frame, "##query", query_, "Find a command or chat", width)) {
    selected_ = 0;
    scroll_to_selected_ = true;
  }
  gap(frame, 8);
}

void CommandPalette::move_selection(std::size_t num_entries) {
  if (num_entries == 0) return;
  selected_ = std::min(selected_, num_entries - 1);
  const bool down = ImGui::IsKeyPressed(ImGuiKey_DownArrow), up = ImGui::IsKeyPressed(ImGuiKey_UpArrow);
  if (down) selected_ = (selected_ + 1) % num_entries;
  if (up) selected_ = (selected_ + num_entries - 1) % num_entries;
  scroll_to_selected_ = scroll_to_selected_ || down || up;
}

void CommandPalette::draw_entries(const Frame& frame, const UiState& state,
                                  const std::vector<PaletteEntry>& entries, float width) {
  if (entries.empty()) {
    gap(frame, 8);
    line(frame, small_text(frame),
         "No matching command or chat. Press Ctrl+Shift+F to search the text of all chats.", width);
    gap(frame, 8);
    return;
  }
  const float row = frame.px(kRowHeight);
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  const float room = viewport->Pos.y + viewport->Size.y - frame.px(24) - ImGui::GetCursorScreenPos().y;
  const float most_rows = std::clamp(std::floor(room / row), 1.0f, kMostRows);
  const float height = row * std::min(most_rows, static_cast<float>(entries.size()));
  ImGui::BeginChild("entries", {width, height}, ImGuiChildFlags_NavFlattened);
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float inner = ImGui::GetContentRegionAvail().x;
  const TextStyle keys = tiny_text(frame);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const PaletteEntry& entry = entries[i];
    ImGui::PushID(static_cast<int>(i));
    const ImVec2 low = ImGui::GetCursorScreenPos();
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
    const bool clicked = ImGui::InvisibleButton("entry", {inner, row});
    ImGui::PopStyleVar();
    if (ImGui::IsItemHovered() && (ImGui::GetIO().MouseDelta.x != 0 || ImGui::GetIO().MouseDelta.y != 0))
      selected_ = i;
    if (i == selected_) {
      list->AddRectFilled(low, {low.x + inner, low.y + row}, frame.theme.raised,
                          frame.px(size::kRadiusControl));
      if (scroll_to_selected_) ImGui::SetScrollHereY(0.5f);
    }
    const std::string_view note = entry.command == nullptr ? std::string_view("chat") : entry.command->keys;
    const float note_width = text_width(frame, keys, note);
    const float top = low.y + (row - line_pixels(frame, body_text(frame))) * 0.5f;
    draw_text(frame, list, {low.x + frame.px(12), top}, body_text(frame), entry.name,
              inner - note_width - frame.px(40));
    draw_text(frame, list, {low.x + inner - note_width - frame.px(12), top + frame.px(2)}, keys, note);
    if (clicked) run(frame, state, entry);
    ImGui::PopID();
  }
  scroll_to_selected_ = false;
  ImGui::EndChild();
}

}  // namespace octavo::ui
