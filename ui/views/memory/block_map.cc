#include "ui/views/memory/block_map.h"

#include <imgui_internal.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "engine/base/format.h"
#include "ui/memory_actions.h"
#include "ui/views/memory/state_strip.h"
#include "ui/views/memory/window_part_strip.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

constexpr float kLargestFit = 18, kSmallestCell = 3;  // design pixels
constexpr float kLargestTinyFit = 56;                 // of a pool so small that every cell has text
constexpr std::size_t kTinyPool = 64;
constexpr float kLargestSmallFit = 32;  // of a pool whose cells would leave most of the card empty
constexpr std::size_t kSmallPool = 512;
constexpr float kSpaceShare = 0.12f;  // of a cell's pitch
constexpr float kTextCell = 34;       // from here on a cell has text
constexpr float kHostShare = 0.28f, kMostHost = 120, kHostHeading = 34, kLeastHost = 16;
constexpr float kFadeSeconds = 0.7f;
constexpr float kMostZoom = 64;

// The largest pitch with which every block fits.
float fitting_pitch(const Frame& frame, std::size_t count, ImVec2 room) {
  const float largest = frame.px(count <= kTinyPool    ? kLargestTinyFit
                                 : count <= kSmallPool ? kLargestSmallFit
                                                       : kLargestFit);
  for (float pitch = largest; pitch > 2; pitch -= 1) {
    const float columns = std::max(1.0f, std::floor(room.x / pitch));
    if (std::ceil(static_cast<float>(count) / columns) * pitch <= room.y) return pitch;
  }
  const float area = room.x * room.y / static_cast<float>(std::max<std::size_t>(1, count));
  return std::clamp(std::floor(std::sqrt(std::max(area, 1.0f)) * 4) / 4, 1.0f, 2.0f);
}

// `count` cells from `origin` on, as large as they fit into `room`.
CellGrid fitting_grid(const Frame& frame, std::size_t count, ImVec2 origin, ImVec2 room) {
  const float pitch = fitting_pitch(frame, count, room);
  return make_cell_grid(origin, room.x, pitch, std::max(1.0f, pitch * kSpaceShare));
}

// With its heading. The cells have a share of the card, and what they leave of it is the device pool's.
float host_height(const Frame& frame, const MemoryWorkspaceState& state, ImVec2 room) {
  if (state.pool.num_host_blocks == 0) return frame.px(22);
  const float most = std::min(room.y * kHostShare, frame.px(kMostHost)) - frame.px(kHostHeading);
  const float cells = std::max(frame.px(kLeastHost), most);
  const CellGrid grid = fitting_grid(frame, state.host.size(), {0, 0}, {room.x, cells});
  return frame.px(kHostHeading) + std::min(cells, grid.height(static_cast<int>(state.host.size())));
}

void draw_key(const Frame& frame, const CellLook& look, std::string_view text, bool& is_first,
              WindowPart part = WindowPart::kNone) {
  const float most = frame.px(200);
  const float width = frame.px(15) + std::min(text_width(frame, tiny_text(frame), text), most);
  if (!is_first) {
    beside(frame, 12);
    if (ImGui::GetContentRegionAvail().x < width) return ImGui::NewLine();
  }
  is_first = false;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float side = frame.px(9), top = at.y + frame.px(5);
  const ImVec2 low{at.x, top}, high{at.x + side, top + side};
  draw_cell(frame.theme, ImGui::GetWindowDrawList(), low, high, look);
  draw_window_mark(frame, ImGui::GetWindowDrawList(), low, high, part, look.colour);
  ImGui::Dummy({side, side});
  beside(frame, 6);
  line(frame, tiny_text(frame), text, most);
}

// A cell of few pixels: no rounding, and a dark corner instead of hatching.
void draw_small_cell(const Theme& theme, ImDrawList* list, ImVec2 low, ImVec2 high, const CellLook& look) {
  if (look.fill >= 1.0f) {
    list->AddRectFilled(low, high, look.colour);
  } else {
    list->AddRectFilled(low, high, theme.free);
    list->AddRectFilled(low, {std::round(low.x + (high.x - low.x) * look.fill), high.y}, look.colour);
  }
  if (look.hatched)
    list->AddRectFilled({high.x - std::max(1.0f, (high.x - low.x) * 0.4f), low.y},
                        {high.x, low.y + std::max(1.0f, (high.y - low.y) * 0.4f)},
                        with_alpha(theme.background, 0.6f));
}

