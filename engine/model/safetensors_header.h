// What a safetensors file says before its tensors' data: 8 bytes of length, then that many of JSON with each
// tensor's name, type, shape and place. Format: https://github.com/huggingface/safetensors.
//
// The file is untrusted. A header exists only when everything in it holds: it is no longer than the file and
// kMaxSafetensorsHeaderBytes, shapes and types give the sizes of the places, no product wraps, no name comes
// twice, and the tensors fill the rest of the file without gaps or overlaps. Nothing is allocated by a number
// from the file before that number was held against the bytes that are there. Every failure is one Error with
// the tensor in `subject`.
//
// Plain values; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/model/byte_source.h"

namespace octavo::model {

enum class SafetensorsType : std::uint8_t {
  kF64,
  kF32,
  kF16,
  kBF16,
  kI64,
  kI32,
  kI16,
  kI8,
  kU8,
  kBool,
  kF8_E4M3,
  kF8_E5M2,
  kOther,  // known to the format at most: nothing here reads it
};

// Of one element; 0: kOther.
std::uint32_t element_bytes(SafetensorsType type);

struct SafetensorsTensor {
  std::string name;
  SafetensorsType type = SafetensorsType::kOther;
  std::string type_name;            // as the file has it: "BF16"
  std::vector<std::int64_t> shape;  // slowest first: {rows, columns} of a matrix; empty: one number
  std::int64_t num_elements = 0;
  std::uint64_t num_bytes = 0;
  std::uint64_t byte_offset = 0;  // from the start of its file
  std::uint32_t shard = 0;        // which file of the model, 0-based
};

struct SafetensorsHeader {
  std::vector<SafetensorsTensor> tensors;  // in the order of their places

  // `file_name` is for messages.
  static Result<SafetensorsHeader> parse(const ByteSource& source, std::string_view file_name);
};

// "[4, 64]"
std::string safetensors_shape_text(const std::vector<std::int64_t>& shape);

}  // namespace octavo::model
