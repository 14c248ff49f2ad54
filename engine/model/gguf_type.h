// The types of tensors' elements in GGUF files. Sizes only; no file is touched.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace octavo::model {

// How a type lays out a row: blocks of so many elements in so many bytes.
struct StoredTensorType {
  std::string_view name;
  std::uint32_t block_elements;
  std::uint32_t block_bytes;
};

// Also for types that ggml defines and no kernel here reads: a file may hold them in tensors that nobody asks
// for, and their sizes must be known for the offsets after them to be checked. nullopt: unknown here.
std::optional<StoredTensorType> stored_tensor_type(std::uint32_t ggml_type);

}  // namespace octavo::model
