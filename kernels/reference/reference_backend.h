// The definition of every operation, in plain loops with sums in double: what all other backends are compared
// with. Slow on purpose; one thread; any block size, any KV type.
//
// With Activation::kInt8 and kInt16, rows that meet quantised weights are rounded exactly as backend.h and
// cpu/activation_rows.h say, so that this is the oracle of 8-bit and 16-bit activations too.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "kernels/backend.h"

namespace octavo::kernels::reference {

std::unique_ptr<Backend> create_reference_backend(Activation activation);

// Weights expanded to float.
class ReferenceMatrix final : public Matrix {
 public:
  ReferenceMatrix(const MatrixSource& source, Activation activation);
  std::int64_t memory_bytes() const override {
    return static_cast<std::int64_t>(weights_.size() * sizeof(float));
  }

  // out[n] = scale * sum over k of W[n, k] * a[k] + bias[n], a rounded first if these
  // weights meet rounded activations.
  void multiply(const std::vector<float>& a, std::span<const float> bias, float* out) const;

  // Not scaled.
  std::span<const float> row(std::int64_t index) const {
    return std::span(weights_).subspan(static_cast<std::size_t>(index * columns()),
                                       static_cast<std::size_t>(columns()));
  }

  float scale() const { return scale_; }

 private:
  std::vector<float> weights_;
  Activation activation_;
  float scale_;
  std::vector<std::int32_t> column_order_;
};

class ReferenceKvCache final : public KvCache {
 public:
  ReferenceKvCache(const KvLayout& layout, std::int32_t num_blocks, std::unique_ptr<std::byte[]> bytes)
      : KvCache(layout, num_blocks), bytes_(std::move(bytes)) {}
  std::byte* data() const { return bytes_.get(); }

  // One token's key and value: block, layer, KV head, the token's offset in its block.
  struct Place {
    std::int32_t block, layer, kv_head, offset;
  };
  // Rounded to the KV type; `key` and `value` are [head_dim]. In a latent layer `value` is not looked at.
  void write(const Place& place, const float* key, const float* value);
  float read_key(const Place& place, std::int32_t dimension) const;
  float read_value(const Place& place, std::int32_t dimension) const;

 private:
  const KvLayer& layer_of(const Place& place) const { return layout().layer(place.layer); }
  std::byte* head_address(const Place& place) const;
  std::byte* key_address(const Place& place, std::int32_t dimension) const;
  std::byte* value_address(const Place& place, std::int32_t dimension) const;
  float read_scale(const Place& place, std::int64_t offset_in_head) const;  // 1 for types without scales

  std::unique_ptr<std::byte[]> bytes_;
};

class ReferenceHostKvCache final : public HostKvCache {
 public:
  ReferenceHostKvCache(const KvLayout& layout, std::int32_t num_blocks, std::unique_ptr<std::byte[]> bytes)
      : HostKvCache(layout, num_blocks), bytes_(std::move(bytes)) {}
  std::byte* data() const { return bytes_.get(); }

 private:
  std::unique_ptr<std::byte[]> bytes_;
};

class ReferenceStateCache final : public StateCache {
 public:
  ReferenceStateCache(const StateLayout& layout, std::int32_t num_states, std::unique_ptr<std::byte[]> bytes)
      : StateCache(layout, num_states), bytes_(std::move(bytes)) {}
  std::byte* data() const { return bytes_.get(); }
  // The recurrent numbers of a layer, and the newest inputs of its convolution.
  float* recurrent(std::int32_t state, std::int32_t layer) const {
    return reinterpret_cast<float*>(bytes_.get()) + layout().layer_offset(state, layer);
  }
  float* convolution(std::int32_t state, std::int32_t layer) const {
    return recurrent(state, layer) + layout().convolution_offset();
  }
  // What a row of a draft brings to a layer: [draft_floats].
  float* draft(std::int32_t row, std::int32_t layer) const {
    return reinterpret_cast<float*>(bytes_.get()) + layout().draft_offset(num_states(), layer) +
           row * layout().draft_stride();
  }

 private:
  std::unique_ptr<std::byte[]> bytes_;
};

class ReferenceHostStateCache final : public HostStateCache {
 public:
  ReferenceHostStateCache(const StateLayout& layout, std::int32_t num_states,
                          std::unique_ptr<std::byte[]> bytes)
      : HostStateCache(layout, num_states), bytes_(std::move(bytes)) {}
  std::byte* data() const { return bytes_.get(); }

