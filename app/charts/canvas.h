// What a chart is drawn on: a few kinds of marks in a picture whose size is known from the start. Each kind
// of file is a canvas of its own, so that all of them show the same chart.
//
// One thread. Lengths in pixels of the picture at 100 %, x to the right, y down.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "engine/base/result.h"

namespace octavo::app {

struct CanvasPoint {
  double x = 0.0, y = 0.0;
};
struct CanvasBox {
  double x = 0.0, y = 0.0, width = 0.0, height = 0.0;
};
using CanvasColour = std::uint32_t;  // 0xRRGGBB

enum class TextAnchor { kStart, kMiddle, kEnd };  // what of the text stands at its place
struct TextLook {
  TextAnchor anchor = TextAnchor::kStart;
  double size = 12.0;
  bool is_bold = false;
  bool is_upright = false;  // turned so that it is read from below
  CanvasColour colour = 0x222222;
};

class Canvas {
 public:
  virtual ~Canvas() = default;

  // Until end_clip, nothing is drawn outside of `box`. Never one in the other.
  virtual void begin_clip(const CanvasBox& box) = 0;
  virtual void end_clip() = 0;

  virtual void fill_box(const CanvasBox& box, CanvasColour colour) = 0;
  virtual void fill_circle(CanvasPoint middle, double radius, CanvasColour colour) = 0;
  virtual void fill_polygon(std::span<const CanvasPoint> corners, CanvasColour colour) = 0;
  virtual void draw_line(std::span<const CanvasPoint> points, double thickness, CanvasColour colour) = 0;
  // `text` is any text; `at` is on its base line.
  virtual void draw_text(CanvasPoint at, std::string_view text, const TextLook& look) = 0;

  // The bytes of the file. Nothing is drawn afterwards.
  virtual Result<std::string> finish() = 0;
};

std::unique_ptr<Canvas> make_svg_canvas(double width, double height);
// By Cairo, with two pixels for each of the picture's.
std::unique_ptr<Canvas> make_png_canvas(double width, double height);

}  // namespace octavo::app
