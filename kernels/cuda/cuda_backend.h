// The backend on a graphics processor. Operations are started and not waited for; logits() and draw_tokens()
// wait, because their results are the host's.
//
// Files: each operation of backend.h is a file of its name here, a few launches of what the rooms have;
// step.cu begins steps and records them, draw_tokens.cu draws.
//
// Streams. All operations run in one stream, moves between the pools in another: a move waits for what was
// started before it, and of what is started later only the operations that touch keys and values wait for the
// move (await_moves), or the whole step if it was recorded.
// Memory. Everything is allocated while a model loads: reserve_step() knows the largest step, and comes when
// weights are loaded: what they are loaded through is freed there.
// Errors. A failure in a step stays (DeviceStatus): nothing more is started, logits() gives NaNs, status()
// tells. Numbers: matmul/matmul.h, attention/attention.h. With `deterministic` no result depends on the
// batch.
//
// Thread: as Backend. Ownership: what it makes must end before it does.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cuda/attention/attention.h"
#include "kernels/cuda/create_cuda_backend.h"
#include "kernels/cuda/matmul/matmul.h"
#include "kernels/cuda/matmul/weight_loader.h"
#include "kernels/cuda/runtime/device.h"
#include "kernels/cuda/runtime/filled_batch.h"
#include "kernels/cuda/runtime/graph.h"
#include "kernels/cuda/runtime/upload_ring.h"
#include "kernels/cuda/sampling/adjust_logits.h"
#include "kernels/cuda/sampling/sample_tokens.h"

namespace octavo::kernels::cuda {

class CudaKvCache final : public KvCache {
 public:
  CudaKvCache(const KvLayout& layout, std::int32_t num_blocks, DeviceMemory memory)
      : KvCache(layout, num_blocks), memory_(std::move(memory)) {}
  std::byte* data() const { return memory_.data(); }  // of the device

 private:
  DeviceMemory memory_;
};

class CudaHostKvCache final : public HostKvCache {
 public:
  CudaHostKvCache(const KvLayout& layout, std::int32_t num_blocks, PinnedMemory memory)
      : HostKvCache(layout, num_blocks), memory_(std::move(memory)) {}
  std::byte* data() const { return memory_.data(); }

 private:
  PinnedMemory memory_;
};

inline std::int32_t most_sequences(const StepShape& shape) {
  return shape.max_num_sequences > 0 ? shape.max_num_sequences : shape.num_rows;
}

class CudaBackend final : public Backend {
 public:
  static Result<std::unique_ptr<CudaBackend>> create(const CudaOptions& options,
                                                     std::unique_ptr<Backend> host);
  ~CudaBackend() override;

  std::string_view name() const override { return "cuda"; }
  std::string_view isa() const override { return isa_; }   // "sm_90 NVIDIA H100"
  std::int32_t num_threads() const override { return 1; }  // of the host
  Result<void> status() const override { return status_.result(); }
  std::string notice() const override { return products_->notice(); }
  std::optional<DeviceBytes> device_bytes() const override;

  Result<std::unique_ptr<Matrix>> prepare_matrix(const MatrixSource& source) override;
  Result<std::unique_ptr<Buffer>> prepare_vector(std::span<const float> values) override;
  Result<std::unique_ptr<KvCache>> allocate_kv_cache(const KvLayout& layout,
                                                     std::int32_t num_blocks) override;
  Result<std::unique_ptr<HostKvCache>> allocate_host_kv_cache(const KvLayout& layout,
                                                              std::int32_t num_blocks) override;
  Result<std::unique_ptr<Buffer>> allocate_buffer(std::int64_t num_floats) override;
  Result<void> reserve_step(const StepShape& shape) override;
  std::int64_t scratch_bytes() const override;

