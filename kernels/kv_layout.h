// The one description of where a token's keys and values are; every backend and every
// test computes addresses with it.
//
// A block holds all layers and heads of `block_size` consecutive tokens in one piece, so that copy-on-write,
// swap and eviction move one range of bytes:
//
//   pool [num_blocks] [num_layers] [num_kv_heads] { K [head_dim][block_size] | V [block_size][head_dim] |
//   scales }
//
// K is stored transposed: the scores of 16 neighbouring tokens are one vector, each lane its own chain of
// fused multiply-adds over the dimensions. V is stored by token: a value sum has dimensions in its lanes.
//
// Scales exist for int8 only: f32 [2][block_size], of the keys, then of the values. Each token
// has its own, so that what a block holds of a token does not depend on its neighbours, and bytes
// can move without being looked at.
#pragma once

#include <cstddef>
#include <cstdint>

namespace octavo::kernels {

// How one key or value of head_dim numbers is stored. Rounding is to nearest, ties to even.
//   kInt8      integers a / scale; of the scales (1 + c / 128) * max |a| / 127, c = 0 .. 7, the one of the
//              least sum of squared errors, the smallest among equals. Scale and integers are zero when max
//              |a| / 127 is below the smallest normal float; a key or value that holds an infinity or a NaN
//              has the scale NaN. (Always taking c = 0 makes the mean error of prompt log-probabilities
//              0.057 instead of 0.047: SmolLM2-135M-Instruct.)
//   kFp8E4m3, kFp8E5m2   kernels/float8.h: no scale, saturating
enum class KvType : std::uint8_t { kF32, kF16, kBf16, kInt8, kFp8E4m3, kFp8E5m2 };

constexpr std::int64_t kv_element_bytes(KvType type) {
  if (type == KvType::kF32) return 4;
  return type == KvType::kF16 || type == KvType::kBf16 ? 2 : 1;
}

struct KvLayout {
  static constexpr std::int32_t kMaxBlockSize = 256;
  static constexpr std::int64_t kScaleBytes = 4;

  KvType type = KvType::kF16;
  std::int32_t block_size = 16;  // tokens, 1..kMaxBlockSize
  std::int32_t num_layers = 0;
  std::int32_t num_kv_heads = 0;
  std::int32_t head_dim = 0;

  // All sizes in bytes, all offsets relative to the start of what is named.
  constexpr bool has_scales() const { return type == KvType::kInt8; }
  constexpr std::int64_t half_head_bytes() const {
    return kv_element_bytes(type) * static_cast<std::int64_t>(block_size) * head_dim;
  }
  // With scales, K and V are filled up to a multiple of 4: an odd head_dim in an odd block size leaves a gap.
  constexpr std::int64_t scales_offset() const {
    return (2 * half_head_bytes() + kScaleBytes - 1) / kScaleBytes * kScaleBytes;
  }
  constexpr std::int64_t head_bytes() const {
    return has_scales() ? scales_offset() + 2 * kScaleBytes * block_size : 2 * half_head_bytes();
  }
  constexpr std::int64_t layer_bytes() const { return head_bytes() * num_kv_heads; }
  constexpr std::int64_t block_bytes() const { return layer_bytes() * num_layers; }
  constexpr std::int64_t bytes_per_token() const { return block_bytes() / block_size; }  // scales included

  // Start of K[head_dim][block_size] of one head; V[block_size][head_dim] follows at + half_head_bytes().
  constexpr std::int64_t head_offset(std::int64_t block, std::int32_t layer, std::int32_t kv_head) const {
    return block * block_bytes() + layer * layer_bytes() + kv_head * head_bytes();
  }
  // Element (not byte) index within K or V of a head.
  constexpr std::int64_t key_index(std::int32_t dimension, std::int32_t offset_in_block) const {
    return static_cast<std::int64_t>(dimension) * block_size + offset_in_block;
  }
  constexpr std::int64_t value_index(std::int32_t offset_in_block, std::int32_t dimension) const {
    return static_cast<std::int64_t>(offset_in_block) * head_dim + dimension;
  }
  // Offsets of a token's scales from the start of its head. REQUIRES: has_scales()
  constexpr std::int64_t key_scale_offset(std::int32_t offset_in_block) const {
    return scales_offset() + kScaleBytes * offset_in_block;
  }
  constexpr std::int64_t value_scale_offset(std::int32_t offset_in_block) const {
    return scales_offset() + kScaleBytes * (block_size + offset_in_block);
  }
};

}  // namespace octavo::kernels
