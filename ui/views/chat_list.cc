#include "ui/views/chat_list.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/base/format.h"
#include "ui/chat_actions.h"
#include "ui/state.h"
#include "ui/widgets/controls.h"
#include "ui/widgets/menu.h"

namespace octavo::ui {
namespace {

constexpr float kChatHeight = 58, kHeadingHeight = 30, kFolderHeight = 34, kBetween = 2;

std::string activity_text(const ChatState& chat) {
  switch (chat.activity) {
    case Activity::kWaiting:
      return chat.num_ahead > 0 ? "waiting · " + std::to_string(chat.num_ahead) + " ahead" : "waiting";
    case Activity::kGenerating:
      return chat.tokens_per_second > 0 ? "generating · " + short_number(chat.tokens_per_second) + " tok/s"
                                        : "reading prompt";
    case Activity::kSwapped: {
      const auto on_host = static_cast<std::int64_t>(chat.memory.host_blocks.size());
      return on_host > 0 ? "paused · " + count_text(on_host, "block") : "paused";
    }
    case Activity::kFailed: return "failed";
    case Activity::kIdle: break;
  }
  const auto num_blocks = static_cast<std::int64_t>(chat.memory.blocks.size());
  return num_blocks > 0 ? "idle · " + count_text(num_blocks, "block") + " cached" : "idle";
}

ImU32 activity_colour(const Theme& theme, const ChatState& chat) {
  switch (chat.activity) {
    case Activity::kIdle: return theme.faint;
    case Activity::kFailed: return theme.error;
    case Activity::kSwapped: return theme.warning;
    case Activity::kWaiting:
    case Activity::kGenerating: break;
  }
  return theme.owner(chat.colour_index);
}

bool is_hovered(ImVec2 low, ImVec2 high) {
  return ImGui::IsMouseHoveringRect(low, high) &&
         ImGui::IsWindowHovered(ImGuiHoveredFlags_AllowWhenBlockedByActiveItem);
}

void draw_row_background(const Frame& frame, ImVec2 low, ImVec2 high, bool active, bool hovered) {
  if (!active && !hovered) return;
  ImGui::GetWindowDrawList()->AddRectFilled(low, high, with_alpha(frame.theme.raised, active ? 1.0f : 0.6f),
                                            frame.px(10));
}

// ---- dragging a chat to another place

constexpr const char* kDraggedChat = "octavo_chat";
constexpr float kScrollMargin = 24, kScrollSpeed = 600;

// Of the item before.
void offer_dragging(const Frame& frame, const ChatState& chat) {
  if (!ImGui::BeginDragDropSource()) return;
  ImGui::SetDragDropPayload(kDraggedChat, &chat.id.value, sizeof chat.id.value);
  line(frame, small_text(frame), chat.title, frame.px(220));
  ImGui::EndDragDropSource();
}

// What is dragged over the item before, and whether it was let go there.
struct Dragged {
  const ChatState* chat = nullptr;
  bool dropped = false;
};

Dragged take_dragged(const UiState& state) {
  if (!ImGui::BeginDragDropTarget()) return {};
  const ImGuiPayload* payload = ImGui::AcceptDragDropPayload(
      kDraggedChat, ImGuiDragDropFlags_AcceptBeforeDelivery | ImGuiDragDropFlags_AcceptNoDrawDefaultRect);
  Dragged dragged;
  if (payload != nullptr) {
    ChatId id;
    std::memcpy(&id.value, payload->Data, sizeof id.value);
    dragged = {find_chat(state, id), payload->IsDelivery()};
  }
  ImGui::EndDragDropTarget();  // what was delivered is gone from here on
  return dragged;
}

// Among pinned chats, in a folder, or in none.
void put_into_group(const Frame& frame, const ChatState& chat, bool pinned, FolderId folder) {
  if (chat.pinned != pinned) frame.actions.push(actions::PinChat{chat.id, pinned});
  if (!pinned && chat.folder != folder) frame.actions.push(actions::MoveToFolder{chat.id, folder});
}

bool is_in_days(const ChatState& chat) { return !chat.pinned && chat.folder == FolderId{}; }

// Of library.days.
std::size_t day_of(const UiState& state, const ChatState& chat) {
  return index_of_span(state.library.days, chat.updated_ms);
}

void draw_drop_frame(const Frame& frame, ImVec2 low, ImVec2 high) {
  ImGui::GetWindowDrawList()->AddRect(low, high, frame.theme.accent, frame.px(10), frame.px(2));
}

// Before or behind the chat of the row `low` to `high`.
void take_drop_beside(const Frame& frame, const UiState& state, const ChatState& target, ImVec2 low,
                      ImVec2 high) {
  const Dragged dragged = take_dragged(state);
  if (dragged.chat == nullptr || dragged.chat->id == target.id) return;
  if (is_in_days(target) && day_of(state, *dragged.chat) != day_of(state, target)) {
    if (is_in_days(*dragged.chat)) return;  // its day is when it was used
    draw_drop_frame(frame, low, high);
    if (dragged.dropped) put_into_group(frame, *dragged.chat, false, {});
    return;
  }
  const bool behind = ImGui::GetIO().MousePos.y > (low.y + high.y) * 0.5f;
  const float y = behind ? high.y : low.y;
  ImGui::GetWindowDrawList()->AddRectFilled({low.x, y - frame.px(1)}, {high.x, y + frame.px(1)},
                                            frame.theme.accent);
  if (!dragged.dropped) return;
  ChatId before = target.id;
  if (behind) {
    const auto next = static_cast<std::size_t>(&target - state.chats.data()) + 1;
    before = next < state.chats.size() ? state.chats[next].id : ChatId{};
  }
  put_into_group(frame, *dragged.chat, target.pinned, target.folder);
  if (before != dragged.chat->id) frame.actions.push(actions::MoveChat{dragged.chat->id, before});
}

// The list follows what is dragged beyond its ends.
void scroll_while_dragging(const Frame& frame) {
  const ImGuiPayload* payload = ImGui::GetDragDropPayload();
  if (payload == nullptr || !payload->IsDataType(kDraggedChat)) return;
  const float low = ImGui::GetWindowPos().y, high = low + ImGui::GetWindowHeight();
  const float y = ImGui::GetIO().MousePos.y, margin = frame.px(kScrollMargin);
  const float step = frame.px(kScrollSpeed) * ImGui::GetIO().DeltaTime;
  if (y < low + margin) ImGui::SetScrollY(ImGui::GetScrollY() - step);
  if (y > high - margin) ImGui::SetScrollY(ImGui::GetScrollY() + step);
}

}  // namespace

std::vector<ChatList::Row> ChatList::rows_of(const UiState& state) const {
  std::vector<Row> rows;
  const auto add_chats = [&](const auto& wanted) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < state.chats.size(); ++i) {
      if (!wanted(state.chats[i])) continue;
      rows.push_back({.kind = RowKind::kChat, .index = i});
      ++count;
    }
    return count;
  };
  rows.push_back({.text = "Pinned", .pinned = true});
  if (add_chats([](const ChatState& chat) { return chat.pinned; }) == 0) rows.pop_back();
  for (std::size_t i = 0; i < state.library.folders.size(); ++i) {
    const FolderId id = state.library.folders[i].id;
    const std::size_t at = rows.size();
    rows.push_back({.kind = RowKind::kFolder, .index = i});
    const std::size_t count =
        add_chats([&](const ChatState& chat) { return chat.folder == id && !chat.pinned; });
    rows[at].count = count;
    if (folded_.contains(id.value)) rows.resize(at + 1);
  }
  add_days(state, rows);
  if (state.library.trash.empty()) return rows;
  rows.push_back({.kind = RowKind::kTrash, .count = state.library.trash.size()});
  if (!trash_open_) return rows;
  for (std::size_t i = 0; i < state.library.trash.size(); ++i)
    rows.push_back({.kind = RowKind::kTrashed, .index = i});
  rows.push_back({.kind = RowKind::kEmptyTrash});
  return rows;
}

