// The icon: what is drawn for the window and what is drawn for the desktop are one drawing.

#include "app/window/platform/window_icon.h"
#include "tests/support/paths.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace octavo::app {
namespace {

std::string attribute(const std::string& line, const std::string& name) {
  const std::size_t at = line.find(" " + name + "=\"");
  if (at == std::string::npos) return {};
  const std::size_t begin = at + name.size() + 3;
  return line.substr(begin, line.find('"', begin) - begin);
}

TEST(WindowIcon, IsTheDrawingInAssets) {
  std::ifstream file(test::source_folder() / "assets/octavo.svg");
  std::vector<std::string> rectangles;
  for (std::string line; std::getline(file, line);) {
    if (line.find("<rect ") != std::string::npos) rectangles.push_back(line);
  }
  ASSERT_EQ(rectangles.size(), icon_shapes().size());
  for (std::size_t i = 0; i < rectangles.size(); ++i) {
    const IconShape& shape = icon_shapes()[i];
    EXPECT_EQ(std::stod(attribute(rectangles[i], "x")), shape.x);
    EXPECT_EQ(std::stod(attribute(rectangles[i], "y")), shape.y);
    EXPECT_EQ(std::stod(attribute(rectangles[i], "width")), shape.width);
    EXPECT_EQ(std::stod(attribute(rectangles[i], "height")), shape.height);
    EXPECT_EQ(std::stod(attribute(rectangles[i], "rx")), shape.radius);
    EXPECT_EQ(std::stoul(attribute(rectangles[i], "fill").substr(1), nullptr, 16), shape.colour);
  }
}

TEST(WindowIcon, IsRoundAtTheCornersAndFullInTheMiddle) {
  for (const int extent : kIconExtents) {
    const IconPicture icon = draw_icon(extent);
    const auto side = static_cast<std::size_t>(extent);
    ASSERT_EQ(icon.pixels.size(), 4 * side * side);
    EXPECT_EQ(icon.pixels[3], 0) << extent;
    EXPECT_EQ(icon.pixels[4 * (side / 2 * side + side / 2) + 3], 255) << extent;
  }
}

}  // namespace
}  // namespace octavo::app
