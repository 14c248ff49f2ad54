// The sections of the report. Each allocates what it needs, measures, frees it, and adds records to the
// bench. An error is the device's failure; what a device is too small for is left out with the reason.
#pragma once

#include "engine/base/result.h"
#include "tests/bench/gpu/measure.h"

namespace octavo::bench {

// Sets bench.limits(), by which the others are measured. Without cuBLASLt the matrix peaks stay 0.
Result<void> measure_limits(Bench& bench);
// Products of MatrixProducts, with all that happens to rows before and after: norm, rounding, bias, residual,
// SiLU.
Result<void> measure_products(Bench& bench);
// Attention through shuffled block tables: decode and prefill, and the writing of keys and values.
Result<void> measure_attention(Bench& bench);
// Tokens drawn from rows of logits by TokenSampler, beside the copy of these rows to the host that it saves.
Result<void> measure_sampling(Bench& bench);
// Blocks between the pools.
Result<void> measure_swap(Bench& bench);
// Whole steps through the Backend, from the host's arrays to drawn tokens in the host's memory.
Result<void> measure_steps(Bench& bench);

}  // namespace octavo::bench
