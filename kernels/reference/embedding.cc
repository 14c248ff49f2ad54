#include "kernels/dequantize.h"
#include "kernels/reference/reference_backend.h"

namespace octavo::kernels::reference {

void ReferenceBackend::embed(const MatrixSource& table, std::span<const std::int32_t> token_ids,
                             MatrixView out) {
  const TensorTypeTraits& traits = traits_of(table.type);
  const std::int64_t row_bytes = table.columns / traits.block_elements * traits.block_bytes;
  for (std::size_t i = 0; i < token_ids.size(); ++i) {
    dequantize(table.type, table.bytes.data() + token_ids[i] * row_bytes, table.columns,
               out.row(static_cast<std::int64_t>(i)));
  }
}

}  // namespace octavo::kernels::reference
