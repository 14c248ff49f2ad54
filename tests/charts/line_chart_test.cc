// Charts as files: one layout on two canvases.

#include "app/charts/line_chart.h"

#include <cairo.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <limits>
#include <vector>

namespace octavo::app {
namespace {

TEST(LineChart, AxesHaveRoundMarks) {
  EXPECT_EQ(axis_marks(10, 6), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(axis_marks(7, 6), (std::vector<double>{0, 2, 4, 6, 8}));
  EXPECT_EQ(axis_marks(0, 6), (std::vector<double>{0, 1}));
  for (const double most : {1e-9, 0.003, 0.9, 1.0, 17.3, 99.0, 1e7}) {
    const auto marks = axis_marks(most, 6);
    EXPECT_GE(marks.back(), most * (1 - 1e-9)) << most;
    EXPECT_LE(marks.size(), 8u) << most;
    EXPECT_GE(marks.size(), 3u) << most;
  }
}

std::vector<LineChart> hostile_chart() {
  return {{.title = "a <b> & \"c\"",
           .x_label = std::string("x\0y", 3),
           .y_label = "\xff\xfe",
           .lines = {{.name = "</text><script>",
                      .points = {{0, 0}, {1, 2}, {2, std::numeric_limits<double>::quiet_NaN()}}}},
           .source = std::string(5'000, 'a')}};
}

TEST(LineChart, LabelsAreDataAndPointsLieInThePicture) {
  const std::string svg = *picture_of(hostile_chart(), PictureFormat::kSvg);
  EXPECT_EQ(svg.find("<script"), std::string::npos);
  EXPECT_NE(svg.find("a &lt;b&gt; &amp; &quot;c&quot;"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find(std::string(200, 'a')), std::string::npos) << "a long source is cut";
  EXPECT_EQ(svg.rfind("</svg>\n"), svg.size() - 7);
}

// The picture as somebody else reads it.
struct Pixels {
  int width = 0, height = 0;
  std::vector<std::uint32_t> rgb;
  std::size_t count(std::uint32_t colour) const {
    return static_cast<std::size_t>(std::count(rgb.begin(), rgb.end(), colour));
  }
};
Pixels decode(const std::string& png) {
  struct Source {
    const std::string& bytes;
    std::size_t at = 0;
  } source{png};
  const auto read = [](void* from, unsigned char* data, unsigned int length) {
    Source& source = *static_cast<Source*>(from);
    if (source.bytes.size() - source.at < length) return CAIRO_STATUS_READ_ERROR;
    std::memcpy(data, source.bytes.data() + source.at, length);
    source.at += length;
    return CAIRO_STATUS_SUCCESS;
  };
  cairo_surface_t* const surface = cairo_image_surface_create_from_png_stream(read, &source);
  EXPECT_EQ(cairo_surface_status(surface), CAIRO_STATUS_SUCCESS);
  Pixels pixels{cairo_image_surface_get_width(surface), cairo_image_surface_get_height(surface), {}};
  const unsigned char* const data = cairo_image_surface_get_data(surface);
  for (int y = 0; y < pixels.height; ++y) {
    for (int x = 0; x < pixels.width; ++x) {
      std::uint32_t pixel = 0;
      std::memcpy(&pixel, data + y * cairo_image_surface_get_stride(surface) + x * 4, sizeof pixel);
      pixels.rgb.push_back(pixel & 0xffffffu);
    }
  }
  cairo_surface_destroy(surface);
  return pixels;
}

TEST(LineChart, AsPngHasTheLinesWhereAsSvg) {
  std::vector<LineChart> charts(1, {.title = "t",
                                    .x_label = "x",
                                    .y_label = "y",
                                    .lines = {{.name = "flat", .points = {{0, 1}, {10, 1}}}}});
  const Pixels one = decode(*picture_of(charts, PictureFormat::kPng));
  EXPECT_EQ(one.width, 1'040);
  EXPECT_GT(one.count(0x0072b2), 1'500u) << "a line across the plot, a few pixels high";
  charts[0].lines[0].points = {{0, 1}};
  const Pixels without = decode(*picture_of(charts, PictureFormat::kPng));
  EXPECT_LT(without.count(0x0072b2), 700u) << "marks and legend alone";
  charts.resize(4, charts[0]);
  const Pixels four = decode(*picture_of(charts, PictureFormat::kPng));
  EXPECT_EQ(four.width, 3 * one.width);
  EXPECT_EQ(four.height, 2 * one.height);
}

TEST(LineChart, NamesStandBelowTheirBarsOrByNumberInTheLegend) {
  LineChart chart{.title = "t",
                  .x_label = "x",
                  .y_label = "y",
                  .lines = {{.name = "ours", .points = {{0, 4}, {1, 2}}},
                            {.name = "paper", .points = {{0, 3}, {1, 2}}, .has_line = false}},
                  .x_names = {"first", "second"}};
  const auto count = [](const std::string& text, const std::string& part) {
    std::size_t number = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++number;
    return number;
  };
  const std::string shortly = *picture_of({chart}, PictureFormat::kSvg);
  EXPECT_EQ(count(shortly, ">first<"), 1u);
  EXPECT_EQ(count(shortly, "stroke=\"#0072b2\""), 0u) << "no line between things without an order";
  chart.x_names[0] = std::string(60, 'a');
  const std::string longly = *picture_of({chart}, PictureFormat::kSvg);
  EXPECT_EQ(count(longly, ">" + chart.x_names[0] + "<"), 1u);
  EXPECT_EQ(count(longly, ">second<"), 1u);
  EXPECT_GE(count(longly, ">1<"), 2u) << "below its bar and in the legend";
}

TEST(LineChart, MarksAloneHaveTheColourOfTheLineBeforeThem) {
  const auto colours = [](std::vector<ChartLine> lines) {
    const std::string picture = *picture_of({{.title = "t", .lines = std::move(lines)}}, PictureFormat::kSvg);
    return std::array{picture.find("#0072b2") != std::string::npos,
                      picture.find("#d55e00") != std::string::npos};
  };
  const ChartLine line{.name = "ours", .points = {{0, 4}, {1, 2}}};
  const ChartLine marks{.name = "paper", .points = {{0, 3}}, .has_line = false};
  EXPECT_EQ(colours({line, marks}), (std::array{true, false}));
  EXPECT_EQ(colours({line, marks, line}), (std::array{true, true}));
}

TEST(LineChart, AsPngTakesAnyText) {
  EXPECT_GT(decode(*picture_of(hostile_chart(), PictureFormat::kPng)).count(0x222222), 100u);
  EXPECT_TRUE(picture_of({}, PictureFormat::kPng).has_value());
}

TEST(LineChart, FormatIsThatOfTheName) {
  EXPECT_EQ(picture_format_of("a.png"), PictureFormat::kPng);
  EXPECT_EQ(picture_format_of("A.PNG"), PictureFormat::kPng);
  for (const char* const name : {"", "png", "a.svg", "a.png.txt"})
    EXPECT_EQ(picture_format_of(name), PictureFormat::kSvg) << name;
}

}  // namespace
}  // namespace octavo::app
