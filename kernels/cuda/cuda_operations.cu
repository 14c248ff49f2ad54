// The operations of a step (cuda_step.cu), each a few launches: matmul.h, paged_attention.h, embedding.h,
// add_normalised.h, logits_summary.h, block_copy.h.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "engine/base/check.h"
#include "kernels/cuda/add_normalised.h"
#include "kernels/cuda/block_copy.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/embedding.h"
#include "kernels/cuda/sampling/logits_summary.h"

namespace octavo::kernels::cuda {
namespace {

const DeviceMatrix& device_matrix(const Matrix& matrix) { return static_cast<const DeviceMatrix&>(matrix); }

const float* data_of(std::span<const float> vector) { return vector.empty() ? nullptr : vector.data(); }

ProductInput rows_of(ConstMatrixView view) {
  return {.data = view.data, .stride = view.stride, .num_rows = static_cast<std::int32_t>(view.rows)};
}

ProductInput normalised(ConstMatrixView view, const NormWeights& norm) {
  ProductInput input = rows_of(view);
  input.norm = norm.weight.data();
  input.norm_epsilon = norm.epsilon;
  input.norm_kind = norm.kind;
  input.norm_bias = data_of(norm.bias);
  return input;
}

Product product(const Matrix* weights, std::span<const float> bias, float* out, std::int64_t out_stride) {
  return {.weights = &device_matrix(*weights), .bias = data_of(bias), .out = out, .out_stride = out_stride};
}

}  // namespace

void CudaBackend::embed(const EmbeddingWeights& weights, std::span<const std::int32_t> token_ids,
                        std::span<const std::int32_t> positions, MatrixView out) {
  OCTAVO_CHECK(token_ids.data() == host_token_ids_, "token ids that begin_step did not get");
  ChosenRows of_positions;
  if (weights.positions != nullptr) {
    OCTAVO_CHECK(positions.data() == host_positions_, "positions that begin_step did not get");
    of_positions = {device_matrix(*weights.positions).planes(), batch_.positions};
  }
  gather_rows(*compute_, {device_matrix(*weights.tokens).planes(), token_ids_}, weights.scale, of_positions,
              static_cast<std::int32_t>(token_ids.size()), out.data, out.stride);
}

void CudaBackend::attention_input(const AttentionInputWeights& weights, const AttentionShape& shape,
                                  const PagedBatch& batch, std::int32_t layer, ConstMatrixView x, KvCache& kv,
                                  MatrixView q) {
  const DeviceBatch& device = device_batch(batch);
  float* const keys = scratch_->keys.as<float>();
  float* const values = scratch_->values.as<float>();
  const std::int64_t kv_width = weights.key->rows();
  const std::array<Product, 3> products = {product(weights.query, weights.query_bias, q.data, q.stride),
                                           product(weights.key, weights.key_bias, keys, kv_width),
                                           product(weights.value, weights.value_bias, values, kv_width)};
  products_->multiply(normalised(x, weights.norm), products);
  await_moves();
  const HeadNorms norms{data_of(weights.query_norm), data_of(weights.key_norm), weights.norm.epsilon};
  write_kv(*compute_, shape, device, kv.layout(), layer, q.data, q.stride, keys, values, kv_width,
           static_cast<const CudaKvCache&>(kv).data(), norms);
}

void CudaBackend::paged_attention(const AttentionShape& shape, const PagedBatch& batch, std::int32_t layer,
                                  const KvCache& kv, ConstMatrixView q, MatrixView out) {
  await_moves();
  attention_->attend(shape, device_batch(batch), kv.layout(), layer,
                     static_cast<const CudaKvCache&>(kv).data(), q.data, q.stride, out.data, out.stride);
}

void CudaBackend::project_residual(const ProjectionWeights& weights, ConstMatrixView input,
                                   MatrixView residual) {
  Product sum = product(weights.matrix, weights.bias, residual.data, residual.stride);
  sum.epilogue = Epilogue::kAdd;
  if (!weights.post_norm.weight.empty()) {
    sum.epilogue = Epilogue::kStore;
    sum.out = scratch_->added.as<float>();
    sum.out_stride = residual.columns;
    OCTAVO_CHECK(input.rows * residual.columns * 4 <= scratch_->added.bytes(),
                 "post-norms were not reserved");
  }
  products_->multiply(rows_of(input), std::span(&sum, 1));
  if (weights.post_norm.weight.empty()) return;
  add_normalised(*compute_, sum.out, static_cast<std::int32_t>(input.rows), residual.columns,
                 weights.post_norm.weight.data(), weights.post_norm.epsilon, residual.data, residual.stride);
}

void CudaBackend::feed_forward_input(const FeedForwardInputWeights& weights, ConstMatrixView x,
                                     MatrixView out) {
  if (weights.gate == nullptr) {
    Product up = product(weights.up, weights.up_bias, out.data, out.stride);
    up.epilogue = epilogue_of(weights.activation);
    products_->multiply(normalised(x, weights.norm), std::span(&up, 1));
    return;
  }
  products_->multiply_gate_up(normalised(x, weights.norm), {.gate = &device_matrix(*weights.gate),
                                                            .up = &device_matrix(*weights.up),
                                                            .gate_bias = data_of(weights.gate_bias),
                                                            .up_bias = data_of(weights.up_bias),
                                                            .out = out.data,
                                                            .out_stride = out.stride,
                                                            .activation = weights.activation});
}

AdjustableRows CudaBackend::start_logits(const OutputHead& output, ConstMatrixView x,
                                         std::span<const std::int32_t> rows) {
  const Matrix& weights = *output.matrix;
  const auto num_rows = static_cast<std::int32_t>(rows.size());
  OCTAVO_CHECK(
      scratch_.has_value() && num_rows <= scratch_->logits_rows && weights.rows() <= shape_.vocabulary_size,
      "logits of %d rows, %d are reserved", num_rows, shape_.num_logits_rows);
  Scratch& scratch = *scratch_;
  const std::int64_t vocabulary = weights.rows();
  scratch.inputs.begin(*compute_, UploadRing::padded(static_cast<std::int64_t>(rows.size_bytes())));
  ProductInput input = normalised(x, output.norm);
  input.num_rows = num_rows;
  input.indices = scratch.inputs.put(rows);
  scratch.inputs.send(*compute_);
  const Product head = product(&weights, output.bias, scratch.logits.as<float>(), vocabulary);
  products_->multiply(input, std::span(&head, 1));
  summarise_logits(*compute_, scratch.logits.as<float>(), num_rows, vocabulary, output.soft_cap,
                   scratch.sums.as<float>(), scratch.piece_maxima.as<float>(),
                   scratch.piece_sums.as<float>());
  return {.logits = scratch.logits.as<float>(),
          .log_sum_exp = scratch.sums.as<float>(),
          .piece_maxima = scratch.piece_maxima.as<float>(),
          .vocabulary = vocabulary};
}

void CudaBackend::logits(const OutputHead& output, ConstMatrixView x, std::span<const std::int32_t> rows,
                         MatrixView out, LogitsSummary summary) {
  if (rows.empty()) return;
  const auto num_rows = static_cast<std::int64_t>(rows.size());
  OCTAVO_CHECK(num_rows <= shape_.num_logits_rows, "logits of %lld rows, %d are reserved",
               static_cast<long long>(num_rows), shape_.num_logits_rows);
  const std::int64_t vocabulary = start_logits(output, x, rows).vocabulary;
  Scratch& scratch = *scratch_;
  const std::int64_t sums_bytes = num_rows * static_cast<std::int64_t>(sizeof(float));
  const std::int64_t logits_bytes = vocabulary * sums_bytes,
                     pieces_bytes = num_logits_pieces(vocabulary) * sums_bytes;
  compute_->copy(scratch.host_logits.data(), scratch.logits.data(), logits_bytes);
  compute_->copy(scratch.host_sums.data(), scratch.sums.data(), sums_bytes);
  compute_->copy(scratch.host_piece_maxima.data(), scratch.piece_maxima.data(), pieces_bytes);
  compute_->synchronize();

  if (!status_.ok()) {  // nobody may take what the memory held before for an answer
    constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
    for (std::int64_t row = 0; row < num_rows; ++row) std::fill_n(out.row(row), vocabulary, kNan);
    std::fill_n(summary.log_sum_exp.begin(), rows.size(), kNan);
    return;
  }
  for (std::int64_t row = 0; row < num_rows; ++row) {
    std::copy_n(scratch.host_logits.as<float>() + row * vocabulary, vocabulary, out.row(row));
  }
  std::memcpy(summary.log_sum_exp.data(), scratch.host_sums.data(), static_cast<std::size_t>(sums_bytes));
  std::memcpy(summary.piece_maxima.data(), scratch.host_piece_maxima.data(),
              static_cast<std::size_t>(pieces_bytes));
}

void CudaBackend::softmax_weights(std::span<const double> scores, double best, double inverse_temperature,
                                  std::span<double> weights, std::span<double> piece_sums) {
  host_->softmax_weights(scores, best, inverse_temperature, weights, piece_sums);
}

void CudaBackend::copy_blocks(KvCache& kv, std::span<const BlockCopy> copies) {
  constexpr std::size_t kMostTogether = 4096;  // 32 KiB of indices
  if (copies.empty()) return;
  await_moves();
  OCTAVO_CHECK(scratch_.has_value(), "copies of blocks before reserve_step");
  for (std::size_t begin = 0; begin < copies.size(); begin += kMostTogether) {
    const auto some = copies.subspan(begin, std::min(kMostTogether, copies.size() - begin));
    scratch_->inputs.begin(*compute_, UploadRing::padded(static_cast<std::int64_t>(some.size_bytes())));
    const BlockCopy* const list = scratch_->inputs.put(some);
    scratch_->inputs.send(*compute_);
    copy_pool_blocks(*compute_, static_cast<const CudaKvCache&>(kv).data(), kv.layout().block_bytes(), list,
                     static_cast<std::int32_t>(some.size()));
  }
}

void CudaBackend::swap_out(const KvCache& device, HostKvCache& host, std::span<const BlockCopy> copies) {
  move_blocks(static_cast<const CudaKvCache&>(device).data(),
              static_cast<const CudaHostKvCache&>(host).data(), host.layout().block_bytes(), copies,
              *out_timer_);
}

void CudaBackend::swap_in(const HostKvCache& host, KvCache& device, std::span<const BlockCopy> copies) {
  move_blocks(static_cast<const CudaHostKvCache&>(host).data(),
              static_cast<const CudaKvCache&>(device).data(), host.layout().block_bytes(), copies,
              *in_timer_);
}

// After all that was started: it may read the blocks that are overwritten, or write those that leave. What
// the moves wait for is not their time.
void CudaBackend::move_blocks(const std::byte* sources, std::byte* targets, std::int64_t block_bytes,
                              std::span<const BlockCopy> copies, MoveTimer& timer) {
  if (copies.empty()) return;
  compute_->record(*computed_);
  moves_->wait_for(*computed_);
  moves_->record(timer.begin);
  move_pool_blocks(*moves_, sources, targets, block_bytes, copies);
  moves_->record(timer.end);
  moves_->record(*moved_);
  timer.is_running = true;
  moves_are_pending_ = true;
}

std::optional<SwapTimes> CudaBackend::take_swap_times() {
  return SwapTimes{.out_us = take_time(*out_timer_), .in_us = take_time(*in_timer_)};
}

std::int64_t CudaBackend::take_time(MoveTimer& timer) {
  if (!std::exchange(timer.is_running, false) || !status_.ok()) return 0;
  float milliseconds = 0.0f;
  status_.check(cudaEventSynchronize(timer.end.handle()), "cudaEventSynchronize");
  if (status_.ok()) {
    status_.check(cudaEventElapsedTime(&milliseconds, timer.begin.handle(), timer.end.handle()),
                  "cudaEventElapsedTime");
  }
  return std::llround(milliseconds * 1000.0);
}

// Before the first operation that touches keys and values: what comes before it runs beside the moves.
void CudaBackend::await_moves() {
  if (!moves_are_pending_) return;
  compute_->wait_for(*moved_);
  moves_are_pending_ = false;
}

}  // namespace octavo::kernels::cuda
