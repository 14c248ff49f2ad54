#include "app/window/platform/window_icon.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace octavo::app {
namespace {

constexpr double kDrawing = 64;
constexpr int kSamples = 4;  // in each direction of a pixel

// Two rows of four leaves; one of them is open on the page that is being written.
constexpr IconShape kShapes[] = {
    {2, 2, 60, 60, 14, 0x1b1f27},  {9, 14, 10, 16, 3, 0x5fb3a1},  {21, 14, 10, 16, 3, 0x5fb3a1},
    {33, 14, 10, 16, 3, 0x5fb3a1}, {45, 14, 10, 16, 3, 0x7aa2f7}, {9, 34, 10, 16, 3, 0x7aa2f7},
    {21, 34, 10, 16, 3, 0x7aa2f7}, {33, 34, 10, 16, 3, 0xe0a458}, {45, 34, 10, 16, 3, 0x39414f},
};

bool is_inside(const IconShape& shape, double x, double y) {
  const double half_width = shape.width / 2, half_height = shape.height / 2;
  const double dx = std::abs(x - shape.x - half_width) - (half_width - shape.radius);
  const double dy = std::abs(y - shape.y - half_height) - (half_height - shape.radius);
  if (dx > shape.radius || dy > shape.radius) return false;
  return dx <= 0 || dy <= 0 || dx * dx + dy * dy <= shape.radius * shape.radius;
}

// The uppermost shape at a point; nullptr beside all of them.
const IconShape* shape_at(double x, double y) {
  const IconShape* found = nullptr;
  for (const IconShape& shape : kShapes) {
    if (is_inside(shape, x, y)) found = &shape;
  }
  return found;
}

void draw_pixel(int column, int row, double scale, unsigned char* pixel) {
  unsigned sum[3] = {}, covered = 0;
  for (int sample = 0; sample < kSamples * kSamples; ++sample) {
    const double x = (column + (sample % kSamples + 0.5) / kSamples) * scale;
    const double y = (row + (sample / kSamples + 0.5) / kSamples) * scale;
    const IconShape* shape = shape_at(x, y);
    if (shape == nullptr) continue;
    ++covered;
    for (unsigned channel = 0; channel < 3; ++channel)
      sum[channel] += shape->colour >> (16 - 8 * channel) & 0xff;
  }
  if (covered == 0) return;
  for (unsigned channel = 0; channel < 3; ++channel)
    pixel[channel] = static_cast<unsigned char>((sum[channel] + covered / 2) / covered);
  pixel[3] = static_cast<unsigned char>(covered * 255 / (kSamples * kSamples));
}

}  // namespace

std::span<const IconShape> icon_shapes() { return kShapes; }

IconPicture draw_icon(int extent) {
  const auto side = static_cast<std::size_t>(extent);
  IconPicture picture{extent, std::vector<unsigned char>(4 * side * side)};
  for (int row = 0; row < extent; ++row) {
    for (int column = 0; column < extent; ++column) {
      const std::size_t at = 4 * (static_cast<std::size_t>(row) * side + static_cast<std::size_t>(column));
      draw_pixel(column, row, kDrawing / extent, picture.pixels.data() + at);
    }
  }
  return picture;
}

}  // namespace octavo::app
