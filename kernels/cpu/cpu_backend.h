// The backend on the processor's cores. Each operation is a few parallel loops over a fixed thread pool; the
// inner loops are the kernels of one instruction set (simd/kernel_table.h, matmul.h).
//
// Thread: as Backend; the pool's workers run inside the operations only. Numbers: the same bits for every
// instruction set, number of threads, block size and batch (ARCHITECTURE.md, "Numbers").
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <vector>

#include "engine/base/check.h"
#include "kernels/backend.h"
#include "kernels/cpu/activation_rows.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/mapped_memory.h"
#include "kernels/cpu/matmul.h"
#include "kernels/cpu/packed_memory.h"
#include "kernels/cpu/recurrent_work.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/simd/kernel_table.h"
#include "kernels/cpu/thread_pool.h"

namespace octavo::kernels::cpu {

class StepAttention;
struct StepExperts;

// Error when the threads cannot be had. REQUIRES: `isa` is one of usable_instruction_sets().
Result<std::unique_ptr<Backend>> create_cpu_backend(std::int32_t num_threads, Activation activation,
                                                    InstructionSet isa);

class CpuKvCache final : public KvCache {
 public:
  CpuKvCache(const KvLayout& layout, std::int32_t num_blocks, MappedMemory memory)
      : KvCache(layout, num_blocks), memory_(std::move(memory)) {}
  std::byte* data() const { return memory_.data(); }
  // Where a token's key and value of a head go; `slot` as of PagedBatch.
  KvSlot slot_of(std::int32_t slot, std::int32_t layer, std::int32_t kv_head) const;

 private:
  MappedMemory memory_;
};

class CpuHostKvCache final : public HostKvCache {
 public:
  CpuHostKvCache(const KvLayout& layout, std::int32_t num_blocks, MappedMemory memory)
      : HostKvCache(layout, num_blocks), memory_(std::move(memory)) {}
  std::byte* data() const { return memory_.data(); }

 private:
  MappedMemory memory_;
};

class CpuStateCache final : public StateCache {
 public:
  CpuStateCache(const StateLayout& layout, std::int32_t num_states, MappedMemory memory)
      : StateCache(layout, num_states), memory_(std::move(memory)) {}
  std::byte* data() const { return memory_.data(); }
  // The recurrent numbers of a layer, and the newest inputs of its convolution.
  float* recurrent(std::int32_t state, std::int32_t layer) const {
    OCTAVO_CHECK(state >= 0 && state < num_states() && layer >= 0 && layer < layout().num_layers,
                 "layer %d of state %d of %d", layer, state, num_states());
    return reinterpret_cast<float*>(memory_.data()) + layout().layer_offset(state, layer);
  }
  float* convolution(std::int32_t state, std::int32_t layer) const {
    return recurrent(state, layer) + layout().convolution_offset();
  }
  // [num_draft_rows, draft_floats]: what rows of drafts bring to a layer.
  MatrixView drafts(std::int32_t layer) const {
    return {reinterpret_cast<float*>(memory_.data()) + layout().draft_offset(num_states(), layer),
            layout().num_draft_rows, layout().draft_floats, layout().draft_stride()};
  }

 private:
  MappedMemory memory_;
};

class CpuHostStateCache final : public HostStateCache {
 public:
  CpuHostStateCache(const StateLayout& layout, std::int32_t num_states, MappedMemory memory)
      : HostStateCache(layout, num_states), memory_(std::move(memory)) {}
  std::byte* data() const { return memory_.data(); }

 private:
  MappedMemory memory_;
};

// One step of a matrix product: panels of several matrices that read the same rows, as one list.
struct Product {
  const PackedMatrix* matrix;
  MatrixView out;
};

class CpuBackend final : public Backend {
 public:
  CpuBackend(std::unique_ptr<ThreadPool> pool, Activation activation, InstructionSet isa);
  ~CpuBackend() override;

  std::string_view name() const override { return "cpu"; }
  std::string_view isa() const override { return instruction_set_name(isa_); }
  std::int32_t num_threads() const override { return pool_->num_threads(); }

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
  Result<void> reserve_step(const StepShape& shape) override;
  std::int64_t scratch_bytes() const override;

