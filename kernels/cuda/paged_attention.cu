#include "kernels/cuda/cuda_backend.h"

namespace octavo::kernels::cuda {

void CudaBackend::paged_attention(const AttentionShape& shape, const PagedBatch& batch, std::int32_t layer,
                                  const KvCache& kv, ConstMatrixView q, MatrixView out) {
  await_moves();
  attention_->attend(shape, device_batch(batch), kv.layout(), layer,
                     static_cast<const CudaKvCache&>(kv).data(), q.data, q.stride, out.data, out.stride);
}

}  // namespace octavo::kernels::cuda
