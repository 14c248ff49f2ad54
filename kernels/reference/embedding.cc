#include <algorithm>

#include "kernels/reference/reference_backend.h"

namespace octavo::kernels::reference {

void ReferenceBackend::embed(const EmbeddingWeights& weights, std::span<const std::int32_t> token_ids,
                             std::span<const std::int32_t> positions, MatrixView out) {
  const auto& tokens = static_cast<const ReferenceMatrix&>(*weights.tokens);
  const auto* position_table = static_cast<const ReferenceMatrix*>(weights.positions);
  for (std::size_t i = 0; i < token_ids.size(); ++i) {
    const std::span<const float> row = tokens.row(token_ids[i]);
    float* target = out.row(static_cast<std::int64_t>(i));
    for (std::size_t d = 0; d < row.size(); ++d) target[d] = row[d] * tokens.scale() * weights.scale;
    if (position_table != nullptr) {
      const std::span<const float> position = position_table->row(positions[i]);
      for (std::size_t d = 0; d < row.size(); ++d) target[d] += position[d] * position_table->scale();
    }
    const std::vector<float> normalised = norm_of_row(out, static_cast<std::int64_t>(i), weights.norm);
    std::copy(normalised.begin(), normalised.end(), target);
  }
}

void ReferenceBackend::embed_layers(const LayerEmbeddingWeights& weights,
                                    std::span<const std::int32_t> token_ids, ConstMatrixView x,
                                    MatrixView out) {
  const auto& projection = static_cast<const ReferenceMatrix&>(*weights.projection);
  const auto& tokens = static_cast<const ReferenceMatrix&>(*weights.tokens);
  const std::size_t size = weights.norm.weight.size();
  std::vector<float> product(static_cast<std::size_t>(projection.rows()));
  for (std::int64_t row = 0; row < out.rows; ++row) {
    projection.multiply({x.row(row), x.row(row) + x.columns}, {}, product.data());
    for (float& number : product) number *= weights.projection_scale;
    const std::span<const float> token = tokens.row(token_ids[static_cast<std::size_t>(row)]);
    float* const target = out.row(row);
    for (std::size_t first = 0; first < product.size(); first += size) {
      const std::vector<float> part = norm(product.data() + first, weights.norm);
      for (std::size_t i = 0; i < size; ++i)
        target[first + i] =
            (part[i] + weights.token_scale * tokens.scale() * token[first + i]) * weights.scale;
    }
  }
}

}  // namespace octavo::kernels::reference
