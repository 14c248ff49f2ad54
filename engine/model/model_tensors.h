// The weights of a model, found. The list of tensors follows from architecture and hyperparameters and is
// then looked up in the file by name, shape and type; a file with a tensor that nothing here uses is refused
// by its name. Matrices that a file packs into one (Q, K and V; gate and up) come apart here: their rows
// stand one behind the other, or by turns.
//
// Ownership: matrices are views into the ModelSource, or lead to its readers; it must outlive this object.
// Vectors are copies, as floats.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/base/result.h"
#include "engine/model/model_config.h"
#include "engine/model/model_source.h"
#include "engine/model/rope.h"
#include "kernels/tensor.h"

namespace octavo::model {

// Rows as they stand in the file; or, without bytes, those that a reader makes when they are prepared, so
// that no more than one such matrix is held twice.
struct StoredMatrix : kernels::MatrixSource {
  const RowReader* reader = nullptr;
  std::int64_t first_row = 0;  // of the reader's
};

struct NormTensors {
  std::vector<float> weight;  // empty: no norm here
  std::vector<float> bias;    // or empty
};

struct RowRange {
  std::int64_t first = 0, count = 0;
};

// y = weight · x + bias. Empty bias: none. A weight without rows: not part of this architecture.
struct Projection {
  StoredMatrix weight;
  std::vector<float> bias;
  // Where the file puts rows of several matrices by turns: those of this one, in their order. `weight.bytes`
  // are then the bytes of all, and its rows are gathered when it is prepared. Empty: they stand in one piece.
  std::vector<RowRange> row_ranges = {};
};

// Of a layer of routed experts. Matrices that a file holds as one come apart here, as everywhere.
struct ExpertTensors {
  NormTensors norm;                                  // empty: the layer's feed_forward_norm
  std::vector<float> router_norm;                    // [embedding_length]; empty: as the experts'
  Projection router;                                 // [num_experts, embedding_length]
  std::vector<float> selection_bias;                 // [num_experts], or empty
  std::vector<StoredMatrix> gate, up, down;          // of each expert; no gate: they have none
  std::vector<float> gate_bias, up_bias, down_bias;  // of all experts, or empty
  std::vector<float> output_scale;                   // [num_experts], or empty
  Projection shared_gate, shared_up, shared_down;    // no rows: none is shared, or has no gate
  Projection latent_down, latent_up;                 // [latent_length, embedding_length] and back; or no rows
  NormTensors routed_post_norm, shared_post_norm;    // or empty
  Projection shared_router;                          // [1, embedding_length]; no rows: it is not gated

  bool empty() const { return up.empty(); }

  template <class Visit>
  void visit_multiplied(const Visit& visit) const {
    if (empty()) return;
    visit(router.weight);
    for (const auto* matrices : {&gate, &up, &down}) {
      for (const StoredMatrix& matrix : *matrices) visit(matrix);
    }
    for (const Projection* projection :
         {&shared_gate, &shared_up, &shared_down, &shared_router, &latent_down, &latent_up}) {
      if (projection->weight.rows > 0) visit(projection->weight);
    }
  }
};

// Of a recurrent layer; what its kind (RecurrentLayers) has not is empty. Sizes as in kernels::DeltaNetShape,
// StateSpaceShape and ShortConvolutionShape; `columns` are those of the layer's output.
struct RecurrentTensors {
  Projection input;                     // what is convolved [channels, embedding_length]
  Projection gate;                      // of the output [columns, embedding_length]
  Projection input_gate;                // short convolutions [channels, embedding_length]
  Projection time_step;                 // [heads, embedding_length]; Gated DeltaNet's alpha
  Projection beta;                      // Gated DeltaNet [num_value_heads, embedding_length]
  std::vector<float> convolution;       // [channels, convolution_width], the newest token last
  std::vector<float> convolution_bias;  // Mamba-2, where the file has it [channels]
  std::vector<float> time_bias, decay;  // [heads]; no decay is above zero
  std::vector<float> skip;              // Mamba-2 [num_heads]
  std::vector<float> output_norm;       // [value_dim], Mamba-2 [columns], where the file has it
  Projection output;                    // [embedding_length, columns]

  bool empty() const { return convolution.empty(); }
};

// Of latent attention; sizes as in LatentConfig.
struct LatentTensors {
  Projection query_down;           // [query_rank, embedding_length]; no rows: queries have no rank
  std::vector<float> query_norm;   // [query_rank], or empty
  Projection query;                // [num_heads * query_dim, query_rank or embedding_length]
  Projection key_value;            // [latent_dim + rotary_dim, embedding_length]
  std::vector<float> latent_norm;  // [latent_dim]
  // Of each head [latent_dim, unrotated_dim]; or, as part of a joint matrix, with rows and columns the other
  // way round
  std::vector<StoredMatrix> keys;
  bool keys_are_transposed = false;
  std::vector<StoredMatrix> values;  // of each head [value_dim, latent_dim]

  bool empty() const { return keys.empty(); }

  template <class Visit>
  void visit_multiplied(const Visit& visit) const {
    if (empty()) return;
    for (const Projection* projection : {&query_down, &query, &key_value}) {
      if (projection->weight.rows > 0) visit(projection->weight);
    }
    for (const StoredMatrix& matrix : keys) visit(keys_are_transposed ? turned(matrix) : matrix);
    for (const StoredMatrix& matrix : values) visit(matrix);
  }

