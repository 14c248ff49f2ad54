// cuBLASLt's product by its definition: columns first, sums in float, ascending. The first product of a shape
// may not be captured: that is when the library chooses kernels and loads them.
#include "kernels/cuda/matmul/library.h"

#include <cstring>

#include <set>
#include <tuple>
#include <utility>

#include "engine/base/half.h"
#include "tests/emulation/device.h"

using Shape = std::tuple<cudaDataType_t, std::int64_t, std::int64_t, std::int64_t>;

struct cublasLtContext {
  std::set<Shape> known;                              // that were multiplied
  std::set<std::pair<std::uint64_t, Shape>> allowed;  // what algorithms may multiply
  std::uint64_t num_algorithms = 0;
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

using octavo::emulation::LibraryCall;

// What is multiplied, by its description.
struct Operands {
  bool turns_a, turns_b;
  Layout a, b, d;

  std::int64_t inner() const { return turns_a ? a.rows : a.columns; }
  bool fit() const {
    return inner() == (turns_b ? b.columns : b.rows) && d.rows == (turns_a ? a.columns : a.rows) &&
           d.columns == (turns_b ? b.rows : b.columns) && d.type == CUDA_R_32F && d.leading >= d.rows;
  }
  Shape shape() const { return {a.type, d.rows, d.columns, inner()}; }
};

Operands operands_of(cublasLtMatmulDesc_t description, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                     cublasLtMatrixLayout_t d) {
  return {description->a == CUBLAS_OP_T, description->b == CUBLAS_OP_T, *a, *b, *d};
}

cublasStatus_t answer(LibraryCall::Kind kind, const Operands& operands) {
  if (!operands.fit()) return CUBLAS_STATUS_INVALID_VALUE;
  const auto& answers = octavo::emulation::settings().library_answers;
  if (!answers) return CUBLAS_STATUS_SUCCESS;
  return answers({kind, operands.a.type, operands.d.rows, operands.d.columns, operands.inner()});
}

// Also says that the shape is known from now on.
bool is_refused(cublasLtContext& library, cudaStream_t stream, const Shape& shape) {
  octavo::emulation::Device& device = octavo::emulation::device();
  const std::lock_guard lock(device.mutex);
  const bool is_new = library.known.insert(shape).second;
  return is_new && stream->capture != nullptr && device.refuse_in_capture() != cudaSuccess;
}

void violate(const char* what) {
  octavo::emulation::Device& device = octavo::emulation::device();
  const std::lock_guard lock(device.mutex);
  device.violate(what, cudaErrorInvalidValue);
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
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t library, cublasLtMatmulDesc_t description,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t, int most,
                                              cublasLtMatmulHeuristicResult_t results[], int* num_results) {
  if (most < 1) return CUBLAS_STATUS_INVALID_VALUE;
  *num_results = 0;
  const Operands operands = operands_of(description, a, b, d);
  const cublasStatus_t status = answer(LibraryCall::Kind::kChoose, operands);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  results[0] = {};
  results[0].algo.data[0] = ++library->num_algorithms;
  library->allowed.emplace(library->num_algorithms, operands.shape());
  *num_results = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t library, cublasLtMatmulDesc_t description,
                                       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                       cublasLtMatrixLayout_t, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t* algorithm,
                                       cublasLtMatmulHeuristicResult_t* result) {
  *result = {};
  const Operands operands = operands_of(description, a, b, d);
  const cublasStatus_t status = answer(LibraryCall::Kind::kCheck, operands);
  if (status == CUBLAS_STATUS_SUCCESS) library->allowed.emplace(algorithm->data[0], operands.shape());
  return status;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t library, cublasLtMatmulDesc_t description, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                              cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                              cublasLtMatrixLayout_t c_layout, void* d, cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t* algorithm, void*, std::size_t,
                              cudaStream_t stream) {
  const Operands operands = operands_of(description, a_layout, b_layout, d_layout);
  const cublasStatus_t status = answer(LibraryCall::Kind::kMultiply, operands);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  if (is_refused(*library, stream, operands.shape())) return CUBLAS_STATUS_INTERNAL_ERROR;
  if (!library->allowed.contains({algorithm->data[0], operands.shape()}))
    violate("an algorithm of the library for a shape that it was neither chosen nor checked for");
  const Layout of_a = operands.a, of_b = operands.b, of_c = *c_layout, of_d = operands.d;
  const bool turns_a = operands.turns_a, turns_b = operands.turns_b;
  const std::int64_t inner = operands.inner();
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
