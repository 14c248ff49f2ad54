// Declarations of the kernels of one instruction set; kernel_table.h says what they compute.
#pragma once

#include "kernels/cpu/simd.h"
#include "kernels/cpu/simd/kernel_table.h"

namespace octavo::kernels::cpu::OCTAVO_ISA {

void rms_norm(const float* x, const float* weight, float epsilon, std::int64_t size, float* out);
void layer_norm(const float* x, const float* weight, const float* bias, float epsilon, std::int64_t size,
                float* out);
void add_row(float* a, const float* b, std::int64_t size);
void add_scaled_row(float* a, const float* b, float factor, std::int64_t size);
void scale_row(float* a, float factor, std::int64_t size);
void silu_mul(float* gate, const float* up, std::int64_t size);
void gelu_mul(float* gate, const float* up, std::int64_t size);
void clamped_swiglu(float* gate, const float* up, std::int64_t size);
void silu(float* a, std::int64_t size);
void gelu(float* a, std::int64_t size);
void soft_cap(float* a, float cap, std::int64_t size);
void rotate_heads(float* heads, std::int32_t num_heads, std::int32_t head_dim, std::int32_t rotary_dim,
                  bool halves, const float* rotations);
void write_kv(const float* key, const float* value, const KvSlot& slot);
void summarise_logits(const float* logits, std::int64_t size, float* piece_maxima, float* max, float* sum);
void merge_exp_sums(const float* maxima, const float* sums, std::int64_t count, float* max, float* sum);
void softmax_weights(const double* scores, std::int64_t size, double best, double inverse_temperature,
                     double* weights, double* piece_sums);

std::int64_t attention_scratch_floats(std::int32_t num_rows, std::int32_t group_size, std::int32_t head_dim);
std::int64_t attention_partial_floats(std::int32_t head_dim);
void attend(const AttentionJob& job, float* scratch);
void attend_ranges(const AttentionJob& job, float* scratch, float* partials, std::int64_t range_stride);
void merge_ranges(const AttentionTile& tile, float* partials, std::int64_t range_stride);

// exp of one float, by the same steps as the vector.
OCTAVO_INLINE float exp_of(float x) {
  alignas(64) float lanes[kLanes];
  store(lanes, exp(set1(x)));
  return lanes[0];
}

}  // namespace octavo::kernels::cpu::OCTAVO_ISA
