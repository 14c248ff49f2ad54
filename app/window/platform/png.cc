#include "app/window/platform/png.h"

#include <array>
#include <cstddef>
#include <string_view>

namespace octavo::app {
namespace {

void put_u32(std::string& out, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>((value >> shift) & 0xff);
}

std::uint32_t crc32(std::string_view bytes) {
  static const auto kTable = [] {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = (value & 1) != 0 ? 0xedb88320u ^ (value >> 1) : value >> 1;
      table[i] = value;
    }
    return table;
  }();
  std::uint32_t crc = 0xffff'ffffu;
  for (const char byte : bytes) crc = kTable[(crc ^ static_cast<unsigned char>(byte)) & 0xff] ^ (crc >> 8);
  return ~crc;
}

std::uint32_t adler32(std::string_view bytes) {
  constexpr std::uint32_t kModulus = 65'521;
  std::uint32_t a = 1, b = 0;
  for (const char byte : bytes) {
    a = (a + static_cast<unsigned char>(byte)) % kModulus;
    b = (b + a) % kModulus;
  }
  return (b << 16) | a;
}

void put_chunk(std::string& out, std::string_view kind, std::string_view data) {
  put_u32(out, static_cast<std::uint32_t>(data.size()));
  std::string body(kind);
  body += data;
  out += body;
  put_u32(out, crc32(body));
}

std::string stored_zlib(std::string_view bytes) {
  constexpr std::size_t kMostStored = 65'535;
  std::string out = "\x78\x01";
  for (std::size_t at = 0; at < bytes.size(); at += kMostStored) {
    const std::string_view part = bytes.substr(at, kMostStored);
    const auto length = static_cast<std::uint32_t>(part.size());
    out += static_cast<char>(at + part.size() == bytes.size() ? 1 : 0);
    for (const std::uint32_t value : {length, ~length}) {
      out += static_cast<char>(value & 0xff);
      out += static_cast<char>((value >> 8) & 0xff);
    }
    out += part;
  }
  put_u32(out, adler32(bytes));
  return out;
}

}  // namespace

std::string png_bytes(int width, int height, PixelKind kind, std::span<const std::uint8_t> pixels) {
  const auto columns = static_cast<std::size_t>(width), num_rows = static_cast<std::size_t>(height);
  const std::size_t row_bytes = columns * (kind == PixelKind::kColour ? 3 : 4);
  std::string rows;
  rows.reserve(num_rows * (row_bytes + 1));
  for (std::size_t y = 0; y < num_rows; ++y) {
    rows += '\0';  // no filter
    rows.append(reinterpret_cast<const char*>(pixels.data()) + y * row_bytes, row_bytes);
  }
  std::string header;
  put_u32(header, static_cast<std::uint32_t>(width));
  put_u32(header, static_cast<std::uint32_t>(height));
  header += '\x08';                                        // bits of each channel
  header += kind == PixelKind::kColour ? '\x02' : '\x06';  // with alpha: 6
  header.append(3, '\0');
  std::string out = "\x89PNG\r\n\x1a\n";
  put_chunk(out, "IHDR", header);
  put_chunk(out, "IDAT", stored_zlib(rows));
  put_chunk(out, "IEND", {});
  return out;
}

}  // namespace octavo::app
