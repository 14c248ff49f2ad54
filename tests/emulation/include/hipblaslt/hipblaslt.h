// The part of hipBLASLt that kernels/cuda uses, passed on to the one of cublasLt.h. Names and meanings:
// hipBLASLt 1.0.
#pragma once

#include <cublasLt.h>
#include <hip/hip_runtime.h>

using hipblasStatus_t = cublasStatus_t;
using hipblasOperation_t = cublasOperation_t;
using hipblasComputeType_t = cublasComputeType_t;
using hipDataType = cudaDataType;
using hipblasLtMatmulDescAttributes_t = cublasLtMatmulDescAttributes_t;
using hipblasLtMatmulPreferenceAttributes_t = cublasLtMatmulPreferenceAttributes_t;
using hipblasLtHandle_t = cublasLtHandle_t;
using hipblasLtMatmulDesc_t = cublasLtMatmulDesc_t;
using hipblasLtMatrixLayout_t = cublasLtMatrixLayout_t;
using hipblasLtMatmulPreference_t = cublasLtMatmulPreference_t;
using hipblasLtMatmulAlgo_t = cublasLtMatmulAlgo_t;
using hipblasLtMatmulHeuristicResult_t = cublasLtMatmulHeuristicResult_t;
inline constexpr hipblasStatus_t HIPBLAS_STATUS_SUCCESS = CUBLAS_STATUS_SUCCESS;
inline constexpr hipblasStatus_t HIPBLAS_STATUS_NOT_SUPPORTED = CUBLAS_STATUS_NOT_SUPPORTED;
inline constexpr hipblasOperation_t HIPBLAS_OP_T = CUBLAS_OP_T;
inline constexpr hipblasComputeType_t HIPBLAS_COMPUTE_32F = CUBLAS_COMPUTE_32F;
inline constexpr hipDataType HIP_R_32F = CUDA_R_32F, HIP_R_16F = CUDA_R_16F, HIP_R_16BF = CUDA_R_16BF;
inline constexpr hipblasLtMatmulDescAttributes_t HIPBLASLT_MATMUL_DESC_TRANSA = CUBLASLT_MATMUL_DESC_TRANSA;
inline constexpr hipblasLtMatmulPreferenceAttributes_t HIPBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES =
    CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES;

// By value, so that the address of one of them has its type.
#define OCTAVO_PASS_ON(hip, cuda)               \
  template <class... Arguments>                 \
  hipblasStatus_t hip(Arguments... arguments) { \
    return cuda(arguments...);                  \
  }
OCTAVO_PASS_ON(hipblasLtMatmul, cublasLtMatmul)
OCTAVO_PASS_ON(hipblasLtMatmulAlgoGetHeuristic, cublasLtMatmulAlgoGetHeuristic)
OCTAVO_PASS_ON(hipblasLtMatmulDescCreate, cublasLtMatmulDescCreate)
OCTAVO_PASS_ON(hipblasLtMatmulDescDestroy, cublasLtMatmulDescDestroy)
OCTAVO_PASS_ON(hipblasLtMatmulDescSetAttribute, cublasLtMatmulDescSetAttribute)
OCTAVO_PASS_ON(hipblasLtMatmulPreferenceCreate, cublasLtMatmulPreferenceCreate)
OCTAVO_PASS_ON(hipblasLtMatmulPreferenceDestroy, cublasLtMatmulPreferenceDestroy)
OCTAVO_PASS_ON(hipblasLtMatmulPreferenceSetAttribute, cublasLtMatmulPreferenceSetAttribute)
OCTAVO_PASS_ON(hipblasLtMatrixLayoutCreate, cublasLtMatrixLayoutCreate)
OCTAVO_PASS_ON(hipblasLtMatrixLayoutDestroy, cublasLtMatrixLayoutDestroy)
#undef OCTAVO_PASS_ON
