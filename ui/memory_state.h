// What the Memory workspace draws: the pools at one moment, how they came there, and what can be done about
// it. Plain values, written by app/window/memory_workspace between frames.
//
// The moment is the cursor: the newest one while it follows, else a mark in the history. Every view shows the
// state at the cursor, whether it comes from the engine, from a recording or from the tour.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/api/block_event.h"
#include "engine/api/kv_snapshot.h"
#include "engine/api/metrics.h"
#include "engine/base/ids.h"
#include "ui/evaluation_state.h"
#include "ui/requests_state.h"
#include "ui/tour_state.h"

namespace octavo::ui {

// A lesson is a recording of a chapter: it is walked like one.
enum class MemorySource { kLive, kRecording, kTour, kLesson };
enum class MemoryPage { kPools, kRequests, kTour, kPaper, kExperts };

struct ShownPool {
  std::string name = {};  // of the model, the recording or the chapter
  std::int32_t block_size = 16;
  std::int32_t num_blocks = 0;
  std::int32_t num_host_blocks = 0;
  std::int64_t bytes_per_block = 0;
  std::int32_t num_states = 0;  // of recurrent layers; 0: the model has none, and nothing of states is shown
  std::int32_t num_host_states = 0;
  std::int64_t bytes_per_state = 0;
  std::int32_t window = 0;             // tokens, of layers that keep what they read in a pool of their own
  std::int32_t num_window_blocks = 0;  // 0: there are none, and nothing of windows is shown
  std::int32_t num_host_window_blocks = 0;
  std::int64_t bytes_per_window_block = 0;
  std::int32_t max_model_len = 0;
};

// What a sequence is called. In MemoryWorkspaceState::sequences parallel to KvSnapshot::sequences.
struct ShownSequence {
  ChatId chat_id = {};  // 0: none of this window's
  std::string label = {};
  std::uint32_t colour_index = 0;
};

// No owner, no group.
inline constexpr std::uint16_t kNobody = 0xffff;

// Parallel to KvSnapshot::blocks.
struct ShownBlock {
  std::uint16_t owner = kNobody;  // index of its first owner's sequence
  std::uint16_t group = kNobody;  // index of the sharing group; blocks with one owner have none
  std::int64_t last_us = 0;       // when something last happened to it
  std::int32_t checkpoint = -1;   // the state that is kept behind it; -1: none
};

// A state of recurrent layers. Parallel to KvSnapshot::states.
struct ShownState {
  std::vector<std::uint16_t> owners = {};  // indices of sequences, in their order
  std::string keeper = {};                 // of a checkpoint: whose tokens it stands behind; empty: not known
  std::uint32_t colour_index = 0;          // of its first owner, or of its keeper
  bool has_colour = false;
  std::int32_t position = -1;        // tokens that it knows; -1: not known
  std::vector<BlockId> blocks = {};  // that hold the keys and values of these tokens
  std::int64_t last_us = 0;
};

// The same in the host pool: who waits there.
struct ShownHostState {
  std::vector<std::uint16_t> owners = {};
};

// A place of the pool of window parts.
struct ShownWindowPart {
  BlockId block = {-1};            // whose part lies there; -1: it is free
  std::uint16_t reader = kNobody;  // index of the first sequence that reads it
  std::int32_t num_readers = 0;    // sequences
};

// Sequences that share blocks, and how many blocks exactly these share.
struct SharingGroup {
  std::vector<std::uint16_t> sequences;
  std::int32_t num_blocks = 0;
  std::string label = {};
};

struct ShownHostBlock {
  bool is_used = false;
  std::int32_t filled = 0;
  std::uint16_t owner = kNobody;
  bool has_window = false;  // a window part
};

// A row of the block tables. Several outputs of a request stand under a heading that has what they share.
struct TableLine {
  std::string label = {};
  std::uint32_t colour_index = 0;
  bool is_indented = false;
  bool is_heading = false;
  SequenceState state = SequenceState::kRunning;
  ChatId chat_id = {};
  std::uint64_t sequence = 0;          // 0: a heading
  std::vector<BlockId> blocks = {};    // host blocks while swapped out
  std::int32_t num_left_behind = 0;    // of these, by its window: from the start
  std::int32_t num_shared_prefix = 0;  // leading blocks that another row begins with, too
  bool is_ghost = false;               // of a chat that is idle: what it left in the cache
  std::int32_t state_slot = -1;        // of recurrent layers, in the host pool while swapped out; -1: none
};

// A run of blocks of the prefix cache without a fork in it.
struct PrefixRun {
  std::int32_t parent = -1;  // index of a run
  std::int32_t depth = 0;
  std::vector<BlockId> blocks = {};
  std::string text = {};            // beginning of its tokens; empty: not known
  std::int32_t num_references = 0;  // highest of its blocks
  std::int32_t num_hits = 0;        // of its first block
  std::int64_t last_us = 0;
  std::int32_t eviction_place = -1;  // 0: goes first; -1: in use
  RetentionClass retention = RetentionClass::kScratch;
};

// A step, and how many events had happened when its levels were taken.
struct TimelineStep {
  StepRecord record;
  std::uint64_t mark = 0;
  std::int64_t num_prefilled = 0;  // prompt tokens that were computed, up to here
};

// The levels of the pools where they changed without a step, as by a cancel while nothing else runs.
struct LevelPoint {
  std::int64_t time_us = 0;
  std::uint64_t mark = 0;
  std::int32_t used = 0, cached = 0, free = 0, host = 0;  // blocks
  std::int32_t used_windows = 0, cached_windows = 0;      // window parts
};

// Equal events of one step and sequence, counted together.
struct LogLine {
  std::uint64_t mark = 0;  // of the first: the state before it is that mark's
  std::uint64_t last_mark = 0;
  std::int64_t step = 0;
  std::int64_t time_us = 0;
  std::uint64_t sequence = 0;
  BlockEventKind kind = BlockEventKind::kAlloc;
  std::int32_t first_block = -1;
  std::int32_t last_block = -1;
  std::int32_t aux = 0;  // of the first
  std::int32_t count = 1;
};

// What happened to a sequence's memory, told once however many blocks it took. Views make a sentence of it.
enum class StoryKind {
  kReused,
  kComputes,
  kSampled,
  kCopied,
  kSwappedOut,
  kSwappedIn,
  kDropped,
  kMadeRoom,
  kEnded,
  kKeptState,      // a checkpoint of its recurrent layers
  kResumedState,   // went on from one
  kMissedState,    // found blocks, and no checkpoint
  kEvictedState,   // took the place of one
  kPassedWindow,   // left blocks behind
  kMissedWindow,   // found blocks, and not the window parts before them
  kEvictedWindow,  // took the places of window parts
};
struct Story {
  StoryKind kind = StoryKind::kComputes;
  std::uint64_t mark = 0, last_mark = 0;  // of its first event and of its last
  std::int64_t step = 0;
  std::int64_t time_us = 0;
  std::uint64_t sequence = 0;
  std::uint64_t other =
      0;  // kReused: who computed them; kSampled: what was forked; kMadeRoom: whose they were
  std::int32_t count = 0;  // blocks; kSampled: sequences
  std::int32_t kept = 0;   // kEnded: of them, blocks that can be found again
  // Of a checkpoint; `other` is who kept it.
  std::int32_t position = 0;  // tokens before it
  CheckpointReason reason = CheckpointReason::kEnd;
  std::int32_t num_missed =
      0;  // kResumedState, kMissedState, kMissedWindow: tokens that had blocks, and are computed again
};

// When a sequence ran, waited after a preemption, or was swapped out.
struct ScheduleSpan {
  std::uint64_t sequence = 0;
  SequenceState state = SequenceState::kRunning;
  std::int64_t begin_us = 0;
  std::int64_t end_us = -1;  // below 0: still running
};

// Generated tokens and begun requests in a short stretch of time, a second's worth.
struct RatePoint {
  std::int64_t time_us = 0;
  double tokens_per_second = 0;
  double requests_per_second = 0;
};

// What happened in a source, and who its sequences are.
struct TimelineState {
  std::string name;            // of the model or the recording
  std::int64_t origin_us = 0;  // shown as 0 s
  std::deque<TimelineStep> steps;
  std::deque<LevelPoint> levels;  // between steps, oldest first
  std::deque<LogLine> log;        // what is listed; fills and releases are not
  std::deque<Story> stories;      // the same, told
  std::deque<ScheduleSpan> spans;
  std::deque<RatePoint> rates;
  std::uint64_t oldest_mark = 0, newest_mark = 0;
  std::int64_t newest_us = 0;
  std::map<std::uint64_t, ShownSequence> names;  // of every sequence that was seen
  // Of the engine before this one, on the same clock: it is drawn left of a border, and cannot be gone back
  // to.
  std::shared_ptr<const TimelineState> before;
};

// Of the engine that runs, whatever the Memory workspace shows.
struct MemoryState {
  std::shared_ptr<const KvSnapshot> snapshot;                                         // null before the first
  std::shared_ptr<const TimelineState> timeline = std::make_shared<TimelineState>();  // never null
};

struct MemoryCursor {
  bool following = true;
  bool playing = false;
  double speed = 1.0;
  std::uint64_t mark = 0;  // events before it have happened
  std::int64_t step = 0;
  std::int64_t time_us = 0;
  std::string problem = {};  // why the wanted moment cannot be shown
};

// What happened to one block id, newest last.
struct BlockHistoryLine {
  std::uint64_t mark = 0;
  std::int64_t time_us = 0;
  BlockEventKind kind = BlockEventKind::kAlloc;
  std::uint64_t sequence = 0;
  std::int32_t aux = 0;
};

struct BlockOwner {
  std::string label = {};
  std::uint32_t colour_index = 0;
  std::int32_t index = 0;  // logical
};

// Whether a prompt that begins with the tokens up to the end of a block goes on right behind it.
enum class WindowResume {
  kUnfindable,  // the block cannot be found at all
  kYes,
  kMissing,  // window parts before that end are gone
};
// What layers with a window have of one block.
struct WindowCard {
  std::int32_t num_readers = 0, num_owners = 0;  // sequences that read the part; that name the block
  WindowResume resume = WindowResume::kUnfindable;
  std::int32_t num_missing = 0, num_needed = 0;  // window parts right before its end
  std::int64_t gone_us = -1;                     // when the part went; below 0: it is there, or never was
  std::string gone_for = {};                     // who needed its place; empty: nobody
};

struct BlockCard {
  BlockId block = {};
  BlockSnapshot state = {};
  std::int32_t first_position = -1;  // of its first token; -1: not known
  std::string text = {};             // its tokens; empty: not known
  std::vector<BlockOwner> owners = {};
  std::int32_t copied_from = -1;
  std::vector<BlockId> copied_to = {};
  std::int32_t num_hits = 0, num_fills = 0;
  std::int32_t num_swaps = 0;  // of this id, both ways
  std::int64_t born_us = -1, last_us = -1;
  std::string why = {};                   // why it is still here; only of the newest moment
  std::optional<WindowCard> window = {};  // where layers with a window have a pool of their own
  std::vector<BlockHistoryLine> history = {};
};

// One state of recurrent layers.
struct StateCard {
  BlockId state = {};
  StateSnapshot now = {};
  std::int64_t bytes = 0;
  std::int32_t position = -1;           // tokens that it knows; -1: not known
  std::vector<BlockOwner> owners = {};  // index: tokens that the sequence has computed
  std::string keeper = {};              // of a checkpoint
  std::int32_t copied_from = -1;
  std::int32_t num_resumed = 0;
  std::int64_t born_us = -1, last_us = -1;
  std::vector<BlockHistoryLine> history = {};
};

// A figure of paging.md over the last minute of steps.
struct FigureSample {
  double time_s = 0, value = 0;
};
struct HealthFigure {
  const char* id = "";
  std::string value = {};
  std::string label = {};
  std::string note = {};
  std::string definition = {};
  std::vector<FigureSample> samples = {};  // empty: no curve
  double least_range = 1;
  std::uint32_t colour = 0;  // an owner colour's index; above 6: the accent
};

struct HealthSentence {
  std::string text = {};
  bool is_alarm = false;
  std::uint64_t mark = 0;  // where it happened
};

// Weights, KV pool, states and working memory, of what there is. All in bytes.
struct MemoryBar {
  std::string name = {};
  std::int64_t weight_bytes = 0, kv_bytes = 0, working_bytes = 0, total_bytes = 0;
  std::int64_t state_bytes = 0;  // of recurrent layers; 0: there are none
  std::string sentence = {};
  std::string short_sentence = {};  // where there is no room for it
};

struct RecordingState {
  bool is_recording = false;
  std::string path = {};
  bool is_loading = false;
};

// How often the tokens of a chat, or of all, chose each expert of each layer.
struct ExpertHeat {
  ChatId chat = {};                             // 0: all
  std::int32_t num_experts = 0, num_used = 0;   // of a layer; that each token chooses there
  std::vector<std::int32_t> layers = {};        // those that have experts
  std::int64_t num_tokens = 0;                  // each made num_used choices in each layer
  std::vector<std::uint32_t> counts = {};       // [layers, experts]; empty: no tokens
  std::uint32_t most = 0;                       // the largest of them
  std::vector<std::int32_t> num_for_half = {};  // of each layer: the fewest experts with half of its choices
  std::vector<ChatId> chats = {};               // of which anything is known, ascending
};
// Of the model that answers. Counted only while the page is open.
struct ExpertsState {
  std::int32_t num_experts = 0, num_used = 0;   // 0: the model has none, and there is no page
  std::shared_ptr<const ExpertHeat> heat = {};  // null: nothing is counted yet
};

// A stretch of a message whose blocks are lit.
struct HighlightedRange {
  std::size_t begin = 0, end = 0;  // bytes
};
// What is pointed at, in a chat or in the pools, and what belongs to it on the other side.
struct LinkedHover {
  std::optional<BlockId> block = {};  // pointed at in a view of memory
  std::optional<BlockId> state = {};  // the same of states
  std::vector<BlockId> blocks = {};   // lit in every view of memory
  std::vector<BlockId> states = {};   // states that know tokens of them
  std::map<std::pair<ChatId, MessageId>, std::vector<HighlightedRange>> ranges = {};
};

struct MemoryWorkspaceState {
  MemorySource source = MemorySource::kLive;
  MemoryPage page = MemoryPage::kPools;
  ShownPool pool;
  MemoryCursor cursor;
  std::shared_ptr<const TimelineState> timeline =
      std::make_shared<TimelineState>();  // of the source; never null

