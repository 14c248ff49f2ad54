#include "app/chat/chat.h"

#include <algorithm>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/text.h"

namespace octavo::app {

MessageId Chat::append(MessageId parent, Role role, std::string content) {
  Message message;
  message.parent = parent;
  message.role = role;
  message.content = std::move(content);
  const MessageId id = add(std::move(message));
  activate(id);
  return id;
}

MessageId Chat::add(Message message) {
  OCTAVO_CHECK(message.parent.value <= messages_.size(), "no message %llu",
               static_cast<unsigned long long>(message.parent.value));
  const MessageId id{messages_.size() + 1};
  message.id = id;
  message.children.clear();
  message.active_child = kRootMessage;
  messages_.push_back(std::move(message));
  if (Message* above = find(messages_.back().parent)) {
    above->children.push_back(id);
  } else {
    root_children_.push_back(id);
  }
  choose_child(id);
  return id;
}

void Chat::activate(MessageId id) {
  for (const Message* message = find(id); message != nullptr; message = find(message->parent)) {
    choose_child(message->id);
  }
}

void Chat::choose_child(MessageId id) {
  const Message* message = find(id);
  OCTAVO_CHECK(message != nullptr, "no message %llu", static_cast<unsigned long long>(id.value));
  if (Message* above = find(message->parent)) {
    above->active_child = id;
  } else {
    active_root_child_ = id;
  }
}

bool Chat::is_chosen(MessageId id) const {
  const Message* message = find(id);
  OCTAVO_CHECK(message != nullptr, "no message %llu", static_cast<unsigned long long>(id.value));
  const Message* above = find(message->parent);
  return id == (above != nullptr ? above->active_child : active_root_child_);
}

const std::vector<MessageId>& Chat::siblings_of(const Message& message) const {
  const Message* above = find(message.parent);
  return above != nullptr ? above->children : root_children_;
}

SiblingPosition Chat::position_among_siblings(MessageId id) const {
  const Message* message = find(id);
  OCTAVO_CHECK(message != nullptr, "no message %llu", static_cast<unsigned long long>(id.value));
  const auto& siblings = siblings_of(*message);
  const auto found = std::find(siblings.begin(), siblings.end(), id);
  return {static_cast<std::int32_t>(found - siblings.begin()), static_cast<std::int32_t>(siblings.size())};
}

MessageId Chat::sibling(MessageId id, std::int32_t offset) const {
  const SiblingPosition position = position_among_siblings(id);
  const std::int32_t index = position.index + offset;
  if (index < 0 || index >= position.count) return id;
  return siblings_of(*find(id))[static_cast<std::size_t>(index)];
}

const Message* Chat::find(MessageId id) const {
  if (id == kRootMessage || id.value > messages_.size()) return nullptr;
  return &messages_[id.value - 1];
}

Message* Chat::find(MessageId id) {
  return const_cast<Message*>(std::as_const(*this).find(id));  // NOLINT: the object is not const here
}

std::vector<MessageId> Chat::active_path() const {
  std::vector<MessageId> path;
  for (const Message* message = find(active_root_child_); message != nullptr;
       message = find(message->active_child)) {
    path.push_back(message->id);
  }
  return path;
}

MessageId Chat::active_leaf() const {
  const auto path = active_path();
  return path.empty() ? kRootMessage : path.back();
}

std::vector<ChatMessage> Chat::chat_messages(MessageId last) const {
  std::vector<ChatMessage> result;
  for (const Message* message = find(last); message != nullptr; message = find(message->parent)) {
    if (message->role == Role::kAssistant && message->content.empty()) continue;
    result.push_back({message->role, message->content, message->token_ids});
  }
  if (!system_prompt.empty()) result.push_back({Role::kSystem, system_prompt});
  std::reverse(result.begin(), result.end());
  return result;
}

const std::string& Chat::summary_after(MessageId id) const {
  static const std::string kNone;
  const auto found = summaries_.find(id);
  return found == summaries_.end() ? kNone : found->second;
}

void Chat::set_summary(MessageId id, std::string summary) {
  OCTAVO_CHECK(find(id) != nullptr, "no message %llu", static_cast<unsigned long long>(id.value));
  if (summary.empty()) {
    summaries_.erase(id);
  } else {
    summaries_[id] = std::move(summary);
  }
}

std::string Chat::display_title(std::size_t max_characters) const {
  if (!title.empty()) return title;
  for (const MessageId id : active_path()) {
    const Message& message = *find(id);
    if (message.role != Role::kUser) continue;
    std::string line = first_line(message.content, max_characters);
    if (!line.empty()) return line;
  }
  return "New chat";
}

std::string first_line(std::string_view text, std::size_t max_characters) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  text = text.substr(begin);
  text = text.substr(0, text.find_first_of("\r\n"));
  std::size_t offset = 0;
  for (std::size_t count = 0; offset < text.size() && count < max_characters; ++count) {
    offset += decode_utf8(text, offset).length;
  }
  std::string line(text.substr(0, offset));
  while (!line.empty() && (line.back() == ' ' || line.back() == '\t')) line.pop_back();
  if (offset < text.size()) line += "…";
  return line;
}

}  // namespace octavo::app
