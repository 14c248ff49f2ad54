// Whoever wants hidden states wants them on the host, and of few rows or once for a prompt: the norm is done
// there, in double, by weights that are fetched each time.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "engine/base/check.h"
#include "kernels/cuda/cuda_backend.h"

namespace octavo::kernels::cuda {
namespace {

double mean_of_row(const float* x, std::size_t size) {
  double sum = 0.0;
  for (std::size_t i = 0; i < size; ++i) sum += double{x[i]};
  return sum / static_cast<double>(size);
}

// In place. All in host memory.
void normalise_row(const std::vector<float>& weight, const std::vector<float>& bias, const NormWeights& norm,
                   float* row) {
  const std::size_t size = weight.size();
  const double centre = norm.kind == NormKind::kLayer ? mean_of_row(row, size) : 0.0;
  double sum = 0.0;
  for (std::size_t i = 0; i < size; ++i) sum += (double{row[i]} - centre) * (double{row[i]} - centre);
  const double scale = 1.0 / std::sqrt(sum / static_cast<double>(size) + double{norm.epsilon});
  for (std::size_t i = 0; i < size; ++i) {
    row[i] = static_cast<float>((double{row[i]} - centre) * scale * double{weight[i]} +
                                (bias.empty() ? 0.0 : double{bias[i]}));
  }
}

}  // namespace

// Through pinned memory, in as many pieces as that takes.
void CudaBackend::fetch(const float* source, std::int64_t count, float* target) {
  const PinnedMemory& room = scratch_->host_logits;
  const std::int64_t most = room.bytes() / std::int64_t{sizeof(float)};
  for (std::int64_t first = 0; first < count; first += most) {
    const std::int64_t bytes = std::min(most, count - first) * std::int64_t{sizeof(float)};
    compute_->copy(room.data(), source + first, bytes);
    compute_->synchronize();
    std::memcpy(target + first, room.data(), static_cast<std::size_t>(bytes));
  }
}

void CudaBackend::hidden_states(const NormWeights& weights, ConstMatrixView x,
                                std::span<const std::int32_t> rows, MatrixView out) {
  OCTAVO_CHECK(scratch_.has_value(), "hidden states of a step that nothing was reserved for");
  std::vector<float> weight(weights.weight.size()), bias(weights.bias.size());
  fetch(weights.weight.data(), std::ssize(weight), weight.data());
  fetch(weights.bias.data(), std::ssize(bias), bias.data());
  // Neighbouring rows in one piece, where they stand so on both sides.
  const bool is_dense = x.stride == x.columns && out.stride == out.columns;
  for (std::size_t first = 0, end; first < rows.size(); first = end) {
    for (end = first + 1; is_dense && end < rows.size() && rows[end] == rows[end - 1] + 1;) ++end;
    fetch(x.row(rows[first]), static_cast<std::int64_t>(end - first) * x.columns,
          out.row(static_cast<std::int64_t>(first)));
  }
  for (std::int64_t row = 0; row < std::ssize(rows); ++row) {
    if (!status_.ok()) {  // as logits(): what the memory held before is no answer
      std::fill_n(out.row(row), out.columns, std::numeric_limits<float>::quiet_NaN());
    } else if (!weight.empty()) {
      normalise_row(weight, bias, weights, out.row(row));
    }
  }
}

}  // namespace octavo::kernels::cuda
