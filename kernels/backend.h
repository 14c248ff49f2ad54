// What a device can do for a transformer: one abstract class of coarse, fused operations.
//
// Ownership: a backend outlives everything that it made. Thread: one thread (the engine's) calls a
// backend; it may use others inside. Errors: preparing and allocating return Results; an operation
// cannot fail on valid arguments, but a device can: status() tells, and what the operations of a failed
// device leave behind means nothing.
//
// Numbers. On the CPU each output row is computed in an order that depends on that row's own tokens only: not
// on the other rows, on how many there are, on threads, on block size. The rules: ARCHITECTURE.md, "Numbers".
//
// Files: reference/, cpu/ and cuda/ hold files of the same names, one for each operation below (copies and
// swaps in one); tests/tidy/backends_test.cc has the list.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "kernels/kv_layout.h"
#include "kernels/logit_adjustment.h"
#include "kernels/paged_batch.h"
#include "kernels/sample_step.h"
#include "kernels/state_layout.h"
#include "kernels/tensor.h"
#include "kernels/token_draw.h"

namespace octavo::kernels {

// What quantised weights are multiplied with. Unquantised weights always meet f32 activations.
//   kF32   weights are expanded to float, products and sums in float
//   kInt8   each row of activations is rounded to 8 bits per group of 32 (scale = max |a| / 127); sums
//           within a group are exact integers
//   kInt16  the same with 16 bits (scale = max |a| / 32639, which is 127 * 256 + 127): as good as kF32
enum class Activation : std::uint8_t { kF32, kInt8, kInt16 };

// Prepared weights, in whatever order the backend likes to read them.
class Matrix {
 public:
  virtual ~Matrix() = default;
  std::int64_t rows() const { return rows_; }        // output features
  std::int64_t columns() const { return columns_; }  // input features
  virtual std::int64_t memory_bytes() const = 0;

 protected:
  Matrix(std::int64_t rows, std::int64_t columns) : rows_(rows), columns_(columns) {}

 private:
  std::int64_t rows_, columns_;
};

// The device pool: storage for `num_blocks` blocks, contents undefined until written.
// Memory is committed on first touch.
class KvCache {
 public:
  virtual ~KvCache() = default;
  const KvLayout& layout() const { return layout_; }
  std::int32_t num_blocks() const { return num_blocks_; }

 protected:
  KvCache(const KvLayout& layout, std::int32_t num_blocks) : layout_(layout), num_blocks_(num_blocks) {}

 private:
  KvLayout layout_;
  std::int32_t num_blocks_;
};

// The host pool: where blocks stand while their sequences are swapped out, in memory of the host that
// the device reaches quickest (a GPU's: pinned). Same layout as the device pool that it serves.
// Memory is committed on first touch.
class HostKvCache {
 public:
  virtual ~HostKvCache() = default;
  const KvLayout& layout() const { return layout_; }
  std::int32_t num_blocks() const { return num_blocks_; }

 protected:
  HostKvCache(const KvLayout& layout, std::int32_t num_blocks) : layout_(layout), num_blocks_(num_blocks) {}

 private:
  KvLayout layout_;
  std::int32_t num_blocks_;
};

// The states of the recurrent layers, contents undefined until cleared or copied: on the device, where drafts
// have room beside them, and on the host where they stand while their sequences are swapped out. Memory is
// committed on first touch.
class StateCache {
 public:
  virtual ~StateCache() = default;
  const StateLayout& layout() const { return layout_; }
  std::int32_t num_states() const { return num_states_; }

 protected:
  StateCache(const StateLayout& layout, std::int32_t num_states) : layout_(layout), num_states_(num_states) {}

 private:
  StateLayout layout_;
  std::int32_t num_states_;
};

class HostStateCache {
 public:
  virtual ~HostStateCache() = default;
  const StateLayout& layout() const { return layout_; }
  std::int32_t num_states() const { return num_states_; }

 protected:
  HostStateCache(const StateLayout& layout, std::int32_t num_states)
      : layout_(layout), num_states_(num_states) {}

 private:
  StateLayout layout_;
  std::int32_t num_states_;
};

// Floats in the backend's memory, aligned to 64 bytes. Only backends follow data(): a
// device's memory is not the host's.
class Buffer {
 public:
  virtual ~Buffer() = default;
  float* data() const { return data_; }
  std::int64_t size() const { return size_; }

 protected:
  Buffer(float* data, std::int64_t size) : data_(data), size_(size) {}
  float* data_;
  std::int64_t size_;
};

// Which two elements of a head form the i-th rotated pair.
enum class RopePairing : std::uint8_t {
  kInterleaved,  // (2i, 2i + 1): GGUF files of architecture llama
  kHalves,       // (i, i + rotary_dim / 2): GPT-NeoX order
};

// Which of the batch's angles a layer rotates by.
enum class Rotations : std::uint8_t { kGlobal, kLocal };

// Which positions a window of n holds for a row at position p. CUDA has the first only:
// BackendOptions::needs_chunks.
enum class WindowForm : std::uint8_t {
  kSliding,  // those above p - n
  kChunk,    // those from the last multiple of n on, p itself included (Llama 4: Meta 2025, its model card)
};

// The first position that a row reads; a window of 0: all.
constexpr std::int32_t first_in_window(std::int32_t position, std::int32_t window, WindowForm form) {
  if (window == 0) return 0;
  if (form == WindowForm::kChunk) return position / window * window;
  return position < window ? 0 : position - window + 1;
}

// Of one layer: layers of a model may differ in everything but the number of heads.
struct AttentionShape {
  std::int32_t num_heads = 0;
  std::int32_t num_kv_heads = 0;  // divides num_heads; head h reads KV head h / (num_heads / num_kv_heads)
  std::int32_t head_dim = 0;
  std::int32_t rotary_dim = 0;  // even, <= head_dim; the rest of a head is not rotated
  RopePairing pairing = RopePairing::kInterleaved;
  float score_scale = 0.0f;     // usually 1 / sqrt(head_dim)
  float score_soft_cap = 0.0f;  // as soft_cap of OutputHead, of scaled scores; 0: none
  std::int32_t window = 0;      // positions; 0: all
  WindowForm window_form = WindowForm::kSliding;
  Rotations rotations = Rotations::kGlobal;
  // [num_heads]: a score of each head, taken as it is, that takes its part of the softmax and has no value
  // (gpt-oss); empty: none
  std::span<const float> sinks = {};
  // As of KvHeads: values have so many dimensions, which are the first ones of the keys. 0: head_dim of their
  // own
  std::int32_t latent_dim = 0;

