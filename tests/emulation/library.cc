// cuBLASLt's product by its definition: columns first, sums in float, ascending. The first product of a shape
// may not be captured: that is when the library chooses kernels and loads them.
#include "kernels/cuda/matmul/library.h"

#include <cstring>

#include <set>
#include <tuple>

#include "engine/base/half.h"
#include "tests/emulation/device.h"

struct cublasLtContext {
  std::set<std::tuple<cudaDataType_t, std::int64_t, std::int64_t, std::int64_t>> known;
};
struct cublasLtMatmulDescOpaque_t {
  cublasOperation_t a = CUBLAS_OP_N, b = CUBLAS_OP_N;
};
struct cublasLtMatrixLayoutOpaque_t {
  cudaDataType type;
  std::int64_t rows, columns, leading;
};
struct cublasLtMatmulPreferenceOpaque_t {};

namespace {

using Layout = cublasLtMatrixLayoutOpaque_t;

float element(const void* data, const Layout& layout, std::int64_t row, std::int64_t column) {
  const std::int64_t index = row + column * layout.leading;
  if (layout.type == CUDA_R_32F) return static_cast<const float*>(data)[index];
  const std::uint16_t word = static_cast<const std::uint16_t*>(data)[index];
  return layout.type == CUDA_R_16F ? octavo::half_to_float(word) : octavo::bfloat16_to_float(word);
}

// Also says that the shape is known from now on.
bool is_refused(cublasLtContext& library, cudaStream_t stream, const Layout& a, const Layout& d,
                std::int64_t inner) {
  octavo::emulation::Device& device = octavo::emulation::device();
  const std::lock_guard lock(device.mutex);
  const bool is_new = library.known.emplace(a.type, d.rows, d.columns, inner).second;
  return is_new && stream->capture != nullptr && device.refuse_in_capture() != cudaSuccess;
}

}  // namespace

namespace octavo::kernels::cuda {

cublasLtHandle_t open_library() { return new cublasLtContext; }
void close_library(cublasLtHandle_t library) { delete library; }

}  // namespace octavo::kernels::cuda

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* description, cublasComputeType_t,
                                        cudaDataType_t) {
  *description = new cublasLtMatmulDescOpaque_t;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t description) {
  delete description;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t description,
                                              cublasLtMatmulDescAttributes_t attribute, const void* value,
                                              std::size_t bytes) {
  cublasOperation_t& operation = attribute == CUBLASLT_MATMUL_DESC_TRANSA ? description->a : description->b;
  if (bytes != sizeof operation) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&operation, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                          std::uint64_t rows, std::uint64_t columns, std::int64_t leading) {
  *layout = new Layout{type, static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns), leading};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete layout;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = new cublasLtMatmulPreferenceOpaque_t;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t,
                                                    cublasLtMatmulPreferenceAttributes_t, const void*,
                                                    std::size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatmulPreference_t, int most,
                                              cublasLtMatmulHeuristicResult_t results[], int* num_results) {
  if (most < 1) return CUBLAS_STATUS_INVALID_VALUE;
  results[0] = {};
  *num_results = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t library, cublasLtMatmulDesc_t description, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                              cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                              cublasLtMatrixLayout_t c_layout, void* d, cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t*, void*, std::size_t, cudaStream_t stream) {
  const Layout of_a = *a_layout, of_b = *b_layout, of_c = *c_layout, of_d = *d_layout;
  const bool turns_a = description->a == CUBLAS_OP_T, turns_b = description->b == CUBLAS_OP_T;
  const std::int64_t inner = turns_a ? of_a.rows : of_a.columns;
  const bool fits = inner == (turns_b ? of_b.columns : of_b.rows) &&
                    of_d.rows == (turns_a ? of_a.columns : of_a.rows) &&
                    of_d.columns == (turns_b ? of_b.rows : of_b.columns) && of_d.type == CUDA_R_32F;
  if (!fits) return CUBLAS_STATUS_INVALID_VALUE;
  if (is_refused(*library, stream, of_a, of_d, inner)) return CUBLAS_STATUS_INTERNAL_ERROR;
  const float factor = *static_cast<const float*>(alpha), kept = *static_cast<const float*>(beta);
  const cudaError_t code = octavo::emulation::enqueue(stream, [=] {
    for (std::int64_t column = 0; column < of_d.columns; ++column) {
      for (std::int64_t row = 0; row < of_d.rows; ++row) {
        float sum = 0.0f;
        for (std::int64_t k = 0; k < inner; ++k) {
          sum += element(a, of_a, turns_a ? k : row, turns_a ? row : k) *
                 element(b, of_b, turns_b ? column : k, turns_b ? k : column);
        }
        sum *= factor;
        if (kept != 0.0f) sum += kept * element(c, of_c, row, column);
        static_cast<float*>(d)[row + column * of_d.leading] = sum;
      }
    }
  });
  return code == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}