  void begin_step(const PagedBatch& batch, std::span<const std::int32_t> token_ids) override;
  void embed(const EmbeddingWeights& weights, std::span<const std::int32_t> token_ids,
             std::span<const std::int32_t> positions, MatrixView out) override;
  void embed_layers(const LayerEmbeddingWeights& weights, std::span<const std::int32_t> token_ids,
                    ConstMatrixView x, MatrixView out) override;
  void attention_input(const AttentionInputWeights& weights, const AttentionShape& shape,
                       const PagedBatch& batch, std::int32_t layer, ConstMatrixView x, KvCache& kv,
                       MatrixView q) override;
  void latent_attention_input(const LatentInputWeights& weights, const AttentionShape& shape,
                              const PagedBatch& batch, std::int32_t layer, ConstMatrixView x, KvCache& kv,
                              MatrixView q) override;
  void paged_attention(const AttentionShape& shape, const PagedBatch& batch, std::int32_t layer,
                       const KvCache& kv, ConstMatrixView q, MatrixView out) override;
  void project_heads(std::span<const Matrix* const> heads, ConstMatrixView input, MatrixView out) override;
  void gate_attention(const AttentionGateWeights& weights, ConstMatrixView x, MatrixView attention) override;
  void gated_delta_net(const DeltaNetWeights& weights, const DeltaNetShape& shape, const PagedBatch& batch,
                       std::int32_t layer, ConstMatrixView x, StateCache& states, MatrixView out) override;
  void state_space(const StateSpaceWeights& weights, const StateSpaceShape& shape, const PagedBatch& batch,
                   std::int32_t layer, ConstMatrixView x, StateCache& states, MatrixView out) override;
  void short_convolution(const ShortConvolutionWeights& weights, const ShortConvolutionShape& shape,
                         const PagedBatch& batch, std::int32_t layer, ConstMatrixView x, StateCache& states,
                         MatrixView out) override;
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
  void for_each_on_host(std::int64_t count, const std::function<void(std::int64_t)>& work) override {
    pool_->parallel_for(count, [&](std::int64_t item, std::int32_t) { work(item); });
  }
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
  // Calls function(row, worker) for every row, a few rows to an item.
  template <class Function>
  void for_each_row(std::int64_t num_rows, const Function& function) {
    constexpr std::int64_t kRowsPerItem = 4;
    pool_->parallel_for((num_rows + kRowsPerItem - 1) / kRowsPerItem,
                        [&](std::int64_t item, std::int32_t worker) {
                          const std::int64_t first = item * kRowsPerItem;
                          for (std::int64_t row = first; row < first + kRowsPerItem && row < num_rows; ++row)
                            function(row, worker);
                        });
  }

  // Some neighbouring panels of a matrix, and the outputs that they compute.
  struct PanelPiece {
    std::int64_t first_panel, last_panel;
    std::int64_t first, count;
  };
  // Calls function(piece) for pieces that together are the matrix, in runs.
  template <class Function>
  void for_each_panel_piece(const PackedMatrix& matrix, const Function& function) {
    const std::int64_t num_panels = matrix.num_panels(), size = panels_per_item(num_panels);
    pool_->parallel_for_in_runs((num_panels + size - 1) / size, [&](std::int64_t item, std::int32_t) {
      const std::int64_t first_panel = item * size, last_panel = std::min(first_panel + size, num_panels);
      const std::int64_t first = first_panel * kPanelRows;
      function(PanelPiece{first_panel, last_panel, first,
                          std::min(last_panel * kPanelRows, matrix.rows()) - first});
    });
  }

  // Calls function(rows, part, worker) for each of sequence_rows_ that has rows, and each part of a layer.
  template <class Function>
  void for_each_sequence_part(std::int64_t num_parts, const Function& function) {
    const std::int64_t num_sequences = std::ssize(sequence_rows_);
    pool_->parallel_for_in_runs(num_sequences * num_parts, [&](std::int64_t item, std::int32_t worker) {
      const SequenceRows& rows = sequence_rows_[static_cast<std::size_t>(item / num_parts)];
      if (rows.count > 0) function(rows, item % num_parts, worker);
    });
  }

