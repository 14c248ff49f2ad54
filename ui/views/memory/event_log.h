// What happened, a line each, with filters for kind, chat and block. A line leads to its moment and block.
#pragma once

#include <cstdint>
#include <vector>

#include "ui/memory_state.h"
#include "ui/views/memory/memory_parts.h"

namespace octavo::ui {

class EventLog {
 public:
  void draw(const Frame& frame, const MemoryWorkspaceState& state, Pointing& pointing);

 private:
  enum class Kinds { kTold, kAll, kTaken, kShared, kCopied, kSwapped, kEvicted, kStates, kWindows };

  void draw_filters(const Frame& frame, const MemoryWorkspaceState& state);
  void draw_stories(const Frame& frame, const MemoryWorkspaceState& state);
  void draw_story(const Frame& frame, const MemoryWorkspaceState& state, const Story& story);
  void update(const MemoryWorkspaceState& state);
  bool passes(const MemoryWorkspaceState& state, const LogLine& line) const;
  void draw_line(const Frame& frame, const MemoryWorkspaceState& state, const LogLine& line,
                 Pointing& pointing);

  Kinds kinds_ = Kinds::kTold;
  std::uint64_t chat_ = 0;            // 0: every one
  bool only_block_ = false;           // the chosen one
  std::vector<std::uint32_t> shown_;  // indices of lines
  std::vector<std::uint32_t> told_;   // indices of stories
  std::uint64_t version_ = ~std::uint64_t{0};
  int key_ = -1;
};

}  // namespace octavo::ui
