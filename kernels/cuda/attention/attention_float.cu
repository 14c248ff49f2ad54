// Attention over the KV types whose operands are sums of two bfloat16 numbers.
#include "kernels/cuda/attention/attention_kernel.cuh"

namespace octavo::kernels::cuda {

template ChosenAttention choose_attention_of<KvType::kF32>(std::int32_t, AttentionKind, HalfParts);

}  // namespace octavo::kernels::cuda
