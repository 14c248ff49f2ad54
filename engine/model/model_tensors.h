// The weights of a llama model, found. The list of tensors follows from the hyperparameters and is then
// looked up in the file by name, shape and type; tensors that it does not name are ignored.
//
// Ownership: matrices are views into the GgufFile, which must outlive this object; vectors are copies, as
// floats.
#pragma once

#include <span>
#include <vector>

#include "engine/base/result.h"
#include "engine/model/gguf_file.h"
#include "engine/model/model_config.h"
#include "engine/model/rope.h"
#include "kernels/tensor.h"

namespace octavo::model {

// y = weight · x + bias. Empty bias: none.
struct Projection {
  kernels::MatrixSource weight;
  std::vector<float> bias;
};

struct LayerTensors {
  std::vector<float> attention_norm;  // [embedding_length]
  Projection query;                   // [num_heads * head_dim, embedding_length]
  Projection key;                     // [num_kv_heads * head_dim, embedding_length]
  Projection value;
  Projection attention_output;  // [embedding_length, num_heads * head_dim]
  std::vector<float> feed_forward_norm;
  Projection gate;  // [feed_forward_length, embedding_length]
  Projection up;
  Projection down;  // [embedding_length, feed_forward_length]
};

struct ModelTensors {
  kernels::MatrixSource token_embedding;  // [vocabulary_size, embedding_length]
  std::vector<LayerTensors> layers;
  std::vector<float> output_norm;
  Projection output;            // [vocabulary_size, embedding_length]
  bool output_is_tied = false;  // output.weight is token_embedding
  RopeFrequencies rope;
};

// Errors: kDamagedFile for a tensor that is missing, has another shape, or (norms, biases, rope factors)
// holds numbers that are not finite; kUnsupported for a type that no kernel reads. Error::subject is the
// tensor. REQUIRES: config was read from this file.
Result<ModelTensors> find_model_tensors(const GgufFile& file, const ModelConfig& config);

}  // namespace octavo::model
