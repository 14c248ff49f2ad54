// What the panels about memory must say, counted from nothing: from block tables, pools and the prefix cache
// of the engine's core, by other means than the window's folds and the engine's own counters.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/api/kv_snapshot.h"
#include "tests/window/core_engine.h"
#include "ui/state.h"

namespace octavo::testing {

// The pools at one moment.
struct Recount {
  std::uint64_t mark = 0;
  KvSnapshot now;                                           // tables, contents; its figures are not looked at
  std::vector<std::int32_t> num_references;                 // table entries and pins, by block
  std::vector<std::vector<std::size_t>> owners;             // indices of sequences, by block
  std::vector<std::vector<std::size_t>> host_owners;        // by host block
  std::vector<std::vector<std::size_t>> state_owners;       // indices of sequences, by state
  std::vector<std::vector<std::size_t>> host_state_owners;  // by state of the host pool
  std::int32_t used = 0, cached = 0, free = 0, logical = 0, host = 0;
  std::int32_t filled_slots = 0, reserved_slots = 0;  // of used blocks
  // Of layers with a window that have a pool of their own: sequences that read the part of each block, by
  // what a row behind their computed tokens sees; of each host block whether one of its owners does.
  std::vector<std::vector<std::size_t>> window_readers;
  std::vector<bool> host_windows;
  std::int32_t used_windows = 0, kept_windows = 0;
  std::int64_t prefix_hit_tokens = 0;
  CoreEngine::Counts counts;
};

Recount recount(const CoreEngine& engine);

// Differences between what is drawn and what is, as sentences. Empty: none.
class Differences {
 public:
  void compare_workspace(const Recount& truth, const ui::MemoryWorkspaceState& shown);
  // Of an earlier moment: what the engine alone knows is not there. Events do not say which of two blocks
  // with the same contents a third one continues.
  void compare_past(const Recount& truth, const ui::MemoryWorkspaceState& shown);
  void compare_timeline(const Recount& truth, const ui::TimelineState& timeline);
  void compare_bar(const EngineDescription& description, const ui::MemoryBar& bar);

  // What a chat has left behind and was still there when it was looked at last. What came back since, because
  // somebody else computed the same, is not the chat's.
  struct Left {
    std::int64_t noted = 0;  // LastTable
    std::vector<BlockId> blocks;
  };
  // `requests`: of each chat, the newest last.
  void compare_chats(const CoreEngine& engine, const Recount& truth,
                     const std::map<ChatId, std::vector<RequestId>>& requests, std::map<ChatId, Left>& left,
                     const ui::UiState& state);

  const std::string& text() const { return text_; }

 private:
  template <class A, class B>
  void expect(const std::string& what, const A& shown, const B& truth);

  void compare_blocks(const Recount& truth, const ui::MemoryWorkspaceState& shown);
  void compare_host(const Recount& truth, const ui::MemoryWorkspaceState& shown);
  void compare_lines(const Recount& truth, const ui::MemoryWorkspaceState& shown);
  enum class Parents { kCompared, kNotKnown };
  void compare_tree(const Recount& truth, const ui::MemoryWorkspaceState& shown, Parents parents);
  enum class Corners { kCompared, kNotKnown };
  void compare_states(const Recount& truth, const ui::MemoryWorkspaceState& shown, Corners corners);
  void compare_windows(const Recount& truth, const ui::MemoryWorkspaceState& shown);
  void compare_health(const Recount& truth, const ui::MemoryWorkspaceState& shown);

  std::string text_;
};

// What the columns of a comparison must show: of each, what its blocks were while it ran.
class ColumnsRecount {
 public:
  struct Column {
    RequestId request;
    std::int32_t output_index = 0;
  };
  // Columns, or seats, in the order in which they are drawn.
  void begin(std::vector<Column> columns, bool are_seats);
  void look(const Recount& truth);
  std::string difference(const ui::ComparisonState& shown) const;

 private:
  struct Seen {
    std::vector<BlockId> blocks;
    std::vector<bool> is_shared;
    bool is_swapped_out = false;
    bool was_seen = false;
  };
  std::vector<Column> columns_;
  std::vector<Seen> seen_;
  bool are_seats_ = false;
  ui::ComparisonMemory most_;
};

}  // namespace octavo::testing