void ChatList::add_days(const UiState& state, std::vector<Row>& rows) {
  std::vector<std::pair<std::size_t, std::size_t>> chats;  // day, index
  for (std::size_t i = 0; i < state.chats.size(); ++i) {
    if (is_in_days(state.chats[i])) chats.emplace_back(day_of(state, state.chats[i]), i);
  }
  std::sort(chats.begin(), chats.end());
  if (chats.empty()) rows.push_back({.text = "Chats"});
  for (std::size_t i = 0; i < chats.size(); ++i) {
    const auto [day, index] = chats[i];
    if (i == 0 || chats[i - 1].first != day) rows.push_back({.text = state.library.days[day].label});
    rows.push_back({.kind = RowKind::kChat, .index = index});
  }
}

void ChatList::draw(const Frame& frame, const UiState& state, ImVec2 extent) {
  name_new_folder(state.library);
  ImGui::BeginChild("chats", {extent.x, std::max(extent.y, 1.0f)}, ImGuiChildFlags_NavFlattened);
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
  const float inner = ImGui::GetContentRegionAvail().x;
  const ImVec2 top = ImGui::GetCursorScreenPos();
  const float clip_low = ImGui::GetWindowPos().y, clip_high = clip_low + ImGui::GetWindowHeight();
  const auto height_of = [&](const Row& row) {
    switch (row.kind) {
      case RowKind::kHeading: return frame.px(kHeadingHeight);
      case RowKind::kChat: return frame.px(kChatHeight + kBetween);
      default: return frame.px(kFolderHeight + kBetween);
    }
  };
  float y = top.y;
  for (const Row& row : rows_of(state)) {
    const float height = height_of(row);
    const bool active = row.kind == RowKind::kChat && state.chats[row.index].id == state.active_chat;
    if (active && shown_ != state.active_chat) {  // brought into sight once, when it becomes the active one
      shown_ = state.active_chat;
      if (y < clip_low || y + height > clip_high) ImGui::SetScrollFromPosY(y - clip_low, 0.5f);
    }
    if (row.kind == RowKind::kFolder && state.library.folders[row.index].id == show_folder_) {
      show_folder_ = {};
      if (y < clip_low || y + height > clip_high) ImGui::SetScrollFromPosY(y - clip_low, 0.5f);
    }
    if (y + height > clip_low && y < clip_high) {
      ImGui::SetCursorScreenPos({top.x, y});
      draw_row(frame, state, row, inner);
    }
    y += height;
  }
  ImGui::SetCursorScreenPos({top.x, y});
  ImGui::Dummy({0, 0});
  scroll_while_dragging(frame);
  ImGui::PopStyleVar();
  ImGui::EndChild();
}

