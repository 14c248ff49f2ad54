// The list of chats: pinned ones, folders, the others by the day they were used last, and the trash; each row
// with its menu. A chat can be dragged to another place of its day, onto a folder or a heading, and into the
// trash.
//
// UI thread. Keeps which folders are folded, what is being renamed, and where the list stands.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ui/chat_state.h"
#include "ui/frame.h"

namespace octavo::ui {

class ChatList {
 public:
  void draw(const Frame& frame, const UiState& state, ImVec2 extent);

  // Whether a name was entered or given up by a key since the last call: the keyboard is free.
  bool take_ended() { return std::exchange(ended_, false); }

 private:
  enum class RowKind { kHeading, kFolder, kChat, kTrash, kTrashed, kEmptyTrash };
  struct Row {
    RowKind kind = RowKind::kHeading;
    std::size_t index = 0;       // into the state's list of that kind
    std::string_view text = {};  // of a heading
    bool pinned = false;         // the heading of pinned chats
    std::size_t count = 0;       // chats of a folder, or in the trash
  };

  std::vector<Row> rows_of(const UiState& state) const;
  static void add_days(const UiState& state, std::vector<Row>& rows);
  void draw_row(const Frame& frame, const UiState& state, const Row& row, float width);
  void draw_heading(const Frame& frame, const UiState& state, const Row& row, float width);
  void draw_folder(const Frame& frame, const UiState& state, const FolderState& folder, std::size_t count,
                   float width);
  void draw_folder_menu(const Frame& frame, const FolderState& folder);
  void draw_chat(const Frame& frame, const UiState& state, const ChatState& chat, float width);
  void draw_chat_menu(const Frame& frame, const UiState& state, const ChatState& chat);
  void draw_move_menu(const Frame& frame, const UiState& state, const ChatState& chat);
  void draw_trash(const Frame& frame, const UiState& state, std::size_t count, float width);
  void draw_trashed(const Frame& frame, const TrashedChat& trashed, float width);
  void draw_empty_trash(const Frame& frame, float width);
  void name_new_folder(const ChatLibraryState& library);
  void begin_rename(std::uint64_t id, bool folder, const std::string& name);
  // True when a name was entered; it is in rename_text_.
  bool draw_rename(const Frame& frame, ImVec2 low, float width);

  std::set<std::uint64_t> folded_;  // folders
  bool trash_open_ = false;
  bool sure_to_empty_ = false;
  std::uint64_t renaming_ = 0;  // a chat's or a folder's id; 0: none
  bool renaming_folder_ = false;
  bool focus_rename_ = false;
  std::string rename_text_;
  bool ended_ = false;
  FolderId named_folder_{};  // the newest, whose name was asked for
  FolderId show_folder_{};   // that is brought into sight
  ChatId shown_{};           // the active chat that was brought into sight
};

}  // namespace octavo::ui
