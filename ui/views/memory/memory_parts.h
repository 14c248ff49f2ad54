// What the views of the Memory workspace have in common: one block that is pointed at, colours, words.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "ui/frame.h"
#include "ui/memory_state.h"
#include "ui/widgets/cells.h"

namespace octavo::ui {

enum class BlockColour { kOwner, kReferences, kState, kAge, kSharing, kWindow };
enum class BlockOrder { kIndex, kSequence, kPrefixTree };
inline constexpr int kNumBlockColours = 6, kNumBlockOrders = 3;

const char* colour_word(BlockColour colour);
const char* order_word(BlockOrder order);

// Lives for a frame. A view that has a block under the pointer says so here; every view lights it.
struct Pointing {
  int block = -1;
  int state = -1;  // of recurrent layers
};

ImU32 owner_colour(const Frame& frame, const MemoryWorkspaceState& state, std::size_t block);
CellLook look_of(const Frame& frame, const MemoryWorkspaceState& state, std::size_t block,
                 BlockColour colour);
// Of a block that holds something, by what layers with a window have of it.
CellLook look_of_part(const Theme& theme, WindowPart part);
// A few lines for a tooltip.
std::string block_summary(const MemoryWorkspaceState& state, int block);
const char* state_word(BlockState state);
// "behind the system prompt", ...
const char* place_word(CheckpointReason reason);
// Why a window part that nobody reads is kept, and for how long.
const char* window_keeping(RetentionClass retention);

bool is_lit(const MemoryWorkspaceState& state, int block);
bool is_state_lit(const MemoryWorkspaceState& state, int state_slot);
// "12.41 s" of the source's own time.
std::string time_text(const MemoryWorkspaceState& state, std::int64_t time_us);

// A chip whose word changes does not move what stands beside it: it has the room of its longest word.
// `words`: all that it may say.
float widest_chip(const Frame& frame, std::initializer_list<std::string_view> words);

// The mark of a block's window part at the foot of its cell: a line while somebody reads it, dots while it is
// kept, nothing where it is left behind.
void draw_window_mark(const Frame& frame, ImDrawList* list, ImVec2 low, ImVec2 high, WindowPart part,
                      ImU32 ground);

// A key of a legend of one row, at the cursor; nothing where it would reach beyond `right`.
void draw_strip_key(const Frame& frame, const CellLook& look, const char* text, float right);

// A muted paragraph where there is nothing to show yet.
void draw_hint(const Frame& frame, std::string_view text);

}  // namespace octavo::ui