void ChatList::draw_row(const Frame& frame, const UiState& state, const Row& row, float width) {
  switch (row.kind) {
    case RowKind::kHeading: draw_heading(frame, state, row, width); return;
    case RowKind::kFolder:
      draw_folder(frame, state, state.library.folders[row.index], row.count, width);
      return;
    case RowKind::kChat: draw_chat(frame, state, state.chats[row.index], width); return;
    case RowKind::kTrash: draw_trash(frame, state, row.count, width); return;
    case RowKind::kTrashed: draw_trashed(frame, state.library.trash[row.index], width); return;
    case RowKind::kEmptyTrash: draw_empty_trash(frame, width); return;
  }
}

void ChatList::draw_heading(const Frame& frame, const UiState& state, const Row& row, float width) {
  TextStyle style = tiny_text(frame);
  style.colour = frame.theme.faint;
  const ImVec2 low = ImGui::GetCursorScreenPos(), high{low.x + width, low.y + frame.px(kHeadingHeight)};
  draw_text(frame, ImGui::GetWindowDrawList(), {low.x + frame.px(10), low.y + frame.px(6)}, style, row.text);
  ImGui::Dummy({width, high.y - low.y});
  const Dragged dragged = take_dragged(state);
  if (dragged.chat == nullptr) return;
  draw_drop_frame(frame, low, high);
  if (dragged.dropped) put_into_group(frame, *dragged.chat, row.pinned, {});
}

// ---- folders

