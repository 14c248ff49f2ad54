// An uncompressed PNG (ISO/IEC 15948): one IDAT of stored deflate blocks.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace octavo::app {

enum class PixelKind { kColour, kColourAndAlpha };  // three or four bytes

// REQUIRES: `pixels` holds width x height of them, top row first.
std::string png_bytes(int width, int height, PixelKind kind, std::span<const std::uint8_t> pixels);

}  // namespace octavo::app
