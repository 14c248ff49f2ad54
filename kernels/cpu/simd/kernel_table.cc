#include "kernels/cpu/simd/kernel_table.h"

#include "kernels/cpu/simd/kernels.h"

namespace octavo::kernels::cpu::OCTAVO_ISA {

extern const KernelTable kKernelTable;
const KernelTable kKernelTable = {
    .rms_norm = rms_norm,
    .layer_norm = layer_norm,
    .add_row = add_row,
    .multiply_row = multiply_row,
    .add_scaled_row = add_scaled_row,
    .scale_row = scale_row,
    .silu_mul = silu_mul,
    .gelu_mul = gelu_mul,
    .relu_mul = relu_mul,
    .squared_relu_mul = squared_relu_mul,
    .clamped_swiglu = clamped_swiglu,
    .silu = silu,
    .gelu = gelu,
    .relu = relu,
    .squared_relu = squared_relu,
    .sigmoid_mul = sigmoid_mul,
    .sigmoid = sigmoid,
    .softplus = softplus,
    .exp_scaled = exp_scaled,
    .unit_vector = unit_vector,
    .soft_cap = soft_cap,
    .rotate_heads = rotate_heads,
    .convolve = convolve,
    .delta_rule = delta_rule,
    .state_space = state_space,
    .write_kv = write_kv,
    .summarise_logits = summarise_logits,
    .merge_exp_sums = merge_exp_sums,
    .softmax_weights = softmax_weights,
    .attention_scratch_floats = attention_scratch_floats,
    .attention_partial_floats = attention_partial_floats,
    .attend = attend,
    .attend_ranges = attend_ranges,
    .merge_ranges = merge_ranges,
};

}  // namespace octavo::kernels::cpu::OCTAVO_ISA
