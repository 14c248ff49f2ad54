#include <algorithm>
#include <cmath>
#include <optional>

#include "kernels/reference/reference_backend.h"

namespace octavo::kernels::reference {
namespace {

// One query head over one sequence.
struct Query {
  const ReferenceKvCache& kv;
  const AttentionShape& shape;
  const std::int32_t* block_table;
  std::int32_t layer, kv_head;
  const float* q;
  std::optional<double> sink;

  ReferenceKvCache::Place place(std::int32_t position) const {
    const std::int32_t block_size = kv.layout().block_size;
    return {block_table[position / block_size], layer, kv_head, position % block_size};
  }

  double score(std::int32_t position) const {
    double sum = 0.0;
    for (std::int32_t d = 0; d < shape.head_dim; ++d)
      sum += double{q[d]} * double{kv.read_key(place(position), d)};
    return soft_capped(sum * double{shape.score_scale}, shape.score_soft_cap);
  }
};

void attend(const Query& query, std::int32_t last_position, float* out) {
  const std::int32_t first = first_in_window(last_position, query.shape.window, query.shape.window_form);
  std::vector<double> weights(static_cast<std::size_t>(last_position - first) + 1);
  for (std::int32_t p = first; p <= last_position; ++p)
    weights[static_cast<std::size_t>(p - first)] = query.score(p);
  double largest = *std::max_element(weights.begin(), weights.end());
  if (query.sink) largest = std::max(largest, *query.sink);
  double total = query.sink ? std::exp(*query.sink - largest) : 0.0;
  for (double& weight : weights) {
    weight = std::exp(weight - largest);
    total += weight;
  }
  for (std::int32_t d = 0; d < query.shape.value_dim(); ++d) {
    double sum = 0.0;
    for (std::int32_t p = first; p <= last_position; ++p) {
      sum += weights[static_cast<std::size_t>(p - first)] * double{query.kv.read_value(query.place(p), d)};
    }
    out[d] = static_cast<float>(sum / total);
  }
}

}  // namespace

void ReferenceBackend::paged_attention(const AttentionShape& shape, const PagedBatch& batch,
                                       std::int32_t layer, const KvCache& kv, ConstMatrixView q,
                                       MatrixView out) {
  const auto& cache = static_cast<const ReferenceKvCache&>(kv);
  for (std::int32_t sequence = 0; sequence < batch.num_sequences; ++sequence) {
    const auto index = static_cast<std::size_t>(sequence);
    const std::int32_t* block_table =
        batch.block_tables.data() + static_cast<std::int64_t>(sequence) * batch.max_blocks;
    for (std::int32_t row = batch.query_start[index]; row < batch.query_start[index + 1]; ++row) {
      for (std::int32_t head = 0; head < shape.num_heads; ++head) {
        const std::int32_t kv_head = head / (shape.num_heads / shape.num_kv_heads);
        const std::optional<double> sink =
            shape.sinks.empty() ? std::nullopt : std::optional(shape.sinks[static_cast<std::size_t>(head)]);
        const Query query{cache, shape, block_table, layer, kv_head, q.row(row) + head * shape.head_dim,
                          sink};
        attend(query, batch.positions[static_cast<std::size_t>(row)],
               out.row(row) + head * shape.value_dim());
      }
    }
  }
}

}  // namespace octavo::kernels::reference
