#include "kernels/cpu/isa.h"

#include <cstdlib>
#include <string>

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "engine/base/text.h"

namespace octavo::kernels::cpu {
namespace {

constexpr InstructionSet kBestFirst[] = {InstructionSet::kAmx,    InstructionSet::kAvx512Vnni,
                                         InstructionSet::kAvx512, InstructionSet::kAvxVnni,
                                         InstructionSet::kAvx2,   InstructionSet::kPortable};

constexpr bool is_built(InstructionSet isa) {
  switch (isa) {
    case InstructionSet::kPortable: return true;
#if defined(OCTAVO_HAS_AVX2)
    case InstructionSet::kAvx2: return true;
#endif
#if defined(OCTAVO_HAS_AVX_VNNI)
    case InstructionSet::kAvxVnni: return true;
#endif
#if defined(OCTAVO_HAS_AVX512)
    case InstructionSet::kAvx512: return true;
#endif
#if defined(OCTAVO_HAS_AVX512_VNNI)
    case InstructionSet::kAvx512Vnni: return true;
#endif
#if defined(OCTAVO_HAS_AMX) && defined(OCTAVO_HAS_AVX512_VNNI)
    case InstructionSet::kAmx: return true;
#endif
    default: return false;
  }
}

#if defined(__x86_64__)

// Register states that the operating system saves (Intel SDM, volume 1, chapter 13): without its bits, the
// instructions fault although the processor has them.
std::uint64_t saved_register_states() {
  std::uint32_t low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<std::uint64_t>(high) << 32) | low;
}

constexpr bool has_all(std::uint64_t word, std::uint64_t bits) { return (word & bits) == bits; }

// The system wants to be asked, once for all threads: tiles make the state that it saves of a thread large.
// Some that confine programs refuse.
bool may_use_tiles() {
#if defined(__linux__)
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, asm/prctl.h
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

struct Features {
  bool avx2 = false, avx_vnni = false, avx512 = false, avx512_vnni = false, amx = false;
};

// Asked by hand: the compilers' __builtin_cpu_supports does not know f16c everywhere.
Features features_of_this_machine() {
  constexpr std::uint32_t kFma = 1u << 12, kOsSavesStates = 1u << 27, kF16c = 1u << 29;  // leaf 1, ecx
  constexpr std::uint32_t kAvx2 = 1u << 5, kBmi2 = 1u << 8;                              // leaf 7, ebx
  constexpr std::uint32_t kAvx512F = 1u << 16, kAvx512Dq = 1u << 17, kAvx512Bw = 1u << 30,
                          kAvx512Vl = 1u << 31;
  constexpr std::uint32_t kAvx512Vbmi = 1u << 1, kAvx512Vnni = 1u << 11;  // leaf 7, ecx
  constexpr std::uint32_t kAmxTile = 1u << 24, kAmxInt8 = 1u << 25;       // leaf 7, edx
  constexpr std::uint32_t kAvxVnni = 1u << 4;                             // leaf 7 part 1, eax
  constexpr std::uint64_t kYmmStates = 0x06, kZmmStates = 0xe6, kTileStates = 0x60000;

  Features features;
  std::uint32_t eax, ebx, ecx, edx;
  if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx)) return features;
  if (!has_all(ecx, kFma | kOsSavesStates | kF16c)) return features;
  const std::uint64_t states = saved_register_states();
  if (!has_all(states, kYmmStates)) return features;
  if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) return features;
  const std::uint32_t last_part = eax;
  features.avx2 = has_all(ebx, kAvx2 | kBmi2);
  features.avx512 = features.avx2 && has_all(states, kZmmStates) &&
                    has_all(ebx, kAvx512F | kAvx512Dq | kAvx512Bw | kAvx512Vl);
  features.avx512_vnni = features.avx512 && has_all(ecx, kAvx512Vnni);
  features.amx = features.avx512_vnni && has_all(ecx, kAvx512Vbmi) && has_all(edx, kAmxTile | kAmxInt8) &&
                 has_all(states, kTileStates) && may_use_tiles();
  if (last_part >= 1 && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx)) {
    features.avx_vnni = features.avx2 && has_all(eax, kAvxVnni);
  }
  return features;
}

