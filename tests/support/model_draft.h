// A GGUF file as a list of keys and tensors that can be changed, taken away and lied about before it is
// written: where hostile files and the seeds of fuzzing come from. It writes what it is told.
//
//   ModelDraft draft = tiny_draft();  // tiny_draft.h
//   draft.set_u32("llama.block_count", 0).write(path);
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "tests/support/gguf_bytes.h"

namespace octavo::test {

class ModelDraft {
 public:
  struct Key {
    std::string name;
    std::uint32_t type;
    std::vector<std::byte> value;
  };
  struct Tensor {
    std::string name;
    std::uint32_t type;
    std::vector<std::uint64_t> dimensions;
    std::vector<std::byte> bytes;
    std::optional<std::uint64_t> offset = {};          // as it stands in the file; none: where the bytes are
    std::uint64_t shift = 0;                           // added to where the bytes are
    std::optional<std::uint32_t> num_dimensions = {};  // none: of `dimensions`
    std::optional<std::uint64_t> name_length = {};     // none: of `name`
  };
  std::vector<Key> keys;
  std::vector<Tensor> tensors;
  std::uint32_t version = 3;
  std::uint64_t alignment = 32;  // of the data; adds no key
  std::optional<std::uint64_t> claimed_keys, claimed_tensors;

  // ---- keys: `set` replaces or appends, `add` appends also what is there
  ModelDraft& add_raw(std::string_view name, std::uint32_t type, std::span<const std::byte> value) {
    keys.push_back({std::string(name), type, {value.begin(), value.end()}});
    return *this;
  }
  ModelDraft& set_raw(std::string_view name, std::uint32_t type, std::span<const std::byte> value) {
    for (Key& key : keys) {
      if (key.name != name) continue;
      key.type = type;
      key.value.assign(value.begin(), value.end());
      return *this;
    }
    return add_raw(name, type, value);
  }
  ModelDraft& remove(std::string_view name) {
    std::erase_if(keys, [&](const Key& key) { return key.name == name; });
    return *this;
  }
  template <class T>
  ModelDraft& set_number(std::string_view name, T value) {
    return set_raw(name, static_cast<std::uint32_t>(gguf_type_of<T>()), ByteWriter().number(value).bytes());
  }
  ModelDraft& set_u32(std::string_view name, std::uint32_t value) { return set_number(name, value); }
  ModelDraft& set_i32(std::string_view name, std::int32_t value) { return set_number(name, value); }
  ModelDraft& set_u64(std::string_view name, std::uint64_t value) { return set_number(name, value); }
  ModelDraft& set_f32(std::string_view name, float value) { return set_number(name, value); }
  ModelDraft& set_bool(std::string_view name, std::uint8_t value) {
    return set_raw(name, static_cast<std::uint32_t>(GgufType::kBool), ByteWriter().number(value).bytes());
  }
  ModelDraft& set_string(std::string_view name, std::string_view value) {
    return set_raw(name, static_cast<std::uint32_t>(GgufType::kString), ByteWriter().string(value).bytes());
  }
  template <class T>
  ModelDraft& set_array(std::string_view name, const std::vector<T>& values) {
    ByteWriter elements;
    for (const T value : values) elements.number(value);
    return set_raw_array(name, static_cast<std::uint32_t>(gguf_type_of<T>()), values.size(),
                         elements.bytes());
  }
  ModelDraft& set_strings(std::string_view name, const std::vector<std::string>& values) {
    ByteWriter elements;
    for (const std::string& value : values) elements.string(value);
    return set_raw_array(name, static_cast<std::uint32_t>(GgufType::kString), values.size(),
                         elements.bytes());
  }
  ModelDraft& set_raw_array(std::string_view name, std::uint32_t element_type, std::uint64_t count,
                            std::span<const std::byte> elements) {
    ByteWriter array;
    array.number(element_type).number(count).raw(elements);
    return set_raw(name, static_cast<std::uint32_t>(GgufType::kArray), array.bytes());
  }

  // ---- tensors
  Tensor& tensor(std::string_view name) {
    const auto found =
        std::find_if(tensors.begin(), tensors.end(), [&](const Tensor& each) { return each.name == name; });
    return *found;
  }
  ModelDraft& add_tensor(std::string_view name, std::uint32_t type, std::vector<std::uint64_t> dimensions,
                         std::vector<std::byte> bytes) {
    tensors.push_back({std::string(name), type, std::move(dimensions), std::move(bytes)});
    return *this;
  }
  ModelDraft& set_tensor(std::string_view name, std::uint32_t type, std::vector<std::uint64_t> dimensions,
                         std::vector<std::byte> bytes) {
    Tensor& found = tensor(name);
    found = {std::string(name), type, std::move(dimensions), std::move(bytes)};
    return *this;
  }
  ModelDraft& remove_tensor(std::string_view name) {
    std::erase_if(tensors, [&](const Tensor& each) { return each.name == name; });
    return *this;
  }

  // ---- as a file
  std::vector<std::byte> header_bytes() const {
    ByteWriter out;
    out.raw("GGUF").number(version);
    out.number(claimed_tensors.value_or(tensors.size())).number(claimed_keys.value_or(keys.size()));
    for (const Key& key : keys) out.string(key.name).number(key.type).raw(key.value);
    std::uint64_t offset = 0;
    for (const Tensor& each : tensors) {
      out.number(each.name_length.value_or(each.name.size())).raw(each.name);
      out.number(each.num_dimensions.value_or(static_cast<std::uint32_t>(each.dimensions.size())));
      for (const std::uint64_t dimension : each.dimensions) out.number(dimension);
      out.number(each.type).number(each.offset.value_or(offset + each.shift));
      offset += (each.bytes.size() + alignment - 1) / alignment * alignment;
    }
    return out.bytes();
  }
  std::vector<std::byte> bytes() const {
    ByteWriter out;
    out.raw(header_bytes());
    for (const Tensor& each : tensors) out.pad_to_multiple(alignment).raw(each.bytes);
    return out.pad_to_multiple(alignment).bytes();
  }
  void write(const std::filesystem::path& path) const { write_file(path, bytes()); }
};

}  // namespace octavo::test