void dashed_cell(const Frame& frame, ImDrawList* list, ImVec2 low, ImVec2 high, ImU32 colour) {
  const float dash = std::max(2.0f, frame.px(3));
  for (float x = low.x; x < high.x; x += 2 * dash) {
    const float end = std::min(x + dash, high.x);
    list->AddLineH(x, end, low.y, colour);
    list->AddLineH(x, end, high.y - 1, colour);
  }
  for (float y = low.y; y < high.y; y += 2 * dash) {
    const float end = std::min(y + dash, high.y);
    list->AddLineV(low.x, y, end, colour);
    list->AddLineV(high.x - 1, y, end, colour);
  }
}

// Also in the space between cells, so that a click never misses.
int cell_under(const CellGrid& grid, ImVec2 point, int count) {
  const int column = static_cast<int>((point.x - grid.origin.x) / grid.pitch);
  const int row = static_cast<int>((point.y - grid.origin.y) / grid.pitch);
  if (column < 0 || column >= grid.columns || row < 0) return -1;
  const int cell = row * grid.columns + column;
  return cell < count ? cell : -1;
}

void collect_tree(const MemoryWorkspaceState& state, std::vector<std::int32_t>& order,
                  std::vector<bool>& taken) {
  for (const PrefixRun& run : state.tree) {
    for (const BlockId block : run.blocks) {
      const auto index = index_of(block);
      if (index >= taken.size() || taken[index]) continue;
      taken[index] = true;
      order.push_back(block.value);
    }
  }
}

void collect_tables(const MemoryWorkspaceState& state, std::vector<std::int32_t>& order,
                    std::vector<bool>& taken) {
  for (const TableLine& line : state.lines) {
    if (line.state == SequenceState::kSwapped) continue;
    for (const BlockId block : line.blocks) {
      const auto index = index_of(block);
      if (block.value < 0 || index >= taken.size() || taken[index]) continue;
      taken[index] = true;
      order.push_back(block.value);
    }
  }
}

void collect_state(const MemoryWorkspaceState& state, BlockState wanted, std::vector<std::int32_t>& order,
                   std::vector<bool>& taken) {
  for (std::size_t i = 0; i < taken.size(); ++i) {
    if (taken[i] || state.snapshot->blocks[i].state != wanted) continue;
    taken[i] = true;
    order.push_back(static_cast<std::int32_t>(i));
  }
}

}  // namespace

BlockMap::~BlockMap() {
  if (texture_ == nullptr) return;
  if (ImGui::GetCurrentContext() != nullptr) ImGui::UnregisterUserTexture(texture_);
  IM_DELETE(texture_);
}

void BlockMap::fit() {
  zoom_ = wanted_zoom_ = 1.0f;
  pan_ = {0, 0};
}

void BlockMap::next_colour(const MemoryWorkspaceState& state) {
  const int num_colours = kNumBlockColours - (state.pool.num_window_blocks > 0 ? 0 : 1);
  colour_ = static_cast<BlockColour>((static_cast<int>(colour_) + 1) % num_colours);
}

void BlockMap::next_order() {
  order_ = static_cast<BlockOrder>((static_cast<int>(order_) + 1) % kNumBlockOrders);
}

void BlockMap::draw(const Frame& frame, const MemoryWorkspaceState& state, ImVec2 extent,
                    Pointing& pointing) {
  begin_card(frame, "pool", extent);
  draw_heading(frame, state);
  gap(frame, 8);
  if (state.snapshot == nullptr) {
    draw_hint(frame, "No blocks yet. Ask something in a chat to see its blocks here.");
    end_card();
    return;
  }
  if (colour_ == BlockColour::kWindow && state.pool.num_window_blocks == 0) colour_ = BlockColour::kOwner;
  update_order(state);
  update_flashes(state);
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float host = host_height(frame, state, room);
  const float strips =
      state_strip_height(frame, state, room.x) + window_part_strip_height(frame, state, room.x);
  draw_device(frame, state, {room.x, std::max(frame.px(60), room.y - host - strips - frame.px(42))},
              pointing);
  gap(frame, 4);
  draw_legend(frame, state);
  gap(frame, 6);
  draw_state_strip(frame, state, room.x, pointing);
  draw_window_part_strip(frame, state, room.x, pointing);
  draw_host(frame, state, host);
  end_card();
}

