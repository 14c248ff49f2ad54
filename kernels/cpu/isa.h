// Which of the compiled instruction sets this machine can run. Everything in kernels/cpu/simd/ is compiled
// once for each of them; all give the same bits, so the choice changes speed only.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/base/result.h"

namespace octavo::kernels::cpu {

// Ascending: a machine that runs one of them runs all before it.
enum class InstructionSet : std::uint8_t {
  kPortable,    // plain C++; fused multiply-adds by the C library where the compiler has no instruction
  kAvx2,        // with FMA, F16C and BMI2
  kAvx512,      // F, BW, DQ, VL
  kAvx512Vnni,  // and 8-bit dot products
};

// "portable", "avx2", "avx512", "avx512_vnni".
std::string_view instruction_set_name(InstructionSet isa);
std::optional<InstructionSet> instruction_set_from(std::string_view name);

// Compiled into this build, and supported by processor and operating system. Best first; never empty.
std::vector<InstructionSet> usable_instruction_sets();

// The best one, or the one that the environment variable OCTAVO_CPU_ISA names. A name that is unknown, or
// that this machine cannot run, is an error.
Result<InstructionSet> choose_instruction_set();

}  // namespace octavo::kernels::cpu
