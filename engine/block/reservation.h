// How many slots a contiguous memory manager sets aside for an output when it starts: the three baselines of
// Kwon et al. 2023 (arXiv:2309.06180) section 6.1, which differ in what they know about the length of the
// output. Pure functions.
#pragma once

#include <cstdint>

#include "engine/api/engine_options.h"

namespace octavo::block {

// What `manager` believes the output's length to be; kOrcaMax believes max_model_len, kOrcaPow2 the next
// power of two (32 for 25), kOrcaOracle the truth. REQUIRES: not kPaged, which reserves nothing;
// num_output_tokens >= 1
std::int64_t estimated_output_tokens(MemoryManager manager, std::int32_t num_output_tokens,
                                     std::int32_t max_model_len);

// Prompt and estimate together, at most max_model_len.
// REQUIRES: as above, and 1 <= num_prompt_tokens <= max_model_len
std::int32_t reservation_tokens(MemoryManager manager, std::int32_t num_prompt_tokens,
                                std::int32_t num_output_tokens, std::int32_t max_model_len);

// The run of blocks that holds a reservation: as many as it needs, rounded up to a power of two. So the
// largest chunk of a pool is reservation_blocks(max_model_len, block_size). REQUIRES: num_tokens >= 1
std::int32_t reservation_blocks(std::int32_t num_tokens, std::int32_t block_size);

}  // namespace octavo::block