 private:
  std::unique_ptr<std::byte[]> bytes_;
};

// As NormWeights says. REQUIRES: a weight.
std::vector<float> norm(const float* x, const NormWeights& weights);
// Of row `row`; as it is where there is no weight.
std::vector<float> norm_of_row(ConstMatrixView x, std::int64_t row, const NormWeights& weights);
// cap * tanh(x / cap), NaN where x is not finite; a cap of 0: x.
double soft_capped(double x, float cap);
// Rounds each group of 32 to 8 or 16 bits and expands it again; kF32: nothing.
void round_activations(Activation activation, std::vector<float>& row);
// Of activations that take no pair.
double activated(FeedForwardActivation activation, double z);
// activation(gate) * up, or what FeedForwardActivation says of the pair.
double gated(FeedForwardActivation activation, double gate, double up);
double sigmoid(double x);
double silu(double x);
double softplus(double x);  // log(1 + exp(x)), and x above 20
// As ReferenceMatrix::multiply.
std::vector<float> product(const Matrix& matrix, const std::vector<float>& x,
                           std::span<const float> bias = {});
// One token's step of the convolution of each channel: its sum of weighted inputs (and its bias), the oldest
// first, of which `input` is the newest. `history` [width - 1, channels] holds those before, and takes it up.
std::vector<double> convolve(std::span<const float> weights, std::span<const float> bias,
                             const std::vector<float>& input, float* history);
// One layer's numbers of a state, and where what the row brings to it is kept; null: it is no draft.
struct LayerState {
  float *recurrent, *convolution;
  float* draft = nullptr;
};
inline std::int32_t num_drafted(const PagedBatch& batch, std::size_t sequence) {
  return batch.num_drafted.empty() ? 0 : batch.num_drafted[sequence];
}
// function(row, state) for every row of the batch, in order, and the state that its sequence goes on from:
// those of a draft from a copy.
template <class Function>
void for_each_stateful_row(const PagedBatch& batch, const ReferenceStateCache& states, std::int32_t layer,
                           const Function& function) {
  std::int32_t draft = 0;
  for (std::size_t sequence = 0; sequence < static_cast<std::size_t>(batch.num_sequences); ++sequence) {
    const std::int32_t end = batch.query_start[sequence + 1], known_end = end - num_drafted(batch, sequence);
    float* const numbers = states.recurrent(batch.states[sequence], layer);
    const std::int64_t convolution_offset = states.layout().convolution_offset();
    for (std::int32_t row = batch.query_start[sequence]; row < known_end; ++row)
      function(row, LayerState{numbers, numbers + convolution_offset});
    std::vector<float> copy(numbers, numbers + states.layout().layer_floats());
    for (std::int32_t row = known_end; row < end; ++row) {
      function(row, LayerState{copy.data(), copy.data() + convolution_offset, states.draft(draft++, layer)});
    }
  }
}
// function(state) for every row of a draft that is accepted, in order.
template <class Function>
void for_each_accepted_row(const PagedBatch& batch, std::span<const std::int32_t> num_accepted,
                           const ReferenceStateCache& states, std::int32_t layer, const Function& function) {
  std::int32_t first = 0;
  for (std::size_t sequence = 0; sequence < static_cast<std::size_t>(batch.num_sequences); ++sequence) {
    const std::int32_t state = batch.states[sequence];
    for (std::int32_t i = 0; i < num_accepted[sequence]; ++i) {
      function(LayerState{states.recurrent(state, layer), states.convolution(state, layer),
                          states.draft(first + i, layer)});
    }
    first += num_drafted(batch, sequence);
  }
}
// Rotates one head in place. rotations: [rotary_dim / 2, 2].
void rotate_head(float* head, const AttentionShape& shape, const float* rotations);
// What a row of the batch is rotated by.
const float* rotations_of(const AttentionShape& shape, const PagedBatch& batch, std::int64_t row);

class ReferenceBackend final : public Backend {
 public:
  explicit ReferenceBackend(Activation activation) : activation_(activation) {}

  std::string_view name() const override { return "reference"; }
  std::string_view isa() const override { return "portable"; }
  std::int32_t num_threads() const override { return 1; }

  Result<std::unique_ptr<Matrix>> prepare_matrix(const MatrixSource& source) override;
  Result<std::unique_ptr<KvCache>> allocate_kv_cache(const KvLayout& layout,
                                                     std::int32_t num_blocks) override;
  Result<std::unique_ptr<HostKvCache>> allocate_host_kv_cache(const KvLayout& layout,
                                                              std::int32_t num_blocks) override;
  Result<std::unique_ptr<Buffer>> allocate_buffer(std::int64_t num_floats) override;
  Result<std::unique_ptr<StateCache>> allocate_state_cache(const StateLayout& layout,
                                                           std::int32_t num_states) override;
  Result<std::unique_ptr<HostStateCache>> allocate_host_state_cache(const StateLayout& layout,
                                                                    std::int32_t num_states) override;
  Result<void> reserve_step(const StepShape&) override { return {}; }
  std::int64_t scratch_bytes() const override { return 0; }  // its temporaries end with the operation

