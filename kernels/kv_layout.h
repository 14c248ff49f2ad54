// The one description of where a token's keys and values are; every backend and every
// test computes addresses with it.
//
// A block holds all layers and heads of `block_size` consecutive tokens in one piece, so that copy-on-write,
// swap and eviction move one range of bytes:
//
//   pool [num_blocks] [layers] [num_kv_heads] { K [head_dim][block_size] | V [block_size][head_dim] | scales
//   }
//
// A latent layer (DeepSeek-AI 2024, arXiv:2405.04434) keeps no V: a token's value is the first `latent_dim`
// numbers of its key, read from the same bytes.
//
// Layers may differ in heads. They are those that have keys and values of their own: which of them a layer of
// a model reads is the model's business (engine/model/kv_use.h).
//
// K is stored transposed: the scores of 16 neighbouring tokens are one vector, each lane its own chain of
// fused multiply-adds over the dimensions. V is stored by token: a value sum has dimensions in its lanes.
//
// Scales exist for int8 only: f32 [2][block_size], of the keys, then of the values; in a latent layer
// [block_size], of both. Each token has its own, so that what a block holds of a token does not depend on its
// neighbours, and bytes can move without being looked at.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/kv_type.h"

namespace octavo::kernels {

// What one layer keeps of a token: a key and a value for each of so many heads.
struct KvHeads {
  std::int32_t num_kv_heads = 0;
  std::int32_t head_dim = 0;
  std::int32_t latent_dim = 0;  // values are so many numbers of the keys, the first ones; 0: they stand apart
  friend bool operator==(const KvHeads&, const KvHeads&) = default;
};

// One layer's part of a block. Sizes and offsets in bytes, indices in elements.
struct KvLayer {
  std::int32_t num_kv_heads = 0;
  std::int32_t head_dim = 0;
  std::int32_t latent_dim = 0;  // as of KvHeads
  std::int32_t block_size = 0;  // tokens
  std::int64_t offset = 0;      // of the first head, from the start of the block
  // A head's K [head_dim][block_size]; V [block_size][head_dim] follows, where values stand apart.
  std::int64_t half_head_bytes = 0;
  // From the start of a head. With scales, K and V are filled up to a multiple of 4: an odd head_dim in an
  // odd block size may leave a gap.
  std::int64_t scales_offset = 0;
  std::int64_t head_bytes = 0;

  constexpr std::int64_t bytes() const { return head_bytes * num_kv_heads; }
  constexpr bool is_latent() const { return latent_dim > 0; }
  // Within K or V of a head.
  constexpr std::int64_t key_index(std::int32_t dimension, std::int32_t offset_in_block) const {
    return static_cast<std::int64_t>(dimension) * block_size + offset_in_block;
  }
  constexpr std::int64_t value_index(std::int32_t offset_in_block, std::int32_t dimension) const {
    return static_cast<std::int64_t>(offset_in_block) * head_dim + dimension;
  }
  // Of a token's scales, from the start of its head; in a latent layer they are one. REQUIRES: a type with
  // scales
  constexpr std::int64_t key_scale_offset(std::int32_t offset_in_block) const {
    return scales_offset + kKvScaleBytes * offset_in_block;
  }
  constexpr std::int64_t value_scale_offset(std::int32_t offset_in_block) const {
    return key_scale_offset(offset_in_block) + (is_latent() ? 0 : kKvScaleBytes * block_size);
  }
};

struct KvLayout {
  static constexpr std::int32_t kMaxBlockSize = 256;
  static constexpr std::int32_t kMaxLayers = 65'536;

  KvLayout() = default;
  // Numbers may be anything, for they come from files and options: a layout that is impossible has no layers,
  // and kv_pool_bytes() refuses it.
  KvLayout(KvType type, std::int32_t block_size, std::span<const KvHeads> layers);
  // Layers that are all alike.
  KvLayout(KvType type, std::int32_t block_size, std::int32_t num_layers, std::int32_t num_kv_heads,
           std::int32_t head_dim);

  KvType type = KvType::kF16;
  std::int32_t block_size = 16;  // tokens, 1..kMaxBlockSize

  std::int32_t num_layers() const { return static_cast<std::int32_t>(layers_.size()); }
  const KvLayer& layer(std::int32_t index) const { return layers_[static_cast<std::size_t>(index)]; }

  bool has_scales() const { return has_kv_scales(type); }
  std::int64_t block_bytes() const {
    return layers_.empty() ? 0 : layers_.back().offset + layers_.back().bytes();
  }
  std::int64_t bytes_per_token() const { return block_bytes() / block_size; }  // scales included

  // Where a head begins in the pool.
  std::int64_t head_offset(std::int64_t block, std::int32_t layer_index, std::int32_t kv_head) const {
    const KvLayer& place = layer(layer_index);
    return block * block_bytes() + place.offset + kv_head * place.head_bytes;
  }

 private:
  bool add_layer(KvHeads heads);  // false: impossible

  std::vector<KvLayer> layers_;
};

}  // namespace octavo::kernels
