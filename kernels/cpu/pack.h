// Weights from the file's order into panels (simd/matmul_table.h), without changing a weight: the stored
// integers are the file's, and every scale and min is the number that dequantize.h multiplies and adds.
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

}  // namespace octavo::kernels::cpu
