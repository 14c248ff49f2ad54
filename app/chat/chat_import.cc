#include "app/chat/chat_import.h"

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "app/chat/chat_json.h"
#include "engine/base/text.h"

namespace octavo::app {
namespace {

using nlohmann::json;

// One node of a foreign tree. Without text it is passed over.
struct Node {
  std::string parent;
  Role role = Role::kUser;
  std::string text;
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

template <class Read>
Tree read_tree(const json& nodes, const Read& read) {
  Tree tree;
  if (!nodes.is_object()) return tree;
  for (const auto& [id, value] : nodes.items()) tree.emplace(id, read(value));
  return tree;
}

// Adds every node after those above it. Without recursion: a hostile chain may be a million nodes long.
class TreeBuilder {
 public:
  TreeBuilder(const Tree& tree, Chat& chat) : tree_(tree), chat_(chat) {}

  MessageId add(const std::string& id) {
    std::vector<std::string> above;
    std::set<std::string> seen;
    for (std::string at = id; tree_.contains(at) && !added_.contains(at) && seen.insert(at).second;
         at = tree_.at(at).parent) {
      above.push_back(at);
    }
    for (auto at = above.rbegin(); at != above.rend(); ++at) add_one(*at);
    const auto found = added_.find(id);
    return found == added_.end() ? kRootMessage : found->second;
  }

 private:
  void add_one(const std::string& id) {
    const Node& node = tree_.at(id);
    const auto parent = added_.find(node.parent);
    const MessageId above = parent == added_.end() ? kRootMessage : parent->second;
    const bool leading_system = node.role == Role::kSystem && above == kRootMessage;
    if (leading_system && chat_.system_prompt.empty()) chat_.system_prompt = node.text;
    if (node.text.empty() || leading_system) {
      added_[id] = above;
      return;
    }
    const MessageId added = chat_.append(above, node.role, node.text);
    if (node.role == Role::kAssistant) chat_.find(added)->finish_reason = FinishReason::kStop;
    added_[id] = added;
  }

  const Tree& tree_;
  Chat& chat_;
  std::map<std::string, MessageId> added_;
};

Chat build(const Tree& tree, std::string title, const std::string& current) {
  Chat chat;
  chat.title = first_line(title, 200);
  TreeBuilder builder(tree, chat);
  for (const auto& [id, node] : tree) builder.add(id);
  const MessageId shown = builder.add(current);
  if (shown != kRootMessage) chat.activate(shown);
  return chat;
}

// nullopt when the object is no chat of a kind that is known here.
std::optional<Result<Chat>> read_one(const json& value, std::string_view name) {
  if (const json* mapping = member(value, "mapping"))
    return build(read_tree(*mapping, chatgpt_node), text_member(value, "title"),
                 text_member(value, "current_node"));
  const json* wrapped = member(value, "chat");
  const json& chat = wrapped != nullptr ? *wrapped : value;
  if (const json* history = member(chat, "history")) {
    const json* messages = member(*history, "messages");
    if (messages == nullptr) return std::nullopt;
    std::string title = text_member(chat, "title");
    if (title.empty()) title = text_member(value, "title");
    return build(read_tree(*messages, open_webui_node), std::move(title), text_member(*history, "currentId"));
  }
  if (text_member(value, "format").empty()) return std::nullopt;
  return chat_from_json(value.dump(-1, ' ', false, json::error_handler_t::replace), name);
}

Error unknown(std::string_view name, const std::string& what) {
  return {.code = ErrorCode::kDamagedFile,
          .message = escape_for_message(name) + ": " + what +
                     "; choose a JSON export from Octavo, ChatGPT or Open WebUI"};
}

}  // namespace

Result<std::vector<Chat>> import_chats(std::string_view text, std::string_view name) {
  const json value = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded()) return unknown(name, "it is not JSON");
  std::vector<const json*> values;
  if (value.is_array()) {
    for (const json& one : value) values.push_back(&one);
  } else {
    values.push_back(&value);
  }
  std::vector<Chat> chats;
  for (const json* one : values) {
    auto read = read_one(*one, name);
    if (!read) return unknown(name, "chat " + std::to_string(chats.size() + 1) + " has an unknown format");
    if (!*read) return read->error();
    if (!(*read)->messages().empty()) chats.push_back(**std::move(read));
  }
  if (chats.empty()) return unknown(name, "it has no messages");
  return chats;
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
