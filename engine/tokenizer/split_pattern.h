// How byte-level BPE cuts text into pieces before it merges: the regular expressions of the published
// tokenizers, as hand-written scanners. Each is linear in the text and needs no stack; no character is read
// more than four times.
#pragma once

#include <cstddef>
#include <string_view>

#include "engine/base/result.h"

namespace octavo::tokenizer {

enum class SplitPattern {
  // 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
  kGpt2,
  // Every \p{N} alone, then kGpt2 on what lies between.
  kSmolLm,
  // (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|
  // ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
  kLlama3,
  // kLlama3 with \p{N} in place of \p{N}{1,3}.
  kQwen2,
};

// By the name in tokenizer.ggml.pre; an empty name and "default" mean kGpt2. An unknown name is an error that
// lists the known ones.
Result<SplitPattern> find_split_pattern(std::string_view name);

// Length in bytes, at least 1, of the piece that starts at `offset`, where an earlier piece or the text has
// to begin. REQUIRES: offset < text.size()
std::size_t piece_length(SplitPattern pattern, std::string_view text, std::size_t offset);

}  // namespace octavo::tokenizer