  // At the cursor. null before the first.
  std::shared_ptr<const KvSnapshot> snapshot;
  std::uint64_t version = 0;  // changes with everything below
  std::vector<ShownSequence> sequences;
  std::vector<ShownBlock> blocks;
  std::vector<ShownHostBlock> host;
  std::vector<ShownState> states;  // empty: the model has no recurrent layers
  std::vector<ShownHostState> host_states;
  std::vector<ShownWindowPart> window_parts;  // by place; empty: no layer has a pool for its window
  std::vector<SharingGroup> groups;
  std::vector<TableLine> lines;
  std::vector<PrefixRun> tree;
  std::optional<SlotMap> slots;  // of the tour and of lessons
  std::optional<BlockCard> card;
  std::optional<StateCard> state_card;  // never both
  std::vector<HealthFigure> health;
  std::vector<HealthSentence> sentences;

  LinkedHover hover;
  MemoryBar bar;
  RecordingState recording;
  TourState tour;
  MemoryBar paper_shape;  // of the model and the device of the paper's experiments
  EvaluationState evaluation;
  ExpertsState experts;
  RequestsState requests;  // of the engine that runs, and of those before it
};

// Experts are of the engine that runs, so a recording or a lesson has no such page.
inline bool offers_experts(const MemoryWorkspaceState& state) {
  return state.experts.num_experts > 0 && state.source != MemorySource::kRecording &&
         state.source != MemorySource::kLesson;
}

// What a sequence is called; "sequence 7" when nobody has said.
inline std::string sequence_name(const TimelineState& timeline, std::uint64_t sequence) {
  const auto found = timeline.names.find(sequence);
  return found == timeline.names.end() ? "sequence " + std::to_string(sequence) : found->second.label;
}

// What the pools hold after all that happened; nothing before the first.
inline LevelPoint newest_levels(const TimelineState& timeline) {
  LevelPoint newest;
  if (!timeline.steps.empty()) {
    const StepRecord& record = timeline.steps.back().record;
    newest = {.time_us = record.begin_us,
              .mark = timeline.steps.back().mark,
              .used = record.used_blocks,
              .cached = record.cached_blocks,
              .free = record.free_blocks,
              .host = record.host_used_blocks,
              .used_windows = record.used_window_blocks,
              .cached_windows = record.cached_window_blocks};
  }
  const bool is_later = !timeline.levels.empty() && timeline.levels.back().mark > newest.mark;
  return is_later ? timeline.levels.back() : newest;
}

// What is lit of a message; empty for nearly every one.
inline const std::vector<HighlightedRange>& highlighted_ranges(const MemoryWorkspaceState& state, ChatId chat,
                                                               MessageId message) {
  static const std::vector<HighlightedRange> kNone;
  const auto found = state.hover.ranges.find({chat, message});
  return found == state.hover.ranges.end() ? kNone : found->second;
}

}  // namespace octavo::ui
