// Chats that a person wants in a file: they wait here until they are read from the disk.
//
// UI thread. Chats and effects must outlive the exports.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/window/chat/chat_effects.h"
#include "app/window/chat/chats.h"
#include "ui/chat_actions.h"

namespace octavo::app {

class ChatExports {
 public:
  ChatExports(Chats& chats, ChatEffects& effects) : chats_(chats), effects_(effects) {}

  void apply(const ui::actions::ExportChat& a);
  void apply(const ui::actions::ExportAllChats& a);
  void apply(const ui::actions::ImportChats& a) { effects_.import_path = a.path; }

  // Exports what waits for nothing more to be read.
  void export_loaded();

 private:
  bool export_one(const ui::actions::ExportChat& wanted);
  bool are_all_loaded() const;
  void export_all(std::string path);

  Chats& chats_;
  ChatEffects& effects_;
  std::vector<ui::actions::ExportChat> waiting_;
  std::optional<std::string> all_to_;  // the path, while chats are still being read
};

}  // namespace octavo::app