  constexpr std::int32_t value_dim() const { return latent_dim > 0 ? latent_dim : head_dim; }
};

// A layer's weights as views; the owner is engine/model. Norms and biases are in the backend's memory:
// prepare_vector. Empty bias: none.

//   kRms    x / sqrt(mean(x^2) + epsilon) * weight + bias (Zhang & Sennrich 2019, arXiv:1910.07467)
//   kLayer  (x - mean(x)) / sqrt(mean((x - mean(x))^2) + epsilon) * weight + bias (Ba et al. 2016,
//   arXiv:1607.06450)
enum class NormKind : std::uint8_t { kRms, kLayer };

struct NormWeights {
  std::span<const float> weight = {};  // empty: no norm, where one may be missing
  float epsilon = 0.0f;
  NormKind kind = NormKind::kRms;
  // As long as weight; empty: none. What the next structures call kRms has none.
  std::span<const float> bias = {};
};

struct EmbeddingWeights {
  const Matrix* tokens = nullptr;     // [vocabulary, embedding_length]
  float scale = 1.0f;                 // of the tokens' rows
  const Matrix* positions = nullptr;  // [positions, embedding_length], added to the scaled rows; null: none
  // Of the rows in the end; no weight: none. This and what the next structures say of norms is not on CUDA
  // where it is not marked as usual there: BackendOptions::needs_other_norms
  NormWeights norm = {};
};

struct AttentionInputWeights {
  NormWeights norm;               // [embedding_length]; no weight: none, but its epsilon holds
  const Matrix* query = nullptr;  // [num_heads * head_dim, embedding_length]
  // [num_kv_heads * head_dim, embedding_length]; null: the layer reads another one's keys and values, and
  // writes none
  const Matrix* key = nullptr;
  const Matrix* value = nullptr;  // null: values are what `key` gives, as it is before its norm
  std::span<const float> query_bias = {}, key_bias = {}, value_bias = {};
  // Norms with the epsilon of `norm`, of kRms: with a weight [head_dim] of each head by itself; with one as
  // long as the row of all heads, of all together. Of kLayer the latter is the heads' weights, one behind the
  // other, and each head is normalised by itself. Empty: none. Values are never rotated.
  std::span<const float> query_norm = {}, key_norm = {}, value_norm = {};
  NormKind head_norm_kind = NormKind::kRms;  // kRms is usual on CUDA
  bool norms_follow_rotation = false;        // of queries and keys; false is usual on CUDA
};

// Of multi-head latent attention in its absorbed form (DeepSeek-AI 2024, arXiv:2405.04434): all heads share
// one key, the latent numbers of a token and then the rotated ones, and latent_dim of AttentionShape is the
// number of the former.
struct LatentInputWeights {
  NormWeights norm;  // [embedding_length]
  // [rank, embedding_length] and [rank], kRms: what `query` reads instead of the rows; null: none
  const Matrix* query_down = nullptr;
  NormWeights query_norm = {};
  // [num_heads * (unrotated + rotary_dim), rank or embedding_length]
  const Matrix* query = nullptr;
  const Matrix* key_value = nullptr;         // [latent_dim + rotary_dim, embedding_length]
  NormWeights latent_norm = {};              // [latent_dim], kRms: of the latent numbers alone
  std::span<const Matrix* const> keys = {};  // of each head [latent_dim, unrotated]
};

// What projects back to the residual stream.
struct ProjectionWeights {
  const Matrix* matrix = nullptr;
  std::span<const float> bias = {};
  NormWeights post_norm = {};   // of what is added, kRms; empty: none
  float residual_scale = 1.0f;  // of the sum
};

//   kSilu  z / (1 + exp(-z))
//   kGelu  z / 2 * (1 + tanh(sqrt(2 / pi) * (z + 0.044715 z^3))): Hendrycks & Gimpel 2016, arXiv:1606.08415
//   kRelu  max(z, 0)
//   kSquaredRelu  max(z, 0)^2 (So et al. 2021, arXiv:2109.08668)
//   kClampedSwiglu  with a gate only: the pair of gate z and up u becomes g / (1 + exp(-1.702 g)) * (v + 1),
//   g = min(z, 7), v = u kept within -7 and 7 (gpt-oss: OpenAI 2025, arXiv:2508.10925)
// CUDA has the first three: the others belong to models that it does not run yet, with experts or states.
enum class FeedForwardActivation : std::uint8_t { kSilu, kGelu, kRelu, kSquaredRelu, kClampedSwiglu };
inline constexpr float kSwigluLimit = 7.0f, kSwigluSlope = 1.702f;

struct FeedForwardInputWeights {
  NormWeights norm;              // no weight: none
  const Matrix* gate = nullptr;  // [feed_forward_length, embedding_length]; null: the layer has no gate
  const Matrix* up = nullptr;    // null: `factors` stand for its products, and there is a gate
  std::span<const float> gate_bias = {}, up_bias = {};
  FeedForwardActivation activation = FeedForwardActivation::kSilu;
  ConstMatrixView factors = {};  // [num_tokens, feed_forward_length]
};

// How a row chooses its experts. Scores of the E experts are the router's products; `kSigmoid` and `kSoftmax`
// make them probabilities before anything is chosen. The num_used experts with the largest probability +
// selection bias are chosen, of equals that with the lower number; with kSoftmaxOfSelected and
// kSigmoidOfSelected those with the largest scores, whose softmax, or sigmoid, is then their weights. A
// number that is NaN counts as the largest, so that it is seen.
//
// With groups, experts g * E / num_groups and up form group g, which is worth the sum of its two largest
// values; only the num_used_groups best groups can be chosen from (DeepSeek-AI 2024, arXiv:2412.19437).
enum class RouterScoring : std::uint8_t { kSoftmax, kSigmoid, kSoftmaxOfSelected, kSigmoidOfSelected };

struct Routing {
  std::int32_t num_used = 0;  // 1 to the number of experts
  RouterScoring scoring = RouterScoring::kSoftmax;
  std::span<const float> selection_bias = {};        // [num_experts]; never in a weight; empty: none
  std::int32_t num_groups = 1, num_used_groups = 1;  // of at least two experts each, where more than one
  bool normalises = false;  // weights are divided by their sum, or kLeastWeightSum if that is more
  float scale = 1.0f;       // of the weights, in the end
};
// The smallest normal float16, as the models' first programs had it.
inline constexpr float kLeastWeightSum = 6.103515625e-5f;

// Of one layer of routed experts (Shazeer et al. 2017, arXiv:1701.06538). Matrices as in a layer without.
struct ExpertWeights {
  NormWeights norm;
  NormWeights router_norm = {}, shared_norm = {};  // of what router and shared expert read; no weight: `norm`
  const Matrix* router = nullptr;  // [num_experts, embedding_length], unquantised: it meets f32 activations
  std::span<const float> router_bias = {};  // of the scores
  Routing routing;
  // [num_experts], of one size each. No `gate`: the experts, and the shared one, have none, as
  // FeedForwardInputWeights says.
  std::span<const Matrix*const> gate, up, down;
  // [num_experts, rows of the matrix]; empty: none
  std::span<const float> gate_bias = {}, up_bias = {}, down_bias = {};
  std::span<const float> output_scale = {};  // [num_experts]: of each expert's output, its bias included
  FeedForwardActivation activation = FeedForwardActivation::kSilu;
  bool weighs_inputs = false;  // what an expert reads is multiplied by its weight, instead of what it gives
  // [latent, embedding_length] and [embedding_length, latent]: experts read and give rows of `latent`
  // columns. Null: rows as they are. The router and the shared expert know nothing of it. Not with
  // weighs_inputs.
  const Matrix *latent_down = nullptr, *latent_up = nullptr;
  // The expert that every row uses; null: none. With a router [1, embedding_length], unquantised, its output
  // is multiplied by the sigmoid of the product.
  const Matrix *shared_gate = nullptr, *shared_up = nullptr, *shared_down = nullptr;
  const Matrix* shared_router = nullptr;
  // kRms, of what the chosen experts give together, of what the shared one gives, and of the sum of both; no
  // weight: none
  NormWeights routed_post_norm = {}, shared_post_norm = {}, post_norm = {};
  float residual_scale = 1.0f;  // of the residual, what is added included
};

// A second embedding, from which each layer gets its own part of every row (Gemma 4: Google DeepMind 2026,
// its model card).
struct LayerEmbeddingWeights {
  const Matrix* tokens = nullptr;      // [vocabulary, layers * size of a part]: read, a row for each token
  const Matrix* projection = nullptr;  // [layers * size of a part, embedding_length]
  NormWeights norm;                    // [size of a part], kRms
  float token_scale = 1.0f, projection_scale = 1.0f, scale = 1.0f;
};

// A gate on what attention gives: every number is multiplied by the sigmoid of its own product.
struct AttentionGateWeights {
  NormWeights norm;
  const Matrix* matrix = nullptr;  // [num_heads * head_dim, embedding_length]
};

// Which key head a value head of a Gated DeltaNet layer belongs to.
enum class KeyHeadOrder : std::uint8_t {
  kTiled,    // value head h to key head h mod num_key_heads: GGUF files of qwen35
  kGrouped,  // to h / (num_value_heads / num_key_heads): qwen3next
};

// Sizes of a layer of Gated DeltaNet (Yang et al. 2024, arXiv:2412.06464).
struct DeltaNetShape {
  std::int32_t num_key_heads = 0;  // divides num_value_heads
  std::int32_t num_value_heads = 0;
  std::int32_t key_dim = 0, value_dim = 0;  // of a head
  std::int32_t convolution_width = 0;       // tokens that the convolution sees, its own included; at least 1
  KeyHeadOrder key_head_order = KeyHeadOrder::kTiled;

