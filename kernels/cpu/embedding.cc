#include "engine/base/check.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/pack.h"

namespace octavo::kernels::cpu {
namespace {

void unpack(const Matrix& table, std::int32_t row, float* out, const KernelTable& kernels) {
  const auto& packed = static_cast<const PackedMatrix&>(table);
  OCTAVO_CHECK(row >= 0 && row < packed.rows(), "row %d of %lld", row, static_cast<long long>(packed.rows()));
  unpack_row(packed.format(), packed.panel(row / kPanelRows), packed.columns(), row % kPanelRows, out);
  if (packed.scale() != 1.0f) kernels.scale_row(out, packed.scale(), packed.columns());
}

}  // namespace

void CpuBackend::embed(const EmbeddingWeights& weights, std::span<const std::int32_t> token_ids,
                       std::span<const std::int32_t> positions, MatrixView out) {
  const std::int64_t width = weights.tokens->columns();
  for_each_row(static_cast<std::int64_t>(token_ids.size()), [&](std::int64_t i, std::int32_t worker) {
    const auto index = static_cast<std::size_t>(i);
    unpack(*weights.tokens, token_ids[index], out.row(i), kernels_);
    if (weights.scale != 1.0f) kernels_.scale_row(out.row(i), weights.scale, width);
    if (weights.positions != nullptr) {
      float* position = worker_scratch_[static_cast<std::size_t>(worker)].reserve(width);
      unpack(*weights.positions, positions[index], position, kernels_);
      kernels_.add_row(out.row(i), position, width);
    }
    normalise_if_any(weights.norm, out.row(i));
  });
}

// The products of all layers' parts are one list of panels; norms and the tokens' rows follow row by row.
void CpuBackend::embed_layers(const LayerEmbeddingWeights& weights, std::span<const std::int32_t> token_ids,
                              ConstMatrixView x, MatrixView out) {
  const auto& projection = static_cast<const PackedMatrix&>(*weights.projection);
  const std::int64_t width = projection.rows();
  set_activations({x.data, out.rows, x.columns, x.stride}, projection.activation_forms());
  const Product products[] = {{&projection, out}};
  multiply(products);
  for_each_row(out.rows, [&](std::int64_t row, std::int32_t worker) {
    float* const token = worker_scratch_[static_cast<std::size_t>(worker)].reserve(width);
    unpack(*weights.tokens, token_ids[static_cast<std::size_t>(row)], token, kernels_);
    kernels_.scale_row(token, weights.token_scale, width);
    kernels_.scale_row(out.row(row), weights.projection_scale, width);
    normalise_heads(weights.norm.weight, weights.norm.epsilon, width, out.row(row));
    kernels_.add_row(out.row(row), token, width);
    kernels_.scale_row(out.row(row), weights.scale, width);
  });
}

}  // namespace octavo::kernels::cpu
