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
  if (messages_.back().erased) return id;
  children_of(messages_.back().parent).push_back(id);
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
  chosen_below(message->parent) = id;
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

std::vector<MessageId>& Chat::children_of(MessageId parent) {
  Message* above = find(parent);
  return above != nullptr ? above->children : root_children_;
}

MessageId& Chat::chosen_below(MessageId parent) {
  Message* above = find(parent);
  return above != nullptr ? above->active_child : active_root_child_;
}

// ---- erasing

// The message and everything below it, ascending.
std::vector<MessageId> Chat::branch_of(MessageId id) const {
  std::vector<MessageId> branch = {id};
  for (std::size_t i = 0; i < branch.size(); ++i) {
    const std::vector<MessageId>& children = find(branch[i])->children;
    branch.insert(branch.end(), children.begin(), children.end());
  }
  std::sort(branch.begin(), branch.end());
  return branch;
}

// Leaves its place.
Message Chat::take(MessageId id, ErasedMessages& erased) {
  if (auto summary = summaries_.extract(id); !summary.empty()) erased.summaries.insert(std::move(summary));
  Message& message = messages_[id.value - 1];
  Message place;
  place.id = id;
  place.parent = message.parent;
  place.role = message.role;
  place.erased = true;
  return std::exchange(message, std::move(place));
}

// Siblings stand in the order of their ids, as they do in a chat that is read from a file.
void Chat::hang_below(MessageId parent, MessageId id) {
  std::vector<MessageId>& children = children_of(parent);
  children.insert(std::lower_bound(children.begin(), children.end(), id), id);
}

void Chat::take_from(MessageId parent, MessageId id) {
  std::vector<MessageId>& children = children_of(parent);
  const auto place = children.erase(std::find(children.begin(), children.end(), id));
  MessageId& chosen = chosen_below(parent);
  if (chosen != id) return;
  chosen = place != children.end() ? *place : children.empty() ? kRootMessage : children.back();
}

ErasedMessages Chat::erase(MessageId id, EraseExtent extent) {
  OCTAVO_CHECK(find(id) != nullptr, "no message %llu", static_cast<unsigned long long>(id.value));
  const std::vector<MessageId> branch = branch_of(id);
  const MessageId parent = find(id)->parent;
  ErasedMessages erased;
  erased.was_chosen = is_chosen(id);
  take_from(parent, id);
  const bool alone = extent == EraseExtent::kMessage;
  for (const MessageId below : branch) {
    if (below == id || !alone) {
      erased.messages.push_back(take(below, erased));
    } else if (auto summary = summaries_.extract(below); !summary.empty()) {
      erased.summaries.insert(std::move(summary));  // it may tell of what is gone
    }
  }
  if (alone) {
    const Message& gone = erased.messages.front();
    for (const MessageId child : gone.children) {
      find(child)->parent = parent;
      hang_below(parent, child);
    }
    if (erased.was_chosen && gone.active_child != kRootMessage) chosen_below(parent) = gone.active_child;
  }
  if (find(context_begin) == nullptr) context_begin = kRootMessage;
  return erased;
}

void Chat::restore(ErasedMessages erased) {
  const MessageId id = erased.messages.front().id, parent = erased.messages.front().parent;
  for (Message& message : erased.messages) {
    const auto index = message.id.value - 1;
    messages_[index] = std::move(message);
  }
  for (const MessageId child : find(id)->children) {
    Message& below = *find(child);
    if (below.parent == id) continue;  // it was erased with it
    take_from(below.parent, child);
    below.parent = id;
  }
  hang_below(parent, id);
  summaries_.merge(erased.summaries);
  if (erased.was_chosen) choose_child(id);
}

MessageId Chat::sibling(MessageId id, std::int32_t offset) const {
  const SiblingPosition position = position_among_siblings(id);
  const std::int32_t index = position.index + offset;
  if (index < 0 || index >= position.count) return id;
  return siblings_of(*find(id))[static_cast<std::size_t>(index)];
}

const Message* Chat::find(MessageId id) const {
  if (id == kRootMessage || id.value > messages_.size()) return nullptr;
  const Message& message = messages_[id.value - 1];
  return message.erased ? nullptr : &message;
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
  MessageId leaf = kRootMessage;
  for (const Message* message = find(active_root_child_); message != nullptr;
       message = find(message->active_child)) {
    leaf = message->id;
  }
  return leaf;
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
  for (const Message* message = find(active_root_child_); message != nullptr;
       message = find(message->active_child)) {
    if (message->role != Role::kUser) continue;
    std::string line = first_line(message->content, max_characters);
    if (!line.empty()) return line;
  }
  return "New chat";
}

Chat without_erased(const Chat& chat) {
  Chat result;
  result.title = chat.title;
  result.system_prompt = chat.system_prompt;
  result.sampling = chat.sampling;
  result.context_policy = chat.context_policy;
  result.template_values = chat.template_values;
  std::map<MessageId, MessageId> new_ids = {{kRootMessage, kRootMessage}};
  for (const Message& message : chat.messages()) {
    if (message.erased) continue;
    Message copy = message;
    copy.parent = new_ids.at(message.parent);
    new_ids[message.id] = result.add(std::move(copy));
    result.set_summary(new_ids[message.id], chat.summary_after(message.id));
  }
  const auto choose = [&](MessageId chosen) {
    if (chosen != kRootMessage) result.choose_child(new_ids.at(chosen));
  };
  choose(chat.active_first());
  for (const Message& message : chat.messages()) choose(message.active_child);
  result.context_begin = new_ids.at(chat.context_begin);
  return result;
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
