// The pieces that GGUF files are written of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

namespace octavo::test {

// Little-endian bytes, appended.
class ByteWriter {
 public:
  template <class T>
  ByteWriter& number(T value) {
    static_assert(std::is_arithmetic_v<T>);
    std::byte raw[sizeof(T)];
    std::memcpy(raw, &value, sizeof(T));
    bytes_.insert(bytes_.end(), raw, raw + sizeof(T));
    return *this;
  }
  ByteWriter& raw(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  ByteWriter& raw(std::string_view text) { return raw(std::as_bytes(std::span(text.data(), text.size()))); }
  // As GGUF writes strings: length in 64 bits, then the bytes.
  ByteWriter& string(std::string_view text) { return number<std::uint64_t>(text.size()).raw(text); }
  ByteWriter& pad_to_multiple(std::size_t alignment) {
    while (bytes_.size() % alignment != 0) bytes_.push_back(std::byte{0});
    return *this;
  }
  std::size_t size() const { return bytes_.size(); }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

enum class GgufType : std::uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64,
};

template <class T>
constexpr GgufType gguf_type_of() {
  if constexpr (std::is_same_v<T, std::uint8_t>)
    return GgufType::kU8;
  else if constexpr (std::is_same_v<T, std::int8_t>)
    return GgufType::kI8;
  else if constexpr (std::is_same_v<T, std::uint16_t>)
    return GgufType::kU16;
  else if constexpr (std::is_same_v<T, std::int16_t>)
    return GgufType::kI16;
  else if constexpr (std::is_same_v<T, std::uint32_t>)
    return GgufType::kU32;
  else if constexpr (std::is_same_v<T, std::int32_t>)
    return GgufType::kI32;
  else if constexpr (std::is_same_v<T, float>)
    return GgufType::kF32;
  else if constexpr (std::is_same_v<T, std::uint64_t>)
    return GgufType::kU64;
  else if constexpr (std::is_same_v<T, std::int64_t>)
    return GgufType::kI64;
  else
    return GgufType::kF64;
}

inline void write_file(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace octavo::test
