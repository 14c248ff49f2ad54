#include "kernels/cpu/simd/kernels.h"

namespace octavo::kernels::cpu::OCTAVO_ISA {
namespace {

// The fused operations are written out because GCC 12 turns products that are added and subtracted in turn
// into vfmaddsub, fused, although -ffp-contract=off forbids it; the portable build would then differ in the
// last bit.

void rotate_halves(float* head, std::int32_t num_pairs, const float* rotations) {
  for (std::int32_t i = 0; i < num_pairs; ++i) {
    const float a = head[i], b = head[i + num_pairs];
    const float cosine = rotations[2 * i], sine = rotations[2 * i + 1];
    head[i] = __builtin_fmaf(a, cosine, -(b * sine));
    head[i + num_pairs] = __builtin_fmaf(a, sine, b * cosine);
  }
}

void rotate_interleaved(float* head, std::int32_t num_pairs, const float* rotations) {
  for (std::int32_t i = 0; i < num_pairs; ++i) {
    const float a = head[2 * i], b = head[2 * i + 1];
    const float cosine = rotations[2 * i], sine = rotations[2 * i + 1];
    head[2 * i] = __builtin_fmaf(a, cosine, -(b * sine));
    head[2 * i + 1] = __builtin_fmaf(a, sine, b * cosine);
  }
}

}  // namespace

void rotate_heads(float* heads, std::int32_t num_heads, std::int32_t head_dim, std::int32_t rotary_dim,
                  bool halves, const float* rotations) {
  for (std::int32_t head = 0; head < num_heads; ++head) {
    float* values = heads + static_cast<std::int64_t>(head) * head_dim;
    if (halves) {
      rotate_halves(values, rotary_dim / 2, rotations);
    } else {
      rotate_interleaved(values, rotary_dim / 2, rotations);
    }
  }
}

}  // namespace octavo::kernels::cpu::OCTAVO_ISA
