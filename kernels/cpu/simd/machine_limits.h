// Loops that do nothing but read, or nothing but multiply and add, for measure_machine_limits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/isa.h"

namespace octavo::kernels::cpu {

struct MachineLimitKernels {
  // Reads every cache line; the sum comes back so that nothing is optimised away.
  std::int64_t (*read)(const std::byte* data, std::int64_t num_bytes);  // num_bytes: a multiple of 512
  float (*int8_rounds)(std::int64_t num_rounds);
  float (*float_rounds)(std::int64_t num_rounds);
  std::int64_t int8_multiply_adds_per_round;
  std::int64_t float_multiply_adds_per_round;
};

const MachineLimitKernels& machine_limit_kernels(InstructionSet isa);

}  // namespace octavo::kernels::cpu
