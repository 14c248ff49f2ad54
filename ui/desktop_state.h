// What stands around the chat, as plain values: files that go with the next message, the chat as a
// tree, and which of these panels are open.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/api/request.h"
#include "engine/base/ids.h"
#include "ui/memory_state.h"

namespace octavo::ui {

// A text file that goes with a message.
struct AttachmentState {
  std::uint64_t id = 0;  // of one that is not sent yet; unique in its chat
  std::string name;      // of the file, one line
  std::int64_t num_bytes = 0;
  std::optional<std::int32_t> num_tokens = {};  // of one that is not sent yet, once it is counted
};

// One message of a chat with all its branches.
struct TreeMessage {
  std::uint64_t id = 0;
  Role role = Role::kUser;
  std::string excerpt;  // the beginning of its text on one line
  std::string note;     // of an answer: model and time, as far as they are known
  // Indices; where there is no such message: its own.
  std::size_t parent = 0;
  std::size_t last_child = 0;
  std::size_t shown_child = 0;         // on the shown path
  std::size_t branching_ancestor = 0;  // the nearest one with several children
  std::int32_t lane = 0;               // how far to the right: one more below every place that branches
  bool on_shown_path = false;
};

// Parents before children, and each branch whole before the next one.
struct BranchTree {
  ChatId chat_id;
  std::vector<TreeMessage> messages;
  std::int32_t num_branches = 0;  // messages without a child
};

struct DesktopState {
  bool attach_open = false;                // the question which file to attach
  bool presets_open = false;               // the panel of presets
  bool tree_open = false;                  // all branches of the active chat
  std::shared_ptr<const BranchTree> tree;  // of the active chat, while it is open; never changed
};

}  // namespace octavo::ui
