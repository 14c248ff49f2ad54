#include <cairo.h>

#include <cmath>
#include <numbers>

#include "app/charts/canvas.h"
#include "engine/base/text.h"

namespace octavo::app {
namespace {

constexpr double kScale = 2.0;

struct CairoDeleter {
  void operator()(cairo_t* context) const { cairo_destroy(context); }
  void operator()(cairo_surface_t* surface) const { cairo_surface_destroy(surface); }
};

cairo_status_t append(void* bytes, const unsigned char* data, unsigned int length) {
  static_cast<std::string*>(bytes)->append(reinterpret_cast<const char*>(data), length);
  return CAIRO_STATUS_SUCCESS;
}

// Cairo takes a text to its first zero byte, and nothing that is not UTF-8.
std::string plain_text(std::string_view text) {
  std::string safe = sanitise_utf8(text);
  for (char& c : safe) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  return safe;
}

// A failure stays in the context, where finish() finds it.
class PngCanvas final : public Canvas {
 public:
  PngCanvas(double width, double height)
      : surface_(cairo_image_surface_create(CAIRO_FORMAT_RGB24, static_cast<int>(std::ceil(width * kScale)),
                                            static_cast<int>(std::ceil(height * kScale)))),
        context_(cairo_create(surface_.get())) {
    cairo_scale(context_.get(), kScale, kScale);
  }

  void begin_clip(const CanvasBox& box) override {
    cairo_save(context_.get());
    cairo_rectangle(context_.get(), box.x, box.y, box.width, box.height);
    cairo_clip(context_.get());
  }
  void end_clip() override { cairo_restore(context_.get()); }

  void fill_box(const CanvasBox& box, CanvasColour colour) override {
    cairo_rectangle(context_.get(), box.x, box.y, box.width, box.height);
    fill(colour);
  }
  void fill_circle(CanvasPoint middle, double radius, CanvasColour colour) override {
    cairo_new_path(context_.get());
    cairo_arc(context_.get(), middle.x, middle.y, radius, 0.0, 2.0 * std::numbers::pi);
    fill(colour);
  }
  void fill_polygon(std::span<const CanvasPoint> corners, CanvasColour colour) override {
    take_path(corners);
    cairo_close_path(context_.get());
    fill(colour);
  }
  void draw_line(std::span<const CanvasPoint> points, double thickness, CanvasColour colour) override {
    take_path(points);
    take(colour);
    cairo_set_line_width(context_.get(), thickness);
    cairo_set_line_join(context_.get(), CAIRO_LINE_JOIN_ROUND);
    cairo_stroke(context_.get());
  }
  void draw_text(CanvasPoint at, std::string_view text, const TextLook& look) override {
    const std::string shown = plain_text(text);
    cairo_save(context_.get());
    cairo_select_font_face(context_.get(), "Inter", CAIRO_FONT_SLANT_NORMAL,
                           look.is_bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_font_size(context_.get(), look.size);
    cairo_text_extents_t extents = {};
    cairo_text_extents(context_.get(), shown.c_str(), &extents);
    cairo_translate(context_.get(), at.x, at.y);
    if (look.is_upright) cairo_rotate(context_.get(), -std::numbers::pi / 2.0);
    const double share = look.anchor == TextAnchor::kStart    ? 0.0
                         : look.anchor == TextAnchor::kMiddle ? 0.5
                                                              : 1.0;
    cairo_move_to(context_.get(), -extents.x_advance * share, 0.0);
    take(look.colour);
    cairo_show_text(context_.get(), shown.c_str());
    cairo_restore(context_.get());
  }

  Result<std::string> finish() override {
    std::string bytes;
    cairo_status_t status = cairo_status(context_.get());
    if (status == CAIRO_STATUS_SUCCESS)
      status = cairo_surface_write_to_png_stream(surface_.get(), append, &bytes);
    if (status == CAIRO_STATUS_SUCCESS) return bytes;
    return Error{ErrorCode::kOutOfMemory, std::string("the picture cannot be drawn: ") +
                                              cairo_status_to_string(status) + "; write it as SVG instead"};
  }

 private:
  void take(CanvasColour colour) {
    const auto part = [colour](int shift) { return ((colour >> shift) & 0xff) / 255.0; };
    cairo_set_source_rgb(context_.get(), part(16), part(8), part(0));
  }
  void fill(CanvasColour colour) {
    take(colour);
    cairo_fill(context_.get());
  }
  void take_path(std::span<const CanvasPoint> points) {
    cairo_new_path(context_.get());
    for (const CanvasPoint& point : points) cairo_line_to(context_.get(), point.x, point.y);
  }

  std::unique_ptr<cairo_surface_t, CairoDeleter> surface_;
  std::unique_ptr<cairo_t, CairoDeleter> context_;
};

}  // namespace

std::unique_ptr<Canvas> make_png_canvas(double width, double height) {
  return std::make_unique<PngCanvas>(width, height);
}

}  // namespace octavo::app
