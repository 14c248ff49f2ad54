#include "engine/base/check.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/pack.h"

namespace octavo::kernels::cpu {

void CpuBackend::embed(const Matrix& table, std::span<const std::int32_t> token_ids, MatrixView out) {
  const auto& packed = static_cast<const PackedMatrix&>(table);
  for_each_row(static_cast<std::int64_t>(token_ids.size()), [&](std::int64_t i, std::int32_t) {
    const std::int32_t token_id = token_ids[static_cast<std::size_t>(i)];
    OCTAVO_CHECK(token_id >= 0 && token_id < packed.rows(), "token %d of %lld", token_id,
                 static_cast<long long>(packed.rows()));
    unpack_row(packed.format(), packed.panel(token_id / kPanelRows), packed.columns(), token_id % kPanelRows,
               out.row(i));
  });
}

}  // namespace octavo::kernels::cpu
