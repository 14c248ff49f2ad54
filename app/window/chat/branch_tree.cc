#include "app/window/chat/branch_tree.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "app/chat/attachments.h"
#include "app/window/chat/thinking_time.h"
#include "engine/base/format.h"
#include "engine/chat_template/answer_parts.h"

namespace octavo::app {
namespace {

constexpr std::size_t kExcerptCharacters = 120;
constexpr std::size_t kExcerptBytes = 4 * kExcerptCharacters;

// What an answer says from its beginning, and where it has said nothing yet, what its model thought.
std::string_view beginning_said(const Message& message) {
  const std::string_view text = message.content;
  std::string_view thought;
  for (const AnswerPart& part : answer_parts(text, /*is_final=*/true, beginning_of(message))) {
    const std::string_view here = text.substr(part.begin, part.end - part.begin);
    if (part.kind == PartKind::kAnswer) return here;
    if (thought.empty()) thought = here;
  }
  return thought;
}

// The text on one line: what would break it becomes a space.
std::string excerpt_of(const Message& message) {
  std::string_view text = message.content;
  if (message.role != Role::kAssistant)
    text = split_attachments(text).text;
  else
    text = beginning_said(message);
  std::string flat(text.substr(0, kExcerptBytes));
  for (char& c : flat) {
    if (c == '\n' || c == '\r' || c == '\t') c = ' ';
  }
  return first_line(flat, kExcerptCharacters);
}

std::string note_of(const Message& message) {
  if (message.role != Role::kAssistant) return {};
  std::string note = message.model;
  const auto add = [&note](const std::string& part) { note += (note.empty() ? "" : " · ") + part; };
  if (message.metrics && message.metrics->request.e2e_us > 0) {
    const std::int64_t us = message.metrics->request.e2e_us;
    add(seconds_text(us, us < 10'000'000 ? 1 : 0));
  }
  if (!message.error.empty())
    add("failed");
  else if (message.interrupted)
    add("interrupted");
  else if (!message.finish_reason)
    add("in progress");
  return note;
}

// A message that is about to be placed below its parent.
struct Waiting {
  MessageId id;
  std::size_t parent, branching_ancestor;
  std::int32_t lane;
};

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

}  // namespace

TreeVersion tree_version(const Chat& chat, ChatId chat_id) {
  const std::vector<Message>& messages = chat.messages();
  TreeVersion version{.chat_id = chat_id};
  version.num_messages = static_cast<std::size_t>(std::count_if(
      messages.begin(), messages.end(), [](const Message& message) { return !message.erased; }));
  version.active_leaf = chat.active_leaf();
  version.num_ended =
      static_cast<std::size_t>(std::count_if(messages.begin(), messages.end(), [](const Message& message) {
        return message.finish_reason.has_value();
      }));
  if (!messages.empty()) version.excerpt_bytes = std::min(messages.back().content.size(), kExcerptBytes);
  return version;
}

std::shared_ptr<const ui::BranchTree> branch_tree(const Chat& chat, ChatId chat_id) {
  auto tree = std::make_shared<ui::BranchTree>();
  tree->chat_id = chat_id;
  tree->messages.reserve(chat.messages().size());
  std::unordered_set<MessageId> shown;
  for (const MessageId id : chat.active_path()) shown.insert(id);
  std::vector<Waiting> waiting;  // the next one last
  const auto wait_for = [&waiting](const std::vector<MessageId>& children, std::size_t parent,
                                   std::size_t branching_ancestor, std::int32_t lane) {
    const bool branches = children.size() > 1;
    for (auto child = children.rbegin(); child != children.rend(); ++child)
      waiting.push_back({*child, parent, branches ? parent : branching_ancestor, lane + (branches ? 1 : 0)});
  };
  std::vector<MessageId> first;
  for (const Message& message : chat.messages()) {
    if (message.parent == kRootMessage && !message.erased) first.push_back(message.id);
  }
  wait_for(first, kNone, kNone, 0);
  while (!waiting.empty()) {
    const Waiting next = waiting.back();
    waiting.pop_back();
    const Message& message = *chat.find(next.id);
    const std::size_t index = tree->messages.size();
    const std::size_t parent = next.parent == kNone ? index : next.parent;
    tree->messages.push_back(
        {.id = message.id,
         .role = message.role,
         .excerpt = excerpt_of(message),
         .note = note_of(message),
         .parent = parent,
         .last_child = index,
         .shown_child = index,
         .branching_ancestor = next.branching_ancestor == kNone ? index : next.branching_ancestor,
         .lane = next.lane,
         .on_shown_path = shown.contains(message.id)});
    if (parent != index) {
      tree->messages[parent].last_child = index;
      if (tree->messages[index].on_shown_path) tree->messages[parent].shown_child = index;
    }
    if (message.children.empty()) ++tree->num_branches;
    wait_for(message.children, index, next.branching_ancestor, next.lane);
  }
  return tree;
}

}  // namespace octavo::app
