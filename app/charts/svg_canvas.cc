#include <cstdio>

#include "app/charts/canvas.h"
#include "engine/base/text.h"

namespace octavo::app {
namespace {

std::string place_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", value);
  return text;
}

std::string colour_text(CanvasColour colour) {
  char text[16];
  std::snprintf(text, sizeof text, "#%06x", colour & 0xffffffu);
  return text;
}

std::string xml_text(std::string_view text) {
  std::string safe;
  for (const char c : sanitise_utf8(text)) {
    switch (c) {
      case '&': safe += "&amp;"; break;
      case '<': safe += "&lt;"; break;
      case '>': safe += "&gt;"; break;
      case '"': safe += "&quot;"; break;
      default: safe += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return safe;
}

std::string box_attributes(const CanvasBox& box) {
  return "x=\"" + place_text(box.x) + "\" y=\"" + place_text(box.y) + "\" width=\"" + place_text(box.width) +
         "\" height=\"" + place_text(box.height) + "\"";
}

std::string points_attribute(std::span<const CanvasPoint> points) {
  std::string text = "points=\"";
  for (const CanvasPoint& point : points) text += place_text(point.x) + "," + place_text(point.y) + " ";
  return text + "\"";
}

const char* anchor_text(TextAnchor anchor) {
  switch (anchor) {
    case TextAnchor::kStart: return "start";
    case TextAnchor::kMiddle: return "middle";
    case TextAnchor::kEnd: break;
  }
  return "end";
}

class SvgCanvas final : public Canvas {
 public:
  SvgCanvas(double width, double height)
      : svg_("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + place_text(width) + "\" height=\"" +
             place_text(height) + "\" font-family=\"Inter, Helvetica, Arial, sans-serif\">\n") {}

  void begin_clip(const CanvasBox& box) override {
    const std::string name = "clip" + std::to_string(num_clips_++);
    svg_ += "<clipPath id=\"" + name + "\"><rect " + box_attributes(box) +
            "/></clipPath>\n<g clip-path=\"url(#" + name + ")\">\n";
  }
  void end_clip() override { svg_ += "</g>\n"; }

  void fill_box(const CanvasBox& box, CanvasColour colour) override {
    svg_ += "<rect " + box_attributes(box) + fill(colour);
  }
  void fill_circle(CanvasPoint middle, double radius, CanvasColour colour) override {
    svg_ += "<circle cx=\"" + place_text(middle.x) + "\" cy=\"" + place_text(middle.y) + "\" r=\"" +
            place_text(radius) + "\"" + fill(colour);
  }
  void fill_polygon(std::span<const CanvasPoint> corners, CanvasColour colour) override {
    svg_ += "<polygon " + points_attribute(corners) + fill(colour);
  }
  void draw_line(std::span<const CanvasPoint> points, double thickness, CanvasColour colour) override {
    svg_ += "<polyline " + points_attribute(points) + " fill=\"none\" stroke=\"" + colour_text(colour) +
            "\" stroke-width=\"" + place_text(thickness) + "\"/>\n";
  }
  void draw_text(CanvasPoint at, std::string_view text, const TextLook& look) override {
    const std::string x = place_text(at.x), y = place_text(at.y);
    svg_ += "<text x=\"" + x + "\" y=\"" + y + "\" text-anchor=\"" + anchor_text(look.anchor) +
            "\" font-size=\"" + place_text(look.size) + "\"" + (look.is_bold ? " font-weight=\"bold\"" : "") +
            (look.is_upright ? " transform=\"rotate(-90 " + x + " " + y + ")\"" : "") + " fill=\"" +
            colour_text(look.colour) + "\">" + xml_text(text) + "</text>\n";
  }

  Result<std::string> finish() override { return std::move(svg_) + "</svg>\n"; }

 private:
  static std::string fill(CanvasColour colour) { return " fill=\"" + colour_text(colour) + "\"/>\n"; }

  std::string svg_;
  int num_clips_ = 0;
};

}  // namespace

std::unique_ptr<Canvas> make_svg_canvas(double width, double height) {
  return std::make_unique<SvgCanvas>(width, height);
}

}  // namespace octavo::app