void BlockMap::draw_heading(const Frame& frame, const MemoryWorkspaceState& state) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  const std::string colour = std::string("colour: ") + colour_word(colour_);
  const std::string order = std::string("order: ") + order_word(order_);
  // At their places whatever they say.
  const float colour_width = widest_chip(frame, {"colour: owner", "colour: references", "colour: sharing"});
  const float order_width = widest_chip(frame, {"order: index", "order: sequence", "order: prefix tree"});
  const float shown_width = widest_chip(frame, {"all", "held"});
  const float chips = colour_width + order_width + shown_width + frame.px(24);
  const std::string count = with_thousands(state.pool.num_blocks) + " blocks";
  const std::string tokens = " of " + std::to_string(state.pool.block_size) + " tokens";
  const std::string each = bytes_text(state.pool.bytes_per_block) + " each";
  const std::string notes[] = {count + tokens + " · " + each, count + " · " + each, count + tokens, count};
  const TextStyle heading = heading_text(frame);
  const float note_x = text_width(frame, heading, "Device pool") + frame.px(12);
  draw_text(frame, ImGui::GetWindowDrawList(), at, heading, "Device pool");
  const float room = std::max(1.0f, width - note_x - chips);
  draw_text(frame, ImGui::GetWindowDrawList(), {at.x + note_x, at.y + frame.px(1)}, small_text(frame),
            first_that_fits(frame, small_text(frame), notes, room), room);
  ImGui::SetCursorScreenPos({at.x + width - chips + frame.px(8), at.y - frame.px(3)});
  if (chip(frame, "colour", colour, {.min_width = colour_width})) next_colour(state);
  tooltip(frame, "Colour by (C)");
  const float order_x = at.x + width - chips + frame.px(16) + colour_width;
  ImGui::SetCursorScreenPos({order_x, at.y - frame.px(3)});
  if (chip(frame, "order", order, {.min_width = order_width})) next_order();
  tooltip(frame, "Sort by (O)");
  ImGui::SetCursorScreenPos({order_x + order_width + frame.px(8), at.y - frame.px(3)});
  const ChipOptions shown{.min_width = shown_width, .is_on = shows_occupied_};
  if (chip(frame, "occupied", shows_occupied_ ? "held" : "all", shown)) shows_occupied_ = !shows_occupied_;
  tooltip(frame, shows_occupied_ ? "Show free blocks, too (Z)" : "Show only blocks that hold something (Z)");
  ImGui::SetCursorScreenPos({at.x, at.y + frame.px(24)});
  ImGui::Dummy({1, 1});
}

void BlockMap::move(const Frame& frame, ImVec2 low, ImVec2 extent, float fit_pitch) {
  const ImGuiIO& io = ImGui::GetIO();
  ImVec2 anchor{low.x + extent.x * 0.5f, low.y + extent.y * 0.5f};
  if (ImGui::IsItemHovered() && io.MouseWheel != 0.0f) {
    anchor = io.MousePos;
    wanted_zoom_ *= std::pow(1.25f, io.MouseWheel);
  }
  wanted_zoom_ = std::clamp(wanted_zoom_, 1.0f, std::clamp(frame.px(64) / fit_pitch, 1.0f, kMostZoom));
  if (wanted_zoom_ != zoom_) {
    const float factor = wanted_zoom_ / zoom_;
    pan_ = {(pan_.x + anchor.x - low.x) * factor - (anchor.x - low.x),
            (pan_.y + anchor.y - low.y) * factor - (anchor.y - low.y)};
    zoom_ = wanted_zoom_;
  }
  for (const ImGuiMouseButton button :
       {ImGuiMouseButton_Left, ImGuiMouseButton_Middle, ImGuiMouseButton_Right}) {
    const bool is_dragged = ImGui::IsMouseDragging(button, frame.px(4)) && ImGui::IsItemActive();
    if (!is_dragged) continue;
    pan_ = {pan_.x - io.MouseDelta.x, pan_.y - io.MouseDelta.y};
  }
}

