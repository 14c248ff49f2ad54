// A runner of a tiny llama on the emulated device, and sequences that no scheduler knows.
#pragma once

#include <memory>
#include <utility>

#include "kernels/cuda/create_cuda_backend.h"
#include "tests/cuda/violations.h"
#include "tests/runner/direct_steps.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/temporary_folder.h"

namespace octavo {

inline constexpr std::int32_t kBlocksOfSequence = 32;

// For so many of made_up_sequence().
inline EngineOptions options_for(std::int32_t num_sequences) {
  EngineOptions options;
  options.block_size = 16;
  options.max_model_len = options.block_size * kBlocksOfSequence;
  options.max_num_batched_tokens = 128;
  options.max_num_seqs = num_sequences;
  options.num_kv_blocks = num_sequences * kBlocksOfSequence;
  return options;
}

inline std::unique_ptr<runner::ModelRunner> load_on_device(kernels::TensorType type, std::uint32_t num_layers,
                                                           const EngineOptions& options,
                                                           const kernels::cuda::CudaOptions& cuda) {
  const test::TemporaryFolder folder;
  test::make_tiny_llama(11, {.weight_type = type,
                             .num_layers = num_layers,
                             .embedding_length = 96,
                             .feed_forward_length = 160,
                             .num_heads = 6,
                             .num_kv_heads = 2})
      .write(folder / "model.gguf");
  auto parts = runner::make_parts(folder / "model.gguf", options, runner::BackendChoice::kReference);
  parts.backend = kernels::cuda::create_cuda_backend(cuda, std::move(parts.backend)).value();
  parts.plan = runner::plan_runner_on_device(parts.config, parts.tensors, options,
                                             runner::available_memory_bytes(), *parts.backend)
                   .value();
  return runner::ModelRunner::load(std::move(parts)).value();
}

// Of so many known tokens the last `num_rows` are not computed; blocks of its own, kBlocksOfSequence. What
// memory holds before the rows does not matter: nobody looks at the tokens.
inline runner::DirectSequence made_up_sequence(std::size_t index, std::size_t num_known, std::size_t num_rows,
                                               const SamplingParams& sampling) {
  runner::DirectSequence sequence;
  sequence.sequence_id = {index};
  for (std::size_t t = 0; t < num_known; ++t)
    sequence.token_ids.push_back(3 + static_cast<TokenId>((index * 31 + t * 7) % 200));
  sequence.num_prompt_tokens = num_known;
  sequence.sampling = sampling;
  sequence.num_computed_tokens = num_known - num_rows;
  for (std::int32_t b = 0; b < kBlocksOfSequence; ++b)
    sequence.block_table.push_back({static_cast<std::int32_t>(index) * kBlocksOfSequence + b});
  return sequence;
}

}  // namespace octavo
