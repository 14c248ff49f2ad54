#include <algorithm>

#include "kernels/reference/reference_backend.h"

namespace octavo::kernels::reference {
namespace {

void store_row(const AttentionShape& shape, std::int32_t layer, std::int32_t slot, const float* k,
               const float* v, ReferenceKvCache& kv) {
  const std::int32_t block_size = kv.layout().block_size;
  for (std::int32_t head = 0; head < shape.num_kv_heads; ++head) {
    const ReferenceKvCache::Place place{slot / block_size, layer, head, slot % block_size};
    kv.write(place, k + head * shape.head_dim, v + head * shape.head_dim);
  }
}

// Each piece as long as the weight by itself: heads, or the whole row. No weight: nothing.
void normalise_heads(float* heads, std::int64_t width, NormWeights weights) {
  if (weights.weight.empty()) return;
  for (float* const end = heads + width; heads < end; heads += weights.weight.size()) {
    const std::vector<float> normalised = norm(heads, weights);
    std::copy(normalised.begin(), normalised.end(), heads);
  }
}

}  // namespace

void ReferenceBackend::attention_input(const AttentionInputWeights& weights, const AttentionShape& shape,
                                       const PagedBatch& batch, std::int32_t layer, ConstMatrixView x,
                                       KvCache& kv, MatrixView q) {
  const std::int64_t width = weights.key == nullptr ? 0 : weights.key->rows();
  std::vector<float> k(static_cast<std::size_t>(width)), v(k.size());
  for (std::int32_t row = 0; row < batch.num_tokens; ++row) {
    const std::vector<float> normalised = norm(x.row(row), weights.norm);
    const float epsilon = weights.norm.epsilon;
    const float* rotations = rotations_of(shape, batch, row);
    static_cast<const ReferenceMatrix&>(*weights.query).multiply(normalised, weights.query_bias, q.row(row));
    normalise_heads(q.row(row), weights.query->rows(), {weights.query_norm, epsilon});
    for (std::int32_t head = 0; head < shape.num_heads; ++head) {
      rotate_head(q.row(row) + head * shape.head_dim, shape, rotations);
    }
    if (!batch.query_scales.empty()) {
      const float scale = batch.query_scales[static_cast<std::size_t>(row)];
      for (std::int64_t i = 0; i < q.columns; ++i) q.row(row)[i] *= scale;
    }
    if (weights.key == nullptr) continue;

    static_cast<const ReferenceMatrix&>(*weights.key).multiply(normalised, weights.key_bias, k.data());
    if (weights.value == nullptr) {
      v = k;
    } else {
      static_cast<const ReferenceMatrix&>(*weights.value).multiply(normalised, weights.value_bias, v.data());
    }
    normalise_heads(k.data(), width, {weights.key_norm, epsilon});
    normalise_heads(v.data(), width, {weights.value_norm, epsilon});
    for (std::int32_t head = 0; head < shape.num_kv_heads; ++head) {
      rotate_head(k.data() + head * shape.head_dim, shape, rotations);
    }
    store_row(shape, layer, batch.slot_mapping[static_cast<std::size_t>(row)], k.data(), v.data(),
              static_cast<ReferenceKvCache&>(kv));
  }
}

}  // namespace octavo::kernels::reference
