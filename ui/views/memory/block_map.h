// Every block of the device pool as a cell, and the host pool below it. Cells are drawn as rectangles while
// they are large enough to distinguish, else as the pixels of a texture.
#pragma once

#include <cstdint>
#include <vector>

#include "ui/memory_state.h"
#include "ui/views/memory/memory_parts.h"

namespace octavo::ui {

class BlockMap {
 public:
  BlockMap() = default;
  ~BlockMap();
  BlockMap(const BlockMap&) = delete;
  BlockMap& operator=(const BlockMap&) = delete;

  void draw(const Frame& frame, const MemoryWorkspaceState& state, ImVec2 extent, Pointing& pointing);

  void zoom(float factor) { wanted_zoom_ *= factor; }
  void fit();
  // That of windows only where there are window parts.
  void next_colour(const MemoryWorkspaceState& state);
  void next_order();
  // Only blocks that hold something, as large as they fit.
  void show_occupied(bool occupied) { shows_occupied_ = occupied; }
  bool shows_occupied() const { return shows_occupied_; }

  BlockColour colour() const { return colour_; }
  BlockOrder order() const { return order_; }
  float zoom_factor() const { return zoom_; }
  // Whether a flash is fading.
  bool wants_frame() const { return is_fading_; }

 private:
  void draw_heading(const Frame& frame, const MemoryWorkspaceState& state);
  void draw_legend(const Frame& frame, const MemoryWorkspaceState& state);
  void draw_device(const Frame& frame, const MemoryWorkspaceState& state, ImVec2 extent, Pointing& pointing);
  void draw_host(const Frame& frame, const MemoryWorkspaceState& state, float height);
  void draw_cells(const Frame& frame, const MemoryWorkspaceState& state, const CellGrid& grid, ImVec2 low,
                  ImVec2 high);
  void draw_texture(const Frame& frame, const MemoryWorkspaceState& state, const CellGrid& grid);
  void draw_rings(const Frame& frame, const MemoryWorkspaceState& state, const CellGrid& grid, int pointed);
  void move(const Frame& frame, ImVec2 low, ImVec2 extent, float fit_pitch);
  void update_order(const MemoryWorkspaceState& state);
  void update_flashes(const MemoryWorkspaceState& state);
  float flash_of(int block, float now) const;

  BlockColour colour_ = BlockColour::kOwner;
  BlockOrder order_ = BlockOrder::kIndex;
  bool shows_occupied_ = false, ordered_occupied_ = false;
  float zoom_ = 1.0f, wanted_zoom_ = 1.0f;
  ImVec2 pan_ = {0, 0};
  std::vector<std::int32_t> blocks_;  // in the order of cells
  std::vector<std::int32_t> cells_;   // [block]: its cell; -1: it is not shown
  std::uint64_t ordered_version_ = ~std::uint64_t{0};
  BlockOrder ordered_ = BlockOrder::kIndex;
  std::vector<std::int64_t> seen_us_;  // [block]: the event that its flash is of
  std::vector<float> flashed_;         // [block]: when, in Dear ImGui's time; below 0: not
  float flashed_last_ = -1.0f;         // the newest of these
  std::uint64_t flash_version_ = ~std::uint64_t{0};
  MemorySource flash_source_ = MemorySource::kLive;
  bool is_fading_ = false;
  ImTextureData* texture_ = nullptr;  // registered with Dear ImGui
  std::uint64_t texture_version_ = ~std::uint64_t{0};
  int texture_key_ = -1;
  bool texture_flashes_ = false;  // it is to be drawn once more when nothing fades any more
  ImU32 texture_theme_ = 0;
};

}  // namespace octavo::ui
