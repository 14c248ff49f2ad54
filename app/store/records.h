// What the store keeps, as values: chats, folders and presets; what the window asks it to write; what it
// reports back. Ids are given by the window, ascending, and mean the same chat after every start.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "app/chat/chat.h"
#include "engine/api/sampling_params.h"
#include "engine/base/ids.h"

namespace octavo::app {

// A chat without its messages. Times are milliseconds since 1970, UTC.
struct ChatHead {
  ChatId id;
  std::string title;        // given by a person; empty: none was
  std::string shown_title;  // what the list shows before the messages are read
  std::string system_prompt;
  SamplingParams sampling;
  ContextPolicy context_policy = ContextPolicy::kRoll;
  TemplateValues template_values = {};
  std::string draft;  // typed and not sent
  FolderId folder;
  bool pinned = false;
  std::int64_t position = 0;  // the list shows higher ones first
  std::int64_t created_ms = 0;
  std::int64_t updated_ms = 0;
  std::optional<std::int64_t> trashed_ms;  // since when it is in the trash
  MessageId active_root_child = kRootMessage;
  std::string model_path;  // of the model that answered last, valid UTF-8; empty: none, or not known
};

struct FolderRecord {
  FolderId id;
  std::string name;
  std::int64_t position = 0;
};

struct PresetRecord {
  PresetId id;
  std::string name;
  std::string system_prompt;
  SamplingParams sampling;
  TemplateValues template_values = {};
};

// Everything but messages.
struct StoreContents {
  std::vector<ChatHead> chats;  // highest position first; those in the trash too
  std::vector<FolderRecord> folders;
  std::vector<PresetRecord> presets;
  ChatId last_chat;  // the highest ids that were ever given
  FolderId last_folder;
  PresetId last_preset;
};

// ---- what is written. Each change says how something is afterwards, so that to write it twice is to write
// it once.
namespace changes {

struct SaveChat {
  ChatHead head;
};
struct SaveMessage {  // whole; pieces of it that were written before are gone
  ChatId chat_id;
  Message message;
};
// What an answer gained while it runs.
struct AppendToAnswer {
  ChatId chat_id;
  MessageId message_id;
  std::uint64_t content_begin = 0;  // where it goes, in bytes of the content
  std::string content;
  std::uint64_t tokens_begin = 0;
  std::vector<TokenId> token_ids;
};
// The chosen child of each of these messages; the root's stands in the head.
struct SaveChoices {
  ChatId chat_id;
  std::vector<std::pair<MessageId, MessageId>> choices;  // parent, active child
};
struct SaveSummary {  // of everything up to the message; empty: there is none
  ChatId chat_id;
  MessageId after;
  std::string content;
};
struct EraseChat {  // with its messages, permanently
  ChatId chat_id;
};
struct SaveFolder {
  FolderRecord folder;
};
struct EraseFolder {  // its chats stay, in no folder
  FolderId folder_id;
};
struct SavePreset {
  PresetRecord preset;
};
struct ErasePreset {
  PresetId preset_id;
};

}  // namespace changes

using StoreChange =
    std::variant<changes::SaveChat, changes::SaveMessage, changes::AppendToAnswer, changes::SaveChoices,
                 changes::SaveSummary, changes::EraseChat, changes::SaveFolder, changes::EraseFolder,
                 changes::SavePreset, changes::ErasePreset>;

}  // namespace octavo::app
