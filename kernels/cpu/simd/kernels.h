// Declarations of the kernels of one instruction set; kernel_table.h says what they compute.
#pragma once

#include "kernels/cpu/simd.h"
#include "kernels/cpu/simd/kernel_table.h"

namespace octavo::kernels::cpu::OCTAVO_ISA {

void rms_norm(const float* x, const float* weight, float epsilon, std::int64_t size, float* out);
void layer_norm(const float* x, const float* weight, const float* bias, float epsilon, std::int64_t size,
                float* out);
void add_row(float* a, const float* b, std::int64_t size);
void multiply_row(float* a, const float* b, std::int64_t size);
void add_scaled_row(float* a, const float* b, float factor, std::int64_t size);
void scale_row(float* a, float factor, std::int64_t size);
void silu_mul(float* gate, const float* up, std::int64_t size);
void gelu_mul(float* gate, const float* up, std::int64_t size);
void relu_mul(float* gate, const float* up, std::int64_t size);
void squared_relu_mul(float* gate, const float* up, std::int64_t size);
void clamped_swiglu(float* gate, const float* up, std::int64_t size);
void silu(float* a, std::int64_t size);
void gelu(float* a, std::int64_t size);
void relu(float* a, std::int64_t size);
void squared_relu(float* a, std::int64_t size);
void sigmoid_mul(float* a, const float* gate, std::int64_t size);
void sigmoid(float* a, std::int64_t size);
void softplus(float* a, const float* bias, std::int64_t size);
void exp_scaled(float* a, const float* factor, std::int64_t size);
void unit_vector(float* a, float epsilon, float scale, std::int64_t size);
void soft_cap(float* a, float cap, std::int64_t size);
void rotate_heads(float* heads, std::int32_t num_heads, std::int32_t head_dim, std::int32_t rotary_dim,
                  bool halves, const float* rotations);
void convolve(const ChannelConvolution& job, float* scratch);
void delta_rule(const DeltaRuleJob& job);
void state_space(const StateSpaceJob& job);
void write_kv(const float* key, const float* value, const KvSlot& slot);
void summarise_logits(const float* logits, std::int64_t size, float* piece_maxima, float* max, float* sum);
void merge_exp_sums(const float* maxima, const float* sums, std::int64_t count, float* max, float* sum);
void softmax_weights(const double* scores, std::int64_t size, double best, double inverse_temperature,
                     double* weights, double* piece_sums);

std::int64_t attention_scratch_floats(std::int32_t num_rows, std::int32_t group_size, std::int32_t head_dim,
                                      std::int32_t value_dim);
std::int64_t attention_partial_floats(std::int32_t value_dim);
void attend(const AttentionJob& job, float* scratch);
void attend_ranges(const AttentionJob& job, float* scratch, float* partials, std::int64_t range_stride);
void merge_ranges(const AttentionTile& tile, float* partials, std::int64_t range_stride);

OCTAVO_INLINE F32x16 silu_of(F32x16 z) { return div(z, add(set1(1.0f), exp(sub(zero(), z)))); }

// exp of one float, by the same steps as the vector.
OCTAVO_INLINE float exp_of(float x) {
  alignas(64) float lanes[kLanes];
  store(lanes, exp(set1(x)));
  return lanes[0];
}

}  // namespace octavo::kernels::cpu::OCTAVO_ISA
