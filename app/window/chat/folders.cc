#include "app/window/chat/folders.h"

#include <algorithm>

#include "engine/base/text.h"

namespace octavo::app {
namespace {

std::string clean_name(const std::string& name) { return first_line(sanitise_utf8(name), kLongestName); }

}  // namespace

void Folders::apply(const ui::actions::CreateFolder& a) {
  new_folder_ = FolderId{next_id_++};
  folders_.push_back({new_folder_, clean_name(a.name)});
  keep(folders_.back());
  apply(ui::actions::MoveToFolder{a.chat_id, new_folder_});
}

void Folders::apply(const ui::actions::RenameFolder& a) {
  const auto found = find(a.folder_id);
  if (found == folders_.end()) return;
  found->name = clean_name(a.name);
  keep(*found);
}

void Folders::apply(const ui::actions::DeleteFolder& a) {
  const auto found = find(a.folder_id);
  if (found == folders_.end()) return;
  folders_.erase(found);
  chats_.forget_folder(a.folder_id);
  keeper_.push(changes::EraseFolder{a.folder_id});
}

void Folders::apply(const ui::actions::MoveToFolder& a) {
  const bool exists = a.folder_id == FolderId{} || find(a.folder_id) != folders_.end();
  if (exists && chats_.is_listed(a.chat_id)) chats_.change(a.chat_id, Changed::kHead)->folder = a.folder_id;
}

std::vector<ui::FolderState>::iterator Folders::find(FolderId folder_id) {
  return std::find_if(folders_.begin(), folders_.end(),
                      [&](const ui::FolderState& folder) { return folder.id == folder_id; });
}

// ---- the store

void Folders::add_stored(const StoreContents& contents) {
  next_id_ = std::max(next_id_, contents.last_folder.value + 1);
  for (const FolderRecord& folder : contents.folders) folders_.push_back({folder.id, folder.name});
}

void Folders::keep(const ui::FolderState& folder) {
  keeper_.push(changes::SaveFolder{{folder.id, folder.name, static_cast<std::int64_t>(folder.id.value)}});
}

void Folders::keep_everything_again() {
  for (const ui::FolderState& folder : folders_) keep(folder);
}

}  // namespace octavo::app
