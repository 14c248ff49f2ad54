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
    if (position_table == nullptr) continue;
    const std::span<const float> position = position_table->row(positions[i]);
    for (std::size_t d = 0; d < row.size(); ++d) target[d] += position[d] * position_table->scale();
  }
}

}  // namespace octavo::kernels::reference
