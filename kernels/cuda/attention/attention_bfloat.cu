// Attention over the KV types whose operands are bfloat16.
#include "kernels/cuda/attention/attention_kernel.cuh"

namespace octavo::kernels::cuda {

template ChosenAttention choose_attention<KvType::kBf16>(std::int32_t, AttentionKind);
template ChosenAttention choose_attention<KvType::kInt8>(std::int32_t, AttentionKind);

}  // namespace octavo::kernels::cuda
