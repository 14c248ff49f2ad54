// Differences between two texts, word by word: a shortest edit script by the linear-space method of E. W.
// Myers, "An O(ND) Difference Algorithm and Its Variations" (1986). No moves: what stands elsewhere was
// removed and inserted.
//
// A word is a run of letters and digits, a single other character, or a single character of a script without
// spaces. White space belongs to the word before it and does not count as a difference.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace octavo::ui {

enum class DiffKind { kEqual, kInserted, kRemoved };

struct DiffSegment {
  DiffKind kind = DiffKind::kEqual;
  std::uint32_t begin = 0, end = 0;  // bytes: of the reference when removed, else of the other text
};

struct WordDiff {
  std::vector<DiffSegment>
      segments;                   // in reading order; what was removed stands before what was inserted for it
  std::int32_t num_inserted = 0;  // words
  std::int32_t num_removed = 0;
};

WordDiff diff_words(std::string_view reference, std::string_view other);

}  // namespace octavo::ui
