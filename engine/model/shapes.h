// How much memory keys and values take: arithmetic on a model's shape, with no file and no machine.
//
//   bytes per token = 2 (keys and values) x bytes per element x layers x KV heads x head size,
//
// added up for layers that differ. Latent layers have 1 in place of the 2: their values are part of the keys.
//
// Without grouped heads that is 2 x bytes x layers x width (Kwon et al. 2023, arXiv:2309.06180).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace octavo::model {

// Layers that are alike.
struct KvLayers {
  std::int32_t num_layers = 0;
  std::int32_t num_kv_heads = 0;
  std::int32_t head_dim = 0;
  std::int32_t latent_dim = 0;  // as of kernels::KvHeads

  std::int32_t num_parts() const { return latent_dim > 0 ? 1 : 2; }  // keys, or keys and values
};

// Of the layers that have keys and values of their own.
struct KvShape {
  KvShape() = default;
  KvShape(std::vector<KvLayers> all_kinds) : kinds(std::move(all_kinds)) {}  // NOLINT: implicit on purpose
  KvShape(std::int32_t num_layers, std::int32_t num_kv_heads, std::int32_t head_dim)
      : kinds{{num_layers, num_kv_heads, head_dim}} {}

  std::vector<KvLayers> kinds;
};

// A model known by name.
struct NamedShape {
  std::string_view name;  // "opt-30b"
  std::int32_t num_layers;
  std::int32_t embedding_length;
  std::int32_t num_heads;
  std::int32_t num_kv_heads;
  std::int32_t head_dim;
  std::int64_t num_parameters;  // as published with the weights; tied embeddings counted once

  KvShape kv() const { return {num_layers, num_kv_heads, head_dim}; }
};

std::span<const NamedShape> named_shapes();
const NamedShape* find_shape(std::string_view name);  // nullptr: unknown

// nullopt when the result does not fit 64 bits.
std::optional<std::uint64_t> kv_bytes_per_token(const KvShape& shape, std::uint64_t bytes_per_element);
std::optional<std::uint64_t> kv_bytes(const KvShape& shape, std::uint64_t bytes_per_element,
                                      std::uint64_t num_tokens, std::uint64_t batch_size);

// What of a memory is left for keys and values once the weights stand in it.
struct KvCapacity {
  std::uint64_t bytes = 0;       // 0: the weights alone do not fit
  std::uint64_t num_blocks = 0;  // whole ones
  std::uint64_t num_tokens = 0;  // in those blocks
};
// nullopt when a block's size does not fit 64 bits.  REQUIRES: block_size >= 1
std::optional<KvCapacity> kv_capacity(const KvShape& shape, std::uint64_t bytes_per_element,
                                      std::uint64_t block_size, std::uint64_t memory_bytes,
                                      std::uint64_t weight_bytes);

}  // namespace octavo::model