  // Calls function(rows, state): of the known rows with their part of the state, then of a draft with a copy.
  template <class Function>
  void for_known_and_draft(const SequenceRows& rows, const StatePart& state, std::int32_t worker,
                           const Function& function) {
    if (rows.known().count > 0) function(rows.known(), state);
    if (rows.num_drafted == 0) return;
    Scratch& scratch = draft_scratch_[static_cast<std::size_t>(worker)];
    function(rows.draft(), state.copied_to(scratch.reserve(state.num_floats())));
  }
  // What rows of drafts bring to a layer's states: columns of theirs, as rows of the step's drafts.
  static void keep_draft(const SequenceRows& sequence, MatrixView from, MatrixView drafts) {
    for (std::int64_t i = 0; i < sequence.num_drafted; ++i) {
      std::copy_n(from.row(sequence.draft().first + i), from.columns, drafts.row(sequence.first_draft + i));
    }
  }
  // The columns of all of `parts`, of all of sequence_rows_.
  void keep_drafts(std::int32_t layer, const CpuStateCache& states, std::span<const MatrixView> parts) const;
  // Three parts as keep_drafts left them, of so many columns.
  static std::array<MatrixView, 3> kept_drafts(std::int32_t layer, const CpuStateCache& states,
                                               const std::array<std::int64_t, 3>& columns);
  // That there is room for them.
  void check_drafts(std::int32_t layer, const CpuStateCache& states) const;

  // The newest inputs of some channels, of which there are `num_channels`.
  static StatePart convolution_part(const CpuStateCache& states, std::int32_t state, std::int32_t layer,
                                    std::int64_t num_channels, const ChannelPieces::Piece& piece);
  // Of a piece of the channels of a sequence's rows, with neither bias nor SiLU.
  static ChannelConvolution convolution_of(const SequenceRows& sequence, const StatePart& history,
                                           MatrixView channels, std::span<const float> weights,
                                           const ChannelPieces::Piece& piece);
  void convolve(const ChannelConvolution& job, std::int32_t worker) {
    kernels_.convolve(job, worker_scratch_[static_cast<std::size_t>(worker)].reserve(job.count * job.width));
  }

  // Panels to an item, such that every thread gets several items and an item still reads its rows often.
  std::int64_t panels_per_item(std::int64_t num_panels) const;

  void normalise(const NormWeights& norm, const float* x, float* out) const;
  // In place; no weight: nothing.
  void normalise_if_any(const NormWeights& norm, float* row) const {
    if (!norm.weight.empty()) normalise(norm, row, row);
  }

  // activations_ = rows 0..num_rows of x (or x[rows]), normalised first if there is a norm, in the given
  // form; or other rows than these.
  void set_activations(ConstMatrixView x, const ActivationForms& forms);
  void set_normalised(const NormWeights& norm, ConstMatrixView x, std::span<const std::int32_t> rows,
                      const ActivationForms& forms) {
    set_normalised(norm, x, rows, forms, activations_);
  }
  void set_normalised(const NormWeights& norm, ConstMatrixView x, std::span<const std::int32_t> rows,
                      const ActivationForms& forms, ActivationRows& activations);
  // All products of activations_, as one parallel loop.
  void multiply(std::span<const Product> products);

  // a[i] = FeedForwardActivation of a[i], of those that take no pair.
  using PlainActivation = void (*)(float* a, std::int64_t size);
  PlainActivation activation_of(FeedForwardActivation activation) const;
  // gate[i] = what FeedForwardActivation says of gate[i] and up[i].
  using GatedActivation = void (*)(float* gate, const float* up, std::int64_t size);
  GatedActivation gated_activation(FeedForwardActivation activation) const;

  // The parts of feed_forward_experts, one after the other.
  void choose_experts(const ExpertWeights& weights, ConstMatrixView x);
  void set_expert_rows(const ExpertWeights& weights, ConstMatrixView x);
  void set_expert_slots(const ExpertWeights& weights, ConstMatrixView x);
  void multiply_hidden(const ExpertWeights& weights, std::int64_t num_rows);
  void multiply_outputs(const ExpertWeights& weights, std::int64_t num_rows);
  void sum_latent_outputs(const ExpertWeights& weights, std::int64_t num_rows);
  void add_outputs(const ExpertWeights& weights, std::int64_t row, std::int64_t width, float* sum);
  void add_experts(const ExpertWeights& weights, MatrixView residual);
  // Calls function(piece): in runs where weights stream through, else the largest first.
  template <class Function>
  void for_each_piece(std::int64_t num_rows, std::int64_t num_pieces, const Function& function) {
    const auto call = [&](std::int64_t piece, std::int32_t) { function(piece); };
    if (num_rows == 1) return pool_->parallel_for_in_runs(num_pieces, call);
    pool_->parallel_for(num_pieces, call);
  }

