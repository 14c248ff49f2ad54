// The keys of a GGUF file that is to be written, as bytes: those of another GGUF file as they stand there, or
// what a source of another format says, its vocabulary included.
//
// Whole numbers of translated sources become u32, or i32 where one is negative, since readers such as
// llama.cpp's take no other type. Owns its bytes; any thread, one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/api/sampling_advice.h"
#include "engine/base/result.h"
#include "engine/model/gguf_file.h"
#include "engine/model/metadata.h"
#include "engine/model/value_type.h"
#include "engine/tokenizer/tokenizer.h"

namespace octavo::model {

template <class Number>
void append_number(std::vector<std::byte>& bytes, Number number) {
  const auto* const begin = reinterpret_cast<const std::byte*>(&number);
  bytes.insert(bytes.end(), begin, begin + sizeof number);
}
// Its length, then its bytes.
void append_text(std::vector<std::byte>& bytes, std::string_view text);

class GgufKeys {
 public:
  std::uint64_t count() const { return count_; }
  std::span<const std::byte> bytes() const { return bytes_; }

  // Of the file's first part, but for `except`. kDamagedFile: the file changed since it was opened.
  Result<void> copy(const GgufFile& file, std::span<const std::string_view> except);
  // Errors: kDamagedFile for a whole number that no 32 bits hold.
  Result<void> translate(const Metadata& metadata);
  // As vocabulary_reader.h reads it. REQUIRES: a vocabulary in the terms of GGUF (gguf_vocabulary.h)
  void add_vocabulary(const tokenizer::Vocabulary& vocabulary);
  void add_advice(const SamplingAdvice& advice);
  void add_u32(std::string_view key, std::uint32_t value);
  void add_text(std::string_view key, std::string_view value);

 private:
  void start(std::string_view key, ValueType type);
  void start_list(std::string_view key, ValueType type, std::size_t count);
  void add_float(std::string_view key, float value);
  void add_flag(std::string_view key, bool value);
  template <class T>
  void add_numbers(std::string_view key, ValueType type, const std::vector<T>& values);
  Result<void> translate_list(const Metadata& metadata, std::string_view key);
  Result<void> translate_value(const Metadata& metadata, std::string_view key);

  std::uint64_t count_ = 0;
  std::vector<std::byte> bytes_;
};

}  // namespace octavo::model
