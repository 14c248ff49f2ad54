// Which of the compiled instruction sets this machine can run. kernels/cpu/simd/ is compiled for each of
// them; all give the same bits, so the choice changes speed only. Dot products of integers are for
// matmul_integers.cc alone (and machine_limits.cc, which measures them): all else of a set with VNNI is that
// of the set as wide.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/base/result.h"

namespace octavo::kernels::cpu {

// The fastest last. A machine may run one without some before it.
enum class InstructionSet : std::uint8_t {
  kPortable,    // plain C++; fused multiply-adds by the C library where the compiler has no instruction
  kAvx2,        // with FMA, F16C and BMI2
  kAvxVnni,     // and dot products of 8-bit and 16-bit integers, 256 bits wide, in AVX2's encoding
  kAvx512,      // AVX2 and F, BW, DQ, VL
  kAvx512Vnni,  // and dot products of 8-bit and 16-bit integers
  kAmx,         // and VBMI, and tile registers with products of 8-bit integers: for many rows
};

// "portable", "avx2", "avx_vnni", "avx512", "avx512_vnni", "amx".
std::string_view instruction_set_name(InstructionSet isa);
std::optional<InstructionSet> instruction_set_from(std::string_view name);

// Compiled into this build, and supported by processor and operating system. Best first; never empty.
std::vector<InstructionSet> usable_instruction_sets();

// The best one, or the one that the environment variable OCTAVO_CPU_ISA names. A name that is unknown, that
// this machine cannot run, or that this build lacks, is an error.
Result<InstructionSet> choose_instruction_set();

// Whether this processor reads a single stream of memory quickest when nobody asks for what comes next:
// AMD's family 25. (One row of Q4, with 26 KiB asked for ahead: Zen 4 takes 1.2 times as long, Zen 5 0.88.)
bool reads_streams_by_itself();

}  // namespace octavo::kernels::cpu
