#include "app/window/chat/chat_exports.h"

#include <algorithm>
#include <utility>

namespace octavo::app {
namespace {

Chat with_dates(const ChatRecord& record) {
  Chat chat = record.chat;
  chat.created_ms = record.kept.head.created_ms;
  chat.updated_ms = record.kept.head.updated_ms;
  return chat;
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
  effects_.exports.push_back({{with_dates(*record)}, wanted.format, wanted.path});
  return true;
}

bool ChatExports::are_all_loaded() const {
  return std::all_of(chats_.list().begin(), chats_.list().end(),
                     [this](ChatId id) { return chats_.find(id)->kept.loaded; });
}

void ChatExports::export_all(std::string path) {
  ChatExport all{{}, ui::actions::ChatFormat::kJson, std::move(path)};
  for (const ChatId id : chats_.list()) {
    const ChatRecord& record = *chats_.find(id);
    if (!record.chat.messages().empty()) all.chats.push_back(with_dates(record));
  }
  effects_.exports.push_back(std::move(all));
}

}  // namespace octavo::app