  constexpr std::int64_t query_columns() const { return std::int64_t{num_key_heads} * key_dim; }
  constexpr std::int64_t value_columns() const { return std::int64_t{num_value_heads} * value_dim; }
  constexpr std::int64_t channels() const { return 2 * query_columns() + value_columns(); }
  // Of a layer: S [num_value_heads][key_dim][value_dim], then the newest inputs of the convolution
  // [convolution_width - 1][channels], the oldest first.
  constexpr std::int64_t recurrent_floats() const { return std::int64_t{key_dim} * value_columns(); }
  constexpr std::int64_t convolution_floats() const { return (convolution_width - 1) * channels(); }
  // What a row brings to a state: the convolution's inputs, and alpha's and beta's part of each value head.
  constexpr std::int64_t draft_floats() const { return channels() + 2 * std::int64_t{num_value_heads}; }
};

struct DeltaNetWeights {
  NormWeights norm;
  const Matrix* query_key_value = nullptr;         // [channels, embedding_length]: queries, keys, values
  const Matrix* gate = nullptr;                    // [value_columns, embedding_length]
  const Matrix *alpha = nullptr, *beta = nullptr;  // [num_value_heads, embedding_length]
  std::span<const float> convolution = {};         // [channels, convolution_width], the newest token last
  std::span<const float> time_bias = {};           // [num_value_heads]
  std::span<const float> decay = {};               // [num_value_heads], negative
  NormWeights output_norm = {};                    // [value_dim], kRms: of each head by itself
};

// Sizes of a layer of Mamba-2 (Dao & Gu 2024, arXiv:2405.21060).
struct StateSpaceShape {
  std::int32_t num_heads = 0, head_dim = 0;
  std::int32_t num_groups = 0;  // divides num_heads; head h belongs to group h / (num_heads / num_groups)
  std::int32_t state_size = 0;
  std::int32_t convolution_width = 0;  // as of DeltaNetShape

