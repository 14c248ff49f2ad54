// What a GGUF file says before its tensors' data: keys with typed values, and a checked list of tensors.
// Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, versions 2 and 3, little-endian.
//
// The file is untrusted. A header exists only when everything in it holds: counts and lengths stay inside
// the file and under the caps of limits.h, sums do not wrap, tensors stand one after the other without gaps
// and inside the file. Nothing is allocated by a number from the file before that number was held against the
// bytes that are left. Every failure is one Error with the key or tensor in `subject` and a byte offset where
// there is one.
//
// A value type, see Metadata: long values are checked and stepped over. Immutable; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/model/byte_source.h"
#include "engine/model/metadata.h"
#include "engine/model/model_source.h"

namespace octavo::model {

using GgufTensor = SourceTensor;

class GgufHeader : public Metadata {
 public:
  // `file_name` is for messages.
  static Result<GgufHeader> parse(const ByteSource& source, std::string_view file_name);

  std::uint32_t version() const { return version_; }
  std::uint32_t alignment() const { return alignment_; }
  std::uint64_t data_offset() const { return data_offset_; }  // where tensors' data starts

  // In the file's order.
  std::span<const GgufTensor> tensors() const { return tensors_; }

 private:
  friend class GgufParser;
  GgufHeader() = default;

  std::uint32_t version_ = 0;
  std::uint32_t alignment_ = 0;
  std::uint64_t data_offset_ = 0;
  std::vector<GgufTensor> tensors_;
};

}  // namespace octavo::model