void BlockMap::draw_device(const Frame& frame, const MemoryWorkspaceState& state, ImVec2 extent,
                           Pointing& pointing) {
  const auto count = static_cast<int>(blocks_.size());
  if (count == 0) draw_hint(frame, "Every block is free.");
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const ImVec2 high{low.x + extent.x, low.y + extent.y};
  ImGui::SetNextItemAllowOverlap();
  ImGui::InvisibleButton("map", extent,
                         ImGuiButtonFlags_MouseButtonLeft | ImGuiButtonFlags_MouseButtonMiddle |
                             ImGuiButtonFlags_MouseButtonRight);
  ImGui::SetItemKeyOwner(ImGuiKey_MouseWheelY);
  // As much space as is drawn below: with more the last column would reach beyond the map.
  CellGrid grid = fitting_grid(frame, blocks_.size(), low, extent);
  move(frame, low, extent, grid.pitch);
  grid.pitch *= zoom_;
  grid.space = grid.pitch < kSmallestCell ? 0 : std::max(1.0f, std::round(grid.pitch * kSpaceShare));
  const float content_width = static_cast<float>(grid.columns) * grid.pitch;
  pan_.x = std::clamp(pan_.x, 0.0f, std::max(0.0f, content_width - extent.x));
  pan_.y = std::clamp(pan_.y, 0.0f, std::max(0.0f, grid.height(count) - extent.y));
  grid.origin = {std::floor(low.x - pan_.x), std::floor(low.y - pan_.y)};
  const int cell = ImGui::IsItemHovered() ? cell_under(grid, ImGui::GetMousePos(), count) : -1;
  const int pointed = cell < 0 ? -1 : blocks_[static_cast<std::size_t>(cell)];
  if (pointed >= 0) pointing.block = pointed;
  const bool was_clicked = ImGui::IsItemDeactivated() && ImGui::IsMouseReleased(ImGuiMouseButton_Left) &&
                           ImGui::GetIO().MouseDragMaxDistanceSqr[0] < frame.px(4) * frame.px(4);
  if (was_clicked && pointed >= 0) frame.actions.push(actions::ChooseBlock{pointed});
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->PushClipRect(low, high, true);
  if (grid.pitch < kSmallestCell) {
    draw_texture(frame, state, grid);
  } else {
    draw_cells(frame, state, grid, low, high);
  }
  list->PopClipRect();
  draw_rings(frame, state, grid, pointed);
  if (pointed >= 0 && !ImGui::IsMouseDown(ImGuiMouseButton_Left))
    tooltip_now(frame, block_summary(state, pointed));
}

