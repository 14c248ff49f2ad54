// Three parallel loops: norm and rounding of the rows; the panels of Q, K and V as one list; bias, norms of
// heads, rotation and KV write.
#include "engine/base/check.h"
#include "kernels/cpu/cpu_backend.h"

namespace octavo::kernels::cpu {
namespace {

// `start` is that of the head in its block.
KvSlot slot_of(const KvLayout& layout, std::int32_t offset, std::byte* start) {
  const std::int64_t element_bytes = kv_element_bytes(layout.type);
  const auto scale = [&](std::int64_t scale_offset) {
    return layout.has_scales() ? reinterpret_cast<float*>(start + scale_offset) : nullptr;
  };
  return {.type = layout.type,
          .head_dim = layout.head_dim,
          .key_stride = layout.block_size,
          .key = start + layout.key_index(0, offset) * element_bytes,
          .value = start + layout.half_head_bytes() + layout.value_index(offset, 0) * element_bytes,
          .key_scale = scale(layout.key_scale_offset(offset)),
          .value_scale = scale(layout.value_scale_offset(offset))};
}

}  // namespace

void CpuBackend::attention_input(const AttentionInputWeights& weights, const AttentionShape& shape,
                                 const PagedBatch& batch, std::int32_t layer, ConstMatrixView x, KvCache& kv,
                                 MatrixView q) {
  const auto& query = static_cast<const PackedMatrix&>(*weights.query);
  const auto& key = static_cast<const PackedMatrix&>(*weights.key);
  const auto& value = static_cast<const PackedMatrix&>(*weights.value);
  const std::int64_t rows = batch.num_tokens, width = key.rows();
  const MatrixView k{key_rows_.reserve(rows * width), rows, width, width};
  const MatrixView v{value_rows_.reserve(rows * width), rows, width, width};

  const ActivationForm forms = query.activation_form() | key.activation_form() | value.activation_form();
  set_normalised(weights.norm, {x.data, rows, x.columns, x.stride}, {}, forms);
  const Product products[] = {{&query, q}, {&key, k}, {&value, v}};
  multiply(products);
  for_each_row(rows, [&](std::int64_t row, std::int32_t) {
    rotate_and_store(weights, shape, batch, layer, row, k, v, static_cast<CpuKvCache&>(kv), q);
  });
}

// Each piece as long as the weight by itself: heads, or the whole row. No weight: nothing.
void CpuBackend::normalise_heads(std::span<const float> weight, float epsilon, std::int64_t width,
                                 float* heads) const {
  const auto size = static_cast<std::int64_t>(weight.size());
  if (size == 0) return;
  for (float* const end = heads + width; heads < end; heads += size)
    kernels_.rms_norm(heads, weight.data(), epsilon, size, heads);
}

void CpuBackend::rotate_and_store(const AttentionInputWeights& weights, const AttentionShape& shape,
                                  const PagedBatch& batch, std::int32_t layer, std::int64_t row, MatrixView k,
                                  MatrixView v, CpuKvCache& kv, MatrixView q) {
  add_bias(weights.query_bias, q.row(row), 0, q.columns);
  add_bias(weights.key_bias, k.row(row), 0, k.columns);
  add_bias(weights.value_bias, v.row(row), 0, v.columns);
  normalise_heads(weights.query_norm, weights.norm.epsilon, q.columns, q.row(row));
  normalise_heads(weights.key_norm, weights.norm.epsilon, k.columns, k.row(row));

  const auto& angles = shape.rotations == Rotations::kLocal ? batch.local_rotations : batch.rotations;
  const float* rotations = angles.data() + row * shape.rotary_dim;
  const bool halves = shape.pairing == RopePairing::kHalves;
  kernels_.rotate_heads(q.row(row), shape.num_heads, shape.head_dim, shape.rotary_dim, halves, rotations);
  kernels_.rotate_heads(k.row(row), shape.num_kv_heads, shape.head_dim, shape.rotary_dim, halves, rotations);

  const KvLayout& layout = kv.layout();
  const std::int32_t slot = batch.slot_mapping[static_cast<std::size_t>(row)];
  const std::int32_t block = slot / layout.block_size, offset = slot % layout.block_size;
  OCTAVO_CHECK(slot >= 0 && block < kv.num_blocks(), "slot %d of %d blocks", slot, kv.num_blocks());
  for (std::int32_t head = 0; head < shape.num_kv_heads; ++head) {
    kernels_.write_kv(k.row(row) + head * shape.head_dim, v.row(row) + head * shape.head_dim,
                      slot_of(layout, offset, kv.data() + layout.head_offset(block, layer, head)));
  }
}

}  // namespace octavo::kernels::cpu
