#include "ui/views/file_browser.h"

#include <algorithm>
#include <cmath>

#include "engine/base/format.h"
#include "ui/desktop_actions.h"
#include "ui/views/dialog.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

constexpr float kWidth = 780, kHeight = 600, kPlacesWidth = 172, kBetween = 20;
constexpr float kRowHeight = 34, kEndHeight = 46;

// A line with an icon, lit under the pointer. True when chosen.
bool icon_line(const Frame& frame, const char* id, Icon icon, std::string_view text, float width,
               ImU32 colour, float note_room = 0) {
  const ImVec2 low = ImGui::GetCursorScreenPos(), extent{width, frame.px(kRowHeight)};
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
  const bool chosen = ImGui::InvisibleButton(id, extent, ImGuiButtonFlags_EnableNav);
  ImGui::PopStyleVar();
  ImDrawList* list = ImGui::GetWindowDrawList();
  if (ImGui::IsItemHovered() || ImGui::IsItemFocused()) {
    list->AddRectFilled(low, {low.x + extent.x, low.y + extent.y - frame.px(2)},
                        with_alpha(frame.theme.raised, 0.6f), frame.px(size::kRadiusControl));
  }
  TextStyle style = small_text(frame);
  style.colour = colour;
  draw_icon(list, icon, {low.x + frame.px(18), low.y + frame.px(kRowHeight / 2 - 1)}, frame.px(14),
            frame.theme.muted);
  draw_text(frame, list, {low.x + frame.px(34), low.y + frame.px(7)}, style, text,
            width - frame.px(44) - note_room);
  return chosen;
}

void begin_part(const char* id, ImVec2 extent) {
  ImGui::PushStyleVar(ImGuiStyleVar_ChildRounding, 0.0f);
  ImGui::PushStyleColor(ImGuiCol_ChildBg, IM_COL32_BLACK_TRANS);
  ImGui::BeginChild(id, extent, ImGuiChildFlags_NavFlattened);
  ImGui::PopStyleColor();
  ImGui::PopStyleVar();
}

}  // namespace

void FileBrowserView::draw(const Frame& frame, const FileBrowser& browser) {
  if (shown_serial_ != browser.serial) {
    shown_serial_ = browser.serial;
    typed_ = browser.text;
  }
  const DialogOptions dialog{.id = "file_browser",
                             .title = browser.title.c_str(),
                             .width = kWidth,
                             .height = kHeight,
                             .scrolls = false};
  if (!begin_dialog(frame, dialog, browser.open)) return;
  const ImVec2 low = ImGui::GetCursorScreenPos(), extent = ImGui::GetContentRegionAvail();
  const float places = std::min(frame.px(kPlacesWidth), std::floor(extent.x * 0.3f));
  const float left = places + frame.px(kBetween), body = extent.y - frame.px(kEndHeight);
  draw_places(frame, browser, {places, body});
  ImGui::SetCursorScreenPos({low.x + left, low.y});
  draw_files(frame, browser, {extent.x - left, body});
  ImGui::SetCursorScreenPos({low.x, low.y + body + frame.px(12)});
  draw_end(frame, browser, extent.x);
  if (end_dialog(frame, browser.open)) frame.actions.push(actions::CloseFileBrowser{});
}

void FileBrowserView::draw_places(const Frame& frame, const FileBrowser& browser, ImVec2 extent) const {
  begin_part("places", extent);
  const float width = ImGui::GetContentRegionAvail().x;
  bool in_recent = false;
  for (std::size_t i = 0; i < browser.places.size(); ++i) {
    const FilePlace& place = browser.places[i];
    if (place.is_recent && !in_recent) {
      gap(frame, 10);
      line(frame, tiny_text(frame), "Recent", width);
      gap(frame, 4);
    }
    in_recent = place.is_recent;
    ImGui::PushID(static_cast<int>(i));
    if (icon_line(frame, "place", Icon::kFolder, place.name, width, frame.theme.text))
      frame.actions.push(actions::BrowseTo{place.path.ends_with('/') ? place.path : place.path + "/", false});
    tooltip(frame, place.path);
    ImGui::PopID();
  }
  ImGui::EndChild();
}