  std::int32_t num_kept_rotations() const override { return scratch_ ? scratch_->num_kept_rotations : 0; }
  Result<void> keep_rotations(std::span<const float> rotations,
                              std::span<const float> local_rotations) override;
  void begin_step(const PagedBatch& batch, std::span<const std::int32_t> token_ids) override;
  void run_step(const PagedBatch& batch, std::span<const std::int32_t> token_ids, const StepBody& body,
                const StepDraws& draws = {}) override;
  std::vector<SampleStep> steps_to_rehearse() const override;
  std::vector<SampleStep> steps_to_record() const override;
  Result<void> record_step(const PagedBatch& batch, std::span<const std::int32_t> token_ids,
                           const StepBody& body) override;
  Result<void> record_draws(const OutputHead& head, ConstMatrixView x) override;
  void embed(const EmbeddingWeights& weights, std::span<const std::int32_t> token_ids,
             std::span<const std::int32_t> positions, MatrixView out) override;
  void attention_input(const AttentionInputWeights& weights, const AttentionShape& shape,
                       const PagedBatch& batch, std::int32_t layer, ConstMatrixView x, KvCache& kv,
                       MatrixView q) override;
  void paged_attention(const AttentionShape& shape, const PagedBatch& batch, std::int32_t layer,
                       const KvCache& kv, ConstMatrixView q, MatrixView out) override;
  void project_residual(const ProjectionWeights& weights, ConstMatrixView input,
                        MatrixView residual) override;
  void feed_forward_input(const FeedForwardInputWeights& weights, ConstMatrixView x, MatrixView out) override;
  void hidden_states(const NormWeights& norm, ConstMatrixView x, std::span<const std::int32_t> rows,
                     MatrixView out) override;
  void logits(const OutputHead& head, ConstMatrixView x, std::span<const std::int32_t> rows, MatrixView out,
              LogitsSummary summary) override;
  bool draws_tokens() const override { return true; }
  std::int64_t most_adjusted_tokens() const override {
    return scratch_ ? scratch_->adjuster.most_tokens() : 0;
  }
  void draw_tokens(const OutputHead& head, ConstMatrixView x, std::span<const std::int32_t> rows,
                   std::span<const TokenDraw> draws, std::span<DrawnToken> out,
                   const LogitAdjustments& adjustments = {}) override;
  std::int32_t most_started_draws() const override { return drawn_rows_.empty() ? 0 : drawn_rows_.back(); }
  void start_draws(const OutputHead& head, ConstMatrixView x, const StepDraws& draws) override;
  void take_draws(std::span<DrawnToken> out) override;
  void softmax_weights(std::span<const double> scores, double best, double inverse_temperature,
                       std::span<double> weights, std::span<double> piece_sums) override;
  void copy_blocks(KvCache& kv, std::span<const BlockCopy> copies) override;
  void swap_out(const KvCache& device, HostKvCache& host, std::span<const BlockCopy> copies) override;
  void swap_in(const HostKvCache& host, KvCache& device, std::span<const BlockCopy> copies) override;
  std::optional<SwapTimes> take_swap_times() override;

 private:
  // Of moves in one direction: the newest, until somebody asks.
  struct MoveTimer {
    Event begin, end;
    bool is_running = false;
  };
  CudaBackend(const CudaOptions& options, std::unique_ptr<Backend> host)
      : options_(options), host_(std::move(host)) {}

  // What one call drew, on its way to the host.
  struct HostDrawn {
    PinnedMemory tokens;
    Event has_arrived;
  };

  // What reserve_step() allocates beside the products' and attention's.
  struct Scratch {
    UploadRing inputs;
    TokenSampler sampler;
    LogitAdjuster adjuster;
    DeviceMemory step_inputs{};   // at addresses that a recorded step knows
    std::int64_t draw_bytes = 0;  // of these, before the rest: the lists of draws end there
    // By position: of StepShape::max_context_len positions, or of none.
    std::int32_t num_kept_rotations = 0;
    DeviceMemory rotations{};
    const float *kept_rotations = nullptr, *kept_local_rotations = nullptr;  // null until they are given
    DeviceMemory keys{}, values{};  // f32 [num_rows, num_kv_heads * head_dim], before they are stored
    DeviceMemory added{};           // f32 [num_rows, embedding_length], before its post-norm; else nothing
    std::int32_t logits_rows = 0;   // that fit on the device; the host takes num_logits_rows of them
    DeviceMemory logits{};          // f32 [logits_rows, vocabulary]
    DeviceMemory sums{}, piece_maxima{}, piece_sums{};  // of the rows of logits
    PinnedMemory host_logits{}, host_sums{}, host_piece_maxima{};
    DeviceMemory drawn{};                 // [the larger of num_rows and logits_rows]
    std::vector<HostDrawn> host_drawn{};  // in turns

    std::int64_t bytes() const;
  };