  // The parts of gated_delta_net behind its products, one after the other, of sequence_rows_. An empty `out`:
  // of what is accepted, only the state is wanted.
  struct DeltaNetRows;
  void convolve_delta_net(const DeltaNetWeights& weights, const DeltaNetShape& shape, std::int32_t layer,
                          const CpuStateCache& states, const DeltaNetRows& rows);
  void run_delta_rule(const DeltaNetWeights& weights, const DeltaNetShape& shape, std::int32_t layer,
                      const CpuStateCache& states, const DeltaNetRows& rows, MatrixView out);

  // And of state_space.
  struct StateSpaceRows;
  void convolve_state_space(const StateSpaceWeights& weights, const StateSpaceShape& shape,
                            std::int32_t layer, const CpuStateCache& states, const StateSpaceRows& rows);
  void run_state_space(const StateSpaceWeights& weights, const StateSpaceShape& shape, std::int32_t layer,
                       const CpuStateCache& states, const StateSpaceRows& rows, MatrixView out);

  // The blocks or states of a pool, seen as bytes.
  struct PoolBytes {
    std::byte* start;
    std::int32_t num_items;
  };
  void move_items(PoolBytes sources, PoolBytes targets, std::int64_t item_bytes,
                  std::span<const BlockCopy> copies);

  // To the entries first..first + count - 1 of a row. No bias: nothing.
  void add_bias(std::span<const float> bias, float* row, std::int64_t first, std::int64_t count) const {
    if (!bias.empty()) kernels_.add_row(row + first, bias.data() + first, count);
  }
  void scale_residual(float scale, float* row, std::int64_t count) const {
    if (scale != 1.0f) kernels_.scale_row(row, scale, count);
  }
  void normalise_heads(std::span<const float> weight, float epsilon, std::int64_t width, float* heads) const;
  void normalise_heads(const AttentionInputWeights& weights, std::span<const float> weight,
                       const AttentionShape& shape, std::int64_t width, float* heads) const;

  void rotate(const AttentionShape& shape, const PagedBatch& batch, std::int64_t row, std::int32_t num_heads,
              float* heads) const {
    rotate(shape, batch, row, num_heads, shape.head_dim, heads);
  }
  // Of heads that lie `distance` floats apart.
  void rotate(const AttentionShape& shape, const PagedBatch& batch, std::int64_t row, std::int32_t num_heads,
              std::int32_t distance, float* heads) const;
  // The parts of latent_attention_input before its heads' matrices, one after the other; the last two of one
  // row.
  void multiply_latent_rows(const LatentInputWeights& weights, ConstMatrixView x, MatrixView queries,
                            MatrixView keys);
  void store_latent_key(const LatentInputWeights& weights, const AttentionShape& shape,
                        const PagedBatch& batch, std::int32_t layer, std::int64_t row, MatrixView keys,
                        CpuKvCache& kv);
  void place_rotated_queries(const AttentionShape& shape, const PagedBatch& batch, std::int64_t row,
                             MatrixView queries, MatrixView q);
  // Of one row, after the products.
  void finish_queries(const AttentionInputWeights& weights, const AttentionShape& shape,
                      const PagedBatch& batch, std::int64_t row, MatrixView q);
  void store_keys_and_values(const AttentionInputWeights& weights, const AttentionShape& shape,
                             const PagedBatch& batch, std::int32_t layer, std::int64_t row, MatrixView k,
                             MatrixView v, CpuKvCache& kv);

  const std::unique_ptr<ThreadPool> pool_;
  const Activation activation_;
  const InstructionSet isa_;
  const KernelTable& kernels_;

  // The one that equals these columns; null: none. Of the matrices that were prepared.
  const ColumnOrder* keep_column_order(std::span<const std::int32_t> columns);

  PackedMemory packed_memory_;
  std::vector<std::unique_ptr<const ColumnOrder>> column_orders_;
  ActivationRows activations_, head_activations_;        // the latter of project_heads
  std::vector<Scratch> worker_scratch_, draft_scratch_;  // one for each thread
  std::vector<SequenceRows> sequence_rows_;              // of the operation, if it is recurrent
  Scratch key_rows_, value_rows_, product_rows_, partials_, item_sums_;
  const std::unique_ptr<StepAttention> step_attention_;
  const std::unique_ptr<StepExperts> step_experts_;
};

}  // namespace octavo::kernels::cpu
