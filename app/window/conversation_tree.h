// A conversation with all its branches, flat, as the tree view draws it.
#pragma once

#include <cstddef>
#include <memory>

#include "app/conversation/conversation.h"
#include "ui/desktop_state.h"

namespace octavo::app {

// What of a conversation its tree shows; equal versions of one conversation give equal trees.
struct TreeVersion {
  ui::SessionId session_id;
  std::size_t num_messages = 0;
  MessageId active_leaf = kRootMessage;
  std::size_t num_ended = 0;      // answers
  std::size_t excerpt_bytes = 0;  // of the newest message, as far as an excerpt goes

  bool operator==(const TreeVersion&) const = default;
};

TreeVersion tree_version(const Conversation& conversation, ui::SessionId session_id);

std::shared_ptr<const ui::ConversationTree> conversation_tree(const Conversation& conversation,
                                                              ui::SessionId session_id);

}  // namespace octavo::app
