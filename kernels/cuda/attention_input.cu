// The products of queries, keys and values, then one launch that normalises heads, rotates, rounds and
// stores.
#include <array>

#include "kernels/cuda/attention/kv_write.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/product_arguments.h"

namespace octavo::kernels::cuda {

void CudaBackend::attention_input(const AttentionInputWeights& weights, const AttentionShape& shape,
                                  const PagedBatch& batch, std::int32_t layer, ConstMatrixView x, KvCache& kv,
                                  MatrixView q) {
  const DeviceBatch& device = device_batch(batch);
  float* const keys = scratch_->keys.as<float>();
  float* const values = scratch_->values.as<float>();
  const std::int64_t kv_width = weights.key->rows();
  const std::array<Product, 3> products = {product(weights.query, weights.query_bias, q.data, q.stride),
                                           product(weights.key, weights.key_bias, keys, kv_width),
                                           product(weights.value, weights.value_bias, values, kv_width)};
  products_->multiply(normalised(x, weights.norm), products);
  await_moves();
  const HeadNorms norms{data_of(weights.query_norm), data_of(weights.key_norm), weights.norm.epsilon};
  write_kv(*compute_, shape, device, kv.layout(), layer, q.data, q.stride, keys, values, kv_width,
           static_cast<const CudaKvCache&>(kv).data(), norms);
}

}  // namespace octavo::kernels::cuda