void BlockMap::draw_cells(const Frame& frame, const MemoryWorkspaceState& state, const CellGrid& grid,
                          ImVec2 low, ImVec2 high) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const auto count = static_cast<int>(blocks_.size());
  const int first_row = std::max(0, static_cast<int>((low.y - grid.origin.y) / grid.pitch));
  const int last_row = static_cast<int>((high.y - grid.origin.y) / grid.pitch) + 1;
  const int first_column = std::max(0, static_cast<int>((low.x - grid.origin.x) / grid.pitch));
  const int end_column = std::min(grid.columns, static_cast<int>((high.x - grid.origin.x) / grid.pitch) + 1);
  const bool is_small = grid.pitch < frame.px(8), has_text = grid.pitch >= frame.px(kTextCell);
  TextStyle style = tiny_text(frame);
  style.em = 10.5f;
  style.colour = frame.theme.on_accent;
  const auto now = static_cast<float>(ImGui::GetTime());
  for (int row = first_row; row < last_row; ++row) {
    const int end = std::min(count, row * grid.columns + end_column);
    for (int cell = row * grid.columns + first_column; cell < end; ++cell) {
      const std::int32_t block = blocks_[static_cast<std::size_t>(cell)];
      CellLook look = look_of(frame, state, static_cast<std::size_t>(block), colour_);
      const float flash = flash_of(block, now);
      if (flash > 0) look.colour = mix(look.colour, frame.theme.text, 0.75f * flash);
      const ImVec2 from = grid.low(cell), to = grid.high(cell);
      if (is_small) {
        draw_small_cell(frame.theme, list, from, to, look);
      } else {
        draw_cell(frame.theme, list, from, to, look);
      }
      if (!is_small && state.blocks[static_cast<std::size_t>(block)].checkpoint >= 0)
        draw_checkpoint_flag(frame, list, from, to, look.colour);
      if (!is_small) {
        draw_window_mark(frame, list, from, to,
                         state.snapshot->blocks[static_cast<std::size_t>(block)].window, look.colour);
      }
      if (!has_text) continue;
      const BlockSnapshot& shown = state.snapshot->blocks[static_cast<std::size_t>(block)];
      const bool is_plain = !look.hatched && look.fill >= 1.0f;
      const ImU32 ground = shown.state == BlockState::kFree ? frame.theme.free : look.colour;
      style.colour =
          readable(shown.state == BlockState::kUsed ? frame.theme.on_accent : frame.theme.muted, ground);
      if (!is_plain && shown.state != BlockState::kFree)  // its text stands on a plain ground
        list->AddRectFilled({from.x + frame.px(2), from.y + frame.px(2)},
                            {std::min(to.x, from.x + frame.px(32)), std::min(to.y, from.y + frame.px(30))},
                            look.colour, frame.px(3));
      // A number that is cut is another number.
      const auto write = [&](float y, const std::string& text) {
        if (text_width(frame, style, text) <= to.x - from.x - frame.px(5))
          draw_text(frame, list, {from.x + frame.px(4), from.y + frame.px(y)}, style, text);
      };
      write(2, std::to_string(block));
      if (shown.state == BlockState::kFree) continue;
      write(15, std::to_string(shown.filled) + "/" + std::to_string(state.pool.block_size));
    }
  }
}

// A texel for each block; drawn again only when something changed.
void BlockMap::draw_texture(const Frame& frame, const MemoryWorkspaceState& state, const CellGrid& grid) {
  const auto count = static_cast<int>(blocks_.size());
  const int rows = (count + grid.columns - 1) / grid.columns;
  if (texture_ != nullptr && (texture_->Width != grid.columns || texture_->Height != rows)) {
    ImGui::UnregisterUserTexture(texture_);
    IM_DELETE(texture_);
    texture_ = nullptr;
  }
  const int key = static_cast<int>(colour_) * kNumBlockOrders + static_cast<int>(order_);
  const bool is_new = texture_ == nullptr;
  const bool is_old = is_new || texture_version_ != state.version || texture_key_ != key || is_fading_ ||
                      texture_flashes_ || texture_theme_ != frame.theme.background;
  if (is_new) {
    texture_ = IM_NEW(ImTextureData)();
    texture_->Create(ImTextureFormat_RGBA32, grid.columns, rows);
    ImGui::RegisterUserTexture(texture_);
  }
  if (is_old) {
    auto* pixels = reinterpret_cast<ImU32*>(texture_->GetPixels());
    std::fill(pixels + count, pixels + static_cast<std::ptrdiff_t>(grid.columns) * rows, ImU32{0});
    const auto now = static_cast<float>(ImGui::GetTime());
    for (int cell = 0; cell < count; ++cell) {
      const std::int32_t block = blocks_[static_cast<std::size_t>(cell)];
      const CellLook look = look_of(frame, state, static_cast<std::size_t>(block), colour_);
      const ImU32 colour = mix(frame.theme.free, look.colour, std::max(0.35f, look.fill));
      const float flash = flash_of(block, now);
      pixels[cell] = flash > 0 ? mix(colour, frame.theme.text, flash) : colour;
    }
    texture_version_ = state.version;
    texture_key_ = key;
    texture_flashes_ = is_fading_;
    texture_theme_ = frame.theme.background;
    if (!is_new && texture_->Status == ImTextureStatus_OK) {
      texture_->UpdateRect = {0, 0, static_cast<unsigned short>(grid.columns),
                              static_cast<unsigned short>(rows)};
      texture_->Updates.resize(0);
      texture_->Updates.push_back(texture_->UpdateRect);
      texture_->SetStatus(ImTextureStatus_WantUpdates);
    }
  }
  const ImVec2 high{grid.origin.x + static_cast<float>(grid.columns) * grid.pitch,
                    grid.origin.y + static_cast<float>(rows) * grid.pitch};
  ImGui::GetWindowDrawList()->AddImage(texture_->GetTexRef(), grid.origin, high);
}

