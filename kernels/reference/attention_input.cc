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

// Each piece as long as the weight by itself: heads, or the whole row. No weight: nothing. Of kLayer every
// head has its own part of the weight.
void normalise_heads(std::int64_t head_dim, float* heads, std::int64_t width, NormWeights weights) {
  const std::span<const float> all = weights.weight;
  if (all.empty()) return;
  const bool has_parts = weights.kind == NormKind::kLayer;
  const std::int64_t size = has_parts ? head_dim : static_cast<std::int64_t>(all.size());
  for (std::int64_t first = 0; first < width; first += size) {
    if (has_parts)
      weights.weight = all.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(size));
    const std::vector<float> normalised = norm(heads + first, weights);
    std::copy(normalised.begin(), normalised.end(), heads + first);
  }
}

}  // namespace

void ReferenceBackend::attention_input(const AttentionInputWeights& weights, const AttentionShape& shape,
                                       const PagedBatch& batch, std::int32_t layer, ConstMatrixView x,
                                       KvCache& kv, MatrixView q) {
  const std::int64_t width = weights.key == nullptr ? 0 : weights.key->rows();
  std::vector<float> k(static_cast<std::size_t>(width)), v(k.size());
  for (std::int32_t row = 0; row < batch.num_tokens; ++row) {
    const std::vector<float> normalised = norm_of_row(x, row, weights.norm);
    const auto normalise = [&](std::span<const float> weight, float* heads, std::int64_t size) {
      normalise_heads(shape.head_dim, heads, size, {weight, weights.norm.epsilon, weights.head_norm_kind});
    };
    const float* rotations = rotations_of(shape, batch, row);
    static_cast<const ReferenceMatrix&>(*weights.query).multiply(normalised, weights.query_bias, q.row(row));
    const auto rotate = [&](float* heads, std::int32_t num_heads) {
      for (std::int32_t head = 0; head < num_heads; ++head)
        rotate_head(heads + head * shape.head_dim, shape, rotations);
    };
    if (!weights.norms_follow_rotation) normalise(weights.query_norm, q.row(row), weights.query->rows());
    rotate(q.row(row), shape.num_heads);
    if (weights.norms_follow_rotation) normalise(weights.query_norm, q.row(row), weights.query->rows());
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
    if (!weights.norms_follow_rotation) normalise(weights.key_norm, k.data(), width);
    normalise(weights.value_norm, v.data(), width);
    rotate(k.data(), shape.num_kv_heads);
    if (weights.norms_follow_rotation) normalise(weights.key_norm, k.data(), width);
    store_row(shape, layer, batch.slot_mapping[static_cast<std::size_t>(row)], k.data(), v.data(),
              static_cast<ReferenceKvCache&>(kv));
  }
}

}  // namespace octavo::kernels::reference
