#include "kernels/backend.h"

#include <algorithm>

#include "engine/base/check.h"

namespace octavo::kernels {

Result<std::unique_ptr<Buffer>> Backend::prepare_vector(std::span<const float> values) {
  OCTAVO_TRY(std::unique_ptr<Buffer> buffer, allocate_buffer(static_cast<std::int64_t>(values.size())));
  std::copy(values.begin(), values.end(), buffer->data());
  return buffer;
}

void Backend::draw_tokens(const OutputHead&, ConstMatrixView, std::span<const std::int32_t>,
                          std::span<const TokenDraw>, std::span<DrawnToken>, const LogitAdjustments&) {
  OCTAVO_CHECK(false, "this backend draws no tokens");
}

void Backend::feed_forward_experts(const ExpertWeights&, MatrixView) {
  OCTAVO_CHECK(false, "this backend runs no experts");
}

void Backend::begin_step(const PagedBatch&, std::span<const std::int32_t>) {}

void Backend::run_step(const PagedBatch& batch, std::span<const std::int32_t> token_ids,
                       const StepBody& body) {
  begin_step(batch, token_ids);
  body(batch, token_ids);
}

Result<void> Backend::record_step(const PagedBatch&, std::span<const std::int32_t>, const StepBody&) {
  return {};
}

}  // namespace octavo::kernels