void BlockMap::draw_rings(const Frame& frame, const MemoryWorkspaceState& state, const CellGrid& grid,
                          int pointed) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const auto ring = [&](int block) {
    if (block < 0 || static_cast<std::size_t>(block) >= cells_.size()) return;
    const int cell = cells_[static_cast<std::size_t>(block)];
    if (cell < 0) return;
    draw_cell_ring(frame.theme, list, grid.low(cell), grid.high(cell));
  };
  if (state.card) ring(state.card->block.value);
  for (const BlockId block : state.hover.blocks) ring(block.value);
  ring(pointed);
}

void BlockMap::draw_legend(const Frame& frame, const MemoryWorkspaceState& state) {
  const Theme& theme = frame.theme;
  bool is_first = true;
  const auto key = [&](const CellLook& look, std::string_view text) {
    draw_key(frame, look, text, is_first);
  };
  switch (colour_) {
    case BlockColour::kOwner:
      key({theme.owner(0)}, "a chat's");
      key({theme.owner(0), 1.0f, true}, "shared");
      key({theme.owner(0), 0.5f}, "partly filled");
      break;
    case BlockColour::kReferences:
      key({theme.accent}, "one reference");
      key({mix(theme.accent, theme.owner(1), 0.3f), 1.0f, true}, "two");
      key({theme.owner(1), 1.0f, true}, "four or more");
      break;
    case BlockColour::kState:
      key({theme.accent}, "full");
      key({theme.warning, 0.5f}, "being written");
      break;
    case BlockColour::kAge:
      key({theme.accent}, "just now");
      key({mix(theme.accent, theme.cached, 0.5f)}, "2 s ago");
      key({theme.cached}, "a minute or more");
      key({theme.free}, "free");
      return;
    case BlockColour::kSharing:
      for (std::size_t i = 0; i < std::min<std::size_t>(2, state.groups.size()); ++i) {
        key({theme.owner(static_cast<std::uint32_t>(i)), 1.0f, true}, state.groups[i].label);
      }
      key({mix(theme.muted, theme.panel, 0.35f)}, "not shared");
      break;
    case BlockColour::kWindow:
      key(look_of_part(theme, WindowPart::kUsed), "window part read");
      key(look_of_part(theme, WindowPart::kCached), "kept");
      key(look_of_part(theme, WindowPart::kNone), "left behind");
      key({theme.free}, "free");
      return;
  }
  key({theme.cached}, "cached");
  key({theme.free}, "free");
  if (state.pool.num_window_blocks == 0) return;
  draw_key(frame, {theme.cached}, "window part read", is_first, WindowPart::kUsed);
  draw_key(frame, {theme.cached}, "kept", is_first, WindowPart::kCached);
}

void BlockMap::draw_host(const Frame& frame, const MemoryWorkspaceState& state, float height) {
  if (state.pool.num_host_blocks == 0) {
    TextStyle note = tiny_text(frame);
    note.colour = frame.theme.faint;
    line(frame, note, "No host pool: preempted requests are recomputed.", ImGui::GetContentRegionAvail().x);
    return;
  }
  const auto num_used = std::count_if(state.host.begin(), state.host.end(),
                                      [](const ShownHostBlock& block) { return block.is_used; });
  heading_line(
      frame, "Host pool",
      count_text(state.pool.num_host_blocks, "block") + " · " + with_thousands(num_used) + " swapped out");
  gap(frame, 4);
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const ImVec2 room{ImGui::GetContentRegionAvail().x, height - frame.px(kHostHeading)};
  const CellGrid grid = fitting_grid(frame, state.host.size(), low, room);
  ImDrawList* list = ImGui::GetWindowDrawList();
  ImGui::InvisibleButton("host_map", room);
  const auto count = static_cast<int>(state.host.size());
  for (int i = 0; i < count; ++i) {
    const ShownHostBlock& block = state.host[static_cast<std::size_t>(i)];
    const ImVec2 from = grid.low(i), to = grid.high(i);
    if (from.y > low.y + room.y) break;
    if (!block.is_used) {
      draw_small_cell(frame.theme, list, from, to, {frame.theme.free});
      continue;
    }
    const ImU32 colour = block.owner < state.sequences.size()
                             ? frame.theme.owner(state.sequences[block.owner].colour_index)
                             : frame.theme.owner(4);
    list->AddRectFilled(from, to, with_alpha(colour, 0.25f));
    dashed_cell(frame, list, from, to, colour);
  }
  const int pointed = ImGui::IsItemHovered() ? grid.at(ImGui::GetMousePos(), count) : -1;
  if (pointed < 0) return;
  const ShownHostBlock& block = state.host[static_cast<std::size_t>(pointed)];
  std::string text = "Host block " + with_thousands(pointed) + (block.is_used ? "\nswapped out" : "\nfree");
  if (block.owner < state.sequences.size()) text += "\n" + state.sequences[block.owner].label;
  tooltip_now(frame, text);
}

