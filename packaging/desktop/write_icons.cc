// write_icons FOLDER: the icon in every size that desktops ask for, as FOLDER/EXTENT.png.
#include <cstdio>
#include <fstream>
#include <string>

#include "app/window/platform/png.h"
#include "app/window/platform/window_icon.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("write_icons: name one folder\n", stderr);
    return 2;
  }
  using namespace octavo::app;  // NOLINT: a program of one function
  for (const int extent : kIconExtents) {
    const std::string path = std::string(argv[1]) + "/" + std::to_string(extent) + ".png";
    const IconPicture icon = draw_icon(extent);
    std::ofstream file(path, std::ios::binary);
    file << png_bytes(extent, extent, PixelKind::kColourAndAlpha, icon.pixels);
    if (!file.flush()) {
      std::fprintf(stderr, "write_icons: %s cannot be written\n", path.c_str());
      return 1;
    }
  }
  return 0;
}
