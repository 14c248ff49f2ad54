// What the Chat workspace draws, as plain values: chats and their messages, the folders, presets and trash
// around them, the search over all of them, and one chat as a tree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/api/context_policy.h"
#include "engine/api/request.h"
#include "engine/api/sampling_params.h"
#include "engine/api/template_values.h"
#include "engine/base/calendar.h"
#include "engine/base/ids.h"

namespace octavo::ui {

// A text file that goes with a message.
struct AttachmentState {
  std::uint64_t id = 0;  // of one that is not sent yet; unique in its chat
  std::string name;      // of the file, one line
  std::int64_t num_bytes = 0;
  std::optional<std::int32_t> num_tokens = {};  // of one that is not sent yet, once it is counted
};

// What is known about an answer, live while it streams and final afterwards.
struct AnswerFigures {
  std::optional<double> tokens_per_second;  // of the tokens after the first
  std::optional<double> first_token_ms;     // submit to first token
  std::optional<std::int32_t> num_prompt_tokens;
  std::optional<std::int32_t> num_cached_tokens;  // of the prompt, reused
  std::optional<std::uint64_t> seed;
  std::string stop_reason;  // a few words; empty while it runs
  std::string delay;        // what held it up, in a few words; empty: nothing worth telling
  std::string story;        // where its time went, in sentences; empty while it runs
};

// What can be asked for below a message that nothing follows: that an answer goes on, or that there is one.
enum class AnswerOffer { kNone, kContinue, kGenerate };
// A part of an answer that is shown by itself.
struct MessagePart {
  std::uint32_t begin = 0, end = 0;        // bytes of the text, without marks
  bool thinking = false;                   // what the model thought: folded until a person opens it
  bool open = false;                       // it thinks yet, or was cut
  std::optional<double> duration_ms = {};  // of thinking
  bool operator==(const MessagePart&) const = default;
};

struct MessageState {
  MessageId id;
  Role role = Role::kUser;
  std::string text;                // valid UTF-8, shown as data; of one id it only ever grows at its end
  std::vector<MessagePart> parts;  // ascending; empty: the whole text is one part
  std::vector<AttachmentState> attachments;  // of a question: the files that went with it, not in `text`
  bool streaming = false;
  std::int32_t sibling_index = 0;
  std::int32_t num_siblings = 1;
  AnswerFigures figures;
  std::string error;         // one sentence; empty when nothing failed
  bool interrupted = false;  // of an answer: the program ended, or the model went, before it was done
  AnswerOffer offer = AnswerOffer::kNone;  // that ContinueAnswer takes
  bool edited = false;                     // of an answer: a person wrote it, or how it begins
  bool repeats = false;                    // of an answer under way: it says the same again and again
  std::string model;                       // of an answer: the model's name; empty when it is not known
  std::int64_t created_ms = 0;             // since 1970, UTC; 0: not known
};

enum class Activity { kIdle, kWaiting, kGenerating, kSwapped, kFailed };

// One block of a chat, in logical order.
struct ChatBlock {
  BlockId block_id;
  std::int32_t filled = 0;  // slots
  bool shared = false;      // another chat's table names it too
  bool cached = false;      // nobody uses it now; it will be found again unless its place is needed
  bool being_written = false;
};

// The blocks that hold a chat: its running sequence's table, or after the answer the blocks it left in the
// cache.
struct ChatMemory {
  std::vector<ChatBlock> blocks;
  std::vector<BlockId> host_blocks;  // while its sequence is swapped out: where it is in the host pool
  std::int32_t num_shared = 0;
  std::int32_t num_sharing_chats = 0;  // other chats that share at least one of these blocks
};

// How full the context is with the draft, as the engine will count it.
struct ContextMeter {
  std::int32_t num_tokens = 0;
  std::int32_t num_blocks = 0;  // ceil(num_tokens / block size)
  std::int32_t num_left = 0;    // messages at the beginning that are not sent any more
  MessageId begin = {};         // the first that is; 0: all are
  std::string refusal = {};     // why the draft cannot be sent, one sentence; empty when it can
};

struct ChatState {
  ChatId id;
  std::string title;
  std::uint32_t colour_index = 0;  // into the theme's owner colours, modulo their number
  Activity activity = Activity::kIdle;
  std::int32_t num_ahead = 0;          // while waiting: requests before this one
  double tokens_per_second = 0.0;      // while generating
  std::vector<MessageState> messages;  // the active path
  std::vector<std::string> queued;     // sent when the answer is done or the model loaded, in turn
  std::string system_prompt;
  SamplingParams sampling;
  ContextPolicy context_policy = ContextPolicy::kRoll;
  TemplateValues template_values;  // that the model's chat template is told
  ContextMeter context;
  std::string summary;       // that is sent in place of what has left; empty: none is
  bool summarising = false;  // it is being written
  ChatMemory memory;
  bool pinned = false;
  FolderId folder;
  std::int64_t updated_ms = 0;  // when something was asked or answered last; since 1970, UTC
  std::string model_path;       // of the model that answered last; empty: none, or not known
  std::string model_name;
  bool loading = false;  // the messages are being read from the disk
  // What was typed and not sent, as the store had it: the composer begins with it.
  std::string draft;
  std::uint64_t num_drafts_returned = 0;     // counts how often a question came back into it, unsent
  std::vector<AttachmentState> attachments;  // that go with the next message
};

// ---- the chats on the disk

struct FolderState {
  FolderId id;
  std::string name;
};

struct TrashedChat {
  ChatId id;
  std::string title;
  std::int64_t trashed_ms = 0;  // since 1970, UTC
};

// A way of beginning a chat.
struct PresetState {
  PresetId id;
  std::string name;
  std::string system_prompt;
  SamplingParams sampling;
  TemplateValues template_values = {};
};

// Where the words of a search were found: in a title (no message_id) or in a message.
struct SearchHitState {
  ChatId chat_id;
  MessageId message_id;
  std::string title;                           // of the chat
  std::string excerpt;                         // one line
  std::size_t match_begin = 0, match_end = 0;  // bytes of the excerpt
  Role role = Role::kUser;
  std::int32_t branch_index = 0, num_branches = 1;  // of the nearest place where the chat branches
  bool on_shown_path = true;                        // else ShowMessage changes the branch
};

struct SearchState {
  std::string query;                 // empty: no search
  std::vector<SearchHitState> hits;  // titles first
  bool running = false;
};

// What is opened on a message: nothing, its text to be edited, or the beginning of another answer to it.
enum class MessageEditor { kNone, kText, kAnswer };

// A message that the chat view brings into sight once for each serial number.
struct MessageFocus {
  ChatId chat_id;
  MessageId message_id;
  MessageEditor editor = MessageEditor::kNone;
  std::uint64_t serial = 0;
};

struct ChatLibraryState {
  std::string problem;     // why chats are not saved, one sentence; empty when they are
  bool read_only = false;  // nothing will be saved: of another window, or of a newer version
  std::vector<FolderState> folders;
  FolderId new_folder;             // that was made last in this window, to be named at once; 0: none
  std::vector<DaySpan> days;       // that chats are grouped by, newest first; the first is today
  std::int64_t tomorrow_ms = 0;    // when these days are over
  std::vector<TrashedChat> trash;  // newest first
  std::vector<PresetState> presets;
  SearchState search;
  MessageFocus focus;
};

inline bool is_busy(const ChatState& chat) {
  return chat.activity == Activity::kWaiting || chat.activity == Activity::kGenerating ||
         chat.activity == Activity::kSwapped;
}

// ---- one chat as a tree

// One message of a chat with all its branches.
struct TreeMessage {
  MessageId id;
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

}  // namespace octavo::ui
