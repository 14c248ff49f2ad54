#include "app/chat/chat_import.h"

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "app/chat/chat_json.h"
#include "app/chat/json_parts.h"
#include "engine/base/text.h"

namespace octavo::app {
namespace {

using nlohmann::json;

// One node of a foreign tree. Without text it is passed over.
struct Node {
  std::string parent;
  Role role = Role::kUser;
  std::string text;
  bool reached = false;
  MessageId message_id = kRootMessage;  // what it became, or where what follows it goes
};

using Tree = std::map<std::string, Node>;

const json* member(const json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

std::string text_member(const json& object, const char* key) {
  const json* value = member(object, key);
  return value != nullptr && value->is_string() ? sanitise_utf8(value->get_ref<const std::string&>())
                                                : std::string();
}

// ---- ChatGPT

std::string joined_parts(const json& content) {
  const json* parts = member(content, "parts");
  if (parts == nullptr || !parts->is_array()) return text_member(content, "text");
  std::string text;
  for (const json& part : *parts) {
    const std::string piece =
        part.is_string() ? sanitise_utf8(part.get_ref<const std::string&>()) : text_member(part, "text");
    if (!piece.empty()) text += (text.empty() ? "" : "\n") + piece;
  }
  return text;
}

bool is_hidden(const json& message) {
  const json* metadata = member(message, "metadata");
  const json* hidden =
      metadata != nullptr ? member(*metadata, "is_visually_hidden_from_conversation") : nullptr;
  return hidden != nullptr && hidden->is_boolean() && hidden->get<bool>();
}

Node chatgpt_node(const json& value) {
  Node node;
  node.parent = text_member(value, "parent");
  const json* message = member(value, "message");
  if (message == nullptr || is_hidden(*message)) return node;
  const json* author = member(*message, "author");
  const auto role = author != nullptr ? parse_role(text_member(*author, "role")) : std::nullopt;
  const json* content = member(*message, "content");
  if (!role || *role == Role::kTool || content == nullptr) return node;
  node.role = *role;
  node.text = joined_parts(*content);
  return node;
}

// ---- Open WebUI

Node open_webui_node(const json& value) {
  Node node;
  node.parent = text_member(value, "parentId");
  const auto role = parse_role(text_member(value, "role"));
  if (!role || *role == Role::kTool) return node;
  node.role = *role;
  const json* content = member(value, "content");
  node.text = content != nullptr && content->is_array() ? joined_parts(json{{"parts", *content}})
                                                        : text_member(value, "content");
  return node;
}

// ---- trees

// Adds every node after those above it. Without recursion: a hostile chain may be a million nodes long. The
// texts move out of the tree.
class TreeBuilder {
 public:
  TreeBuilder(Tree& tree, Chat& chat) : tree_(tree), chat_(chat) {}

  MessageId add(const std::string& id) {
    std::vector<Node*> above;
    for (auto at = tree_.find(id); at != tree_.end() && !at->second.reached;
         at = tree_.find(at->second.parent)) {
      at->second.reached = true;  // also where the tree runs in a circle
      above.push_back(&at->second);
    }
    for (auto node = above.rbegin(); node != above.rend(); ++node) add_one(**node);
    const auto found = tree_.find(id);
    return found == tree_.end() ? kRootMessage : found->second.message_id;
  }

 private:
  void add_one(Node& node) {
    const auto parent = tree_.find(node.parent);
    const MessageId above = parent == tree_.end() ? kRootMessage : parent->second.message_id;
    const bool leading_system = node.role == Role::kSystem && above == kRootMessage;
    if (leading_system && chat_.system_prompt.empty()) chat_.system_prompt = node.text;
    if (node.text.empty() || leading_system) {
      node.message_id = above;
      return;
    }
    Message message;
    message.parent = above;
    message.role = node.role;
    message.content = std::move(node.text);
    if (node.role == Role::kAssistant) message.finish_reason = FinishReason::kStop;
    node.message_id = chat_.add(std::move(message));
  }

  Tree& tree_;
  Chat& chat_;
};

Chat build(Tree tree, const std::string& title, const std::string& current) {
  Chat chat;
  chat.title = first_line(title, 200);
  TreeBuilder builder(tree, chat);
  for (const auto& [id, node] : tree) builder.add(id);
  MessageId shown = builder.add(current);
  if (shown == kRootMessage && !chat.messages().empty()) shown = chat.messages().back().id;
  if (shown != kRootMessage) chat.activate(shown);
  return chat;
}

// ---- files

Error unknown(std::string_view name, const std::string& what) {
  return {.code = ErrorCode::kDamagedFile,
          .message = escape_for_message(name) + ": " + what +
                     "; choose a JSON export from Octavo, ChatGPT or Open WebUI"};
}

// Takes the chats out of a file as it is parsed: their messages first, then what is left of each.
class ChatFile {
 public:
  explicit ChatFile(std::string_view name) : name_(name) {}

  bool take(const JsonPath& path, json& object) {
    const std::size_t begin = !path.empty() && !path.front() ? 1 : 0;  // after the place in the list of chats
    if (path.size() == begin) return take_chat(object);
    if (ChatFromJson::is_message(path, begin)) return own_.add_message(object), true;
    if (path.size() == begin + 2 && path[begin] == "mapping") return take_node(path, chatgpt_node(object));
    const std::size_t inner = path[begin] == "chat" ? begin + 1 : begin;
    if (path.size() < inner + 2) return false;
    if (path.size() == inner + 3 && path[inner] == "history" && path[inner + 1] == "messages")
      return take_node(path, open_webui_node(object));
    // Open WebUI has the shown branch once more.
    return inner > begin && path.size() == inner + 2 && path[inner] == "messages";
  }

  Result<std::vector<Chat>> finish(const json& rest) &&;

 private:
  bool take_node(const JsonPath& path, Node node) {
    if (path.back()) tree_.emplace(*path.back(), std::move(node));
    return path.back().has_value();
  }

  bool take_chat(const json& rest) {
    auto read = read_one(rest);
    tree_.clear();
    own_ = {};
    ++num_read_;
    if (read && !*read && !failed_) failed_ = read->error();
    if (!read && !failed_)
      failed_ = unknown(name_, "chat " + std::to_string(num_read_) + " has an unknown format");
    if (!failed_ && !(*read)->messages().empty()) chats_.push_back(**std::move(read));
    return true;
  }

  // nullopt when the object is no chat of a kind that is known here.
  std::optional<Result<Chat>> read_one(const json& rest) {
    if (member(rest, "mapping") != nullptr)
      return build(std::move(tree_), text_member(rest, "title"), text_member(rest, "current_node"));
    const json* wrapped = member(rest, "chat");
    const json& chat = wrapped != nullptr ? *wrapped : rest;
    if (const json* history = member(chat, "history")) {
      if (member(*history, "messages") == nullptr) return std::nullopt;
      std::string title = text_member(chat, "title");
      if (title.empty()) title = text_member(rest, "title");
      return build(std::move(tree_), title, text_member(*history, "currentId"));
    }
    if (text_member(rest, "format").empty()) return std::nullopt;
    return std::move(own_).finish(rest, name_);
  }

  const std::string_view name_;
  // Of the chat that is being read.
  Tree tree_;
  ChatFromJson own_;

  std::size_t num_read_ = 0;
  std::vector<Chat> chats_;
  std::optional<Error> failed_;
};

Result<std::vector<Chat>> ChatFile::finish(const json& rest) && {
  if (rest.is_discarded()) return unknown(name_, "it is not JSON");
  if (failed_) return *failed_;
  const bool has_others = rest.is_array() ? !rest.empty() : num_read_ == 0;
  if (has_others) return unknown(name_, "chat " + std::to_string(num_read_ + 1) + " has an unknown format");
  if (chats_.empty()) return unknown(name_, "it has no messages");
  return std::move(chats_);
}

}  // namespace

Result<std::vector<Chat>> import_chats(std::string_view text, std::string_view name) {
  ChatFile file(name);
  const json rest =
      parse_in_parts(text, [&file](const JsonPath& path, json& object) { return file.take(path, object); });
  return std::move(file).finish(rest);
}

std::string chats_to_json(const std::vector<Chat>& chats) {
  std::string text = "[\n";
  for (std::size_t i = 0; i < chats.size(); ++i) {
    text += chat_to_json(chats[i]);
    text += i + 1 < chats.size() ? ",\n" : "\n";
  }
  return text + "]\n";
}

}  // namespace octavo::app
