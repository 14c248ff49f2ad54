#include <algorithm>

#include "kernels/reference/reference_backend.h"

namespace octavo::kernels::reference {
namespace {

// [c | r] of one row: the key that all heads share.
std::vector<float> key_of(const LatentInputWeights& weights, const AttentionShape& shape,
                          const std::vector<float>& normalised, const float* rotations) {
  std::vector<float> key = product(*weights.key_value, normalised);
  const std::vector<float> latent = norm(key.data(), weights.latent_norm);
  std::copy(latent.begin(), latent.end(), key.begin());
  rotate_head(key.data() + shape.latent_dim, shape, rotations);
  return key;
}

// [u | s] of all heads of one row.
std::vector<float> queries_of(const LatentInputWeights& weights, const AttentionShape& shape,
                              const std::vector<float>& normalised, const float* rotations, float scale) {
  std::vector<float> inner = normalised;
  if (weights.query_down != nullptr)
    inner = norm(product(*weights.query_down, normalised).data(), weights.query_norm);
  std::vector<float> queries = product(*weights.query, inner);
  const std::int64_t query_dim = weights.query->rows() / shape.num_heads;
  for (std::int64_t head = 0; head < shape.num_heads; ++head)
    rotate_head(queries.data() + (head + 1) * query_dim - shape.rotary_dim, shape, rotations);
  for (float& number : queries) number *= scale;
  return queries;
}

}  // namespace

void ReferenceBackend::latent_attention_input(const LatentInputWeights& weights, const AttentionShape& shape,
                                              const PagedBatch& batch, std::int32_t layer, ConstMatrixView x,
                                              KvCache& kv, MatrixView q) {
  auto& cache = static_cast<ReferenceKvCache&>(kv);
  for (std::int32_t row = 0; row < batch.num_tokens; ++row) {
    const auto index = static_cast<std::size_t>(row);
    const std::vector<float> normalised = norm(x.row(row), weights.norm);
    const float* rotations = rotations_of(shape, batch, row);
    const float scale = batch.query_scales.empty() ? 1.0f : batch.query_scales[index];
    const std::vector<float> queries = queries_of(weights, shape, normalised, rotations, scale);
    const auto width = static_cast<std::int64_t>(queries.size());
    project_heads(weights.keys, {queries.data(), 1, width, width}, {q.row(row), 1, q.columns, q.stride});
    for (std::int64_t head = 0; head < shape.num_heads; ++head) {
      const float* rotated = queries.data() + (head + 1) * (width / shape.num_heads) - shape.rotary_dim;
      std::copy_n(rotated, shape.rotary_dim, q.row(row) + head * shape.head_dim + shape.latent_dim);
    }
    const std::int32_t slot = batch.slot_mapping[index], block_size = kv.layout().block_size;
    const std::vector<float> key = key_of(weights, shape, normalised, rotations);
    cache.write({slot / block_size, layer, 0, slot % block_size}, key.data(), nullptr);
  }
}

}  // namespace octavo::kernels::reference