  // What becomes of such a matrix, its numbers left out.
  static StoredMatrix turned(const StoredMatrix& matrix) {
    return {{kernels::TensorType::kF32, matrix.columns, matrix.rows, {}}};
  }
};

struct LayerTensors {
  NormTensors attention_norm;  // [embedding_length], or empty
  Projection query;            // [num_heads * head_dim, embedding_length]
  Projection key;    // [num_kv_heads * head_dim, embedding_length]; no rows: the layer reads another one's
  Projection value;  // no rows: as the layer's keys before their norm
  std::vector<float> query_norm, key_norm, value_norm;  // as kernels::AttentionInputWeights, or empty
  Projection attention_gate;                            // as query, or no rows
  LatentTensors latent;                                 // instead of query, key and value; or empty
  Projection attention_output;               // [embedding_length, num_heads * head_dim, or value_dim]
  RecurrentTensors recurrent;                // instead of attention or beside it; or empty
  NormTensors post_attention_norm;           // [embedding_length]
  std::vector<float> sinks;                  // [num_heads], or empty
  bool branches_stand_side_by_side = false;  // see Branches; feed_forward_norm is then attention_norm
  NormTensors feed_forward_norm;             // or empty
  ExpertTensors experts;                     // instead of gate, up and down; or empty
  Projection gate;  // [feed_forward_length, embedding_length]; none in layers without a gate
  Projection up;
  Projection down;  // [embedding_length, feed_forward_length]
  NormTensors post_feed_forward_norm;
  // Of the layer's part of the second embedding; or no rows
  Projection embedding_gate;        // [layer_embedding_length, embedding_length]
  Projection embedding_projection;  // [embedding_length, layer_embedding_length]
  NormTensors post_embedding_norm;
  float output_scale = 1.0f;

  template <class Visit>
  void visit_multiplied(const Visit& visit) const {
    for (const Projection* projection :
         {&query, &key, &value, &attention_gate, &attention_output, &recurrent.input, &recurrent.gate,
          &recurrent.input_gate, &recurrent.time_step, &recurrent.beta, &recurrent.output, &gate, &up, &down,
          &embedding_gate, &embedding_projection}) {
      if (projection->weight.rows > 0) visit(projection->weight);
    }
    latent.visit_multiplied(visit);
    experts.visit_multiplied(visit);
  }
};

// The second embedding, from which each layer gets a part of every token's row. No rows: there is none.
struct LayerEmbeddingTensors {
  StoredMatrix tokens;      // [vocabulary_size, num_layers * layer_embedding_length]
  Projection projection;    // [num_layers * layer_embedding_length, embedding_length]
  std::vector<float> norm;  // [layer_embedding_length]
};

// Of multi-token prediction (kernels::NextTokenWeights): a layer with attention behind the model's own, and
// what stands around it.
struct NextTokenTensors {
  NormTensors token_norm, hidden_norm;  // [embedding_length]
  Projection joint;                     // [embedding_length, 2 * embedding_length]
  LayerTensors layer;
  StoredMatrix token_embedding;  // no rows: the model's
  NormTensors output_norm;       // empty: the model's
  Projection output;             // no rows: the model's
};

struct ModelTensors {
  StoredMatrix token_embedding;       // [vocabulary_size, embedding_length]
  StoredMatrix position_embedding;    // [context_length, embedding_length]; no rows: positions are rotated
  std::vector<float> embedding_norm;  // [embedding_length], or empty
  LayerEmbeddingTensors layer_embedding;
  std::vector<LayerTensors> layers;
  NormTensors output_norm;
  Projection output;                                // [vocabulary_size, embedding_length]
  std::optional<NextTokenTensors> next_token = {};  // where config.guesses_next_tokens
  bool output_is_tied = false;                      // output.weight is token_embedding
  RopeFrequencies rope;  // for the whole context length; no frequencies: positions are learned
  std::optional<RopeFrequencies> short_rope;  // longrope: for contexts within the original length
  std::optional<RopeFrequencies> local_rope;  // of layers with a window, where those differ
  // Readers of matrices here that are not the file's: quantise_matrices()
  std::vector<std::shared_ptr<const RowReader>> readers = {};

  // Every matrix that activations are multiplied with: layers and output head.
  template <class Visit>
  void visit_multiplied(const Visit& visit) const {
    if (layer_embedding.projection.weight.rows > 0) visit(layer_embedding.projection.weight);
    for (const LayerTensors& layer : layers) layer.visit_multiplied(visit);
    visit(output.weight);
    if (!next_token) return;
    visit(next_token->joint.weight);
    next_token->layer.visit_multiplied(visit);
    if (next_token->output.weight.rows > 0) visit(next_token->output.weight);
  }

  // Of all matrices, each once.
  std::vector<kernels::TensorType> matrix_types() const;
};

// Errors: kDamagedFile for a tensor that is missing or has another shape, for rope factors by which nothing
// can be divided, and for states that would grow instead of decay; kUnsupported for a type that no kernel
// reads, and for a tensor that this architecture does not use. Error::subject is the tensor. Weights that are
// not finite are found: they fail the requests whose numbers they reach. REQUIRES: config was read from this
// file.
Result<ModelTensors> find_model_tensors(const ModelSource& file, const ModelConfig& config);

// Makes a model guess its next tokens: config.guesses_next_tokens, and what that takes from the file. Errors:
// kInvalidArgument where the model cannot; else as find_model_tensors(). REQUIRES: all of one file.
Result<void> add_next_token_layer(const ModelSource& file, ModelConfig& config, ModelTensors& tensors);

// Which of longrope's lists is used does not change from token to token, since keys in the cache cannot be
// rotated again: it follows from the longest context that an engine allows. True: from here on the short one.
bool limit_context(ModelTensors& tensors, const ModelConfig& config, std::int32_t max_model_len);

}  // namespace octavo::model