void ChatList::draw_folder(const Frame& frame, const UiState& state, const FolderState& folder,
                           std::size_t count, float width) {
  ImGui::PushID("folder");
  ImGui::PushID(static_cast<int>(folder.id.value));
  const ImVec2 low = ImGui::GetCursorScreenPos(), high{low.x + width, low.y + frame.px(kFolderHeight)};
  if (renaming_ == folder.id.value && renaming_folder_) {
    if (draw_rename(frame, {low.x, low.y - frame.px(10)}, width)) {
      frame.actions.push(actions::RenameFolder{folder.id, rename_text_});
    }
  } else {
    draw_row_background(frame, low, high, false, is_hovered(low, high));
    const bool folded = folded_.contains(folder.id.value);
    if (ImGui::InvisibleButton("folder", {width, high.y - low.y}, ImGuiButtonFlags_EnableNav)) {
      if (folded) {
        folded_.erase(folder.id.value);
      } else {
        folded_.insert(folder.id.value);
      }
    }
    if (ImGui::IsItemClicked(ImGuiMouseButton_Right)) ImGui::OpenPopup("folder_menu");
    if (const Dragged dragged = take_dragged(state); dragged.chat != nullptr) {
      draw_drop_frame(frame, low, high);
      if (dragged.dropped) put_into_group(frame, *dragged.chat, false, folder.id);
    }
    ImDrawList* list = ImGui::GetWindowDrawList();
    const float middle = (low.y + high.y) * 0.5f;
    draw_icon(list, folded ? Icon::kChevronRight : Icon::kChevronDown, {low.x + frame.px(14), middle},
              frame.px(12), frame.theme.muted);
    TextStyle style = small_text(frame);
    style.colour = frame.theme.text;
    const std::string number = std::to_string(count);
    draw_text(frame, list, {low.x + frame.px(28), middle - line_pixels(frame, style) * 0.5f}, style,
              folder.name, width - frame.px(64));
    const TextStyle tiny = tiny_text(frame);
    draw_text(
        frame, list,
        {high.x - frame.px(12) - text_width(frame, tiny, number), middle - line_pixels(frame, tiny) * 0.5f},
        tiny, number);
    draw_folder_menu(frame, folder);
  }
  ImGui::PopID();
  ImGui::PopID();
}

void ChatList::draw_folder_menu(const Frame& frame, const FolderState& folder) {
  if (!begin_menu(frame, "folder_menu")) return;
  if (menu_item(frame, "rename", "Rename folder", {.icon = Icon::kEdit})) {
    begin_rename(folder.id.value, true, folder.name);
  }
  if (menu_item(frame, "delete", "Delete folder, keep its chats", {.icon = Icon::kTrash})) {
    frame.actions.push(actions::DeleteFolder{folder.id});
  }
  end_menu();
}

// ---- chats

void ChatList::draw_chat(const Frame& frame, const UiState& state, const ChatState& chat, float width) {
  ImGui::PushID(static_cast<int>(chat.id.value));
  const bool active = chat.id == state.active_chat;
  const ImVec2 low = ImGui::GetCursorScreenPos(), high{low.x + width, low.y + frame.px(kChatHeight)};
  const bool hovered = is_hovered(low, high);
  draw_row_background(frame, low, high, active, hovered);
  if (renaming_ == chat.id.value && !renaming_folder_) {
    if (draw_rename(frame, low, width)) frame.actions.push(actions::RenameChat{chat.id, rename_text_});
    ImGui::PopID();
    return;
  }
  ImGui::SetNextItemAllowOverlap();
  if (ImGui::InvisibleButton("chat", {width, high.y - low.y}, ImGuiButtonFlags_EnableNav)) {
    frame.actions.push(actions::SelectChat{chat.id});
  }
  offer_dragging(frame, chat);
  take_drop_beside(frame, state, chat, low, high);
  if (ImGui::IsItemClicked(ImGuiMouseButton_Right)) ImGui::OpenPopup("chat_menu");
  const bool twice = ImGui::IsItemHovered() && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left);
  const bool rename_key = active && ImGui::Shortcut(ImGuiKey_F2, ImGuiInputFlags_RouteGlobal);
  if (twice || rename_key) begin_rename(chat.id.value, false, chat.title);

  ImDrawList* list = ImGui::GetWindowDrawList();
  const bool show_button = hovered || active || ImGui::IsPopupOpen("chat_menu");
  // The button's place is left free: what is pointed at would move away from the pointer.
  const float room = width - frame.px(20 + 34);
  draw_text(frame, list, {low.x + frame.px(10), low.y + frame.px(8)},
            {.em = 14.5f, .colour = frame.theme.text}, chat.title, room);
  list->AddCircleFilled({low.x + frame.px(14), low.y + frame.px(40)}, frame.px(4),
                        activity_colour(frame.theme, chat));
  draw_text(frame, list, {low.x + frame.px(25), low.y + frame.px(31)}, tiny_text(frame), activity_text(chat),
            room - frame.px(15));
  if (show_button) {
    ImGui::SetCursorScreenPos({high.x - frame.px(34), low.y + frame.px(15)});
    if (button(frame, "more", "",
               {.kind = ButtonKind::kPlain,
                .icon = Icon::kMore,
                .height = 28,
                .help = "Rename, pin, duplicate, move, export, delete"})) {
      ImGui::OpenPopup("chat_menu");
    }
  }
  draw_chat_menu(frame, state, chat);
  ImGui::PopID();
}

