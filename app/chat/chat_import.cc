#include "app/chat/chat_import.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "app/chat/chat_json.h"
#include "app/json/json_parts.h"
#include "engine/base/format.h"
#include "engine/base/text.h"

namespace octavo::app {
namespace {

using nlohmann::json;

// One node of a foreign tree. Without text it is passed over.
struct Node {
  std::string parent;
  Role role = Role::kUser;
  std::string text;
  std::int64_t created_ms = 0;
  bool reached = false;
  MessageId message_id = kRootMessage;  // what it became, or where what follows it goes
};

using Tree = std::map<std::string, Node>;

// Milliseconds since 1970 of a number of seconds, or of milliseconds; 0 of anything else.
std::int64_t date_ms(const json* seconds) {
  constexpr double kLatestSecond = 253'402'300'799.0;  // the end of the year 9999
  if (seconds == nullptr || !seconds->is_number()) return 0;
  double value = seconds->get<double>();
  if (value > kLatestSecond) value /= 1000.0;
  return value > 0 && value <= kLatestSecond ? static_cast<std::int64_t>(value * 1000.0) : 0;
}

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

// Seconds since 1970, as both programs write them; 0 for what is no such time.
std::int64_t time_member(const json& object, const char* key) {
  constexpr double kLatest = 253'402'300'799.0;  // the end of the year 9999
  const json* value = member(object, key);
  const double seconds = value != nullptr && value->is_number() ? value->get<double>() : 0.0;
  return seconds > 0.0 && seconds <= kLatest ? static_cast<std::int64_t>(seconds * 1000.0) : 0;
}

// ---- parts of messages

void count_part(const json& part, LeftOut& left_out) {
  std::string type = text_member(part, "content_type");
  if (type.empty()) type = text_member(part, "type");
  if (type.starts_with("image")) {
    ++left_out.num_images;
  } else if (type.find("audio") != std::string::npos || type.find("video") != std::string::npos) {
    ++left_out.num_recordings;
  } else if (type == "file") {
    ++left_out.num_files;
  } else {
    ++left_out.num_others;
  }
}

std::string joined_parts(const json& content, LeftOut& left_out) {
  const json* parts = member(content, "parts");
  if (parts == nullptr || !parts->is_array()) return text_member(content, "text");
  std::string text;
  for (const json& part : *parts) {
    const std::string piece =
        part.is_string() ? sanitise_utf8(part.get_ref<const std::string&>()) : text_member(part, "text");
    if (!piece.empty()) {
      text += (text.empty() ? "" : "\n") + piece;
    } else if (part.is_object()) {
      count_part(part, left_out);
    }
  }
  return text;
}

// Files beside a message; its images are parts of it, or among them.
void count_files(const json* files, bool counts_images, LeftOut& left_out) {
  if (files == nullptr || !files->is_array()) return;
  for (const json& file : *files) {
    const bool image =
        text_member(file, "mime_type").starts_with("image") || text_member(file, "type").starts_with("image");
    if (!image) {
      ++left_out.num_files;
    } else if (counts_images) {
      ++left_out.num_images;
    }
  }
}

// ---- ChatGPT

bool is_hidden(const json& message) {
  const json* metadata = member(message, "metadata");
  const json* hidden =
      metadata != nullptr ? member(*metadata, "is_visually_hidden_from_conversation") : nullptr;
  return hidden != nullptr && hidden->is_boolean() && hidden->get<bool>();
}

Node chatgpt_node(const json& value, LeftOut& left_out) {
  Node node;
  node.parent = text_member(value, "parent");
  const json* message = member(value, "message");
  if (message == nullptr) return node;
  const json* author = member(*message, "author");
  const auto role = author != nullptr ? parse_role(text_member(*author, "role")) : std::nullopt;
  const json* content = member(*message, "content");
  if (is_hidden(*message)) {
    LeftOut parts;
    if (content != nullptr && !joined_parts(*content, parts).empty()) ++left_out.num_hidden_messages;
    return node;
  }
  if (role == Role::kTool) ++left_out.num_tool_messages;
  if (!role || *role == Role::kTool || content == nullptr) return node;
  const json* metadata = member(*message, "metadata");
  if (metadata != nullptr) count_files(member(*metadata, "attachments"), /*counts_images=*/false, left_out);
  node.role = *role;
  node.text = joined_parts(*content, left_out);
  node.created_ms = time_member(*message, "create_time");
  const bool is_known = member(*content, "parts") != nullptr || member(*content, "text") != nullptr;
  if (!is_known) ++left_out.num_others;  // such as what a model thought
  return node;
}

// ---- Open WebUI

Node open_webui_node(const json& value, LeftOut& left_out) {
  Node node;
  node.parent = text_member(value, "parentId");
  const auto role = parse_role(text_member(value, "role"));
  if (role == Role::kTool) ++left_out.num_tool_messages;
  if (!role || *role == Role::kTool) return node;
  node.role = *role;
  const json* content = member(value, "content");
  node.text = content != nullptr && content->is_array() ? joined_parts(json{{"parts", *content}}, left_out)
                                                        : text_member(value, "content");
  node.created_ms = time_member(value, "timestamp");
  count_files(member(value, "files"), /*counts_images=*/true, left_out);
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
    message.created_ms = node.created_ms;
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
    if (ChatFromJson::is_message(path, begin)) return own_->add_message(std::move(object)), true;
    if (path.size() == begin + 2 && path[begin] == "mapping")
      return take_node(path, chatgpt_node(object, left_out_));
    const std::size_t inner = path[begin] == "chat" ? begin + 1 : begin;
    if (path.size() < inner + 2) return false;
    if (path.size() == inner + 3 && path[inner] == "history" && path[inner + 1] == "messages")
      return take_node(path, open_webui_node(object, left_out_));
    // Open WebUI has the shown branch once more.
    return inner > begin && path.size() == inner + 2 && path[inner] == "messages";
  }

