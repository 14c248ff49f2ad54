#include "kernels/kv_layout.h"

namespace octavo::kernels {

KvLayout::KvLayout(KvType kv_type, std::int32_t tokens, std::span<const KvHeads> layers)
    : type(kv_type), block_size(tokens) {
  if (layers.size() > static_cast<std::size_t>(kMaxLayers)) return;
  layers_.reserve(layers.size());
  for (const KvHeads& heads : layers) {
    if (add_layer(heads)) continue;
    layers_.clear();
    return;
  }
}

KvLayout::KvLayout(KvType kv_type, std::int32_t tokens, std::int32_t num_layers, std::int32_t num_kv_heads,
                   std::int32_t head_dim)
    : KvLayout(kv_type, tokens,
               std::vector<KvHeads>(
                   num_layers > 0 && num_layers <= kMaxLayers ? static_cast<std::size_t>(num_layers) : 0,
                   KvHeads{num_kv_heads, head_dim})) {}

bool KvLayout::add_layer(KvHeads heads) {
  if (block_size < 1 || block_size > kMaxBlockSize || heads.num_kv_heads < 1 || heads.head_dim < 1)
    return false;
  if (heads.latent_dim < 0 || heads.latent_dim > heads.head_dim) return false;
  KvLayer layer{.num_kv_heads = heads.num_kv_heads,
                .head_dim = heads.head_dim,
                .latent_dim = heads.latent_dim,
                .block_size = block_size};
  const std::int64_t num_parts = layer.is_latent() ? 1 : 2;  // keys alone, or keys and values
  layer.offset = block_bytes();
  // These fit: 2^8 tokens of 2^31 elements.
  layer.half_head_bytes = kv_element_bytes(type) * std::int64_t{block_size} * heads.head_dim;
  const std::int64_t number_bytes = num_parts * layer.half_head_bytes;
  layer.scales_offset = (number_bytes + kKvScaleBytes - 1) / kKvScaleBytes * kKvScaleBytes;
  layer.head_bytes =
      has_scales() ? layer.scales_offset + num_parts * kKvScaleBytes * block_size : number_bytes;
  std::int64_t bytes;
  if (__builtin_mul_overflow(layer.head_bytes, std::int64_t{layer.num_kv_heads}, &bytes) ||
      __builtin_add_overflow(bytes, layer.offset, &bytes)) {
    return false;
  }
  layers_.push_back(layer);
  return true;
}

}  // namespace octavo::kernels
