// The matrix library by one set of names, cuBLASLt's; compiled for an AMD card they mean hipBLASLt's, as
// runtime/device_names.h says of the runtime. Source: hipBLASLt 1.0 (ROCm 7), hipblaslt/hipblaslt.h.
#pragma once

#include "kernels/cuda/runtime/device_names.h"

#ifdef OCTAVO_HIP

#include <hipblaslt/hipblaslt.h>

namespace octavo::kernels::cuda {

// Followed by the version whose names these are.
inline constexpr const char* kLibraryFile = "libhipblaslt.so.";

// The C interface of hipBLASLt cannot tell whether an algorithm serves another shape than the one that it was
// chosen for: each number of rows is asked about.
inline hipblasStatus_t serves_its_shape_alone(hipblasLtHandle_t, hipblasLtMatmulDesc_t,
                                              hipblasLtMatrixLayout_t, hipblasLtMatrixLayout_t,
                                              hipblasLtMatrixLayout_t, hipblasLtMatrixLayout_t,
                                              const hipblasLtMatmulAlgo_t*,
                                              hipblasLtMatmulHeuristicResult_t*) {
  return HIPBLAS_STATUS_NOT_SUPPORTED;
}

}  // namespace octavo::kernels::cuda

#define CUBLAS_COMPUTE_32F HIPBLAS_COMPUTE_32F
#define CUBLAS_OP_T HIPBLAS_OP_T
#define CUBLAS_STATUS_SUCCESS HIPBLAS_STATUS_SUCCESS
#define CUBLAS_VER_MAJOR HIPBLASLT_VERSION_MAJOR
#define CUBLASLT_MATMUL_DESC_TRANSA HIPBLASLT_MATMUL_DESC_TRANSA
#define CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES HIPBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES
#define CUDA_R_16BF HIP_R_16BF
#define CUDA_R_16F HIP_R_16F
#define CUDA_R_32F HIP_R_32F
#define cublasComputeType_t hipblasComputeType_t
#define cublasLtCreate hipblasLtCreate
#define cublasLtDestroy hipblasLtDestroy
#define cublasLtHandle_t hipblasLtHandle_t
#define cublasLtMatmul hipblasLtMatmul
#define cublasLtMatmulAlgoCheck ::octavo::kernels::cuda::serves_its_shape_alone
#define cublasLtMatmulAlgoGetHeuristic hipblasLtMatmulAlgoGetHeuristic
#define cublasLtMatmulAlgo_t hipblasLtMatmulAlgo_t
#define cublasLtMatmulDescAttributes_t hipblasLtMatmulDescAttributes_t
#define cublasLtMatmulDescCreate hipblasLtMatmulDescCreate
#define cublasLtMatmulDescDestroy hipblasLtMatmulDescDestroy
#define cublasLtMatmulDescSetAttribute hipblasLtMatmulDescSetAttribute
#define cublasLtMatmulDesc_t hipblasLtMatmulDesc_t
#define cublasLtMatmulHeuristicResult_t hipblasLtMatmulHeuristicResult_t
#define cublasLtMatmulPreferenceAttributes_t hipblasLtMatmulPreferenceAttributes_t
#define cublasLtMatmulPreferenceCreate hipblasLtMatmulPreferenceCreate
#define cublasLtMatmulPreferenceDestroy hipblasLtMatmulPreferenceDestroy
#define cublasLtMatmulPreferenceSetAttribute hipblasLtMatmulPreferenceSetAttribute
#define cublasLtMatmulPreference_t hipblasLtMatmulPreference_t
#define cublasLtMatrixLayoutCreate hipblasLtMatrixLayoutCreate
#define cublasLtMatrixLayoutDestroy hipblasLtMatrixLayoutDestroy
#define cublasLtMatrixLayout_t hipblasLtMatrixLayout_t
#define cublasOperation_t hipblasOperation_t
#define cublasStatus_t hipblasStatus_t
#define cudaDataType hipDataType
#define cudaDataType_t hipDataType

#else

#include <cublasLt.h>

namespace octavo::kernels::cuda {

inline constexpr const char* kLibraryFile = "libcublasLt.so.";

}  // namespace octavo::kernels::cuda

#endif