void BlockMap::update_order(const MemoryWorkspaceState& state) {
  const std::size_t count = state.snapshot->blocks.size();
  const bool follows_state =
      (shows_occupied_ || order_ != BlockOrder::kIndex) && ordered_version_ != state.version;
  const bool is_same = ordered_ == order_ && ordered_occupied_ == shows_occupied_;
  if (!follows_state && is_same && cells_.size() == count) return;
  ordered_version_ = state.version;
  ordered_ = order_;
  ordered_occupied_ = shows_occupied_;
  blocks_.clear();
  std::vector<bool> taken(count, false);
  if (order_ == BlockOrder::kSequence) collect_tables(state, blocks_, taken);
  if (order_ != BlockOrder::kIndex) {
    collect_tree(state, blocks_, taken);
    collect_state(state, BlockState::kUsed, blocks_, taken);
    collect_state(state, BlockState::kCached, blocks_, taken);
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (!taken[i]) blocks_.push_back(static_cast<std::int32_t>(i));
  }
  if (shows_occupied_) {
    std::erase_if(blocks_, [&](std::int32_t block) {
      return state.snapshot->blocks[static_cast<std::size_t>(block)].state == BlockState::kFree;
    });
  }
  cells_.assign(count, -1);
  for (std::size_t i = 0; i < blocks_.size(); ++i)
    cells_[static_cast<std::size_t>(blocks_[i])] = static_cast<std::int32_t>(i);
}

void BlockMap::update_flashes(const MemoryWorkspaceState& state) {
  const auto now = static_cast<float>(ImGui::GetTime());
  if (flash_version_ != state.version) {
    const bool is_new = seen_us_.size() != state.blocks.size() || flash_source_ != state.source ||
                        flash_version_ == ~std::uint64_t{0};
    const std::int64_t newest_us = state.cursor.time_us - static_cast<std::int64_t>(kFadeSeconds * 1e6f);
    flash_version_ = state.version;
    flash_source_ = state.source;
    seen_us_.resize(state.blocks.size(), -1);
    flashed_.resize(state.blocks.size(), -1.0f);
    for (std::size_t i = 0; i < state.blocks.size(); ++i) {
      const std::int64_t last_us = state.blocks[i].last_us;
      // Of a jump through time only the last moments flash: all else changed long before what is shown.
      if (!is_new && last_us > seen_us_[i] && last_us >= newest_us) {
        flashed_[i] = flashed_last_ = now;
      }
      seen_us_[i] = last_us;
    }
    if (is_new) {
      std::fill(flashed_.begin(), flashed_.end(), -1.0f);
      flashed_last_ = -1.0f;
    }
  }
  is_fading_ = flashed_last_ >= 0 && now - flashed_last_ < kFadeSeconds;
}

float BlockMap::flash_of(int block, float now) const {
  if (!is_fading_ || static_cast<std::size_t>(block) >= flashed_.size()) return 0;
  const float at = flashed_[static_cast<std::size_t>(block)];
  return at < 0 ? 0 : std::max(0.0f, 1.0f - (now - at) / kFadeSeconds);
}

}  // namespace octavo::ui
