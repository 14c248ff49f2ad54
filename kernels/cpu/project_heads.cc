// The heads' parts of all rows, one head behind the other, and then the panels of all heads as one list.
#include <algorithm>

#include "engine/base/check.h"
#include "kernels/cpu/cpu_backend.h"

namespace octavo::kernels::cpu {

void CpuBackend::project_heads(std::span<const Matrix* const> heads, ConstMatrixView input, MatrixView out) {
  OCTAVO_CHECK(!heads.empty(), "no heads");
  const auto num_heads = static_cast<std::int64_t>(heads.size()), num_rows = input.rows;
  const auto packed = [&](std::int64_t head) -> const PackedMatrix& {
    return static_cast<const PackedMatrix&>(*heads[static_cast<std::size_t>(head)]);
  };
  const PackedMatrix& first = packed(0);
  const std::int64_t input_part = input.columns / num_heads, out_part = out.columns / num_heads;
  OCTAVO_CHECK(first.columns() <= input_part && first.rows() <= out_part,
               "%lld x %lld in parts of %lld, %lld", static_cast<long long>(first.rows()),
               static_cast<long long>(first.columns()), static_cast<long long>(out_part),
               static_cast<long long>(input_part));

  head_activations_.reserve(num_heads * num_rows, first.columns(), first.activation_forms());
  for_each_row(num_heads * num_rows, [&](std::int64_t i, std::int32_t) {
    head_activations_.set_row(i, input.row(i % num_rows) + i / num_rows * input_part);
  });

  const std::int64_t panels = first.num_panels();
  const std::int64_t size = std::min(panels_per_item(num_heads * panels), panels);
  const std::int64_t pieces = (panels + size - 1) / size;
  pool_->parallel_for_in_runs(num_heads * pieces, [&](std::int64_t item, std::int32_t) {
    const std::int64_t head = item / pieces, first_panel = item % pieces * size;
    const RowRange rows{head * num_rows, (head + 1) * num_rows};
    // The head's part of `out` as if it began with the rows of the heads before, which are not touched.
    const MatrixView part{out.data + head * out_part - rows.first * out.stride, rows.last, first.rows(),
                          out.stride};
    multiply_panels(packed(head), head_activations_, rows, first_panel, std::min(first_panel + size, panels),
                    part);
  });
}

}  // namespace octavo::kernels::cpu
