// Plans of cuBLASLt's products, and what it refuses.
#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <utility>

#include "kernels/cuda/matmul/library_names.h"
#include "kernels/cuda/matmul/matmul_kernels.h"

namespace octavo::kernels::cuda {
namespace {

constexpr std::int64_t kWorkspaceBytes = 32 << 20;  // what NVIDIA recommends for Hopper
constexpr std::size_t kMostRemembered = 1024;       // plans

constexpr std::int64_t kFewestPlannedRows = 16;

bool succeeded(cublasStatus_t code) { return code == CUBLAS_STATUS_SUCCESS; }

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

// The number of rows that an algorithm is chosen for.
LibraryShape planned_shape(LibraryShape shape) {
  const auto rows = static_cast<std::uint64_t>(shape.rows);
  shape.rows = std::max(static_cast<std::int64_t>(std::bit_ceil(rows)), kFewestPlannedRows);
  return shape;
}

// What the library chose, if anything. (nvcc 13.0 cannot compile an optional of the library's own type.)
struct Choice {
  bool is_found = false;
  cublasLtMatmulAlgo_t algorithm{};
};

// Null: the library cannot describe it.
std::unique_ptr<Plan> describe(const LibraryShape& shape) {
  const auto wide = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
  const cudaDataType_t type = data_type(shape.type);
  const cublasOperation_t transposed = CUBLAS_OP_T;
  auto plan = std::make_unique<Plan>();
  const bool is_described =
      succeeded(cublasLtMatmulDescCreate(&plan->description.handle, CUBLAS_COMPUTE_32F, CUDA_R_32F)) &&
      succeeded(cublasLtMatmulDescSetAttribute(plan->description.handle, CUBLASLT_MATMUL_DESC_TRANSA,
                                               &transposed, sizeof transposed)) &&
      succeeded(cublasLtMatrixLayoutCreate(&plan->weights.handle, type, wide(shape.columns),
                                           wide(shape.outputs), shape.columns)) &&
      succeeded(cublasLtMatrixLayoutCreate(&plan->activations.handle, type, wide(shape.columns),
                                           wide(shape.rows), shape.columns)) &&
      succeeded(cublasLtMatrixLayoutCreate(&plan->out.handle, CUDA_R_32F, wide(shape.outputs),
                                           wide(shape.rows), shape.out_stride));
  return is_described ? std::move(plan) : nullptr;
}

class Library final : public LibraryProducts {
 public:
  Library(cublasLtHandle_t library, DeviceMemory workspace)
      : library_(library), workspace_(std::move(workspace)) {}

  std::int64_t scratch_bytes() const override { return workspace_.bytes(); }
  std::int64_t num_refused() const override {
    return std::ranges::count_if(choices_, [](const auto& each) { return !each.second.is_found; });
  }

  bool serves(const LibraryShape& shape) override { return plan_for(shape) != nullptr; }

  // A stream that has failed starts nothing, and has told why.
  bool multiply(Stream& stream, const LibraryProduct& product) override {
    if (!stream.status().ok()) return true;
    const Plan* const plan = plan_for(product.shape);
    if (plan == nullptr) return false;
    const float alpha = 1.0f, beta = product.adds ? 1.0f : 0.0f;
    if (succeeded(cublasLtMatmul(library_, plan->description.handle, &alpha, product.weights,
                                 plan->weights.handle, product.activations, plan->activations.handle, &beta,
                                 product.out, plan->out.handle, product.out, plan->out.handle,
                                 &plan->algorithm, workspace_.data(), workspace_size(), stream.handle()))) {
      return true;
    }
    (void)cudaGetLastError();  // of the library's own calls; one that stays comes again
    refuse(product.shape);
    return false;
  }

 private:
  std::size_t workspace_size() const { return static_cast<std::size_t>(workspace_.bytes()); }

  // Null: refused.
  const Plan* plan_for(const LibraryShape& shape) {
    const auto found = plans_.find(shape);
    if (found != plans_.end()) return found->second.get();
    const Choice& chosen = choice_for(planned_shape(shape));
    if (!chosen.is_found) return nullptr;
    std::unique_ptr<Plan> plan = describe(shape);
    if (plan == nullptr || !take(*plan, shape, chosen)) {
      refuse(shape);
      return nullptr;
    }
    if (plans_.size() >= kMostRemembered) plans_.clear();
    return plans_.emplace(shape, std::move(plan)).first->second.get();
  }

  // REQUIRES: a planned shape.
  const Choice& choice_for(const LibraryShape& shape) {
    const auto found = choices_.find(shape);
    if (found != choices_.end()) return found->second;
    const std::unique_ptr<Plan> plan = describe(shape);
    return choices_.emplace(shape, plan == nullptr ? Choice{} : choose(*plan)).first->second;
  }

  // What was chosen for more rows serves fewer, if the library says so; else it is asked about these.
  bool take(Plan& plan, const LibraryShape& shape, const Choice& chosen) const {
    const bool serves_it = shape == planned_shape(shape) || can_run(plan, chosen.algorithm);
    const Choice choice = serves_it ? chosen : choose(plan);
    plan.algorithm = choice.algorithm;
    return choice.is_found;
  }

  bool can_run(const Plan& plan, const cublasLtMatmulAlgo_t& algorithm) const {
    cublasLtMatmulHeuristicResult_t result{};
    return succeeded(cublasLtMatmulAlgoCheck(library_, plan.description.handle, plan.weights.handle,
                                             plan.activations.handle, plan.out.handle, plan.out.handle,
                                             &algorithm, &result)) &&
           result.workspaceSize <= workspace_size();
  }

  Choice choose(const Plan& plan) const {
    Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy> preference;
    const std::size_t bytes = workspace_size();
    cublasLtMatmulHeuristicResult_t result{};
    int num_results = 0;
    const bool is_found =
        succeeded(cublasLtMatmulPreferenceCreate(&preference.handle)) &&
        succeeded(cublasLtMatmulPreferenceSetAttribute(
            preference.handle, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof bytes)) &&
        succeeded(cublasLtMatmulAlgoGetHeuristic(library_, plan.description.handle, plan.weights.handle,
                                                 plan.activations.handle, plan.out.handle, plan.out.handle,
                                                 preference.handle, 1, &result, &num_results)) &&
        num_results > 0 && succeeded(result.state);
    return {is_found, result.algo};
  }

  // With all shapes of this planned one. REQUIRES: choice_for() was asked about it.
  void refuse(const LibraryShape& shape) {
    const LibraryShape planned = planned_shape(shape);
    choices_.at(planned) = {};
    std::erase_if(plans_, [&](const auto& each) { return planned_shape(each.first) == planned; });
  }

  cublasLtHandle_t library_;
  DeviceMemory workspace_;
  std::map<LibraryShape, Choice> choices_;               // for planned shapes; nothing found: refused
  std::map<LibraryShape, std::unique_ptr<Plan>> plans_;  // of those that were asked for lately
};

}  // namespace

Result<std::unique_ptr<LibraryProducts>> LibraryProducts::create(cublasLtHandle_t library) {
  Result<DeviceMemory> workspace = DeviceMemory::allocate(kWorkspaceBytes, "the matrix library's workspace");
  if (!workspace) return workspace.error();
  return std::unique_ptr<LibraryProducts>(std::make_unique<Library>(library, std::move(workspace).value()));
}

}  // namespace octavo::kernels::cuda
