#include "kernels/backend.h"

#include <algorithm>

namespace octavo::kernels {

Result<std::unique_ptr<Buffer>> Backend::prepare_vector(std::span<const float> values) {
  OCTAVO_TRY(std::unique_ptr<Buffer> buffer, allocate_buffer(static_cast<std::int64_t>(values.size())));
  std::copy(values.begin(), values.end(), buffer->data());
  return buffer;
}

void Backend::begin_step(const PagedBatch&, std::span<const std::int32_t>) {}

}  // namespace octavo::kernels
