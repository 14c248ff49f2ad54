// Three parallel loops: norm and rounding of the rows; the panels of Q, K and V as one list; bias, norms of
// heads, rotation and KV write.
#include <algorithm>

#include "kernels/cpu/cpu_backend.h"

namespace octavo::kernels::cpu {

void CpuBackend::attention_input(const AttentionInputWeights& weights, const AttentionShape& shape,
                                 const PagedBatch& batch, std::int32_t layer, ConstMatrixView x, KvCache& kv,
                                 MatrixView q) {
  const auto& query = static_cast<const PackedMatrix&>(*weights.query);
  const auto* key = static_cast<const PackedMatrix*>(weights.key);
  const auto* value = static_cast<const PackedMatrix*>(weights.value);
  const std::int64_t rows = batch.num_tokens, width = key == nullptr ? 0 : key->rows();
  const MatrixView k{key_rows_.reserve(rows * width), rows, width, width};
  const MatrixView v{value_rows_.reserve(rows * width), rows, width, width};

  ActivationForms forms = query.activation_forms();
  Product products[3] = {{&query, q}};
  std::size_t num_products = 1;
  if (key != nullptr) products[num_products++] = {key, k};
  if (value != nullptr) products[num_products++] = {value, v};
  for (std::size_t i = 1; i < num_products; ++i) forms = forms | products[i].matrix->activation_forms();
  set_normalised(weights.norm, {x.data, rows, x.columns, x.stride}, {}, forms);
  multiply({products, num_products});
  for_each_row(rows, [&](std::int64_t row, std::int32_t) {
    finish_queries(weights, shape, batch, row, q);
    if (key == nullptr) return;
    store_keys_and_values(weights, shape, batch, layer, row, k, v, static_cast<CpuKvCache&>(kv));
  });
}

// Each piece as long as the weight by itself: heads, or the whole row. No weight: nothing.
void CpuBackend::normalise_heads(std::span<const float> weight, float epsilon, std::int64_t width,
                                 float* heads) const {
  const auto size = static_cast<std::int64_t>(weight.size());
  if (size == 0) return;
  for (float* const end = heads + width; heads < end; heads += size)
    kernels_.rms_norm(heads, weight.data(), epsilon, size, heads);
}

// The norm of queries or keys.
void CpuBackend::normalise_heads(const AttentionInputWeights& weights, std::span<const float> weight,
                                 const AttentionShape& shape, std::int64_t width, float* heads) const {
  const float epsilon = weights.norm.epsilon;
  if (weights.head_norm_kind == NormKind::kRms) return normalise_heads(weight, epsilon, width, heads);
  if (weight.empty()) return;
  for (std::int64_t first = 0; first < width; first += shape.head_dim) {
    kernels_.layer_norm(heads + first, weight.data() + first, nullptr, epsilon, shape.head_dim,
                        heads + first);
  }
}

void CpuBackend::finish_queries(const AttentionInputWeights& weights, const AttentionShape& shape,
                                const PagedBatch& batch, std::int64_t row, MatrixView q) {
  add_bias(weights.query_bias, q.row(row), 0, q.columns);
  const bool norm_follows = weights.norms_follow_rotation;
  if (!norm_follows) normalise_heads(weights, weights.query_norm, shape, q.columns, q.row(row));
  rotate(shape, batch, row, shape.num_heads, q.row(row));
  if (norm_follows) normalise_heads(weights, weights.query_norm, shape, q.columns, q.row(row));
  if (!batch.query_scales.empty())
    kernels_.scale_row(q.row(row), batch.query_scales[static_cast<std::size_t>(row)], q.columns);
}

void CpuBackend::rotate(const AttentionShape& shape, const PagedBatch& batch, std::int64_t row,
                        std::int32_t num_heads, std::int32_t distance, float* heads) const {
  const auto& angles = shape.rotations == Rotations::kLocal ? batch.local_rotations : batch.rotations;
  kernels_.rotate_heads(heads, num_heads, distance, shape.rotary_dim, shape.pairing == RopePairing::kHalves,
                        angles.data() + row * shape.rotary_dim);
}

void CpuBackend::store_keys_and_values(const AttentionInputWeights& weights, const AttentionShape& shape,
                                       const PagedBatch& batch, std::int32_t layer, std::int64_t row,
                                       MatrixView k, MatrixView v, CpuKvCache& kv) {
  add_bias(weights.key_bias, k.row(row), 0, k.columns);
  if (weights.value == nullptr) {
    std::copy_n(k.row(row), k.columns, v.row(row));
  } else {
    add_bias(weights.value_bias, v.row(row), 0, v.columns);
  }
  const bool norm_follows = weights.norms_follow_rotation;
  if (!norm_follows) normalise_heads(weights, weights.key_norm, shape, k.columns, k.row(row));
  normalise_heads(weights.value_norm, weights.norm.epsilon, v.columns, v.row(row));
  rotate(shape, batch, row, shape.num_kv_heads, k.row(row));
  if (norm_follows) normalise_heads(weights, weights.key_norm, shape, k.columns, k.row(row));

  for (std::int32_t head = 0; head < shape.num_kv_heads; ++head) {
    kernels_.write_kv(k.row(row) + head * shape.head_dim, v.row(row) + head * shape.head_dim,
                      kv.slot_of(batch.slot_mapping[static_cast<std::size_t>(row)], layer, head));
  }
}

}  // namespace octavo::kernels::cpu
