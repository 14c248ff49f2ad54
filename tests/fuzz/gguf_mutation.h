// Changes of GGUF files by someone who knows the format: keys, types, counts, shapes, offsets, alignment.
#pragma once

#include <optional>

#include "tests/fuzz/target.h"
#include "tests/support/tiny_draft.h"

namespace octavo::fuzz {

// As much as can be understood; nullopt: not even the beginning.
std::optional<test::ModelDraft> read_draft(std::span<const std::uint8_t> file);

void mutate_gguf(Bytes& input, std::size_t max_size, Random& random, const MutateBytes& mutate_bytes);

// A valid model of about six kilobytes with 24 tokens.
test::ModelDraft fuzz_draft();

// Valid files and files with one lie, some kilobytes each.
std::vector<Bytes> gguf_seeds();
std::vector<Bytes> model_seeds();

}  // namespace octavo::fuzz
