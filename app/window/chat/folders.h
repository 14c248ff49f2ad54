// The folders that chats are sorted into.
//
// Owns folders and new_folder of the library. UI thread. What the constructor takes must outlive the folders.
#pragma once

#include <string>
#include <vector>

#include "app/window/chat/chats.h"
#include "ui/chat_actions.h"

namespace octavo::app {

class Folders {
 public:
  Folders(Chats& chats, ChatKeeper& keeper, ui::ChatLibraryState& library)
      : chats_(chats), keeper_(keeper), folders_(library.folders), new_folder_(library.new_folder) {}

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
  FolderId& new_folder_;
  std::uint64_t next_id_ = 1;
};

}  // namespace octavo::app
