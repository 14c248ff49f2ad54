#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "kernels/cuda/matmul/library_names.h"
#include "kernels/cuda/matmul/matmul_kernels.h"

namespace octavo::kernels::cuda {
namespace {

constexpr std::int64_t kWorkspaceBytes = 32 << 20;  // what NVIDIA recommends for Hopper
constexpr std::size_t kMostRemembered = 256;        // shapes

// The library's own codes do not fit cudaError_t; its message is kept in the name of the call.
bool succeeded(cublasStatus_t code, Stream& stream, const char* call) {
  if (code == CUBLAS_STATUS_SUCCESS) return true;
  stream.status().check(cudaErrorUnknown, call);
  return false;
}

cudaDataType_t data_type(TensorType type) {
  if (type == TensorType::kF32) return CUDA_R_32F;
  return type == TensorType::kF16 ? CUDA_R_16F : CUDA_R_16BF;
}

// One of the library's descriptions, destroyed at the end.
template <class Handle, cublasStatus_t (*destroy)(Handle)>
struct Owned {
  Handle handle = nullptr;
  Owned() = default;
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() {
    if (handle != nullptr) (void)destroy(handle);
  }
};
using Layout = Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;

// The library counts columns first: c^T [outputs x rows] = (weights^T)^T * activations^T, all of them with
// columns as long as our rows.
struct Plan {
  Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy> description;
  Layout weights, activations, out;
  cublasLtMatmulAlgo_t algorithm{};
};

using Key = std::tuple<TensorType, std::int64_t, std::int64_t, std::int64_t, std::int64_t>;

Key key_of(const LibraryProduct& product) {
  return {product.type, product.outputs, product.rows, product.columns, product.out_stride};
}

class Library final : public LibraryProducts {
 public:
  Library(cublasLtHandle_t library, DeviceMemory workspace)
      : library_(library), workspace_(std::move(workspace)) {}

  std::int64_t scratch_bytes() const override { return workspace_.bytes(); }

  void multiply(Stream& stream, const LibraryProduct& product) override {
    if (!stream.status().ok()) return;
    const Plan* const plan = plan_for(stream, key_of(product));
    if (plan == nullptr) return;
    const float alpha = 1.0f, beta = product.adds ? 1.0f : 0.0f;
    succeeded(
        cublasLtMatmul(library_, plan->description.handle, &alpha, product.weights, plan->weights.handle,
                       product.activations, plan->activations.handle, &beta, product.out, plan->out.handle,
                       product.out, plan->out.handle, &plan->algorithm, workspace_.data(),
                       static_cast<std::size_t>(workspace_.bytes()), stream.handle()),
        stream, "cublasLtMatmul");
  }

 private:
  const Plan* plan_for(Stream& stream, const Key& key) {
    const auto found = plans_.find(key);
    if (found != plans_.end()) return found->second.get();
    std::unique_ptr<Plan> plan = make_plan(stream, key);
    if (plan == nullptr) return nullptr;
    if (plans_.size() >= kMostRemembered) plans_.clear();
    return plans_.emplace(key, std::move(plan)).first->second.get();
  }

  std::unique_ptr<Plan> make_plan(Stream& stream, const Key& key) {
    const auto [type, outputs, rows, columns, out_stride] = key;
    const auto wide = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
    auto plan = std::make_unique<Plan>();
    const cublasOperation_t transposed = CUBLAS_OP_T;
    const bool is_described =
        succeeded(cublasLtMatmulDescCreate(&plan->description.handle, CUBLAS_COMPUTE_32F, CUDA_R_32F), stream,
                  "cublasLtMatmulDescCreate") &&
        succeeded(cublasLtMatmulDescSetAttribute(plan->description.handle, CUBLASLT_MATMUL_DESC_TRANSA,
                                                 &transposed, sizeof transposed),
                  stream, "cublasLtMatmulDescSetAttribute") &&
        succeeded(cublasLtMatrixLayoutCreate(&plan->weights.handle, data_type(type), wide(columns),
                                             wide(outputs), columns),
                  stream, "cublasLtMatrixLayoutCreate") &&
        succeeded(cublasLtMatrixLayoutCreate(&plan->activations.handle, data_type(type), wide(columns),
                                             wide(rows), columns),
                  stream, "cublasLtMatrixLayoutCreate") &&
        succeeded(
            cublasLtMatrixLayoutCreate(&plan->out.handle, CUDA_R_32F, wide(outputs), wide(rows), out_stride),
            stream, "cublasLtMatrixLayoutCreate");
    if (!is_described || !choose_algorithm(stream, *plan)) return nullptr;
    return plan;
  }

  bool choose_algorithm(Stream& stream, Plan& plan) {
    Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy> preference;
    const auto bytes = static_cast<std::size_t>(workspace_.bytes());
    cublasLtMatmulHeuristicResult_t result{};
    int num_results = 0;
    if (!succeeded(cublasLtMatmulPreferenceCreate(&preference.handle), stream,
                   "cublasLtMatmulPreferenceCreate") ||
        !succeeded(cublasLtMatmulPreferenceSetAttribute(
                       preference.handle, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof bytes),
                   stream, "cublasLtMatmulPreferenceSetAttribute") ||
        !succeeded(cublasLtMatmulAlgoGetHeuristic(library_, plan.description.handle, plan.weights.handle,
                                                  plan.activations.handle, plan.out.handle, plan.out.handle,
                                                  preference.handle, 1, &result, &num_results),
                   stream, "cublasLtMatmulAlgoGetHeuristic")) {
      return false;
    }
    if (num_results == 0) {
      stream.status().check(cudaErrorUnknown, "cublasLtMatmulAlgoGetHeuristic found no algorithm");
      return false;
    }
    plan.algorithm = result.algo;
    return true;
  }

  cublasLtHandle_t library_;
  DeviceMemory workspace_;
  std::map<Key, std::unique_ptr<Plan>> plans_;
};

}  // namespace

Result<std::unique_ptr<LibraryProducts>> LibraryProducts::create(cublasLtHandle_t library) {
  Result<DeviceMemory> workspace = DeviceMemory::allocate(kWorkspaceBytes, "the matrix library's workspace");
  if (!workspace) return workspace.error();
  return std::unique_ptr<LibraryProducts>(std::make_unique<Library>(library, std::move(workspace).value()));
}

}  // namespace octavo::kernels::cuda