void ChatList::draw_chat_menu(const Frame& frame, const UiState& state, const ChatState& chat) {
  if (!begin_menu(frame, "chat_menu")) return;
  if (menu_item(frame, "rename", "Rename", {.icon = Icon::kEdit, .note = "F2"})) {
    begin_rename(chat.id.value, false, chat.title);
  }
  if (menu_item(frame, "pin", chat.pinned ? "Unpin" : "Pin", {.icon = Icon::kPin})) {
    frame.actions.push(actions::PinChat{chat.id, !chat.pinned});
  }
  if (menu_item(frame, "duplicate", "Duplicate", {.icon = Icon::kCopy})) {
    frame.actions.push(actions::DuplicateChat{chat.id});
  }
  draw_move_menu(frame, state, chat);
  menu_heading(frame, "Export");
  if (menu_item(frame, "markdown", "As Markdown", {.icon = Icon::kCopyText})) {
    frame.actions.push(actions::ExportChat{chat.id, actions::ChatFormat::kMarkdown, {}});
  }
  if (menu_item(frame, "json", "As JSON", {.icon = Icon::kCopyText})) {
    frame.actions.push(actions::ExportChat{chat.id, actions::ChatFormat::kJson, {}});
  }
  menu_heading(frame, "");
  if (menu_item(frame, "delete", "Move to trash", {.icon = Icon::kTrash, .danger = true})) {
    frame.actions.push(actions::DeleteChat{chat.id});
  }
  end_menu();
}

void ChatList::draw_move_menu(const Frame& frame, const UiState& state, const ChatState& chat) {
  menu_heading(frame, "Move to");
  for (const FolderState& folder : state.library.folders) {
    ImGui::PushID(static_cast<int>(folder.id.value));
    const bool inside = chat.folder == folder.id;
    if (menu_item(frame, "folder", folder.name, {.icon = inside ? Icon::kCheck : Icon::kFolder}) && !inside) {
      frame.actions.push(actions::MoveToFolder{chat.id, folder.id});
    }
    ImGui::PopID();
  }
  if (chat.folder != FolderId{} &&
      menu_item(frame, "no_folder", "Out of its folder", {.icon = Icon::kClose})) {
    frame.actions.push(actions::MoveToFolder{chat.id, FolderId{}});
  }
  if (menu_item(frame, "new_folder", "New folder…", {.icon = Icon::kPlus})) {
    frame.actions.push(actions::CreateFolder{"New folder", chat.id});
  }
}

// ---- the trash

