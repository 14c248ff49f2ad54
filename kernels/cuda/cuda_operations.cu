// The operations of a step, each a few launches: matmul.h, paged_attention.h, embedding.h, logits_summary.h,
// block_copy.h.
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "engine/base/check.h"
#include "kernels/cuda/block_copy.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/embedding.h"
#include "kernels/cuda/logits_summary.h"

namespace octavo::kernels::cuda {
namespace {

const DeviceMatrix& device_matrix(const Matrix& matrix) { return static_cast<const DeviceMatrix&>(matrix); }

const float* data_of(std::span<const float> vector) { return vector.empty() ? nullptr : vector.data(); }

ProductInput rows_of(ConstMatrixView view) {
  return {.data = view.data, .stride = view.stride, .num_rows = static_cast<std::int32_t>(view.rows)};
}

ProductInput normalised(ConstMatrixView view, const NormWeights& norm) {
  OCTAVO_CHECK(norm.kind == NormKind::kRms && norm.bias.empty(), "a norm that features() does not name");
  ProductInput input = rows_of(view);
  input.norm = norm.weight.data();
  input.norm_epsilon = norm.epsilon;
  return input;
}

Product product(const Matrix* weights, std::span<const float> bias, float* out, std::int64_t out_stride) {
  return {.weights = &device_matrix(*weights), .bias = data_of(bias), .out = out, .out_stride = out_stride};
}

}  // namespace

void CudaBackend::begin_step(const PagedBatch& batch, std::span<const std::int32_t> token_ids) {
  OCTAVO_CHECK(scratch_.has_value() && batch.num_tokens <= shape_.num_rows,
               "a step of %d rows, %d are reserved", batch.num_tokens, shape_.num_rows);
  UploadRing& inputs = scratch_->inputs;
  std::int64_t num_bytes = 0;
  for (const auto& array : {token_ids, batch.positions, batch.slot_mapping, batch.query_start,
                            batch.context_lens, batch.block_tables}) {
    num_bytes += UploadRing::padded(static_cast<std::int64_t>(array.size_bytes()));
  }
  inputs.begin(*compute_,
               num_bytes + UploadRing::padded(static_cast<std::int64_t>(batch.rotations.size_bytes())));
  host_positions_ = batch.positions.data();
  host_token_ids_ = token_ids.data();
  token_ids_ = inputs.put(token_ids);
  batch_ = {.num_tokens = batch.num_tokens,
            .num_sequences = batch.num_sequences,
            .max_blocks = batch.max_blocks,
            .min_rows = batch.num_tokens,
            .positions = inputs.put(batch.positions),
            .slot_mapping = inputs.put(batch.slot_mapping),
            .query_start = inputs.put(batch.query_start),
            .context_lens = inputs.put(batch.context_lens),
            .block_tables = inputs.put(batch.block_tables),
            .rotations = inputs.put(batch.rotations)};
  inputs.send(*compute_);
  for (std::size_t i = 0; i < static_cast<std::size_t>(batch.num_sequences); ++i) {
    const std::int32_t num_rows = batch.query_start[i + 1] - batch.query_start[i];
    batch_.min_rows = std::min(batch_.min_rows, num_rows);
    batch_.max_rows = std::max(batch_.max_rows, num_rows);
    batch_.max_context_len = std::max(batch_.max_context_len, batch.context_lens[i]);
  }
}

const DeviceBatch& CudaBackend::device_batch(const PagedBatch& batch) const {
  OCTAVO_CHECK(batch.positions.data() == host_positions_ && batch.num_tokens == batch_.num_tokens,
               "a batch that begin_step was not told");
  return batch_;
}

void CudaBackend::embed(const EmbeddingWeights& weights, std::span<const std::int32_t> token_ids,
                        std::span<const std::int32_t>, MatrixView out) {
  OCTAVO_CHECK(token_ids.data() == host_token_ids_, "token ids that begin_step was not told");
  OCTAVO_CHECK(weights.scale == 1.0f && weights.positions == nullptr,
               "an embedding that features() does not name");
  gather_rows(*compute_, device_matrix(*weights.tokens).planes(), token_ids_,
              static_cast<std::int32_t>(token_ids.size()), out.data, out.stride);
}

void CudaBackend::attention_input(const AttentionInputWeights& weights, const AttentionShape& shape,
                                  const PagedBatch& batch, std::int32_t layer, ConstMatrixView x, KvCache& kv,
                                  MatrixView q) {
  OCTAVO_CHECK(
      weights.query_norm.empty() && weights.key_norm.empty() && shape.rotations == Rotations::kGlobal,
      "norms of heads or local rotations, which features() does not name");
  const DeviceBatch& device = device_batch(batch);
  float* const keys = scratch_->keys.as<float>();
  float* const values = scratch_->values.as<float>();
  const std::int64_t kv_width = weights.key->rows();
  const std::array<Product, 3> products = {product(weights.query, weights.query_bias, q.data, q.stride),
                                           product(weights.key, weights.key_bias, keys, kv_width),
                                           product(weights.value, weights.value_bias, values, kv_width)};
  products_->multiply(normalised(x, weights.norm), products);
  await_moves();
  write_kv(*compute_, shape, device, kv.layout(), layer, q.data, q.stride, keys, values, kv_width,
           static_cast<const CudaKvCache&>(kv).data());
}

void CudaBackend::paged_attention(const AttentionShape& shape, const PagedBatch& batch, std::int32_t layer,
                                  const KvCache& kv, ConstMatrixView q, MatrixView out) {
  OCTAVO_CHECK(shape.window == 0 && shape.score_soft_cap == 0.0f,
               "a window or a soft cap, which features() does not name");
  await_moves();
  attention_->attend(shape, device_batch(batch), kv.layout(), layer,
                     static_cast<const CudaKvCache&>(kv).data(), q.data, q.stride, out.data, out.stride);
}

void CudaBackend::project_residual(const ProjectionWeights& weights, ConstMatrixView input,
                                   MatrixView residual) {
  OCTAVO_CHECK(weights.post_norm.weight.empty(), "a norm that features() does not name");
  Product sum = product(weights.matrix, weights.bias, residual.data, residual.stride);
  sum.epilogue = Epilogue::kAdd;
  products_->multiply(rows_of(input), std::span(&sum, 1));
}

void CudaBackend::feed_forward_input(const FeedForwardInputWeights& weights, ConstMatrixView x,
                                     MatrixView out) {
  OCTAVO_CHECK(weights.gate != nullptr && weights.activation == FeedForwardActivation::kSilu,
               "a feed-forward layer that features() does not name");
  products_->multiply_gate_up(normalised(x, weights.norm), {.gate = &device_matrix(*weights.gate),
                                                            .up = &device_matrix(*weights.up),
                                                            .gate_bias = data_of(weights.gate_bias),
                                                            .up_bias = data_of(weights.up_bias),
                                                            .out = out.data,
                                                            .out_stride = out.stride});
}

void CudaBackend::logits(const OutputHead& output, ConstMatrixView x, std::span<const std::int32_t> rows,
                         MatrixView out, LogitsSummary summary) {
  if (rows.empty()) return;
  OCTAVO_CHECK(output.soft_cap == 0.0f, "a soft cap, which features() does not name");
  const Matrix& weights = *output.matrix;
  const auto num_rows = static_cast<std::int32_t>(rows.size());
  OCTAVO_CHECK(
      scratch_.has_value() && num_rows <= shape_.num_logits_rows && weights.rows() <= shape_.vocabulary_size,
      "logits of %d rows, %d are reserved", num_rows, shape_.num_logits_rows);
  Scratch& scratch = *scratch_;
  const std::int64_t vocabulary = weights.rows();
  const auto sums_bytes = num_rows * static_cast<std::int64_t>(sizeof(float));
  const std::int64_t logits_bytes = vocabulary * sums_bytes,
                     pieces_bytes = num_logits_pieces(vocabulary) * sums_bytes;

  scratch.inputs.begin(*compute_, UploadRing::padded(static_cast<std::int64_t>(rows.size_bytes())));
  ProductInput input = normalised(x, output.norm);
  input.num_rows = num_rows;
  input.indices = scratch.inputs.put(rows);
  scratch.inputs.send(*compute_);
  const Product head = product(&weights, output.bias, scratch.logits.as<float>(), vocabulary);
  products_->multiply(input, std::span(&head, 1));
  summarise_logits(*compute_, scratch.logits.as<float>(), num_rows, vocabulary, scratch.sums.as<float>(),
                   scratch.piece_maxima.as<float>(), scratch.piece_sums.as<float>());
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
              static_cast<const CudaHostKvCache&>(host).data(), host.layout().block_bytes(), copies);
}

void CudaBackend::swap_in(const HostKvCache& host, KvCache& device, std::span<const BlockCopy> copies) {
  move_blocks(static_cast<const CudaHostKvCache&>(host).data(),
              static_cast<const CudaKvCache&>(device).data(), host.layout().block_bytes(), copies);
}

// After all that was started: it may read the blocks that are overwritten, or write those that leave.
void CudaBackend::move_blocks(const std::byte* sources, std::byte* targets, std::int64_t block_bytes,
                              std::span<const BlockCopy> copies) {
  if (copies.empty()) return;
  compute_->record(*computed_);
  moves_->wait_for(*computed_);
  move_pool_blocks(*moves_, sources, targets, block_bytes, copies);
  moves_->record(*moved_);
  moves_are_pending_ = true;
}

// Before the first operation that touches keys and values: what comes before it runs beside the moves.
void CudaBackend::await_moves() {
  if (!moves_are_pending_) return;
  compute_->wait_for(*moved_);
  moves_are_pending_ = false;
}

}  // namespace octavo::kernels::cuda
