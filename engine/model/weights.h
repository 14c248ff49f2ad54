// A model's weights as a backend reads them: matrices repacked, vectors as
// floats, all in the backend's memory.
//
// Ownership: owns everything; the file is not needed any more. The backend that prepared the matrices must
// outlive this object. Immutable once prepared; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "engine/api/engine_options.h"
#include "engine/base/result.h"
#include "engine/model/model_tensors.h"
#include "kernels/backend.h"

namespace octavo::model {

struct PreparedNorm {
  std::unique_ptr<kernels::Buffer> weight;  // null: no norm here
  std::unique_ptr<kernels::Buffer> bias;    // null: none
};

// y = matrix · x + bias. Null bias: none. Null matrix: not part of this architecture.
struct PreparedProjection {
  std::unique_ptr<kernels::Matrix> matrix;
  std::unique_ptr<kernels::Buffer> bias;
};

// Of a layer of routed experts; no matrices: the layer has none.
struct PreparedExperts {
  PreparedNorm norm;                             // null: the layer's
  std::unique_ptr<kernels::Buffer> router_norm;  // null: as the experts'
  PreparedProjection router;
  std::unique_ptr<kernels::Buffer> selection_bias;                 // null: none
  std::vector<std::unique_ptr<kernels::Matrix>> owned;             // all of the experts
  std::vector<const kernels::Matrix*> gate, up, down;              // of each expert
  std::unique_ptr<kernels::Buffer> gate_bias, up_bias, down_bias;  // null: none
  std::unique_ptr<kernels::Buffer> output_scale;                   // null: none
  PreparedProjection shared_gate, shared_up, shared_down;
  PreparedProjection latent_down, latent_up;
  PreparedNorm routed_post_norm, shared_post_norm;
  PreparedProjection shared_router;  // no matrix: the shared expert is not gated

  bool empty() const { return up.empty(); }
  std::int64_t memory_bytes() const;
};

// As RecurrentTensors; no matrices: the layer is not recurrent.
struct PreparedRecurrent {
  PreparedProjection input, gate, input_gate, time_step, beta;
  std::unique_ptr<kernels::Buffer> convolution, convolution_bias, time_bias, decay, skip, output_norm;
  PreparedProjection output;
};

// As LatentTensors; no matrices: the layer has none.
struct PreparedLatent {
  PreparedProjection query_down, query, key_value;
  std::unique_ptr<kernels::Buffer> query_norm, latent_norm;  // null: none
  std::vector<std::unique_ptr<kernels::Matrix>> owned;       // all of the heads
  std::vector<const kernels::Matrix*> keys, values;          // of each head

  std::int64_t memory_bytes() const;
};

struct LayerWeights {
  PreparedNorm attention_norm;
  PreparedProjection query, key, value;
  std::unique_ptr<kernels::Buffer> query_norm, key_norm, value_norm;  // null: none
  PreparedProjection attention_gate;                                  // no matrix: none
  PreparedLatent latent;                                              // instead of query, key and value
  PreparedProjection attention_output;
  PreparedRecurrent recurrent;  // instead of attention or beside it
  PreparedNorm post_attention_norm;
  std::unique_ptr<kernels::Buffer> sinks;  // null: none
  bool branches_stand_side_by_side = false;
  PreparedNorm feed_forward_norm;
  PreparedExperts experts;  // instead of gate, up and down
  PreparedProjection gate, up, down;
  PreparedNorm post_feed_forward_norm;
  PreparedProjection embedding_gate, embedding_projection;  // of the layer's part of the second embedding
  PreparedNorm post_embedding_norm;
  float output_scale = 1.0f;

  std::int64_t memory_bytes() const;
};

// Null: the model has none.
struct PreparedLayerEmbedding {
  std::unique_ptr<kernels::Matrix> tokens;
  PreparedProjection projection;
  std::unique_ptr<kernels::Buffer> norm;
};

// As NextTokenTensors; null or no matrix: the model's.
struct PreparedNextToken {
  PreparedNorm token_norm, hidden_norm;
  PreparedProjection joint;
  LayerWeights layer;
  std::unique_ptr<kernels::Matrix> token_embedding;
  PreparedNorm output_norm;
  PreparedProjection output;

  std::int64_t memory_bytes() const;
};

struct Weights {
  std::unique_ptr<kernels::Matrix> token_embedding;     // null when it is tied to the output head
  std::unique_ptr<kernels::Matrix> position_embedding;  // null: positions are rotated
  std::unique_ptr<kernels::Buffer> embedding_norm;      // null: none
  PreparedLayerEmbedding layer_embedding;
  std::vector<LayerWeights> layers;
  PreparedNorm output_norm;
  PreparedProjection output;
  std::optional<PreparedNextToken> next_token;
  RopeFrequencies rope;
  std::optional<RopeFrequencies> local_rope;

  // [vocabulary_size, embedding_length]
  const kernels::Matrix& embedding() const { return token_embedding ? *token_embedding : *output.matrix; }
  std::int64_t memory_bytes() const;  // of prepared matrices
};

// The bytes of all matrices as they will stand in memory if the backend's order costs no padding: known
// without reading a weight.
std::int64_t planned_weight_bytes(const ModelTensors& tensors, WeightType dtype);

// Whether any matrix of the layers or the output has a quantised type: what decides how activations are kept.
// An embedding of its own is only read.
bool has_quantised_weights(const ModelTensors& tensors);
// Whether any has not.
bool has_unquantised_weights(const ModelTensors& tensors);

// Fraction done, 0..1; return false to cancel. Called on the loading thread, at least once for each matrix.
using LoadProgress = std::function<bool(double fraction)>;
// kCancelled where `progress` returns false. It may be empty.
Result<void> report_progress(const LoadProgress& progress, double fraction);

// Prepares one matrix after the other, and lets the file's pages go as soon as they are packed. Unquantised
// matrices are converted to `dtype` first unless it is kAuto. Errors: kCancelled; kUnsupported for a number
// that float16 cannot hold; kOutOfMemory from the backend.
Result<Weights> prepare_weights(ModelTensors tensors, WeightType dtype, kernels::Backend& backend,
                                const LoadProgress& progress);

}  // namespace octavo::model
