// The products that read the layer's rows as one list, and behind them, where queries have a rank, that of
// the queries; then keys and rotated numbers, row by row; last the heads' matrices.
#include <algorithm>

#include "kernels/cpu/cpu_backend.h"

namespace octavo::kernels::cpu {
namespace {

const PackedMatrix& packed(const Matrix* matrix) { return static_cast<const PackedMatrix&>(*matrix); }

}  // namespace

void CpuBackend::latent_attention_input(const LatentInputWeights& weights, const AttentionShape& shape,
                                        const PagedBatch& batch, std::int32_t layer, ConstMatrixView x,
                                        KvCache& kv, MatrixView q) {
  const std::int64_t rows = batch.num_tokens, width = weights.query->rows(), key_dim = shape.head_dim;
  const MatrixView queries{product_rows_.reserve(rows * width), rows, width, width};
  const MatrixView keys{key_rows_.reserve(rows * key_dim), rows, key_dim, key_dim};
  multiply_latent_rows(weights, {x.data, rows, x.columns, x.stride}, queries, keys);
  for_each_row(rows, [&](std::int64_t row, std::int32_t) {
    store_latent_key(weights, shape, batch, layer, row, keys, static_cast<CpuKvCache&>(kv));
    place_rotated_queries(shape, batch, row, queries, q);
  });
  project_heads(weights.keys, queries, q);
}

void CpuBackend::multiply_latent_rows(const LatentInputWeights& weights, ConstMatrixView x,
                                      MatrixView queries, MatrixView keys) {
  const PackedMatrix &query = packed(weights.query), &key_value = packed(weights.key_value);
  const bool has_rank = weights.query_down != nullptr;
  const PackedMatrix& first = has_rank ? packed(weights.query_down) : query;
  const std::int64_t rank = has_rank ? first.rows() : 0;
  const MatrixView down{value_rows_.reserve(x.rows * rank), x.rows, rank, rank};
  set_normalised(weights.norm, x, {}, first.activation_forms() | key_value.activation_forms());
  const Product list[] = {{&first, has_rank ? down : queries}, {&key_value, keys}};
  multiply(list);
  if (!has_rank) return;
  set_normalised(weights.query_norm, down, {}, query.activation_forms());
  const Product behind[] = {{&query, queries}};
  multiply(behind);
}

void CpuBackend::store_latent_key(const LatentInputWeights& weights, const AttentionShape& shape,
                                  const PagedBatch& batch, std::int32_t layer, std::int64_t row,
                                  MatrixView keys, CpuKvCache& kv) {
  float* const key = keys.row(row);
  normalise(weights.latent_norm, key, key);
  rotate(shape, batch, row, /*num_heads=*/1, shape.head_dim, key + shape.latent_dim);
  kernels_.write_kv(key, /*value=*/nullptr,
                    kv.slot_of(batch.slot_mapping[static_cast<std::size_t>(row)], layer, /*kv_head=*/0));
}

void CpuBackend::place_rotated_queries(const AttentionShape& shape, const PagedBatch& batch, std::int64_t row,
                                       MatrixView queries, MatrixView q) {
  const auto query_dim = static_cast<std::int32_t>(queries.columns / shape.num_heads);
  float* const rotated = queries.row(row) + query_dim - shape.rotary_dim;
  rotate(shape, batch, row, shape.num_heads, query_dim, rotated);
  if (!batch.query_scales.empty())
    kernels_.scale_row(queries.row(row), batch.query_scales[static_cast<std::size_t>(row)], queries.columns);
  float* const target = q.row(row) + shape.latent_dim;
  for (std::int64_t head = 0; head < shape.num_heads; ++head)
    std::copy_n(rotated + head * query_dim, shape.rotary_dim, target + head * shape.head_dim);
}

}  // namespace octavo::kernels::cpu