  void embed(const EmbeddingWeights& weights, std::span<const std::int32_t> token_ids,
             std::span<const std::int32_t> positions, MatrixView out) override;
  void embed_layers(const LayerEmbeddingWeights& weights, std::span<const std::int32_t> token_ids,
                    ConstMatrixView x, MatrixView out) override;
  void attention_input(const AttentionInputWeights& weights, const AttentionShape& shape,
                       const PagedBatch& batch, std::int32_t layer, ConstMatrixView x, KvCache& kv,
                       MatrixView q) override;
  void paged_attention(const AttentionShape& shape, const PagedBatch& batch, std::int32_t layer,
                       const KvCache& kv, ConstMatrixView q, MatrixView out) override;
  void gate_attention(const AttentionGateWeights& weights, ConstMatrixView x, MatrixView attention) override;
  void gated_delta_net(const DeltaNetWeights& weights, const DeltaNetShape& shape, const PagedBatch& batch,
                       std::int32_t layer, ConstMatrixView x, StateCache& states, MatrixView out) override;
  void state_space(const StateSpaceWeights& weights, const StateSpaceShape& shape, const PagedBatch& batch,
                   std::int32_t layer, ConstMatrixView x, StateCache& states, MatrixView out) override;
  void short_convolution(const ShortConvolutionWeights& weights, const ShortConvolutionShape& shape,
                         const PagedBatch& batch, std::int32_t layer, ConstMatrixView x, StateCache& states,
                         MatrixView out) override;
  void latent_attention_input(const LatentInputWeights& weights, const AttentionShape& shape,
                              const PagedBatch& batch, std::int32_t layer, ConstMatrixView x, KvCache& kv,
                              MatrixView q) override;
  void project_heads(std::span<const Matrix* const> heads, ConstMatrixView input, MatrixView out) override;
  void accept_delta_net(const DeltaNetWeights& weights, const DeltaNetShape& shape, const PagedBatch& batch,
                        std::int32_t layer, std::span<const std::int32_t> num_accepted,
                        StateCache& states) override;
  void accept_state_space(const StateSpaceWeights& weights, const StateSpaceShape& shape,
                          const PagedBatch& batch, std::int32_t layer,
                          std::span<const std::int32_t> num_accepted, StateCache& states) override;
  void accept_short_convolution(const ShortConvolutionWeights& weights, const ShortConvolutionShape& shape,
                                const PagedBatch& batch, std::int32_t layer,
                                std::span<const std::int32_t> num_accepted, StateCache& states) override;
  void project_residual(const ProjectionWeights& weights, ConstMatrixView input,
                        MatrixView residual) override;
  void feed_forward_input(const FeedForwardInputWeights& weights, ConstMatrixView x, MatrixView out) override;
  void feed_forward_experts(const ExpertWeights& weights, MatrixView residual,
                            std::span<std::int32_t> chosen) override;
  void join_next_tokens(const NextTokenWeights& weights, ConstMatrixView tokens, ConstMatrixView x,
                        std::span<const std::int32_t> rows, MatrixView out) override;
  void hidden_states(const NormWeights& norm, ConstMatrixView x, std::span<const std::int32_t> rows,
                     MatrixView out) override;
  void logits(const OutputHead& head, ConstMatrixView x, std::span<const std::int32_t> rows, MatrixView out,
              LogitsSummary summary) override;
  void softmax_weights(std::span<const double> scores, double best, double inverse_temperature,
                       std::span<double> weights, std::span<double> piece_sums) override;
  void copy_blocks(KvCache& kv, std::span<const BlockCopy> copies) override;
  void swap_out(const KvCache& device, HostKvCache& host, std::span<const BlockCopy> copies) override;
  void swap_in(const HostKvCache& host, KvCache& device, std::span<const BlockCopy> copies) override;
  void clear_states(StateCache& states, std::span<const std::int32_t> cleared) override;
  void copy_states(StateCache& states, std::span<const BlockCopy> copies) override;
  void swap_states_out(const StateCache& device, HostStateCache& host,
                       std::span<const BlockCopy> copies) override;
  void swap_states_in(const HostStateCache& host, StateCache& device,
                      std::span<const BlockCopy> copies) override;

 private:
  const Activation activation_;
};

}  // namespace octavo::kernels::reference
