// The one description of where a token's keys and values lie; every backend and every test computes addresses with it.
//
// A block holds all layers and heads of `block_size` consecutive tokens in one piece, so that copy-on-write, swap and
// eviction move one range of bytes:
//
//   pool [num_blocks] [num_layers] [num_kv_heads] { K [head_dim][block_size] | V [block_size][head_dim] }
//
// K is stored transposed: the scores of 16 neighbouring tokens are one vector, each lane its own chain of fused
// multiply-adds over the dimensions. V is stored by token: a value sum has dimensions in its lanes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace octavo::kernels {

enum class KvType : std::uint8_t { kF32, kF16, kBf16 };

constexpr std::int64_t kv_element_bytes(KvType type) { return type == KvType::kF32 ? 4 : 2; }

struct KvLayout {
  KvType type = KvType::kF16;
  std::int32_t block_size = 16;  // tokens, 1..256
  std::int32_t num_layers = 0;
  std::int32_t num_kv_heads = 0;
  std::int32_t head_dim = 0;

  // All sizes in bytes, all offsets relative to the start of what is named.
  std::int64_t half_head_bytes() const {
    return kv_element_bytes(type) * static_cast<std::int64_t>(block_size) * head_dim;
  }
  std::int64_t head_bytes() const { return 2 * half_head_bytes(); }
  std::int64_t layer_bytes() const { return head_bytes() * num_kv_heads; }
  std::int64_t block_bytes() const { return layer_bytes() * num_layers; }
  std::int64_t bytes_per_token() const { return block_bytes() / block_size; }

  // Start of K[head_dim][block_size] of one head; V[block_size][head_dim] follows at + half_head_bytes().
  std::int64_t head_offset(std::int64_t block, std::int32_t layer, std::int32_t kv_head) const {
    return block * block_bytes() + layer * layer_bytes() + kv_head * head_bytes();
  }
  // Element (not byte) index within K or V of a head.
  std::int64_t key_index(std::int32_t dimension, std::int32_t offset_in_block) const {
    return static_cast<std::int64_t>(dimension) * block_size + offset_in_block;
  }
  std::int64_t value_index(std::int32_t offset_in_block, std::int32_t dimension) const {
    return static_cast<std::int64_t>(offset_in_block) * head_dim + dimension;
  }
};

}  // namespace octavo::kernels
