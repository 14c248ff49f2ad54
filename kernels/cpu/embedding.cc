#include "engine/base/check.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/dequantize.h"

namespace octavo::kernels::cpu {

void CpuBackend::embed(const MatrixSource& table, std::span<const std::int32_t> token_ids, MatrixView out) {
  const TensorTypeTraits& traits = traits_of(table.type);
  const std::int64_t row_bytes = table.columns / traits.block_elements * traits.block_bytes;
  for_each_row(static_cast<std::int64_t>(token_ids.size()), [&](std::int64_t i, std::int32_t) {
    const std::int32_t token_id = token_ids[static_cast<std::size_t>(i)];
    OCTAVO_CHECK(token_id >= 0 && token_id < table.rows, "token %d of %lld", token_id,
                 static_cast<long long>(table.rows));
    dequantize(table.type, table.bytes.data() + token_id * row_bytes, table.columns, out.row(i));
  });
}

}  // namespace octavo::kernels::cpu
