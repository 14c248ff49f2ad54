// What the rest of the program may know of CUDA: that there is a device, and a backend on it. No header of
// the toolkit.
#pragma once

#include <memory>

#include "engine/base/result.h"
#include "kernels/backend.h"

namespace octavo::kernels::cuda {

struct CudaOptions {
  // kF32: two 16-bit numbers for each activation on tensor cores, else one
  Activation activation = Activation::kInt16;
  bool deterministic = false;  // results do not depend on the batch
  bool graphs = true;          // decode steps are recorded once and started as one; the same bits
};

// Error kUnsupported, one sentence, where there is no driver or no device that it can use.
Result<void> find_device();

// Whether it multiplies with matrices of this type.
bool multiplies(TensorType type);

// On the first device. `host` does what backend.h has in host memory. Errors: those of find_device; kDevice;
// kOutOfMemory.
Result<std::unique_ptr<Backend>> create_cuda_backend(const CudaOptions& options,
                                                     std::unique_ptr<Backend> host);

}  // namespace octavo::kernels::cuda