  Result<ImportedChats> finish(const json& rest) &&;

 private:
  bool take_node(const JsonPath& path, Node node) {
    if (path.back()) tree_.emplace(*path.back(), std::move(node));
    return path.back().has_value();
  }

  bool take_chat(const json& rest) {
    auto read = read_one(rest);
    tree_.clear();
    own_.emplace();
    ++num_read_;
    if (read && !*read && !failed_) failed_ = read->error();
    if (!read && !failed_)
      failed_ = unknown(name_, "chat " + std::to_string(num_read_) + " has an unknown format");
    if (!failed_ && !(*read)->messages().empty()) chats_.push_back(**std::move(read));
    return true;
  }

  static Chat with_foreign_sampling(Chat chat) {
    chat.has_sampling = false;
    chat.updated_ms = std::max(chat.updated_ms, chat.created_ms);
    return chat;
  }

  // nullopt when the object is no chat of a kind that is known here.
  std::optional<Result<Chat>> read_one(const json& rest) {
    if (member(rest, "mapping") != nullptr) {
      Chat chat = build(std::move(tree_), text_member(rest, "title"), text_member(rest, "current_node"));
      chat.created_ms = date_ms(member(rest, "create_time"));
      chat.updated_ms = date_ms(member(rest, "update_time"));
      return with_foreign_sampling(std::move(chat));
    }
    const json* wrapped = member(rest, "chat");
    const json& chat = wrapped != nullptr ? *wrapped : rest;
    if (const json* history = member(chat, "history")) {
      if (member(*history, "messages") == nullptr) return std::nullopt;
      std::string title = text_member(chat, "title");
      if (title.empty()) title = text_member(rest, "title");
      Chat read = build(std::move(tree_), title, text_member(*history, "currentId"));
      read.created_ms = date_ms(member(rest, "created_at"));
      if (read.created_ms == 0) read.created_ms = date_ms(member(chat, "timestamp"));
      read.updated_ms = date_ms(member(rest, "updated_at"));
      return with_foreign_sampling(std::move(read));
    }
    if (text_member(rest, "format").empty()) return std::nullopt;
    return std::move(*own_).finish(rest, name_);
  }

  const std::string_view name_;
  // Of the chat that is being read.
  Tree tree_;
  std::optional<ChatFromJson> own_{std::in_place};

  std::size_t num_read_ = 0;
  std::vector<Chat> chats_;
  LeftOut left_out_;
  std::optional<Error> failed_;
};

Result<ImportedChats> ChatFile::finish(const json& rest) && {
  if (rest.is_discarded()) return unknown(name_, "it is not JSON");
  if (failed_) return *failed_;
  const bool has_others = rest.is_array() ? !rest.empty() : num_read_ == 0;
  if (has_others) return unknown(name_, "chat " + std::to_string(num_read_ + 1) + " has an unknown format");
  if (chats_.empty()) return unknown(name_, "it has no messages");
  return ImportedChats{std::move(chats_), left_out_};
}

}  // namespace

std::string left_out_sentence(const LeftOut& left_out) {
  std::vector<std::string> parts;
  const auto add = [&](std::int64_t count, const char* what) {
    if (count > 0) parts.push_back(count_text(count, what));
  };
  add(left_out.num_images, "image");
  add(left_out.num_files, "file");
  add(left_out.num_recordings, "recording");
  add(left_out.num_tool_messages, "tool message");
  add(left_out.num_hidden_messages, "hidden message");
  add(left_out.num_others, "other part");
  std::string sentence;
  for (std::size_t i = 0; i < parts.size(); ++i)
    sentence += (i == 0 ? "Left out: " : i + 1 == parts.size() ? " and " : ", ") + parts[i];
  return sentence + (sentence.empty() ? "" : ".");
}

Result<ImportedChats> import_chats(std::string_view text, std::string_view name) {
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
