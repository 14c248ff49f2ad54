// cuBLASLt, opened when a device is: 800 MB that a machine without a GPU need not have. Every function of it
// that matmul.h's library way calls is defined in library.cu and passes the call on.
#pragma once

#include "kernels/cuda/matmul/library_names.h"

namespace octavo::kernels::cuda {

// null: the library is not on this machine, or is another version; then own kernels do all products.
cublasLtHandle_t open_library();
// Null is nothing to do.
void close_library(cublasLtHandle_t library);

}  // namespace octavo::kernels::cuda