  // Draws whose lists went to the device with a step's inputs.
  struct SentDraws {
    std::vector<TokenDraw> asked{};  // empty: none
    std::size_t num_asked_rows = 0;  // the first of these:
    std::vector<std::int32_t> rows{};
    std::vector<DeviceDraw> list{};  // empty: the best of each row, in order
    DrawKinds kinds{};
    bool is_filled = false;  // each row draws once, in order, and both lists are filled up to recorded draws
    const DeviceDraw* device_draws = nullptr;  // null where the list is empty
    const std::int32_t* device_rows = nullptr;
  };
  // Rows of which logits are computed together: `count` from `first` on, or if `indices`, of device memory,
  // are given, those.
  struct LogitsRows {
    std::int32_t count = 0, first = 0;
    const std::int32_t* indices = nullptr;
  };
  // All that the launches of a filled step depend on.
  struct FilledShape {
    std::int32_t num_rows = 0, num_sequences = 0;
    std::int32_t context_len = 0;
    bool is_decode = false;
    auto operator<=>(const FilledShape&) const = default;
  };

  Result<Scratch> allocate_scratch(const StepShape& shape);
  void send_inputs(const PagedBatch& batch, std::span<const std::int32_t> token_ids,
                   const StepNumbers* numbers);
  void begin_step_as_it_is(const PagedBatch& batch, std::span<const std::int32_t> token_ids);
  // What goes along with the inputs of a step.
  void list_draws(const StepDraws& draws);
  void fill_draws();
  static std::int64_t draw_list_bytes(std::int64_t num_rows, std::int64_t num_draws);
  void put_draws();
  bool were_sent(const OutputHead& head, const StepDraws& draws) const;
  void start_filled_draws(const OutputHead& head, ConstMatrixView x, const SentDraws& sent);
  // Of so many rows; `list` and `kinds` as in SentDraws.
  Result<Graph> record_draws_of(const OutputHead& head, ConstMatrixView x, std::int32_t num_rows,
                                std::vector<DeviceDraw> list, const DrawKinds& kinds);
  std::optional<FilledShape> filled_shape(const PagedBatch& batch) const;
  std::vector<SampleStep> filled_steps() const;
  void begin_filled_step(const PagedBatch& batch, std::span<const std::int32_t> token_ids,
                         const FilledShape& shape, std::int32_t context_len);
  Result<void> rehearse_step(const PagedBatch& batch, std::span<const std::int32_t> token_ids,
                             const FilledShape& shape, const StepBody& body);
  // Counts what it takes of the device.
  Result<Graph> record_graph(const std::string& what, std::int32_t num_rows,
                             const std::function<void()>& body);
  std::int64_t planned_graph_bytes() const;
  // The batch that begin_step took. REQUIRES: `batch` is it.
  const DeviceBatch& device_batch(const PagedBatch& batch) const;
  void move_blocks(const std::byte* sources, std::byte* targets, std::int64_t block_bytes,
                   std::span<const BlockCopy> copies, MoveTimer& timer);
  std::int64_t take_time(MoveTimer& timer);
  void await_moves();
  // Sends a list of rows, where one is needed.
  LogitsRows logits_rows_of(std::span<const std::int32_t> rows);
  // Logits of rows and their summary, where they stand.
  AdjustableRows start_logits(const OutputHead& head, ConstMatrixView x, const LogitsRows& rows);
  // Waits until `target`, of the host, holds `count` floats of the device.
  void fetch(const float* source, std::int64_t count, float* target);
  // Sends what was drawn to the host, for take_draws().
  void send_drawn(std::size_t count);

  const CudaOptions options_;
  const std::unique_ptr<Backend> host_;
  std::string isa_;
  DeviceStatus status_;
  std::optional<Stream> compute_, moves_;
  std::optional<Event> computed_, moved_;
  std::optional<MoveTimer> out_timer_, in_timer_;
  bool moves_are_pending_ = false;
  std::optional<WeightLoader> loader_;  // from the first matrix on, until a step is reserved
  cublasLtHandle_t library_ = nullptr;
  std::unique_ptr<MatrixProducts> products_;
  std::unique_ptr<PagedAttention> attention_;
  StepShape shape_;
  std::optional<Scratch> scratch_;
  // That decode steps, others, and draws are filled up to.
  std::vector<std::int32_t> decode_rows_, mixed_rows_, drawn_rows_;
  std::map<FilledShape, Graph> recorded_;
  std::map<std::int32_t, Graph> recorded_best_, recorded_draws_;  // by rows: the best of each, or any draws
  std::int64_t graph_bytes_ = 0;                                  // as reported by the device's free memory
  // Of one step.
  FilledBatch filled_batch_;
  DeviceBatch batch_;
  SentDraws sent_draws_;
  std::size_t num_draws_started_ = 0, num_draws_taken_ = 0;  // calls
  const std::int32_t* host_positions_ = nullptr;
  const std::int32_t* host_token_ids_ = nullptr;
  const std::int32_t* token_ids_ = nullptr;
};

}  // namespace octavo::kernels::cuda
