// Which backends this build has, and the choice among them. The only place that knows more than one; the only
// file whose .cc may ask the preprocessor about CUDA.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "kernels/backend.h"

namespace octavo::kernels {

struct BackendOptions {
  std::string device = "auto";  // "auto", "cpu", "cuda"
  std::int32_t threads = 0;     // 0: physical cores
  Activation activation = Activation::kInt8;
  bool deterministic = false;  // for devices; the CPU's results never depend on the batch
  bool graphs = true;          // for devices: decode steps are recorded
  // For devices: one 16-bit number for each activation will do, also with weights that are not quantised
  bool rounds_activations = false;
  bool needs_experts = false;  // feed_forward_experts, which CUDA has not yet
  bool needs_states = false;   // recurrent layers or gated attention: likewise
  // Layers that differ in heads, share keys and values, or have norms, scales and embeddings of their own as
  // gemma4's do: likewise
  bool needs_unequal_layers = false;
  bool needs_scaled_queries = false;  // PagedBatch::query_scales: likewise
  // Norms of the embedding or of rotated heads, LayerNorm of heads, attention that reads rows as they are:
  // likewise
  bool needs_other_norms = false;
  bool needs_latent_attention = false;  // latent_attention_input, project_heads: likewise
  bool needs_chunks = false;            // WindowForm::kChunk: likewise
  bool needs_column_orders = false;     // MatrixSource::column_order
  std::vector<TensorType> types = {};   // of all matrices: CUDA multiplies with some only
};

// In order of preference, as built: for `octavo --version`. E.g. {"cpu", "reference"}.
std::vector<std::string> built_backends();

// Instruction sets of the CPU backend that this machine can run, best first.
std::vector<std::string> usable_instruction_sets();

// Physical cores that this process may use, at least 1.
std::int32_t num_physical_cores();

// OCTAVO_BACKEND (reference, cpu, cuda) and OCTAVO_CPU_ISA (amx, avx512_vnni, avx512, avx_vnni, avx2,
// portable) force one, for tests; a name that is unknown, or that this machine cannot run, is an error, never
// ignored.
//
// "auto" takes a graphics processor if this build knows how, there is one, and check_device()
// finds it right; else the CPU. A processor that is present but not used is named in `notice`,
// one sentence (null: not wanted).
Result<std::unique_ptr<Backend>> create_backend(const BackendOptions& options, std::string* notice = nullptr);

}  // namespace octavo::kernels
