// A chat with all its branches, flat, as the tree view draws it.
#pragma once

#include <cstddef>
#include <memory>

#include "app/chat/chat.h"
#include "ui/chat_state.h"

namespace octavo::app {

// What of a chat its tree shows; equal versions of one chat give equal trees.
struct TreeVersion {
  ChatId chat_id;
  std::size_t num_messages = 0;
  MessageId active_leaf = kRootMessage;
  std::size_t num_ended = 0;      // answers
  std::size_t excerpt_bytes = 0;  // of the newest message, as far as an excerpt goes

  bool operator==(const TreeVersion&) const = default;
};

TreeVersion tree_version(const Chat& chat, ChatId chat_id);

std::shared_ptr<const ui::BranchTree> branch_tree(const Chat& chat, ChatId chat_id);

}  // namespace octavo::app