  constexpr std::int64_t inner_columns() const { return std::int64_t{num_heads} * head_dim; }
  constexpr std::int64_t group_columns() const { return std::int64_t{num_groups} * state_size; }
  constexpr std::int64_t channels() const { return inner_columns() + 2 * group_columns(); }
  // Of a layer: S [num_heads][state_size][head_dim], then as of DeltaNetShape.
  constexpr std::int64_t recurrent_floats() const { return state_size * inner_columns(); }
  constexpr std::int64_t convolution_floats() const { return (convolution_width - 1) * channels(); }
  // As of DeltaNetShape: the convolution's inputs, and two numbers of each head's time step.
  constexpr std::int64_t draft_floats() const { return channels() + 2 * std::int64_t{num_heads}; }
};

struct StateSpaceWeights {
  NormWeights norm;
  const Matrix* input = nullptr;  // [channels, embedding_length]: x of all heads, B of all groups, C of all
  const Matrix* gate = nullptr;   // [inner_columns, embedding_length]
  const Matrix* time_step = nullptr;             // [num_heads, embedding_length]
  std::span<const float> convolution = {};       // [channels, convolution_width], the newest token last
  std::span<const float> convolution_bias = {};  // [channels]; empty: none
  std::span<const float> time_bias = {};         // [num_heads]
  std::span<const float> decay = {};             // [num_heads], negative
  std::span<const float> skip = {};              // [num_heads]
  NormWeights output_norm = {};  // [inner_columns], kRms: of each of num_groups parts by itself; empty: none
};

// Sizes of a layer of gated short convolution (Liquid AI's LFM2).
struct ShortConvolutionShape {
  std::int32_t num_channels = 0;
  std::int32_t convolution_width = 0;  // as of DeltaNetShape