bool is_supported(InstructionSet isa) {
  static const Features features = features_of_this_machine();
  switch (isa) {
    case InstructionSet::kPortable: return true;
    case InstructionSet::kAvx2: return features.avx2;
    case InstructionSet::kAvxVnni: return features.avx_vnni;
    case InstructionSet::kAvx512: return features.avx512;
    case InstructionSet::kAvx512Vnni: return features.avx512_vnni;
    case InstructionSet::kAmx: return features.amx;
  }
  return false;
}

// Of AMD's processors, as their manuals number them; 0: of another maker.
std::uint32_t amd_family() {
  constexpr std::uint32_t kAuthenticAmd = 0x68747541;  // "Auth", as the name begins
  std::uint32_t eax, ebx, ecx, edx;
  if (!__get_cpuid(0, &eax, &ebx, &ecx, &edx) || ebx != kAuthenticAmd) return 0;
  if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx)) return 0;
  const std::uint32_t base = eax >> 8u & 0xfu, extended = eax >> 20u & 0xffu;
  return base == 0xfu ? base + extended : base;
}

#else

bool is_supported(InstructionSet isa) { return isa == InstructionSet::kPortable; }

std::uint32_t amd_family() { return 0; }

#endif

std::string names_of(const std::vector<InstructionSet>& sets) {
  std::string names;
  for (const InstructionSet isa : sets) {
    if (!names.empty()) names += ", ";
    names += instruction_set_name(isa);
  }
  return names;
}

// REQUIRES: it is not one of usable_instruction_sets()
const char* why_not_usable(std::string_view name) {
  const std::optional<InstructionSet> isa = instruction_set_from(name);
  if (!isa.has_value()) return " is not a known instruction set";
  if (!is_supported(*isa)) return " is not supported by this machine";
  return " is not in this build (OCTAVO_INSTRUCTION_SETS=all packaging/build adds every one)";
}

}  // namespace

std::string_view instruction_set_name(InstructionSet isa) {
  switch (isa) {
    case InstructionSet::kPortable: return "portable";
    case InstructionSet::kAvx2: return "avx2";
    case InstructionSet::kAvxVnni: return "avx_vnni";
    case InstructionSet::kAvx512: return "avx512";
    case InstructionSet::kAvx512Vnni: return "avx512_vnni";
    case InstructionSet::kAmx: return "amx";
  }
  return "unknown";
}

std::optional<InstructionSet> instruction_set_from(std::string_view name) {
  for (const InstructionSet isa : kBestFirst) {
    if (name == instruction_set_name(isa)) return isa;
  }
  return std::nullopt;
}

std::vector<InstructionSet> usable_instruction_sets() {
  std::vector<InstructionSet> usable;
  for (const InstructionSet isa : kBestFirst) {
    if (is_built(isa) && is_supported(isa)) usable.push_back(isa);
  }
  return usable;
}

bool reads_streams_by_itself() {
  constexpr std::uint32_t kZen3And4 = 25;
  static const bool reads = amd_family() == kZen3And4;
  return reads;
}

Result<InstructionSet> choose_instruction_set() {
  const std::vector<InstructionSet> usable = usable_instruction_sets();
  const char* forced = std::getenv("OCTAVO_CPU_ISA");
  if (forced == nullptr || *forced == '\0') return usable.front();
  for (const InstructionSet isa : usable) {
    if (instruction_set_name(isa) == forced) return isa;
  }
  return Error{ErrorCode::kInvalidArgument,
               "OCTAVO_CPU_ISA: " + escape_for_message(forced) + why_not_usable(forced) + "; choose one of " +
                   names_of(usable),
               "OCTAVO_CPU_ISA"};
}

}  // namespace octavo::kernels::cpu