void ChatList::draw_trash(const Frame& frame, const UiState& state, std::size_t count, float width) {
  const ImVec2 low = ImGui::GetCursorScreenPos(), high{low.x + width, low.y + frame.px(kFolderHeight)};
  draw_row_background(frame, low, high, false, is_hovered(low, high));
  if (ImGui::InvisibleButton("trash", {width, high.y - low.y}, ImGuiButtonFlags_EnableNav)) {
    trash_open_ = !trash_open_;
    sure_to_empty_ = false;
  }
  if (const Dragged dragged = take_dragged(state); dragged.chat != nullptr) {
    draw_drop_frame(frame, low, high);
    if (dragged.dropped) frame.actions.push(actions::DeleteChat{dragged.chat->id});
  }
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float middle = (low.y + high.y) * 0.5f;
  draw_icon(list, trash_open_ ? Icon::kChevronDown : Icon::kChevronRight, {low.x + frame.px(14), middle},
            frame.px(12), frame.theme.muted);
  const TextStyle style = small_text(frame);
  draw_text(frame, list, {low.x + frame.px(28), middle - line_pixels(frame, style) * 0.5f}, style,
            "Trash · " + count_text(static_cast<std::int64_t>(count), "chat"), width - frame.px(40));
}

void ChatList::draw_trashed(const Frame& frame, const TrashedChat& trashed, float width) {
  ImGui::PushID("trashed");
  ImGui::PushID(static_cast<int>(trashed.id.value));
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const TextStyle style = small_text(frame);
  draw_text(frame, ImGui::GetWindowDrawList(), {low.x + frame.px(28), low.y + frame.px(7)}, style,
            trashed.title, width - frame.px(100));
  ImGui::SetCursorScreenPos({low.x + width - frame.px(66), low.y + frame.px(2)});
  if (button(frame, "restore", "",
             {.kind = ButtonKind::kPlain, .icon = Icon::kRegenerate, .height = 28, .help = "Restore"})) {
    frame.actions.push(actions::RestoreChat{trashed.id});
  }
  ImGui::SetCursorScreenPos({low.x + width - frame.px(34), low.y + frame.px(2)});
  if (button(
          frame, "erase", "",
          {.kind = ButtonKind::kPlain, .icon = Icon::kClose, .height = 28, .help = "Delete permanently"})) {
    frame.actions.push(actions::EraseChat{trashed.id});
  }
  ImGui::PopID();
  ImGui::PopID();
}

void ChatList::draw_empty_trash(const Frame& frame, float width) {
  const ImVec2 low = ImGui::GetCursorScreenPos();
  ImGui::SetCursorScreenPos({low.x + frame.px(24), low.y + frame.px(2)});
  const char* const text = sure_to_empty_ ? "Permanently delete all chats in the trash" : "Empty trash";
  if (button(frame, "empty_trash", text, {.width = width / frame.theme.scale - 34, .height = 28})) {
    if (sure_to_empty_) frame.actions.push(actions::EmptyTrash{});
    sure_to_empty_ = !sure_to_empty_;
  }
}

// ---- names

// A folder that was made is named at once, and is in sight for that.
void ChatList::name_new_folder(const ChatLibraryState& library) {
  if (library.new_folder == named_folder_) return;
  named_folder_ = library.new_folder;
  for (const FolderState& folder : library.folders) {
    if (folder.id != named_folder_) continue;
    begin_rename(folder.id.value, true, folder.name);
    show_folder_ = folder.id;
  }
}

void ChatList::begin_rename(std::uint64_t id, bool folder, const std::string& name) {
  renaming_ = id;
  renaming_folder_ = folder;
  rename_text_ = name;
  focus_rename_ = true;
}

bool ChatList::draw_rename(const Frame& frame, ImVec2 low, float width) {
  ImGui::SetCursorScreenPos({low.x + frame.px(6), low.y + frame.px(12)});
  if (focus_rename_) take_keyboard("##title");
  const bool entered = text_field(frame, "##title", rename_text_, "Title", width - frame.px(12),
                                  ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_AutoSelectAll);
  const bool cancelled = ImGui::IsItemDeactivated() && ImGui::IsKeyPressed(ImGuiKey_Escape);
  const bool left = !focus_rename_ && ImGui::IsItemDeactivated() && !cancelled;
  if (ImGui::IsItemActive())
    focus_rename_ = false;  // the composer may have asked for the keyboard in the same frame
  if (entered || left || cancelled) renaming_ = 0;
  ended_ = ended_ || entered || cancelled;
  return entered || left;
}

}  // namespace octavo::ui
