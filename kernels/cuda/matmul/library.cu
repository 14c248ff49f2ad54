#include "kernels/cuda/matmul/library.h"

#include <dlfcn.h>

#include <string>

namespace octavo::kernels::cuda {
namespace {

// Of one function of the library: null until open_library() has found it.
template <auto kDeclared>
decltype(kDeclared) found = nullptr;

template <auto kDeclared>
bool find(void* library, const char* name) {
  found<kDeclared> = reinterpret_cast<decltype(kDeclared)>(::dlsym(library, name));
  return found<kDeclared> != nullptr;
}

// RTLD_DEEPBIND: the library's calls of its own functions stay its own, though ours have the same names.
void* open_file() {
  const std::string name = kLibraryFile + std::to_string(CUBLAS_VER_MAJOR);
  return ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
}

#define OCTAVO_TEXT_OF(name) #name
#define OCTAVO_FIND(name) find<name>(library, OCTAVO_TEXT_OF(name))
bool find_all(void* library) {
  return OCTAVO_FIND(cublasLtCreate) && OCTAVO_FIND(cublasLtDestroy) &&
         OCTAVO_FIND(cublasLtMatmulDescCreate) && OCTAVO_FIND(cublasLtMatmulDescDestroy) &&
         OCTAVO_FIND(cublasLtMatmulDescSetAttribute) && OCTAVO_FIND(cublasLtMatrixLayoutCreate) &&
         OCTAVO_FIND(cublasLtMatrixLayoutDestroy) && OCTAVO_FIND(cublasLtMatmulPreferenceCreate) &&
         OCTAVO_FIND(cublasLtMatmulPreferenceDestroy) && OCTAVO_FIND(cublasLtMatmulPreferenceSetAttribute) &&
#ifndef OCTAVO_HIP
         OCTAVO_FIND(cublasLtMatmulAlgoCheck) &&
#endif
         OCTAVO_FIND(cublasLtMatmulAlgoGetHeuristic) && OCTAVO_FIND(cublasLtMatmul);
}
#undef OCTAVO_FIND
#undef OCTAVO_TEXT_OF

}  // namespace

// The file stays open: its threads and memory do not survive being unloaded.
cublasLtHandle_t open_library() {
  static const bool is_found = [] {
    void* const library = open_file();
    return library != nullptr && find_all(library);
  }();
  cublasLtHandle_t handle = nullptr;
  if (!is_found || found<cublasLtCreate>(&handle) != CUBLAS_STATUS_SUCCESS) return nullptr;
  return handle;
}

void close_library(cublasLtHandle_t library) {
  if (library != nullptr) (void)found<cublasLtDestroy>(library);
}

}  // namespace octavo::kernels::cuda

// ---- the library's functions, passed on. REQUIRES: open_library() gave a handle.
using octavo::kernels::cuda::found;

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) { return found<cublasLtCreate>(handle); }
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) { return found<cublasLtDestroy>(handle); }
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* description, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  return found<cublasLtMatmulDescCreate>(description, compute, scale);
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t description) {
  return found<cublasLtMatmulDescDestroy>(description);
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t description,
                                              cublasLtMatmulDescAttributes_t attribute, const void* value,
                                              std::size_t bytes) {
  return found<cublasLtMatmulDescSetAttribute>(description, attribute, value, bytes);
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                          std::uint64_t rows, std::uint64_t columns, std::int64_t leading) {
  return found<cublasLtMatrixLayoutCreate>(layout, type, rows, columns, leading);
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  return found<cublasLtMatrixLayoutDestroy>(layout);
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  return found<cublasLtMatmulPreferenceCreate>(preference);
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return found<cublasLtMatmulPreferenceDestroy>(preference);
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, std::size_t bytes) {
  return found<cublasLtMatmulPreferenceSetAttribute>(preference, attribute, value, bytes);
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t library, cublasLtMatmulDesc_t description,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int most,
                                              cublasLtMatmulHeuristicResult_t results[], int* num_results) {
  return found<cublasLtMatmulAlgoGetHeuristic>(library, description, a, b, c, d, preference, most, results,
                                               num_results);
}
#ifndef OCTAVO_HIP
cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t library, cublasLtMatmulDesc_t description,
                                       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                       cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t* algorithm,
                                       cublasLtMatmulHeuristicResult_t* result) {
  return found<cublasLtMatmulAlgoCheck>(library, description, a, b, c, d, algorithm, result);
}
#endif
cublasStatus_t cublasLtMatmul(cublasLtHandle_t library, cublasLtMatmulDesc_t description, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                              cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                              cublasLtMatrixLayout_t c_layout, void* d, cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                              std::size_t workspace_bytes, cudaStream_t stream) {
  return found<cublasLtMatmul>(library, description, alpha, a, a_layout, b, b_layout, beta, c, c_layout, d,
                               d_layout, algorithm, workspace, workspace_bytes, stream);
}
