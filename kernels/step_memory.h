// How much memory a backend works in, beside weights, pools and the buffers of its caller: known from a
// model's shape, before anything is loaded.
#pragma once

#include <cstdint>

#include "engine/base/result.h"
#include "kernels/backend.h"

namespace octavo::kernels {

// What the backend that create_backend() chooses for a CPU will hold after reserve_step(shape): to the byte.
// `threads` as in BackendOptions. Errors: those of create_backend about the instruction set.
// REQUIRES: positive dimensions; num_kv_heads divides num_heads
Result<std::int64_t> planned_scratch_bytes(const StepShape& shape, Activation activation,
                                           std::int32_t threads);

}  // namespace octavo::kernels
