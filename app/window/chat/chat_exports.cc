#include "app/window/chat/chat_exports.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace octavo::app {
namespace {

constexpr std::size_t kLongestFileName = 60;

// A title as a name that every file system takes.
std::string file_name_of(const std::string& title, const char* extension) {
  std::string name = first_line(title, kLongestFileName);
  std::replace_if(
      name.begin(), name.end(),
      [](char c) {
        return static_cast<unsigned char>(c) < 0x20 || c == 0x7f ||
               std::string_view("/\\:*?\"<>|").find(c) != std::string_view::npos;
      },
      '_');
  if (name.empty() || name.front() == '.') name = "_" + name;
  return name + extension;
}

}  // namespace

void ChatExports::apply(const ui::actions::ExportChat& a) {
  if (!chats_.is_listed(a.chat_id)) return;
  waiting_.push_back(a);
  chats_.load(a.chat_id);
  export_loaded();
}

void ChatExports::apply(const ui::actions::ExportAllChats& a) {
  all_to_ = a.path;
  for (const ChatId id : chats_.list()) chats_.load(id);
  export_loaded();
}

void ChatExports::export_loaded() {
  std::erase_if(waiting_, [this](const ui::actions::ExportChat& wanted) { return export_one(wanted); });
  if (all_to_ && are_all_loaded()) export_all(*std::exchange(all_to_, std::nullopt));
}

// False while it is still being read.
bool ChatExports::export_one(const ui::actions::ExportChat& wanted) {
  const ChatRecord* record = chats_.find(wanted.chat_id);
  if (record == nullptr) return true;
  if (!record->kept.loaded) return false;
  const bool json = wanted.format == ui::actions::ChatFormat::kJson;
  effects_.exports.push_back(
      {{record->chat}, wanted.format, wanted.path, file_name_of(title_of(*record), json ? ".json" : ".md")});
  return true;
}

bool ChatExports::are_all_loaded() const {
  return std::all_of(chats_.list().begin(), chats_.list().end(),
                     [this](ChatId id) { return chats_.find(id)->kept.loaded; });
}

void ChatExports::export_all(std::string path) {
  ChatExport all{{}, ui::actions::ChatFormat::kJson, std::move(path), "octavo-chats.json"};
  for (const ChatId id : chats_.list()) {
    const Chat& chat = chats_.find(id)->chat;
    if (!chat.messages().empty()) all.chats.push_back(chat);
  }
  effects_.exports.push_back(std::move(all));
}

}  // namespace octavo::app
