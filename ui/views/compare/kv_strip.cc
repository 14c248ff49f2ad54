#include "ui/views/compare/kv_strip.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "engine/base/format.h"
#include "ui/compare_state.h"
#include "ui/model_state.h"
#include "ui/widgets/cells.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

constexpr float kCellHeight = 18;
constexpr float kWidestCell = 34;
constexpr float kNarrowestCell = 7;
constexpr int kRows = 2;

struct Strip {
  float pitch = 0;
  int per_row = 1;
  int num_rows = 1;
};

Strip strip_of(const Frame& frame, std::size_t count, float width) {
  const auto per_row = static_cast<float>((count + kRows - 1) / kRows);
  const float one_row = width / static_cast<float>(std::max<std::size_t>(count, 1));
  float pitch = std::min(frame.px(kWidestCell), one_row);
  if (pitch < frame.px(14)) pitch = std::max(frame.px(kNarrowestCell), width / per_row);
  const int fit = std::max(1, static_cast<int>(width / std::floor(pitch)));
  return {std::floor(pitch), fit, count > static_cast<std::size_t>(fit) ? kRows : 1};
}

std::string block_words(const ModelState& model, const ColumnMemory& memory, const ColumnBlock& block) {
  std::string text = (memory.swapped_out ? "Host block " : "Block ") + with_thousands(block.block_id.value) +
                     "\nfilled " + std::to_string(block.filled) + " of " + std::to_string(model.block_size);
  text += block.shared ? "\nshared with another answer or chat" : "\nthis answer's own";
  if (block.copied_from)
    text += "\ncopied from block " + with_thousands(block.copied_from->value) + " when it was written";
  if (memory.swapped_out) text += "\nswapped out to host memory";
  if (!memory.running) text += "\nas it was during this answer";
  return text;
}

}  // namespace

std::string memory_words(const ColumnMemory& memory) {
  if (memory.step < 0) return "no blocks yet";
  std::string text =
      with_thousands(memory.num_shared) + " shared · " + with_thousands(memory.num_own) + " own";
  if (memory.num_copied > 0) text += " · " + with_thousands(memory.num_copied) + " copied on write";
  if (memory.swapped_out) text += " · swapped out";
  return text;
}

float kv_strip_height(const Frame& frame, const ColumnMemory& memory, float width) {
  const Strip strip = strip_of(frame, memory.blocks.size(), width);
  return frame.px(kCellHeight) * static_cast<float>(strip.num_rows) + line_pixels(frame, tiny_text(frame));
}

void draw_kv_strip(const Frame& frame, const ModelState& model, const ColumnMemory& memory, ImU32 owner,
                   const char* prefix, float width, CompareLook& look) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  const Strip strip = strip_of(frame, memory.blocks.size(), width);
  const float height = frame.px(kCellHeight), space = std::max(1.0f, frame.px(2));
  const ImVec2 mouse = ImGui::GetMousePos();
  const bool reachable = ImGui::IsWindowHovered();
  const auto most = static_cast<std::size_t>(strip.per_row * kRows);
  const std::size_t first = memory.blocks.size() > most ? memory.blocks.size() - most : 0;
  for (std::size_t i = first; i < memory.blocks.size(); ++i) {
    const ColumnBlock& block = memory.blocks[i];
    const auto place = static_cast<int>(i - first);
    const ImVec2 low{origin.x + static_cast<float>(place % strip.per_row) * strip.pitch,
                     origin.y + static_cast<float>(place / strip.per_row) * height};
    const ImVec2 high{low.x + strip.pitch - space, low.y + height - space};
    const float fill = static_cast<float>(block.filled) / static_cast<float>(std::max(1, model.block_size));
    const ImU32 colour = block.shared ? frame.theme.accent : owner;
    draw_cell(frame.theme, list, low, high,
              {memory.running ? colour : mix(frame.theme.cached, colour, 0.6f), fill, block.shared});
    if (block.copied_from) {  // a corner, whatever the colour
      const float side = std::min(frame.px(7), (high.x - low.x) * 0.6f);
      list->AddTriangleFilled({high.x - side, low.y}, {high.x, low.y}, {high.x, low.y + side},
                              frame.theme.text);
    }
    const bool pointed =
        reachable && mouse.x >= low.x && mouse.x < high.x + space && mouse.y >= low.y && mouse.y < high.y;
    if (pointed) {
      look.next_pointed_block = block.block_id;
      tooltip_now(frame, block_words(model, memory, block));
    }
    if (look.pointed_block == block.block_id && (block.shared || pointed)) {
      draw_cell_ring(frame.theme, list, low, high);
      look.shared_cells.push_back({block.block_id, low, high});
    }
  }
  ImGui::Dummy({width, height * static_cast<float>(strip.num_rows)});
  TextStyle style = tiny_text(frame);
  style.colour = frame.theme.faint;
  std::string words = prefix + memory_words(memory);
  if (first > 0) words += " · last " + std::to_string(most) + " shown";
  line(frame, style, words, width);
}

// Below the cells and above the words under them. Where strips stand at different heights a line would go
// through text: there the rings alone say that it is one block.
void draw_shared_links(const Frame& frame, const CompareLook& look) {
  ImDrawList* list = ImGui::GetForegroundDrawList();
  for (std::size_t i = 1; i < look.shared_cells.size(); ++i) {
    const CellPlace& from = look.shared_cells[i - 1];
    const CellPlace& to = look.shared_cells[i];
    if (std::abs(from.high.y - to.high.y) >= 1) continue;
    const float y = from.high.y + frame.px(1.5f);
    list->AddLine({(from.low.x + from.high.x) * 0.5f, y}, {(to.low.x + to.high.x) * 0.5f, y},
                  with_alpha(frame.theme.text, 0.5f), frame.px(1.5f));
  }
}

}  // namespace octavo::ui