  // Of a layer: the newest inputs of the convolution only, as of DeltaNetShape.
  constexpr std::int64_t convolution_floats() const {
    return (convolution_width - 1) * std::int64_t{num_channels};
  }
  constexpr std::int64_t draft_floats() const { return num_channels; }
};

struct ShortConvolutionWeights {
  NormWeights norm;
  const Matrix *input = nullptr, *input_gate = nullptr;  // [num_channels, embedding_length]
  const Matrix* output_gate = nullptr;
  std::span<const float> convolution = {};  // [num_channels, convolution_width], the newest token last
};

// What multi-token prediction begins with (DeepSeek-AI 2024, arXiv:2412.19437, section 2.2): what a model
// made of a token, and the token behind it.
struct NextTokenWeights {
  NormWeights token_norm;                // of the tokens' embeddings
  NormWeights output_norm, hidden_norm;  // of the model's rows, one after the other
  const Matrix* matrix = nullptr;        // [embedding_length, 2 * embedding_length], the token's part first
};

struct OutputHead {
  NormWeights norm;
  const Matrix* matrix = nullptr;  // [vocabulary, embedding_length]
  std::span<const float> bias = {};
  float soft_cap = 0.0f;  // logits become cap * tanh(logit / cap), or NaN where they are not finite; 0: none
};

// Entries of the vocabulary that are summed up together. Whoever looks for the best tokens passes over
// pieces whose maximum is too low.
inline constexpr std::int64_t kLogitsPiece = 64;
constexpr std::int64_t num_logits_pieces(std::int64_t vocabulary) {
  return (vocabulary + kLogitsPiece - 1) / kLogitsPiece;
}

// What is worth knowing of each row of logits while it is still in the cache.
// The same bits whatever the batch.
struct LogitsSummary {
  // log(sum(exp(row))), [num_rows]. Finite exactly if the row has no NaN, no
  // plus infinity and a finite number.
  std::span<float> log_sum_exp;
  std::span<float> piece_maxima;  // [num_rows, num_logits_pieces]; of no meaning where log_sum_exp is NaN
};

// The largest step that a model will ask for.
struct StepShape {
  std::int32_t num_rows = 0;           // of one step
  std::int32_t num_logits_rows = 0;    // of one call of logits()
  std::int32_t max_context_len = 0;    // tokens
  std::int32_t max_num_sequences = 0;  // 0: as many as rows
  std::int32_t block_size = 1;
  std::int32_t embedding_length = 0;
  std::int32_t feed_forward_length = 0;  // of layers without experts; 0: there are none
  std::int32_t num_experts = 0;          // 0: no layer has any
  std::int32_t num_used_experts = 0;
  std::int32_t expert_length = 0;         // hidden columns of one
  std::int32_t shared_expert_length = 0;  // 0: none is shared
  std::int32_t expert_latent_length = 0;  // 0: experts read rows as they are
  std::int32_t num_heads = 0;
  std::int32_t num_kv_heads = 0;
  std::int32_t head_dim = 0;
  std::int32_t latent_dim = 0;            // as of KvHeads
  std::vector<KvHeads> other_heads = {};  // of layers with others than these, each kind once
  // Of latent attention; 0: the model has none, or no rank
  std::int32_t latent_query_dim = 0;   // a head's query before its key's matrix: unrotated and rotated
  std::int32_t latent_value_dim = 0;   // a head's value behind its matrix
  std::int32_t latent_query_rank = 0;  // columns of `query` where `query_down` stands before it
  // Of all layers' parts together; 0: there is no such embedding
  std::int32_t layer_embedding_length = 0;
  std::int32_t vocabulary_size = 0;
  std::int32_t num_layers = 0;           // for what recorded steps take; 0: not known
  std::int32_t num_adjusted_tokens = 0;  // of one call of draw_tokens(): most_adjusted_tokens()
  bool has_quantised_weights = false;
  bool has_unquantised_weights = false;
  bool has_post_norms = false;
  bool has_local_rotations = false;
  bool has_attention_gates = false;
  bool has_shared_expert_norms = false;
  bool has_drafts = false;         // with recurrent layers: steps may have rows of drafts
  bool joins_next_tokens = false;  // what a model guesses its own next tokens by
  // Of recurrent layers; no heads or channels: there are none of these.
  DeltaNetShape delta_net = {};
  StateSpaceShape state_space = {};
  ShortConvolutionShape short_convolution = {};
};

// What draw_tokens() is asked for after a step, as it takes it.
struct StepDraws {
  std::span<const std::int32_t> rows = {};
  std::span<const TokenDraw> draws = {};
};

// A step's operations from embed to the last project_residual, on the rows that it is given: it does the same
// operations on the same weights, pool and buffers whenever it is called, only their rows differ.
using StepBody = std::function<void(const PagedBatch& batch, std::span<const std::int32_t> token_ids)>;

// A device's own memory.
struct DeviceBytes {
  std::int64_t free_bytes = 0;
  std::int64_t total_bytes = 0;
};

// Of moves between the pools, in microseconds; 0 where nothing was moved.
struct SwapTimes {
  std::int64_t out_us = 0;
  std::int64_t in_us = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string_view name() const = 0;  // "reference", "cpu", "cuda"
  virtual std::string_view isa()
      const = 0;  // instruction set in use: "avx512_vnni", ...; "portable" for the reference
  virtual std::int32_t num_threads() const = 0;

  // The first failure of the device, kDeviceLost, and from then on the same; always success where there is no
  // device to lose. Ask after each use of results: they may be wrong exactly if this is an error.
  virtual Result<void> status() const { return {}; }
  // What it does in a slower way than it could, so far, as a sentence for a person; else empty.
  virtual std::string notice() const { return {}; }

  // nullopt: weights and pools are in the host's memory.
  virtual std::optional<DeviceBytes> device_bytes() const { return std::nullopt; }

  // Repacks weights. Afterwards the source's bytes are not needed. What a device needs for it stays until
  // reserve_step().
  virtual Result<std::unique_ptr<Matrix>> prepare_matrix(const MatrixSource& source) = 0;
  // The values in the backend's memory, of the same size: norms and biases.
  virtual Result<std::unique_ptr<Buffer>> prepare_vector(std::span<const float> values);

  virtual Result<std::unique_ptr<KvCache>> allocate_kv_cache(const KvLayout& layout,
                                                             std::int32_t num_blocks) = 0;
  virtual Result<std::unique_ptr<HostKvCache>> allocate_host_kv_cache(const KvLayout& layout,
                                                                      std::int32_t num_blocks) = 0;
  virtual Result<std::unique_ptr<Buffer>> allocate_buffer(std::int64_t num_floats) = 0;
  // States of recurrent layers. Not on CUDA yet: BackendOptions::needs_states.
  virtual Result<std::unique_ptr<StateCache>> allocate_state_cache(const StateLayout& layout,
                                                                   std::int32_t num_states);
  virtual Result<std::unique_ptr<HostStateCache>> allocate_host_state_cache(const StateLayout& layout,
                                                                            std::int32_t num_states);

  // Takes what operations of steps up to this shape work in, so that no step allocates. (Memory is committed
  // on first touch.) Error kOutOfMemory.
  virtual Result<void> reserve_step(const StepShape& shape) = 0;
  // What the operations and prepare_matrix() work in, as allocated now: neither weights, pools nor buffers.
  virtual std::int64_t scratch_bytes() const = 0;