void FileBrowserView::draw_files(const Frame& frame, const FileBrowser& browser, ImVec2 extent) {
  begin_part("folder", extent);
  const float width = ImGui::GetContentRegionAvail().x;
  if (!browser.note.empty()) {
    paragraph(frame, small_text(frame), browser.note, width);
    gap(frame, 8);
  }
  // Also once the question is answered whether a file is replaced.
  ImGuiStorage* const storage = ImGui::GetStateStorage();
  const ImGuiID asked = ImGui::GetID("asked");
  const bool answered = storage->GetBool(asked) && browser.overwrites.empty();
  storage->SetBool(asked, !browser.overwrites.empty());
  if (ImGui::IsWindowAppearing() || answered) take_keyboard("##path");
  const bool entered =
      text_field(frame, "##path", typed_, browser.saves ? "Name of the file" : "Path or name", width,
                 ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_ElideLeft);
  if (ImGui::IsItemEdited()) frame.actions.push(actions::BrowseTo{typed_});
  if (entered) enter(frame, browser);
  gap(frame, 8);
  line(frame, tiny_text(frame), browser.folder, width);
  gap(frame, 4);
  begin_part("files", ImGui::GetContentRegionAvail());
  const float inner = ImGui::GetContentRegionAvail().x;
  if (!browser.problem.empty()) {
    paragraph(frame, {.em = size::kSmall, .colour = frame.theme.error}, browser.problem, inner);
  } else if (browser.entries.empty() && !browser.reading) {
    paragraph(frame, small_text(frame), browser.nothing, inner);
  }
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(browser.entries.size()), frame.px(kRowHeight));
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      ImGui::PushID(i);
      draw_entry(frame, browser, browser.entries[static_cast<std::size_t>(i)], inner);
      ImGui::PopID();
    }
  }
  ImGui::EndChild();
  ImGui::EndChild();
}

void FileBrowserView::draw_entry(const Frame& frame, const FileBrowser& browser, const FolderEntry& entry,
                                 float width) {
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const std::string bytes = entry.is_folder ? std::string() : bytes_text(entry.file_bytes);
  const float bytes_width = text_width(frame, tiny_text(frame), bytes);
  const ImU32 colour = entry.is_folder ? frame.theme.muted : frame.theme.text;
  if (icon_line(frame, "file_row", entry.is_folder ? Icon::kFolder : Icon::kCopyText, entry.name, width,
                colour, bytes_width + frame.px(18)))
    choose_entry(frame, browser, entry);
  draw_text(frame, ImGui::GetWindowDrawList(),
            {low.x + width - bytes_width - frame.px(10), low.y + frame.px(8)}, tiny_text(frame), bytes);
}

// The button, or the question whether a file is replaced.
void FileBrowserView::draw_end(const Frame& frame, const FileBrowser& browser, float width) {
  const ImVec2 low = ImGui::GetCursorScreenPos();
  if (browser.overwrites.empty()) {
    const bool has_path = !is_blank(typed_);
    const ButtonOptions choose{.kind = ButtonKind::kPrimary, .width = 108, .enabled = has_path};
    ImGui::SetCursorScreenPos({low.x + width - frame.px(108), low.y});
    if (button(frame, "choose_file", browser.button, choose)) frame.actions.push(actions::ChooseFile{typed_});
    return;
  }
  const ButtonOptions keep{.width = 108}, replace{.kind = ButtonKind::kPrimary, .width = 108};
  const float buttons = 2 * frame.px(108) + frame.px(8);
  TextStyle style = small_text(frame);
  style.colour = frame.theme.text;
  draw_text(frame, ImGui::GetWindowDrawList(), {low.x, low.y + frame.px(7)}, style,
            "Replace “" + browser.overwrites + "”? Its contents will be lost.",
            width - buttons - frame.px(16));
  ImGui::SetCursorScreenPos({low.x + width - buttons, low.y});
  if (button(frame, "keep_file", "Keep it", keep)) frame.actions.push(actions::AnswerOverwrite{false});
  beside(frame, 8);
  if (button(frame, "replace_file", "Replace", replace)) frame.actions.push(actions::AnswerOverwrite{true});
}

void FileBrowserView::choose_entry(const Frame& frame, const FileBrowser& browser, const FolderEntry& entry) {
  if (entry.is_folder) {
    frame.actions.push(actions::BrowseTo{entry.path + "/", /*is_typed=*/false});
  } else if (browser.saves) {
    frame.actions.push(actions::BrowseTo{entry.path, /*is_typed=*/false});
  } else {
    frame.actions.push(actions::ChooseFile{entry.path});
  }
}

// What was typed completes to the only entry that begins like it; else it is taken at its word.
void FileBrowserView::enter(const Frame& frame, const FileBrowser& browser) {
  if (!browser.saves && browser.entries.size() == 1 && !browser.reading) {
    choose_entry(frame, browser, browser.entries.front());
  } else {
    frame.actions.push(actions::ChooseFile{typed_});
  }
  take_keyboard("##path");
}

}  // namespace octavo::ui
