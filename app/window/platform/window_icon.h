// The program's icon, as assets/octavo.svg has it: eight leaves of a sheet, which are blocks of memory. Drawn
// here from the same rounded squares, for the window and as PNG files; a test holds both to each other.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace octavo::app {

// In units of a drawing of 64 x 64.
struct IconShape {
  double x, y, width, height, radius;
  std::uint32_t colour;  // 0xrrggbb
};

std::span<const IconShape> icon_shapes();

struct IconPicture {
  int extent = 0;  // pixels, both ways
  std::vector<unsigned char>
      pixels;  // red, green, blue, alpha (not multiplied into the colours), top row first
};

IconPicture draw_icon(int extent);

// The sizes that desktops ask for.
inline constexpr std::array kIconExtents = {16, 24, 32, 48, 64, 128, 256};

}  // namespace octavo::app