  // From position 0 on, so many positions' angles are worth keeping; 0: batches bring their own. Known after
  // reserve_step(), and until the next.
  virtual std::int32_t num_kept_rotations() const { return 0; }
  // Takes them: from then on batches come without, but for those whose angles are others.
  //   rotations, local_rotations  [num_kept_rotations(), rotary_dim / 2, 2], as in PagedBatch
  virtual Result<void> keep_rotations(std::span<const float> rotations,
                                      std::span<const float> local_rotations);

  // Tells the rows of the operations that follow, until the next call: a device takes its copy here, once for
  // all layers. Token ids are below the vocabulary's size, or drawn_token() where start_draws() allows it.
  // The arrays must stay as they are until then. REQUIRES: embed is given these token_ids, operations that
  // take a batch this one.
  virtual void begin_step(const PagedBatch& batch, std::span<const std::int32_t> token_ids);

  // Does `body` for this step, after begin_step. A device may fill a step up with rows that concern nobody
  // (`body` is then given more than these, and never more than StepShape::num_rows), and may start what it
  // recorded instead of calling `body`. The results of these rows are the same bits with and without.
  // `draws`: the next draw_tokens()'s, if they are known and nothing is adjusted: a device sends them along.
  virtual void run_step(const PagedBatch& batch, std::span<const std::int32_t> token_ids,
                        const StepBody& body, const StepDraws& draws = {});

  // Steps to run once, with all that may follow one, after reserve_step() and when weights and pool are where
  // they stay, so that no later step loads code or allocates: empty where none would. Their rows have slot
  // -1, so that nothing is written into the pool.
  virtual std::vector<SampleStep> steps_to_rehearse() const { return {}; }
  // The steps to pass to record_step() once, in any order, after reserve_step() and when weights and pool are
  // where they stay: empty where nothing is recorded.
  virtual std::vector<SampleStep> steps_to_record() const { return {}; }
  // Records `body` for steps like this one; only the shape of `batch` matters, and what is computed meanwhile
  // nobody sees: nothing is written into the pool. What was recorded holds until the next reserve_step().
  // REQUIRES: a step of steps_to_record(), or of the shape of one; one body for all. Errors: one sentence.
  virtual Result<void> record_step(const PagedBatch& batch, std::span<const std::int32_t> token_ids,
                                   const StepBody& body);
  // Records what draw_tokens() does after a step where each row that draws does so once and nothing is
  // adjusted, for the one head and the rows that all steps leave: once, after they were recorded. Errors: one
  // sentence.
  virtual Result<void> record_draws(const OutputHead& head, ConstMatrixView x);

  // out[i, :] = norm(tokens[token_ids[i], :] * scale, expanded to float, +
  // position_table[positions[i], :] if there is one).
  //   token_ids, positions  [num_tokens]    out  [num_tokens, embedding_length]
  virtual void embed(const EmbeddingWeights& weights, std::span<const std::int32_t> token_ids,
                     std::span<const std::int32_t> positions, MatrixView out) = 0;

  // out[i, part p] = (norm(projection_scale * (W · x[i, :])[part p]) + token_scale * tokens[token_ids[i],
  // part p]) * scale, for each of the parts of norm.weight.size() columns. Not on CUDA yet:
  // BackendOptions::needs_unequal_layers.
  //   x  [num_tokens, embedding_length]   out  [num_tokens, W.rows]
  virtual void embed_layers(const LayerEmbeddingWeights& weights, std::span<const std::int32_t> token_ids,
                            ConstMatrixView x, MatrixView out);

  // q, k, v = W · norm(x) + bias, normalised by head if the weights say so, then (or before) q and k rotated
  // by position (Su et al. 2021, arXiv:2104.09864), and q multiplied by batch.query_scales; k and v rounded
  // to the KV type and written to their slots in the pool's layer `layer`.
  //   x  [num_tokens, embedding_length]         q  [num_tokens, num_heads * head_dim]
  virtual void attention_input(const AttentionInputWeights& weights, const AttentionShape& shape,
                               const PagedBatch& batch, std::int32_t layer, ConstMatrixView x, KvCache& kv,
                               MatrixView q) = 0;

  // As attention_input for latent attention. Of each row, with y = norm(x):
  //   key_value · y = [c | r];  k = [latent_norm(c) | r rotated by position], rounded and written
  //   query · query_norm(query_down · y), or query · y, is [u | s] of each head
  //   q of head h = [keys[h] · u | s rotated], u and s multiplied by batch.query_scales
  // Not on CUDA yet, here and in project_heads: BackendOptions::needs_latent_attention.
  //   x  [num_tokens, embedding_length]         q  [num_tokens, num_heads * head_dim]
  virtual void latent_attention_input(const LatentInputWeights& weights, const AttentionShape& shape,
                                      const PagedBatch& batch, std::int32_t layer, ConstMatrixView x,
                                      KvCache& kv, MatrixView q);

  // out[t, h, :] = softmax(score_scale * q[t, h, :] · K) · V over positions 0..positions[t], or those of
  // its window, K and V read through the sequence's block table, as stored. Scores are capped first if the
  // shape says so.
  //   q  [num_tokens, num_heads * head_dim]   out  [num_tokens, num_heads * value_dim()]
  virtual void paged_attention(const AttentionShape& shape, const PagedBatch& batch, std::int32_t layer,
                               const KvCache& kv, ConstMatrixView q, MatrixView out) = 0;

  // out[t, h, :] = W_h · input[t, h, :] for each head h: `input` and `out` are cut into as many equal parts
  // as there are heads, of which the first W_h.columns and W_h.rows numbers count; what stands behind these
  // in `out` stays as it is.
  //   input  [num_tokens, heads * at least W_h.columns]   out  [num_tokens, heads * at least W_h.rows]
  // REQUIRES: matrices of one size and type.
  virtual void project_heads(std::span<const Matrix* const> heads, ConstMatrixView input, MatrixView out);

