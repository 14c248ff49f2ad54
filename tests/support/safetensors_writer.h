// Writes safetensors files, also wrong ones.
//
//   SafetensorsWriter writer;
//   writer.add_floats("model.norm.weight", {64}, values);
//   writer.write(folder / "model.safetensors");
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace octavo::test {

// A header as given, with its length before it, then data.
inline std::vector<std::byte> safetensors_bytes(std::string_view header, std::span<const std::byte> data) {
  const std::uint64_t length = header.size();
  std::vector<std::byte> bytes(sizeof length + header.size() + data.size());
  std::memcpy(bytes.data(), &length, sizeof length);
  std::ranges::copy(std::as_bytes(std::span(header.data(), header.size())), bytes.begin() + sizeof length);
  std::ranges::copy(data, bytes.end() - static_cast<std::ptrdiff_t>(data.size()));
  return bytes;
}

inline void write_bytes(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

inline void write_text(const std::filesystem::path& path, std::string_view text) {
  write_bytes(path, std::as_bytes(std::span(text.data(), text.size())));
}

class SafetensorsWriter {
 public:
  SafetensorsWriter& add(const std::string& name, std::string_view type,
                         const std::vector<std::int64_t>& shape, std::span<const std::byte> bytes) {
    header_[name] = {
        {"dtype", type}, {"shape", shape}, {"data_offsets", {data_.size(), data_.size() + bytes.size()}}};
    data_.insert(data_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  SafetensorsWriter& add_floats(const std::string& name, const std::vector<std::int64_t>& shape,
                                std::span<const float> values) {
    return add(name, "F32", shape, std::as_bytes(values));
  }

  std::vector<std::byte> bytes() const { return safetensors_bytes(header_.dump(), data_); }
  void write(const std::filesystem::path& path) const { write_bytes(path, bytes()); }

 private:
  nlohmann::json header_ = nlohmann::json::object();
  std::vector<std::byte> data_;
};

}  // namespace octavo::test
