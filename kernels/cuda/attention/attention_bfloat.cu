// Attention over the KV types whose operands are bfloat16.
#include "kernels/cuda/attention/attention_kernel.cuh"

namespace octavo::kernels::cuda {

template ChosenAttention choose_attention_of<KvType::kBf16>(std::int32_t, AttentionKind, HalfParts);
template ChosenAttention choose_attention_of<KvType::kInt8>(std::int32_t, AttentionKind, HalfParts);

}  // namespace octavo::kernels::cuda
