// The types of GGUF files: of values behind keys, and of tensors' elements. Sizes only; no file is touched.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace octavo::model {

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

// nullopt: no such type.
std::optional<GgufType> gguf_type_from(std::uint32_t number);

// "u32", "string", ...
std::string_view gguf_type_name(GgufType type);

// Of one value; of a string or an array: its length field.
std::uint64_t stored_bytes(GgufType type);

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
