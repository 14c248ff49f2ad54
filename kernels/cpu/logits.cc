// Each item multiplies a few panels with all rows and sums up their logits while these are in the cache.
#include <algorithm>
#include <cmath>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/scratch_plan.h"

namespace octavo::kernels::cpu {
namespace {

// Its bounds are those of the partial sums of exponentials, so they depend on nothing.
constexpr std::int64_t kPanelsPerItem = 16;
constexpr std::int64_t kEntriesPerItem = kPanelsPerItem * kPanelRows;
static_assert(kEntriesPerItem % kLogitsPiece == 0 && kLogitsPiece == kPieceEntries);

constexpr std::int64_t num_items_of(std::int64_t vocabulary) {
  return (vocabulary + kEntriesPerItem - 1) / kEntriesPerItem;
}

}  // namespace

std::int64_t logits_sum_floats(std::int64_t num_rows, std::int64_t vocabulary_size) {
  return 2 * num_rows * num_items_of(vocabulary_size);
}

void CpuBackend::logits(const OutputHead& head, ConstMatrixView x, std::span<const std::int32_t> rows,
                        MatrixView out, LogitsSummary summary) {
  if (rows.empty()) return;
  const auto& matrix = static_cast<const PackedMatrix&>(*head.matrix);
  const auto num_rows = static_cast<std::int64_t>(rows.size());
  const std::int64_t num_items = num_items_of(matrix.rows());
  const std::int64_t num_pieces = num_logits_pieces(matrix.rows());
  float* const maxima =
      item_sums_.reserve(logits_sum_floats(num_rows, matrix.rows()));  // [num_rows][num_items]
  float* const sums = maxima + num_rows * num_items;

  set_normalised(head.norm, x, rows, matrix.activation_forms());
  pool_->parallel_for_in_runs(num_items, [&](std::int64_t item, std::int32_t) {
    const std::int64_t first_panel = item * kPanelsPerItem, first = item * kEntriesPerItem;
    const std::int64_t count = std::min(kEntriesPerItem, matrix.rows() - first);
    multiply_panels(matrix, activations_, first_panel,
                    std::min(first_panel + kPanelsPerItem, matrix.num_panels()), out);
    for (std::int64_t row = 0; row < num_rows; ++row) {
      float* const entries = out.row(row) + first;
      add_bias(head.bias, out.row(row), first, count);
      if (head.soft_cap != 0.0f) kernels_.soft_cap(entries, head.soft_cap, count);
      float* const piece_maxima = summary.piece_maxima.data() + row * num_pieces + first / kLogitsPiece;
      kernels_.summarise_logits(entries, count, piece_maxima, maxima + row * num_items + item,
                                sums + row * num_items + item);
    }
  });
  for (std::int64_t row = 0; row < num_rows; ++row) {
    float largest, sum;
    kernels_.merge_exp_sums(maxima + row * num_items, sums + row * num_items, num_items, &largest, &sum);
    summary.log_sum_exp[static_cast<std::size_t>(row)] =
        static_cast<float>(double{largest} + std::log(double{sum}));
  }
}

}  // namespace octavo::kernels::cpu
