// The folders that chats are sorted into.
//
// Owns library.folders of the state. UI thread. What the constructor takes must outlive the folders.
#pragma once

#include <string>
#include <vector>

#include "app/window/chat/chats.h"
#include "ui/chat_actions.h"

namespace octavo::app {

class Folders {
 public:
  Folders(Chats& chats, ChatKeeper& keeper, std::vector<ui::FolderState>& folders)
      : chats_(chats), keeper_(keeper), folders_(folders) {}

  void apply(const ui::actions::CreateFolder& a);
  void apply(const ui::actions::RenameFolder& a);
  void apply(const ui::actions::DeleteFolder& a);
  void apply(const ui::actions::MoveToFolder& a);

  void add_stored(const StoreContents& contents);
  void keep_everything_again();

 private:
  std::vector<ui::FolderState>::iterator find(FolderId folder_id);
  void keep(const ui::FolderState& folder);

  Chats& chats_;
  ChatKeeper& keeper_;
  std::vector<ui::FolderState>& folders_;
  std::uint64_t next_id_ = 1;
};

}  // namespace octavo::app
