#include "kernels/backend.h"

#include <algorithm>

#include "engine/base/check.h"

namespace octavo::kernels {

Result<std::unique_ptr<Buffer>> Backend::prepare_vector(std::span<const float> values) {
  OCTAVO_TRY(std::unique_ptr<Buffer> buffer, allocate_buffer(static_cast<std::int64_t>(values.size())));
  std::copy(values.begin(), values.end(), buffer->data());
  return buffer;
}

void Backend::for_each_on_host(std::int64_t count, const std::function<void(std::int64_t)>& work) {
  for (std::int64_t i = 0; i < count; ++i) work(i);
}

void Backend::draw_tokens(const OutputHead&, ConstMatrixView, std::span<const std::int32_t>,
                          std::span<const TokenDraw>, std::span<DrawnToken>, const LogitAdjustments&) {
  OCTAVO_CHECK(false, "this backend draws no tokens");
}

void Backend::embed_layers(const LayerEmbeddingWeights&, std::span<const std::int32_t>, ConstMatrixView,
                           MatrixView) {
  OCTAVO_CHECK(false, "this backend has no embeddings of layers");
}

void Backend::latent_attention_input(const LatentInputWeights&, const AttentionShape&, const PagedBatch&,
                                     std::int32_t, ConstMatrixView, KvCache&, MatrixView) {
  OCTAVO_CHECK(false, "this backend runs no latent attention");
}

void Backend::project_heads(std::span<const Matrix* const>, ConstMatrixView, MatrixView) {
  OCTAVO_CHECK(false, "this backend runs no latent attention");
}

void Backend::feed_forward_experts(const ExpertWeights&, MatrixView, std::span<std::int32_t>) {
  OCTAVO_CHECK(false, "this backend runs no experts");
}

Result<std::unique_ptr<StateCache>> Backend::allocate_state_cache(const StateLayout&, std::int32_t) {
  return Error{ErrorCode::kUnsupported, "this backend keeps no states", "device"};
}

Result<std::unique_ptr<HostStateCache>> Backend::allocate_host_state_cache(const StateLayout&, std::int32_t) {
  return Error{ErrorCode::kUnsupported, "this backend keeps no states", "device"};
}

void Backend::gate_attention(const AttentionGateWeights&, ConstMatrixView, MatrixView) {
  OCTAVO_CHECK(false, "this backend gates no attention");
}

void Backend::gated_delta_net(const DeltaNetWeights&, const DeltaNetShape&, const PagedBatch&, std::int32_t,
                              ConstMatrixView, StateCache&, MatrixView) {
  OCTAVO_CHECK(false, "this backend runs no recurrent layers");
}

void Backend::state_space(const StateSpaceWeights&, const StateSpaceShape&, const PagedBatch&, std::int32_t,
                          ConstMatrixView, StateCache&, MatrixView) {
  OCTAVO_CHECK(false, "this backend runs no recurrent layers");
}

void Backend::short_convolution(const ShortConvolutionWeights&, const ShortConvolutionShape&,
                                const PagedBatch&, std::int32_t, ConstMatrixView, StateCache&, MatrixView) {
  OCTAVO_CHECK(false, "this backend runs no recurrent layers");
}

void Backend::accept_delta_net(const DeltaNetWeights&, const DeltaNetShape&, const PagedBatch&, std::int32_t,
                               std::span<const std::int32_t>, StateCache&) {
  OCTAVO_CHECK(false, "this backend runs no recurrent layers");
}

void Backend::accept_state_space(const StateSpaceWeights&, const StateSpaceShape&, const PagedBatch&,
                                 std::int32_t, std::span<const std::int32_t>, StateCache&) {
  OCTAVO_CHECK(false, "this backend runs no recurrent layers");
}

void Backend::accept_short_convolution(const ShortConvolutionWeights&, const ShortConvolutionShape&,
                                       const PagedBatch&, std::int32_t, std::span<const std::int32_t>,
                                       StateCache&) {
  OCTAVO_CHECK(false, "this backend runs no recurrent layers");
}

void Backend::join_next_tokens(const NextTokenWeights&, ConstMatrixView, ConstMatrixView,
                               std::span<const std::int32_t>, MatrixView) {
  OCTAVO_CHECK(false, "this backend guesses no tokens");
}

void Backend::start_draws(const OutputHead&, ConstMatrixView, const StepDraws&) {
  OCTAVO_CHECK(false, "this backend draws no tokens");
}

void Backend::take_draws(std::span<DrawnToken>) { OCTAVO_CHECK(false, "this backend draws no tokens"); }

void Backend::clear_states(StateCache&, std::span<const std::int32_t>) {
  OCTAVO_CHECK(false, "this backend keeps no states");
}

void Backend::copy_states(StateCache&, std::span<const BlockCopy>) {
  OCTAVO_CHECK(false, "this backend keeps no states");
}

void Backend::swap_states_out(const StateCache&, HostStateCache&, std::span<const BlockCopy>) {
  OCTAVO_CHECK(false, "this backend keeps no states");
}

void Backend::swap_states_in(const HostStateCache&, StateCache&, std::span<const BlockCopy>) {
  OCTAVO_CHECK(false, "this backend keeps no states");
}

void Backend::begin_step(const PagedBatch&, std::span<const std::int32_t>) {}

void Backend::run_step(const PagedBatch& batch, std::span<const std::int32_t> token_ids, const StepBody& body,
                       const StepDraws&) {
  begin_step(batch, token_ids);
  body(batch, token_ids);
}

Result<void> Backend::keep_rotations(std::span<const float>, std::span<const float>) { return {}; }

Result<void> Backend::record_step(const PagedBatch&, std::span<const std::int32_t>, const StepBody&) {
  return {};
}

Result<void> Backend::record_draws(const OutputHead&, ConstMatrixView) { return {}; }

}  // namespace octavo::kernels
