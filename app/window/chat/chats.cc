#include "app/window/chat/chats.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "engine/base/calendar.h"
#include "engine/base/text.h"

namespace octavo::app {

const ChatRecord* Chats::find(ChatId id) const {
  const auto found = records_.find(id);
  return found == records_.end() ? nullptr : &found->second;
}

bool Chats::is_listed(ChatId id) const {
  const ChatRecord* record = find(id);
  return record != nullptr && !record->trashed_ms;
}

ChatRecord* Chats::change(ChatId id, Changed what) {
  const auto found = records_.find(id);
  if (found == records_.end()) return nullptr;
  Undrawn& undrawn = undrawn_[id];
  if (what != Changed::kFigures) {
    undrawn.head = true;
    unsaved_.insert(id);
  }
  if (what == Changed::kMessages) undrawn.messages = true;
  return &found->second;
}

Message* Chats::change_message(ChatId id, MessageId message_id) {
  ChatRecord* record = change(id, Changed::kFigures);
  if (record == nullptr) return nullptr;
  std::vector<MessageId>& grown = undrawn_[id].grown;
  if (std::find(grown.begin(), grown.end(), message_id) == grown.end()) grown.push_back(message_id);
  return record->chat.find(message_id);
}

// ---- new ones

void use_preset(Chat& chat, const ui::PresetState& preset) {
  chat.system_prompt = preset.system_prompt;
  chat.sampling = preset.sampling;
  chat.template_values = preset.template_values;
}

bool Chats::is_new(const ChatRecord& record) const {
  const bool is_asked = !record.queued.empty();  // only not yet a message
  return record.chat.messages().empty() && !is_asked && !record.kept.stored;
}

void Chats::begin_as_settled(ChatRecord& record) const {
  record.chat.sampling = sampling_of_new();
  record.chat.system_prompt = sanitise_utf8(state_.settings.system_prompt);
  record.chat.template_values.clear();
  for (const ui::PresetState& preset : state_.library.presets) {
    if (preset.id == state_.settings.preset) use_preset(record.chat, preset);
  }
  record.kept.first_system_prompt = record.chat.system_prompt;
}

ChatId Chats::begin() {
  const bool has_new = !list_.empty() && is_new(records_.at(list_.front()));
  if (!has_new) add({});
  begin_as_settled(*change(list_.front(), Changed::kHead));
  state_.workspace = ui::Workspace::kChat;
  state_.active_chat = list_.front();
  return state_.active_chat;
}

ChatId Chats::add(Chat chat) {
  ChatRecord& record = add_record(ChatId{next_id_++});
  record.chat = std::move(chat);
  record.position = next_position_++;
  const std::int64_t now_ms = unix_time_ms();
  record.kept.head.created_ms = record.chat.created_ms > 0 ? record.chat.created_ms : now_ms;
  record.kept.head.updated_ms = record.chat.updated_ms > 0 ? record.chat.updated_ms : now_ms;
  list_by_position(record);
  return record.id;
}

void Chats::add_imported(std::vector<Chat> chats) {
  std::stable_sort(chats.begin(), chats.end(),
                   [](const Chat& a, const Chat& b) { return a.updated_ms < b.updated_ms; });
  for (Chat& chat : chats) {
    if (!std::exchange(chat.has_sampling, true)) chat.sampling = sampling_of_new();
    show(add(std::move(chat)));
  }
}

void Chats::begin_anew() {
  if (!list_.empty() && is_new(records_.at(list_.front())))
    begin_as_settled(*change(list_.front(), Changed::kHead));
}

SamplingParams Chats::sampling_of_new() const { return with_advice(sampling_, state_.model.sampling_advice); }

ChatRecord& Chats::add_record(ChatId id) {
  ChatRecord& record = records_[id];
  record.id = id;
  change(id, Changed::kMessages);
  return record;
}

ChatRecord* Chats::add_stored(const ChatHead& head) {
  if (records_.contains(head.id)) return nullptr;
  ChatRecord& record = add_record(head.id);
  record.chat.title = head.title;
  record.chat.system_prompt = head.system_prompt;
  record.chat.sampling = head.sampling;
  record.chat.context_policy = head.context_policy;
  record.chat.template_values = head.template_values;
  record.kept.head = head;
  record.kept.stored = true;
  record.kept.loaded = false;
  record.folder = head.folder;
  record.pinned = head.pinned;
  record.model_path = head.model_path;
  record.position = head.position;
  record.trashed_ms = head.trashed_ms;
  unsaved_.erase(record.id);
  next_position_ = std::max(next_position_, head.position + 1);
  if (record.trashed_ms) {
    list_changed_ = true;
  } else {
    list_by_position(record);
  }
  return &record;
}

void Chats::list_by_position(const ChatRecord& record) {
  const auto place = std::find_if(list_.begin(), list_.end(), [&](ChatId other) {
    return records_.at(other).position < record.position;
  });
  list_.insert(place, record.id);
  list_changed_ = true;
}

// ---- the one that is shown

void Chats::apply(const ui::actions::SelectChat& a) {
  if (is_listed(a.chat_id)) show(a.chat_id);
}

// As they stand in the sidebar: pinned ones, folders, days.
void Chats::apply(const ui::actions::SelectNeighbour& a) {
  const ui::ChatLibraryState& library = state_.library;
  const auto place = [&](ChatId id) {
    const ChatRecord& record = records_.at(id);
    const auto folder = std::find_if(library.folders.begin(), library.folders.end(),
                                     [&](const ui::FolderState& one) { return one.id == record.folder; });
    const bool is_in_day = !record.pinned && record.folder == FolderId{};
    return std::tuple(!record.pinned, record.pinned ? library.folders.begin() : folder,
                      is_in_day ? index_of_span(library.days, record.kept.head.updated_ms) : 0);
  };
  std::vector<ChatId> shown = list_;
  std::stable_sort(shown.begin(), shown.end(), [&](ChatId x, ChatId y) { return place(x) < place(y); });
  const auto found = std::find(shown.begin(), shown.end(), state_.active_chat);
  if (found == shown.end()) return;
  const auto count = static_cast<std::int32_t>(shown.size());
  const auto index = static_cast<std::int32_t>(found - shown.begin());
  const std::int32_t next = ((index + a.offset) % count + count) % count;
  show(shown[static_cast<std::size_t>(next)]);
}

void Chats::show(ChatId id) {
  state_.active_chat = id;
  state_.workspace = ui::Workspace::kChat;
  load(id);
}

void Chats::load(ChatId id) {
  const ChatRecord* record = find(id);
  if (record == nullptr || record->kept.loaded || record->kept.loading || keeper_.store() == nullptr) return;
  change(id, Changed::kHead)->kept.loading = true;
  keeper_.store()->load(id);
}

bool Chats::take_loaded(ChatId id, Chat chat) {
  const ChatRecord* known = find(id);
  if (known == nullptr || known->kept.loaded) return false;
  ChatRecord& record = *change(id, Changed::kMessages);
  // What was changed here since the head was read is newer than the file.
  chat.title = std::move(record.chat.title);
  chat.system_prompt = std::move(record.chat.system_prompt);
  chat.sampling = std::move(record.chat.sampling);
  chat.context_policy = record.chat.context_policy;
  chat.template_values = std::move(record.chat.template_values);
  record.chat = std::move(chat);
  ChatKeeper::learn(record.chat, record.kept);
  if (duplicated_when_loaded_.erase(id) > 0) duplicate(record);
  return true;
}

// ---- a copy

void Chats::apply(const ui::actions::DuplicateChat& a) {
  if (!is_listed(a.chat_id)) return;
  const ChatRecord& record = *find(a.chat_id);
  if (record.kept.loaded) return duplicate(record);
  duplicated_when_loaded_.insert(a.chat_id);
  load(a.chat_id);
}

// An answer that is under way has in the copy what it has by now.
void Chats::duplicate(const ChatRecord& record) {
  Chat copy = without_erased(record.chat);
  copy.title = first_line(title_of(record), kLongestName) + " (copy)";
  for (std::uint64_t id = 1; id <= copy.messages().size(); ++id) {
    Message& message = *copy.find(MessageId{id});
    if (message.role == Role::kAssistant && !message.finish_reason) message.interrupted = true;
  }
  const FolderId folder = record.folder;
  const std::string model_path = record.model_path;
  const ChatId id = add(std::move(copy));
  ChatRecord& added = *change(id, Changed::kMessages);
  added.folder = folder;
  added.model_path = model_path;
  show(id);
}

// ---- messages

Message& Chats::append_message(ChatId id, MessageId parent, Role role, std::string content) {
  Chat& chat = change(id, Changed::kMessages)->chat;
  Message& message = *chat.find(chat.append(parent, role, std::move(content)));
  message.created_ms = unix_time_ms();
  return message;
}

// From the leaves up: whenever the disk stops taking part, what it has is a whole tree.
ErasedMessages Chats::erase_messages(ChatId id, MessageId message_id, EraseExtent extent) {
  Chat& chat = change(id, Changed::kMessages)->chat;
  ErasedMessages erased = chat.erase(message_id, extent);
  for (const MessageId child : erased.messages.front().children) {
    if (const Message* moved = chat.find(child)) keep_message(id, *moved);
  }
  for (auto gone = erased.messages.rbegin(); gone != erased.messages.rend(); ++gone)
    keep_message(id, chat.messages()[gone->id.value - 1]);
  return erased;
}

void Chats::restore_messages(ChatId id, ErasedMessages erased) {
  Chat& chat = change(id, Changed::kMessages)->chat;
  std::vector<MessageId> changed;
  for (const Message& message : erased.messages) changed.push_back(message.id);
  const std::vector<MessageId> below = erased.messages.front().children;
  changed.insert(changed.end(), below.begin(), below.end());
  chat.restore(std::move(erased));
  chat.activate(changed.front());  // what comes back is seen
  for (const MessageId message_id : changed) keep_message(id, *chat.find(message_id));
}

// ---- title and order

void Chats::apply(const ui::actions::RenameChat& a) {
  if (ChatRecord* record = change(a.chat_id, Changed::kHead))
    record->chat.title = first_line(sanitise_utf8(a.title), kLongestName);
}

void Chats::apply(const ui::actions::PinChat& a) {
  if (is_listed(a.chat_id)) change(a.chat_id, Changed::kHead)->pinned = a.pinned;
}

void Chats::apply(const ui::actions::MoveChat& a) {
  if (!is_listed(a.chat_id) || a.chat_id == a.before) return;
  std::erase(list_, a.chat_id);
  list_.insert(std::find(list_.begin(), list_.end(), a.before), a.chat_id);
  number_positions();
}

void Chats::number_positions() {
  auto position = static_cast<std::int64_t>(list_.size());
  next_position_ = position + 1;
  for (const ChatId id : list_) change(id, Changed::kHead)->position = position--;
  list_changed_ = true;
}

// ---- the trash

void Chats::put_in_trash(ChatId id) {
  change(id, Changed::kHead)->trashed_ms = keeper_.unix_time_ms();
  std::erase(list_, id);
  list_changed_ = true;
}

void Chats::take_out_of_trash(ChatId id) {
  ChatRecord& record = *change(id, Changed::kMessages);
  record.trashed_ms.reset();
  next_position_ = std::max(next_position_, record.position + 1);
  list_by_position(record);
}

void Chats::erase(ChatId id) {
  const auto found = records_.find(id);
  if (found == records_.end()) return;
  keeper_.erase(found->second.kept);
  records_.erase(found);
  std::erase(list_, id);
  undrawn_.erase(id);
  unsaved_.erase(id);
  list_changed_ = true;
}

// ---- to the store

void Chats::keep() {
  if (!store_opened_) return;
  for (const ChatId id : std::exchange(unsaved_, {})) {
    ChatRecord& record = records_.at(id);
    keeper_.keep(record.chat, head_of(record), record.kept);
    if (record.kept.in_parts) unsaved_.insert(id);
  }
}

void Chats::keep_all() {
  if (!store_opened_) return;
  for (const ChatId id : std::exchange(unsaved_, {})) keep_now(id);
}

StoreTicket Chats::keep_now(ChatId id) {
  ChatRecord& record = records_.at(id);
  return keeper_.keep(record.chat, head_of(record), record.kept, Urgency::kNow);
}

void Chats::keep_message(ChatId id, const Message& message) {
  keeper_.keep_message(records_.at(id).kept, message);
}

void Chats::keep_growth(ChatId id, const Message& message, std::string_view text,
                        const std::vector<TokenId>& token_ids) {
  keeper_.keep_growth(records_.at(id).kept, message, text, token_ids);
}

void Chats::forget_folder(FolderId folder) {
  for (auto& [id, record] : records_) {
    if (record.folder != folder) continue;
    record.folder = record.kept.head.folder = {};
    change(id, Changed::kHead);
  }
}

void Chats::keep_everything_again() {
  for (auto& [id, record] : records_) {
    ChatKeeper::forget(record.kept);
    unsaved_.insert(id);
  }
  keep();
}

}  // namespace octavo::app
