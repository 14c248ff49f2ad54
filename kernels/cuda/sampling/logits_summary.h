// What backend.h's LogitsSummary says about rows of logits, computed where they stand, after they were
// capped.
#pragma once

#include <cstdint>

#include "kernels/cuda/runtime/device.h"

namespace octavo::kernels::cuda {

// All in device memory.
//   logits         [num_rows, vocabulary], capped in place as backend.h's OutputHead says (soft_cap 0: as
//   they are) log_sum_exp    [num_rows] piece_maxima   [num_rows, num_logits_pieces(vocabulary)], and
//   piece_sums as large: scratch, the sums of exp(value - maximum)
// The sums run in one order, whatever the number of rows.
void summarise_logits(Stream& stream, float* logits, std::int32_t num_rows, std::int64_t vocabulary,
                      float soft_cap, float* log_sum_exp, float* piece_maxima, float* piece_sums);

}  // namespace octavo::kernels::cuda
