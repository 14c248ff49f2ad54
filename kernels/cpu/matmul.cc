#include "kernels/cpu/matmul.h"

#include <algorithm>
#include <utility>

#include "engine/base/check.h"
#include "kernels/cpu/pack.h"

namespace octavo::kernels::cpu {

namespace portable {
extern const MatmulTable kMatmulTable;
}
namespace avx2 {
extern const MatmulTable kMatmulTable;
}
namespace avx512 {
extern const MatmulTable kMatmulTable;
}
namespace avx512_vnni {
extern const MatmulTable kMatmulTable;
}

const MatmulTable& matmul_table(InstructionSet isa) {
  switch (isa) {
#if defined(OCTAVO_HAS_AVX512_VNNI)
    case InstructionSet::kAvx512Vnni: return avx512_vnni::kMatmulTable;
#endif
#if defined(OCTAVO_HAS_AVX512)
    case InstructionSet::kAvx512: return avx512::kMatmulTable;
#endif
#if defined(OCTAVO_HAS_AVX2)
    case InstructionSet::kAvx2: return avx2::kMatmulTable;
#endif
    default: return portable::kMatmulTable;
  }
}

Result<std::unique_ptr<PackedMatrix>> pack_matrix(const MatrixSource& source, Activation activation,
                                                  InstructionSet isa, ThreadPool& pool,
                                                  PackedMemory& memory) {
  const PanelPlan plan = plan_panels(source.type, source.columns);
  std::unique_ptr<PackedMatrix> matrix(new PackedMatrix(source.rows, source.columns));
  const bool int8 = traits_of(source.type).quantised && activation == Activation::kInt8;
  matrix->format_ = plan.format;
  matrix->activation_form_ = int8 ? ActivationForm::kInt8 : ActivationForm::kFloat;
  matrix->panel_bytes_ = plan.panel_bytes;
  matrix->kernels_ = int8 ? &matmul_table(isa).int8 : &matmul_table(isa).f32;
  OCTAVO_TRY(std::byte* const data, memory.allocate(matrix->memory_bytes()));
  pool.parallel_for(matrix->num_panels(), [&](std::int64_t panel, std::int32_t) {
    pack_panel(source, panel, data + panel * plan.panel_bytes);
  });
  matrix->data_ = data;
  return matrix;
}

namespace {

// While a block of panels stays in the first-level cache, the rows of a chunk pass by from the second-level
// one.
constexpr std::int64_t kBlockBytes = 24 << 10;
constexpr std::int64_t kChunkBytes = 256 << 10;

struct Range {
  std::int64_t first, last;
};

// Part `index` of `count` nearly equal parts.
Range part_of(Range whole, std::int64_t index, std::int64_t count) {
  const std::int64_t size = whole.last - whole.first;
  return {whole.first + size * index / count, whole.first + size * (index + 1) / count};
}

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

const void* first_line(const PackedMatrix& weights, const ActivationRows& activations, std::int64_t row) {
  if (weights.activation_form() == ActivationForm::kInt8) return activations.int8_lines() + row;
  return activations.float_lines() + row;
}

std::int64_t bytes_per_row(const PackedMatrix& weights) {
  return weights.activation_form() == ActivationForm::kInt8 ? weights.columns() * 2 : weights.columns() * 4;
}

// All rows of a chunk times the panels of a block, in tiles of nearly equal height.
void multiply_block(const PackedMatrix& weights, const ActivationRows& activations, Range rows, Range panels,
                    MatrixView out) {
  const TileKernels& kernels = weights.kernels();
  const std::int64_t first_output = panels.first * kPanelRows;
  const std::int64_t num_tiles = divide_up(rows.last - rows.first, kernels.max_rows);
  for (std::int64_t tile = 0; tile < num_tiles; ++tile) {
    const Range tile_rows = part_of(rows, tile, num_tiles);
    const auto multiply =
        kernels.tiles[static_cast<int>(weights.format())][tile_rows.last - tile_rows.first - 1];
    multiply({.panel = weights.panel(panels.first),
              .panel_bytes = weights.panel_bytes(),
              .columns = weights.columns(),
              .num_outputs = std::min(panels.last * kPanelRows, weights.rows()) - first_output,
              .lines = first_line(weights, activations, tile_rows.first),
              .row_stride = activations.row_stride(),
              .out = out.row(tile_rows.first) + first_output,
              .out_stride = out.stride});
  }
}

}  // namespace

void multiply_panels(const PackedMatrix& weights, const ActivationRows& activations, std::int64_t first_panel,
                     std::int64_t last_panel, MatrixView out) {
  OCTAVO_CHECK(activations.columns() == weights.columns(), "%lld, %lld",
               static_cast<long long>(activations.columns()), static_cast<long long>(weights.columns()));
  OCTAVO_CHECK(includes(activations.forms(), weights.activation_form()), "form %d",
               static_cast<int>(activations.forms()));
  OCTAVO_CHECK(out.rows >= activations.rows() && out.columns == weights.rows(), "out is %lld x %lld",
               static_cast<long long>(out.rows), static_cast<long long>(out.columns));
  OCTAVO_CHECK(first_panel >= 0 && first_panel <= last_panel && last_panel <= weights.num_panels(),
               "%lld to %lld", static_cast<long long>(first_panel), static_cast<long long>(last_panel));
  if (first_panel == last_panel) return;
  const std::int64_t max_rows = weights.kernels().max_rows;
  const std::int64_t chunk_rows =
      std::max<std::int64_t>(1, kChunkBytes / std::max<std::int64_t>(1, bytes_per_row(weights) * max_rows)) *
      max_rows;
  const std::int64_t block_panels =
      activations.rows() <= max_rows
          ? last_panel - first_panel
          : std::max<std::int64_t>(1, kBlockBytes / std::max<std::int64_t>(1, weights.panel_bytes()));
  for (std::int64_t row = 0; row < activations.rows(); row += chunk_rows) {
    const Range rows = {row, std::min(row + chunk_rows, activations.rows())};
    for (std::int64_t panel = first_panel; panel < last_panel; panel += block_panels) {
      multiply_block(weights, activations, rows, {panel, std::min(panel + block_panels, last_panel)}, out);
    }
  }
}

}  // namespace octavo::kernels::cpu
