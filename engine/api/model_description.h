// What was loaded, as plain values for people and programs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/api/engine_options.h"
#include "engine/api/sampling_advice.h"
#include "engine/api/template_values.h"

namespace octavo {

// Layers whose keys and values take the same.
struct KvLayersDescription {
  std::int32_t num_layers = 0;
  std::int32_t num_kv_heads = 0;
  std::int32_t head_dim = 0;
  std::int32_t latent_dim = 0;  // values are so many numbers of the keys, kept once; 0: they stand apart
};

struct ModelDescription {
  std::string path;          // as opened
  std::string name;          // from the file, may be empty
  std::string architecture;  // "llama"
  std::string quantisation;  // commonest type of the matrices, "Q4_1"
  std::int64_t num_parameters = 0;
  std::int64_t num_layer_parameters = 0;  // of the layers alone: what every token is multiplied with; of
                                          // experts those that a token uses
  std::int64_t file_bytes = 0;
  std::int32_t num_layers = 0;            // that are computed
  std::int32_t num_recurrent_layers = 0;  // of these: they keep a state instead of keys and values
  std::int64_t state_bytes = 0;           // of one sequence in all of them, whatever its length
  std::int32_t num_skipped_layers = 0;    // beside num_layers in the file: they only guess further tokens
  std::int64_t skipped_bytes = 0;         // of file_bytes, what these take
  bool predicts_next_tokens = false;      // by the first of these, for Speculation::kMtp
  std::int32_t embedding_length = 0;
  std::int32_t num_heads = 0;
  std::vector<KvLayersDescription> kv_layers =
      {};                        // that have keys and values of their own, alike ones together
  std::int32_t num_experts = 0;  // 0: no layer has any
  std::int32_t num_used_experts = 0;
  std::int64_t expert_bytes = 0;  // of file_bytes, what the experts of all layers take; shared ones are not
                                  // counted
  std::int32_t context_length = 0;
  std::int32_t vocabulary_size = 0;
  bool has_chat_template = false;
  SamplingAdvice sampling_advice = {};
  std::vector<TemplateSwitch> template_switches = {};
};

// The model and every option as resolved at start.
struct EngineDescription {
  ModelDescription model;
  std::string device;  // "cpu" | "cuda"
  std::string isa;     // "amx", "avx512_vnni", "avx512", "avx_vnni", "avx2", "portable"
  std::int32_t threads = 0;
  ActivationType activation_dtype = ActivationType::kF32;
  KvCacheType kv_cache_dtype = KvCacheType::kF16;
  std::int32_t block_size = 16;
  std::int32_t num_blocks = 0;
  std::int32_t num_host_blocks = 0;  // of the same size; 0: nothing is swapped
  std::int64_t bytes_per_block = 0;  // scales included
  // Of recurrent layers, one for each running sequence and checkpoint; 0: there are none
  std::int32_t num_states = 0;
  std::int32_t num_host_states = 0;
  std::int64_t bytes_per_state = 0;
  // Of layers with a window that keep their keys and values in a pool of their own: its tokens; 0: there are
  // none, and bytes_per_block is of all layers
  std::int32_t window = 0;
  std::int32_t num_window_blocks = 0;
  std::int32_t num_host_window_blocks = 0;
  std::int64_t bytes_per_window_block = 0;
  std::int64_t weight_bytes = 0;  // as prepared in memory
  // Set aside for the largest step: activations, logits, sampling, the kernels' scratch
  std::int64_t working_bytes = 0;
  std::int32_t max_model_len = 0;
  std::int32_t max_num_seqs = 0;
  std::int32_t max_num_batched_tokens = 0;
  double load_ms = 0.0;
  std::string notice;  // a sentence where an option was not followed exactly; else empty

  // Of the device pools of keys and values.
  std::int64_t kv_bytes() const {
    return num_blocks * bytes_per_block + num_window_blocks * bytes_per_window_block;
  }
  // ceil(max_model_len / block_size)
  std::int32_t max_blocks_per_sequence() const { return (max_model_len + block_size - 1) / block_size; }
};

}  // namespace octavo
