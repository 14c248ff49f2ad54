// Everything the window draws, as plain values. app/window/controller writes it between frames; views only
// read it. No pointer leads into the engine; the KV snapshot is shared because it is large and nobody changes
// it.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/api/block_event.h"
#include "engine/api/kv_snapshot.h"
#include "engine/api/metrics.h"
#include "engine/api/request.h"
#include "engine/api/sampling_params.h"
#include "engine/base/ids.h"
#include "ui/comparison_state.h"
#include "ui/desktop_state.h"
#include "ui/memory_state.h"
#include "ui/model_picker_state.h"

namespace octavo::ui {

enum class Workspace { kChat, kCompare, kMemory };
enum class ThemeName { kDark, kLight, kHighContrast };
enum class SendKey { kEnter, kControlEnter };

// What is known about an answer, live while it streams and final afterwards.
struct AnswerFigures {
  std::optional<double> tokens_per_second;  // of the tokens after the first
  std::optional<double> first_token_ms;     // submit to first token
  std::optional<std::int32_t> num_prompt_tokens;
  std::optional<std::int32_t> num_cached_tokens;  // of the prompt, reused
  std::optional<std::uint64_t> seed;
  std::string stop_reason;  // a few words; empty while it runs
};

struct MessageState {
  std::uint64_t id = 0;
  Role role = Role::kUser;
  std::string text;  // valid UTF-8, shown as data; of one id it only ever grows at its end
  std::vector<AttachmentState> attachments;  // of a question: the files that went with it, not in `text`
  bool streaming = false;
  std::int32_t sibling_index = 0;
  std::int32_t num_siblings = 1;
  AnswerFigures figures;
  std::string error;  // one sentence; empty when nothing failed
  // Of an answer: the program ended, or the model went, before it was done; ContinueAnswer continues it.
  bool interrupted = false;
  std::string model;  // of an answer: the model's name; empty when it is not known
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
};

struct ChatState {
  ChatId id;
  std::string title;
  std::uint32_t colour_index = 0;  // into the theme's owner colours, modulo their number
  Activity activity = Activity::kIdle;
  std::int32_t num_ahead = 0;          // while waiting: requests before this one
  double tokens_per_second = 0.0;      // while generating
  std::vector<MessageState> messages;  // the active path
  std::vector<std::string> queued;     // sent when the running answer is done, first to last
  std::string system_prompt;
  SamplingParams sampling;
  ContextMeter context;
  ChatMemory memory;
  bool pinned = false;
  FolderId folder;
  bool loading = false;  // the messages are being read from the disk
  // What was typed and not sent, as the store had it: the composer begins with it.
  std::string draft;
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
};

// Where the words of a search were found: in a title (message_id 0) or in a message.
struct SearchHitState {
  ChatId chat_id;
  std::uint64_t message_id = 0;
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

// A message that the chat view brings into sight once for each serial number.
struct MessageFocus {
  ChatId chat_id;
  std::uint64_t message_id = 0;
  std::uint64_t serial = 0;
};

struct ChatLibraryState {
  std::string problem;     // why chats are not saved, one sentence; empty when they are
  bool read_only = false;  // nothing will be saved: of another window, or of a newer version
  std::vector<FolderState> folders;
  std::vector<TrashedChat> trash;  // newest first
  std::vector<PresetState> presets;
  SearchState search;
  MessageFocus focus;
};

inline bool is_busy(const ChatState& chat) {
  return chat.activity == Activity::kWaiting || chat.activity == Activity::kGenerating ||
         chat.activity == Activity::kSwapped;
}

enum class ModelPhase { kNone, kLoading, kReady };

struct ModelState {
  ModelPhase phase = ModelPhase::kNone;
  double load_fraction = 0.0;
  std::string problem = {};  // why there is none, one sentence; empty when nothing went wrong
  std::string name = {};
  std::string path = {};
  std::string quantisation = {};
  std::string details = {};  // "135 M parameters · avx512_vnni · 2 threads"
  std::int32_t block_size = 16;
  std::int32_t num_blocks = 0;
  std::int64_t bytes_per_block = 0;
  std::int32_t max_model_len = 0;
};

// Equal events of one step and sequence, counted together.
struct EventLine {
  std::int64_t step = 0;
  std::int64_t time_us = 0;
  std::uint64_t sequence = 0;
  BlockEventKind kind = BlockEventKind::kAlloc;
  std::int32_t first_block = -1;
  std::int32_t aux = 0;  // of the first
  std::int32_t count = 1;
  ChatId chat_id = {};  // 0: unknown
  std::string chat_title = {};
};

struct MemoryState {
  std::shared_ptr<const KvSnapshot> snapshot;  // null before the first
  KvTotals totals;
  std::deque<StepRecord> steps;     // ascending in time, about the last minute of steps
  std::deque<EventLine> events;     // oldest first
  std::int64_t time_origin_us = 0;  // engine time that the window calls 0 s
};

struct SettingsState {
  ThemeName theme = ThemeName::kDark;
  double ui_scale = 1.0;  // 0.75 .. 3
  SendKey send_key = SendKey::kEnter;
  bool sidebar_shown = true;
};

enum class BannerKind { kNotice, kError };
enum class BannerOffer { kNone, kContinueOnCpu };
struct Banner {
  BannerKind kind = BannerKind::kNotice;
  std::string text;  // one sentence
  BannerOffer offer = BannerOffer::kNone;
};

struct UiState {
  Workspace workspace = Workspace::kChat;
  ModelState model;
  std::vector<ChatState> chats;  // newest first; never empty once the model is ready
  ChatId active_chat;
  bool settings_open = false;
  bool palette_open = false;  // the command palette
  bool search_open = false;   // the field for searching all chats
  bool sampling_open = false;
  std::optional<std::string> deleted_title;  // of the chat that "Undo" brings back
  std::optional<Banner> banner;
  ChatLibraryState library;
  ComparisonState comparison;
  MemoryState memory;
  MemoryWorkspaceState memory_workspace;  // the Memory workspace
  DesktopState desktop;
  ModelPickerState picker;  // of models
  SettingsState settings;
};

// nullptr when there is none.
inline const ChatState* find_chat(const UiState& state, ChatId id) {
  for (const ChatState& chat : state.chats) {
    if (chat.id == id) return &chat;
  }
  return nullptr;
}

inline const ChatState* active_chat(const UiState& state) { return find_chat(state, state.active_chat); }

}  // namespace octavo::ui
