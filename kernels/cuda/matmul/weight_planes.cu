#include "kernels/cuda/matmul/weight_planes.h"

#include "kernels/cuda/matmul/quantised.cuh"

namespace octavo::kernels::cuda {
namespace {

constexpr std::int64_t kPlaneAlignment = 256;

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + kPlaneAlignment - 1) / kPlaneAlignment * kPlaneAlignment;
}

}  // namespace

GroupBytes group_bytes(TensorType type) {
  if (!traits_of(type).quantised) return {};
  const QuantTraits traits = quant_traits(type);
  const bool has_two_halves = type == TensorType::kQ4_1 || type == TensorType::kQ5_1;
  return {4 * traits.low_bits, 4 * traits.high_bits, has_two_halves ? 4 : 2, traits.is_super ? 4 : 0};
}

PlaneLayout plane_layout(TensorType type, std::int64_t rows, std::int64_t columns) {
  const std::int64_t num_numbers = rows * padded_columns(columns);
  if (!traits_of(type).quantised) return {.bytes = num_numbers * traits_of(type).block_bytes};
  const GroupBytes bytes = group_bytes(type);
  const std::int64_t num_groups = num_numbers / kGroupColumns;
  const std::int64_t plane_bytes[4] = {num_groups * bytes.low, num_groups * bytes.high,
                                       num_groups * bytes.scale, num_groups / kSuperGroups * bytes.super};
  PlaneLayout layout;
  for (int plane = 0; plane < 4; ++plane) {
    layout.offsets[plane] = layout.bytes;
    layout.bytes = aligned(layout.bytes + plane_bytes[plane]);
  }
  return layout;
}

WeightPlanes planes_at(const std::byte* memory, TensorType type, std::int64_t rows, std::int64_t columns) {
  const PlaneLayout layout = plane_layout(type, rows, columns);
  return {.type = type,
          .rows = rows,
          .columns = columns,
          .stride = padded_columns(columns),
          .low = memory + layout.offsets[0],
          .high = memory + layout.offsets[1],
          .scale = memory + layout.offsets[2],
          .super = memory + layout.offsets[3]};
}

}  // namespace octavo::kernels::cuda
