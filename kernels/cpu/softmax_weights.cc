#include <algorithm>

#include "kernels/cpu/cpu_backend.h"

namespace octavo::kernels::cpu {

void CpuBackend::softmax_weights(std::span<const double> scores, double best, double inverse_temperature,
                                 std::span<double> weights, std::span<double> piece_sums) {
  constexpr std::int64_t kPiecesPerItem = 96;  // some microseconds
  const auto size = static_cast<std::int64_t>(scores.size());
  constexpr std::int64_t kEntriesPerItem = kPiecesPerItem * kLogitsPiece;
  pool_->parallel_for((size + kEntriesPerItem - 1) / kEntriesPerItem, [&](std::int64_t item, std::int32_t) {
    const std::int64_t first = item * kEntriesPerItem;
    kernels_.softmax_weights(scores.data() + first, std::min(kEntriesPerItem, size - first), best,
                             inverse_temperature, weights.data() + first,
                             piece_sums.data() + item * kPiecesPerItem);
  });
}

}  // namespace octavo::kernels::cpu