  // attention[t, :] *= sigmoid(W · norm(x[t, :])), after paged_attention and before project_residual. Not on
  // CUDA yet, here and in the next ones: BackendOptions::needs_states.
  //   x  [num_tokens, embedding_length]   attention  [num_tokens, W.rows]
  virtual void gate_attention(const AttentionGateWeights& weights, ConstMatrixView x, MatrixView attention);

  // A layer of Gated DeltaNet up to its output projection. Each sequence's rows are taken one after the
  // other, from the state of the token before the first, which is replaced by that after the last: the same
  // bits however the tokens are cut into steps. For each row, with y = norm(x):
  //   u = query_key_value · y;  c = silu(sum over j of convolution[:, j] * u of the j-th newest token) by
  //   channel; c holds queries, keys and values of all heads
  //   of each key head: q, k = c / sqrt(sum(c^2) + epsilon of `norm`), q then divided by sqrt(key_dim)
  //   of each value head: b = sigmoid(beta · y), a = decay * softplus(alpha · y + time_bias), and with its S
  //     S = exp(a) * S;  e = b * (v - S^T k);  S = S + k e^T;  o = S^T q
  //   out = output_norm(o) * silu(gate · y)
  // Rows of a draft go on from there too, but leave the state as it was before them: what they bring to it is
  // kept with the states, until the next step with a draft.
  // REQUIRES: batch.states; `layer` counts recurrent layers only; room for the rows of drafts.
  //   x  [num_tokens, embedding_length]   out  [num_tokens, value_columns]
  virtual void gated_delta_net(const DeltaNetWeights& weights, const DeltaNetShape& shape,
                               const PagedBatch& batch, std::int32_t layer, ConstMatrixView x,
                               StateCache& states, MatrixView out);

  // A layer of Mamba-2 up to its output projection, its rows as in gated_delta_net. For each row, with y =
  // norm(x):
  //   c = silu(convolution of input · y + bias), by channel; c holds x of all heads, B and C of all groups
  //   of each head, with its S: d = softplus(time_step · y + time_bias)
  //     S = exp(decay * d) * S + B (d * x)^T;  o = S^T C + skip * x
  //   out = output_norm(silu(gate · y) * o)
  // REQUIRES: as gated_delta_net.
  //   x  [num_tokens, embedding_length]   out  [num_tokens, inner_columns]
  virtual void state_space(const StateSpaceWeights& weights, const StateSpaceShape& shape,
                           const PagedBatch& batch, std::int32_t layer, ConstMatrixView x, StateCache& states,
                           MatrixView out);

  // A layer of gated short convolution up to its output projection, its rows as in gated_delta_net. For each
  // row, with y = norm(x): u = (input_gate · y) * (input · y), and
  //   out = (output_gate · y) * convolution of u
  // REQUIRES: as gated_delta_net.
  //   x  [num_tokens, embedding_length]   out  [num_tokens, num_channels]
  virtual void short_convolution(const ShortConvolutionWeights& weights, const ShortConvolutionShape& shape,
                                 const PagedBatch& batch, std::int32_t layer, ConstMatrixView x,
                                 StateCache& states, MatrixView out);

  // The state of each sequence takes up the first num_accepted[sequence] rows of its draft, from what
  // gated_delta_net kept of them: the same bits as if these rows had been no draft. Once for each layer,
  // after all layers of the step. REQUIRES: the arguments of that step.
  virtual void accept_delta_net(const DeltaNetWeights& weights, const DeltaNetShape& shape,
                                const PagedBatch& batch, std::int32_t layer,
                                std::span<const std::int32_t> num_accepted, StateCache& states);
  // The same after state_space and short_convolution.
  virtual void accept_state_space(const StateSpaceWeights& weights, const StateSpaceShape& shape,
                                  const PagedBatch& batch, std::int32_t layer,
                                  std::span<const std::int32_t> num_accepted, StateCache& states);
  virtual void accept_short_convolution(const ShortConvolutionWeights& weights,
                                        const ShortConvolutionShape& shape, const PagedBatch& batch,
                                        std::int32_t layer, std::span<const std::int32_t> num_accepted,
                                        StateCache& states);

  // residual = (residual + W · input + bias) * residual_scale, or with post_norm(W · input + bias).
  //   input  [num_tokens, W.columns]   residual  [num_tokens, W.rows]
  virtual void project_residual(const ProjectionWeights& weights, ConstMatrixView input,
                                MatrixView residual) = 0;

  // out = activation(G · norm(x) + bias) * (U · norm(x) + bias); without a gate
  // activation(U · norm(x) + bias), with factors activation(G · norm(x) + bias) * factors.
  //   x  [num_tokens, embedding_length]   out  [num_tokens, feed_forward_length]
  virtual void feed_forward_input(const FeedForwardInputWeights& weights, ConstMatrixView x,
                                  MatrixView out) = 0;

  // For each row x of `residual`, with y = norm(x), e_0, e_1, ... the experts that it chose, in the order of
  // choosing (the best first), and w_i their weights:
  //   x += w_0 * f_0(y) + w_1 * f_1(y) + ... + shared(y), added in this order, then to x, and scaled; where
  //   inputs are weighed, f_0(w_0 * y) + f_1(w_1 * y) + ...; with latent rows latent_up of the sum that
  //   f_0(latent_down · y) and its like make
  //   f_i(y) = (D · activation(G · y + bias, U · y + bias) + bias) * output_scale
  // Which rows share an expert changes no bit. Not on CUDA yet: BackendOptions::needs_experts.
  //   chosen  [rows of residual, num_used], of the host: e_0, e_1, ... of each row; empty: nobody asks
  virtual void feed_forward_experts(const ExpertWeights& weights, MatrixView residual,
                                    std::span<std::int32_t> chosen);

