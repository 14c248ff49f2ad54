// Weights from the file's order into panels (simd/matmul_table.h), without changing a weight: the stored
// integers are the file's, and every scale and min is the number that dequantize.h multiplies and adds. And
// single rows of panels back into floats.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/simd/matmul_table.h"
#include "kernels/tensor.h"

namespace octavo::kernels::cpu {

struct PanelPlan {
  PanelFormat format;
  std::int64_t panel_bytes;
};

// REQUIRES: columns % traits_of(type).block_elements == 0
PanelPlan plan_panels(TensorType type, std::int64_t columns);

// Packs weight rows [16 * panel, 16 * panel + 16) that exist. REQUIRES: `out` holds
// plan_panels(...).panel_bytes zeros.
void pack_panel(const MatrixSource& source, std::int64_t panel, std::byte* out);

// Of one panel. REQUIRES: of quantised formats, columns are whole groups, and as many as heads belong to
constexpr std::int64_t bytes_of_columns(PanelFormat format, std::int64_t columns) {
  if (!is_quantised(format)) return columns * kPanelRows * (format == PanelFormat::kF32 ? 4 : 2);
  const PanelBytes& bytes = traits_of(format).bytes;
  const std::int64_t num_groups = columns / kGroupColumns;
  return num_groups * bytes.group() + num_groups / bytes.head_groups * bytes.head;
}

// Weight row `row` (0..15) of a panel, the bits that dequantize.h gives.
//   out  [columns]
void unpack_row(PanelFormat format, const std::byte* panel, std::int64_t columns, std::int64_t row,
                float* out);

}  // namespace octavo::kernels::cpu
