// How each KV type is read and written, sixteen elements at a time.
//
// What read() gives, times kFactor, times the token's scale if the type has scales, is the number. Attention
// applies factor and scale to scores and weights, of which there are fewer than elements.
#pragma once

#include "kernels/cpu/simd.h"
#include "kernels/cpu/simd/integer_rounding.h"
#include "kernels/kv_type.h"

namespace octavo::kernels::cpu::OCTAVO_ISA {

// Sixteen floats to 8-bit floats as kernels/float8.h defines them; a plain loop without branches, which
// compilers turn into vectors.
template <int kMantissaBits, std::uint32_t kLargest>
OCTAVO_INLINE void store_float8(std::uint8_t* target, F32x16 values) {
  constexpr int kShift = 23 - kMantissaBits;
  constexpr std::uint32_t kBias = (1u << (6 - kMantissaBits)) - 1;
  constexpr std::uint32_t kSmallestNormal = (128u - kBias) << 23;
  // A float whose last place is worth the smallest subnormal.
  constexpr std::uint32_t kMagic = (127u + kShift + 1 - kBias) << 23;
  constexpr std::uint32_t kInfinityBits = 0x7f800000u, kNan = 0x7fu;
  alignas(64) float lanes[kLanes];
  store(lanes, values);
  for (int i = 0; i < kLanes; ++i) {
    const std::uint32_t bits = bits_of(lanes[i]), magnitude = bits & 0x7fffffffu;
    const float rounded = __builtin_bit_cast(float, magnitude) + __builtin_bit_cast(float, kMagic);
    const std::uint32_t subnormal = bits_of(rounded) - kMagic;
    const std::uint32_t round = (1u << (kShift - 1)) - 1 + (magnitude >> kShift & 1u);
    const std::uint32_t any = (magnitude - ((127u - kBias) << 23) + round) >> kShift;
    const std::uint32_t normal = any < kLargest ? any : kLargest;
    const std::uint32_t number = magnitude < kSmallestNormal ? subnormal : normal;
    const std::uint32_t code = magnitude > kInfinityBits ? kNan : number;
    target[i] = static_cast<std::uint8_t>((bits >> 24 & 0x80u) | code);
  }
}

template <class StoredWord>
struct Elements {
  using Word = StoredWord;
  static constexpr float kFactor = 1.0f;
  static constexpr bool kHasScales = false;
};

struct StoredF32 : Elements<float> {
  template <class... Sources>
  OCTAVO_INLINE F32x16 read(Sources... sources) {
    return load(sources...);
  }
  OCTAVO_INLINE void write(Word* target, F32x16 values) { store(target, values); }
};

struct StoredF16 : Elements<std::uint16_t> {
  template <class... Sources>
  OCTAVO_INLINE F32x16 read(Sources... sources) {
    return load_f16(sources...);
  }
  OCTAVO_INLINE void write(Word* target, F32x16 values) { store_f16(target, values); }
};

struct StoredBf16 : Elements<std::uint16_t> {
  template <class... Sources>
  OCTAVO_INLINE F32x16 read(Sources... sources) {
    return load_bf16(sources...);
  }
  OCTAVO_INLINE void write(Word* target, F32x16 values) { store_bf16(target, values); }
};

// Written by whole keys and values, which share a scale: integer_rounding.h.
struct StoredInt8 : Elements<std::int8_t> {
  static constexpr bool kHasScales = true;
  template <class... Sources>
  OCTAVO_INLINE F32x16 read(Sources... sources) {
    return load_int8(sources...);
  }
};

struct StoredE4m3 : Elements<std::uint8_t> {
  static constexpr float kFactor = kE4m3Factor;
  template <class... Sources>
  OCTAVO_INLINE F32x16 read(Sources... sources) {
    return load_e4m3(sources...);
  }
  OCTAVO_INLINE void write(Word* target, F32x16 values) { store_float8<3, 0x7e>(target, values); }
};

struct StoredE5m2 : Elements<std::uint8_t> {
  template <class... Sources>
  OCTAVO_INLINE F32x16 read(Sources... sources) {
    return load_e5m2(sources...);
  }
  OCTAVO_INLINE void write(Word* target, F32x16 values) { store_float8<2, 0x7b>(target, values); }
};

// Calls function(Stored{}) with the reader of `type`.
template <class Function>
OCTAVO_INLINE void with_stored(KvType type, const Function& function) {
  switch (type) {
    case KvType::kF32: function(StoredF32{}); return;
    case KvType::kF16: function(StoredF16{}); return;
    case KvType::kBf16: function(StoredBf16{}); return;
    case KvType::kInt8: function(StoredInt8{}); return;
    case KvType::kFp8E4m3: function(StoredE4m3{}); return;
    case KvType::kFp8E5m2: function(StoredE5m2{}); return;
  }
}

}  // namespace octavo::kernels::cpu::OCTAVO_ISA