  // out[i, :] = W · [token_norm(tokens[i, :]), hidden_norm(output_norm(x[rows[i], :]))]. Not on CUDA: models
  // that have it need experts or states.
  //   tokens, out  [rows.size(), embedding_length]
  virtual void join_next_tokens(const NextTokenWeights& weights, ConstMatrixView tokens, ConstMatrixView x,
                                std::span<const std::int32_t> rows, MatrixView out);

  // out[i, :] = W · norm(x[rows[i], :]) + bias, capped if the head says so, and what `summary` says
  // about each row; in host memory.
  //   out  [rows.size(), vocabulary]
  virtual void logits(const OutputHead& head, ConstMatrixView x, std::span<const std::int32_t> rows,
                      MatrixView out, LogitsSummary summary) = 0;

  // out[i, :] = norm(x[rows[i], :]), in host memory; no weight: the rows as they are.
  //   out  [rows.size(), columns of x]
  virtual void hidden_states(const NormWeights& norm, ConstMatrixView x, std::span<const std::int32_t> rows,
                             MatrixView out) = 0;

  // Whether it draws tokens from rows of logits itself, so that these need not come to the host.
  virtual bool draws_tokens() const { return false; }
  // How many tokens' logits one call of draw_tokens() can adjust first, all its rows together: as
  // reserve_step() was given, where tokens are drawn.
  virtual std::int64_t most_adjusted_tokens() const { return 0; }
  // As logits(), but of each row, of which there may be any number of the step's, only what is drawn from it,
  // after what `adjustments` say about the row: out[i] is that of draws[i], in host memory. A row may be
  // asked for more than once, to be adjusted in more than one way. REQUIRES: draws_tokens(); draws ascend by
  // row, and any number may name one; no more adjusted tokens than most_adjusted_tokens().
  virtual void draw_tokens(const OutputHead& head, ConstMatrixView x, std::span<const std::int32_t> rows,
                           std::span<const TokenDraw> draws, std::span<DrawnToken> out,
                           const LogitAdjustments& adjustments = {});

  // draw_tokens() in two halves, so that the next step can be started before it is known what this one draws.
  //
  // How many draws can be started so; 0: none.
  virtual std::int32_t most_started_draws() const { return 0; }
  // Starts draws that run_step() was told, one of each row and in their order, and waits for nothing. Then
  // the next run_step() may have rows whose tokens are these: drawn_token(). (Of a draw without a token they
  // have any.) REQUIRES: no more than most_started_draws(); at most one other call's are not taken yet.
  virtual void start_draws(const OutputHead& head, ConstMatrixView x, const StepDraws& draws);
  // Waits for what was started first of what is not taken yet. REQUIRES: out is as long as its draws.
  virtual void take_draws(std::span<DrawnToken> out);

  // weights[i] = exp((scores[i] - best) * inverse_temperature) within 3 units in the last place, 0 where that
  // is below 1e-307; piece_sums[p] = sum of the weights of the p-th kLogitsPiece entries. The same bits on
  // every machine. All in host memory.
  // REQUIRES: best is the largest score and finite; inverse_temperature > 0.
  virtual void softmax_weights(std::span<const double> scores, double best, double inverse_temperature,
                               std::span<double> weights, std::span<double> piece_sums) = 0;

  // Calls work(i) once for each i below `count`, in any order, by all threads that compute on this machine's
  // cores, the caller's among them, and returns when all have returned: work of others that waits for
  // nothing. It must not throw, and calls nothing of the backend.
  virtual void for_each_on_host(std::int64_t count, const std::function<void(std::int64_t)>& work);

  // Whole blocks, byte by byte, all layers: within the device pool, from it to the
  // host pool, and back. `source` and
  // `target` are indices in the respective pools. Within a call, targets are distinct; in copy_blocks no
  // source is a target.
  //
  // Order: operations take effect in the order of the calls, these among themselves and with all
  // others. A backend may return before the bytes have moved; what it runs later finds them moved.
  // Nobody else looks into a pool.
  // REQUIRES: both pools have the same layout.
  virtual void copy_blocks(KvCache& kv, std::span<const BlockCopy> copies) = 0;
  virtual void swap_out(const KvCache& device, HostKvCache& host, std::span<const BlockCopy> copies) = 0;
  virtual void swap_in(const HostKvCache& host, KvCache& device, std::span<const BlockCopy> copies) = 0;
  // Whole states, as blocks above: to zeros, within the device, to the host and back. In copy_states no
  // source is a target.
  virtual void clear_states(StateCache& states, std::span<const std::int32_t> cleared);
  virtual void copy_states(StateCache& states, std::span<const BlockCopy> copies);
  virtual void swap_states_out(const StateCache& device, HostStateCache& host,
                               std::span<const BlockCopy> copies);
  virtual void swap_states_in(const HostStateCache& host, StateCache& device,
                              std::span<const BlockCopy> copies);
  // What the newest swap_out() and swap_in() since the last call took, where a device moves blocks beside
  // what the host does: waits for them. nullopt: they took as long as their calls.
  virtual std::optional<SwapTimes> take_swap_times() { return std::nullopt; }
};

}  // namespace octavo::kernels
