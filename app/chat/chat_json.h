// One chat as JSON, and back. The format, version 1:
//
//   {"format": "octavo-conversation", "version": 1, "title": "…", "system_prompt": "…", "sampling":
//   {"temperature": 0.7, …}, "context_policy": "roll", "context_begin": 13, "template_values": {..},
//    "created_ms": 1700000000000, "updated_ms": 1700000000000,
//    "messages": [{"id": 1, "parent": 0, "role": "user", "content": "…", "active": true,
//                  "token_ids": [..], "finish_reason": "stop", "seed": 7, "error": "…",
//                  "model": "…", "interrupted": true, "stopped_repeating": true, "summary": "…",
//                  "thinking": {"begun_by_prompt": false, "durations_ms": [..]},
//                  "created_ms": 1795491165000, "context_full": true, "stop_text": "…", "edited": true,
//                  "metrics": {"num_prompt_tokens": .., "num_cached_tokens": .., "queue_ms": .., "ttft_ms":
//                  .., …}}]}
//
// Ids ascend and a parent stands before its children; parent 0 is the root; "active" marks the chosen child
// of its parent. "created_ms" counts from 1970, UTC. "context_begin" is the first message that the newest
// request sent, where others had left the context; "summary" stands for everything up to its message once
// that has left. "template_values" is what the model's chat template is told. What is absent has its default.
// Keys that this version does not know are passed over.
#pragma once

#include <cstddef>
#include <future>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "app/chat/chat.h"
#include "app/json/json_parts.h"
#include "engine/base/result.h"

namespace octavo::app {

// A line for each message.
std::string chat_to_json(const Chat& chat);

// Checks everything: ids, parents, roles, ranges, types. `name` is what the message calls the source, such as
// a file's name.
Result<Chat> chat_from_json(std::string_view json, std::string_view name);

// The same from the parts of a file that may hold more than one chat. Of a long chat the messages are read in
// batches, each on a thread of its own while the caller parses the next.
class ChatFromJson {
 public:
  ChatFromJson();
  ~ChatFromJson();  // waits for the batch that is being read
  ChatFromJson(const ChatFromJson&) = delete;
  ChatFromJson& operator=(const ChatFromJson&) = delete;

  // Whether the path, from the chat on, is that of a message.
  static bool is_message(const JsonPath& path, std::size_t begin);

  // In the order of the file. What is wrong with one is said by `finish`.
  void add_message(nlohmann::json message);
  // `rest` is the chat without its messages.
  Result<Chat> finish(const nlohmann::json& rest, std::string_view name) &&;

 private:
  void read(const std::vector<nlohmann::json>& batch);

  Chat chat_;
  std::vector<MessageId> active_;
  std::string problem_;  // of the first message that is wrong
  std::vector<nlohmann::json> batch_;
  std::future<void> reading_;  // while it runs, the three first belong to it
};

}  // namespace octavo::app
