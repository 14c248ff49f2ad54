#include "kernels/reference/reference_backend.h"

namespace octavo::kernels::reference {

void rotate_head(float* head, const AttentionShape& shape, const float* rotations) {
  const std::int32_t num_pairs = shape.rotary_dim / 2;
  const bool interleaved = shape.pairing == RopePairing::kInterleaved;
  for (std::int32_t i = 0; i < num_pairs; ++i) {
    float& first = head[interleaved ? 2 * i : i];
    float& second = head[interleaved ? 2 * i + 1 : i + num_pairs];
    const double a = first, b = second, cosine = rotations[2 * i], sine = rotations[2 * i + 1];
    first = static_cast<float>(a * cosine - b * sine);
    second = static_cast<float>(a * sine + b * cosine);
  }
}

const float* rotations_of(const AttentionShape& shape, const PagedBatch& batch, std::int64_t row) {
  const auto& angles = shape.rotations == Rotations::kLocal ? batch.local_rotations : batch.rotations;
  return angles.data() + row * shape.rotary_dim;
}

}  // namespace octavo::kernels::reference
