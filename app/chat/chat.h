// A chat as a tree of messages: to edit or to regenerate adds a branch, and nothing is overwritten.
//
// The root is not a message: its children are the first messages of each branch. Every node remembers which
// child is active, so that the active path is found from the root down, and walking away from a branch and
// back finds the same leaf again. Ids are given in ascending order and never reused; a parent's id is below
// its children's.
//
// What a person deletes leaves its place behind, so that every other message keeps its id.
//
// A value type; one thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/api/context_policy.h"
#include "engine/api/request.h"
#include "engine/api/sampling_params.h"
#include "engine/api/template_values.h"
#include "engine/base/ids.h"

namespace octavo::app {

// 0 is the root.
inline constexpr MessageId kRootMessage{0};

// What an answer cost, as the engine reported it.
struct AnswerMetrics {
  std::int32_t num_prompt_tokens = 0;
  std::int32_t num_cached_tokens = 0;  // of the prompt, reused
  RequestMetrics request;
};

// What is known of an answer's thinking beside its text (answer_parts.h).
struct AnswerThinking {
  bool begun_by_prompt = false;            // the answer begins inside it
  std::vector<std::int64_t> durations_us;  // of each piece of thinking, in the order of the text
  bool operator==(const AnswerThinking&) const = default;
};

struct Message {
  MessageId id;
  MessageId parent;
  Role role = Role::kUser;
  std::string content;  // valid UTF-8
  // Of an answer: the ids that were generated for exactly this content, without the token that ended it; else
  // empty.
  std::vector<TokenId> token_ids;
  // Of an answer that has ended; none while it is generated, and for messages of other roles.
  std::optional<FinishReason> finish_reason;
  std::optional<std::uint64_t> seed;
  std::optional<AnswerMetrics> metrics;
  AnswerThinking thinking;
  std::string error;      // why it failed, one sentence; empty when it did not
  std::string stop_text;  // of an answer: the stop string that ended it; empty: none did
  // Of an answer that a limit ended: it was the context, and not a limit of its own.
  bool context_full = false;
  std::string model;  // of an answer: the name of the model that gave it; empty when it is not known
  // Of an answer: the program ended before it did. It holds what had come by then, and can be continued.
  bool interrupted = false;
  bool edited = false;             // of an answer: a person wrote it, or how it begins
  bool stopped_repeating = false;  // of an answer: it said the same again and again
  std::int64_t created_ms = 0;     // since 1970, UTC; 0: not known
  bool erased = false;             // nothing but its place is left
  std::vector<MessageId> children;
  MessageId active_child = kRootMessage;  // one of children; the root's id when there is none
};

// Where a message stands among its parent's children.
struct SiblingPosition {
  std::int32_t index = 0;
  std::int32_t count = 1;
};

// Whether what follows a message goes with it, or moves up to where it stood.
enum class EraseExtent { kMessage, kBranch };

// What was erased, as it was.
struct ErasedMessages {
  std::vector<Message> messages;  // ascending by id; those below the first went with it
  std::map<MessageId, std::string> summaries;
  bool was_chosen = false;  // the first, among its siblings
};

class Chat {
 public:
  std::string title;  // empty: take it from the first message of the user
  std::string system_prompt;
  SamplingParams sampling;
  bool has_sampling = true;  // false: it comes from a file that says nothing of it
  // Of a chat that goes into a file or comes from one: milliseconds since 1970, UTC; 0: not known.
  std::int64_t created_ms = 0, updated_ms = 0;
  ContextPolicy context_policy = ContextPolicy::kRoll;
  TemplateValues template_values = {};  // that its model's chat template is told
  // The first message that the newest request sent; the root: nothing has left the context. It is not stored:
  // the next request finds the same (context_window.h).
  MessageId context_begin = kRootMessage;

  // Adds a message below `parent` and makes the path through it the active one.
  // REQUIRES: parent is the root or a message of this chat.
  MessageId append(MessageId parent, Role role, std::string content);

  // Adds a message below its parent, as the chosen one among its siblings, and touches nothing above: a chat
  // that is built from a file costs the same for every message, and ends with `activate`. Its id and its
  // children are given here. An erased one only takes its place.
  // REQUIRES: its parent is the root or a message of this chat.
  MessageId add(Message message);

  // Takes a message out of the tree. A neighbour becomes the chosen one where it was that. Summaries of what
  // held it are gone.
  // REQUIRES: the message exists.
  ErasedMessages erase(MessageId id, EraseExtent extent);
  // Puts them back where they were; the first is the chosen one among its siblings again if it was.
  // REQUIRES: they were erased in this chat, and what is above them exists.
  void restore(ErasedMessages erased);

  // Makes the path through this message the active one. Below it, the choices made before stay.
  // REQUIRES: the message exists.
  void activate(MessageId id);

  // Makes the message the chosen one among its siblings, and touches nothing above.
  // REQUIRES: the message exists.
  void choose_child(MessageId id);

  // The sibling `offset` places to the right (negative: left), or the message itself where there is none.
  // REQUIRES: the message exists.
  MessageId sibling(MessageId id, std::int32_t offset) const;
  SiblingPosition position_among_siblings(MessageId id) const;

  // Whether it is the active one among its siblings. REQUIRES: the message exists.
  bool is_chosen(MessageId id) const;

  // nullptr for the root, for ids that were never given and for erased messages.
  const Message* find(MessageId id) const;
  Message* find(MessageId id);

  // From the first message to the active leaf.
  std::vector<MessageId> active_path() const;
  // The first message of the active path, or the root.
  MessageId active_first() const { return active_root_child_; }
  // The last message of the active path, or the root.
  MessageId active_leaf() const;
  // All messages, ascending by id, with the places of erased ones.
  const std::vector<Message>& messages() const { return messages_; }

  // What stands for everything up to this message once that has left the context; empty: nothing does.
  const std::string& summary_after(MessageId id) const;
  // Empty: forgets it. REQUIRES: the message exists.
  void set_summary(MessageId id, std::string summary);
  const std::map<MessageId, std::string>& summaries() const { return summaries_; }

  // `title`, or the first line of the first user message on the active path, cut to `max_characters`, or "New
  // chat".
  std::string display_title(std::size_t max_characters = 48) const;

 private:
  const std::vector<MessageId>& siblings_of(const Message& message) const;
  std::vector<MessageId>& children_of(MessageId parent);
  MessageId& chosen_below(MessageId parent);
  std::vector<MessageId> branch_of(MessageId id) const;
  Message take(MessageId id, ErasedMessages& erased);
  void hang_below(MessageId parent, MessageId id);
  void take_from(MessageId parent, MessageId id);

  std::vector<Message> messages_;  // message with id n stands at n - 1
  std::vector<MessageId> root_children_;
  MessageId active_root_child_ = kRootMessage;
  std::map<MessageId, std::string> summaries_;  // by the message after which they stand; none is empty
};

// The same without the places of erased messages: ids are given anew.
Chat without_erased(const Chat& chat);

inline constexpr std::size_t kLongestName = 200;  // code points: of chats, folders, presets, files

// The first line of `text`, trimmed, at most `max_characters` code points with an ellipsis when more were
// there.
std::string first_line(std::string_view text, std::size_t max_characters);

}  // namespace octavo::app
