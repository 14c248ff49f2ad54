// Attention over the KV types whose operands are float16.
#include "kernels/cuda/attention/attention_kernel.cuh"

namespace octavo::kernels::cuda {

template ChosenAttention choose_attention_of<KvType::kF16>(std::int32_t, AttentionKind, HalfParts);
template ChosenAttention choose_attention_of<KvType::kFp8E4m3>(std::int32_t, AttentionKind, HalfParts);
template ChosenAttention choose_attention_of<KvType::kFp8E5m2>(std::int32_t, AttentionKind, HalfParts);

}  // namespace octavo::kernels::cuda
