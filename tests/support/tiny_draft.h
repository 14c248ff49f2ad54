// The valid model that hostile files and the seeds of fuzzing are made from.
#pragma once

#include "tests/support/gguf_writer.h"

namespace octavo::test {

struct TinyDraftOptions {
  TensorType weight_type = TensorType::kF32;
  std::uint32_t width = 64;
  std::uint32_t hidden = 128;
  std::uint32_t num_layers = 1;
  bool own_output = false;
};

// A few hundred kilobytes: 4 heads, 2 KV heads, a context of 256 tokens.
inline ModelDraft tiny_draft(const TinyDraftOptions& options = {}) {
  TinyLlamaOptions llama;
  llama.weight_type = options.weight_type;
  llama.num_layers = options.num_layers;
  llama.embedding_length = options.width;
  llama.feed_forward_length = options.hidden;
  llama.context_length = 256;
  llama.tied_output = !options.own_output;
  return make_tiny_llama(/*seed=*/7, llama).draft();
}

}  // namespace octavo::test
