// A step for the planning of attention, drawn at random: many sequences, long and short, prompts and single
// rows, some that start alike.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "kernels/cpu/attention_work.h"
#include "kernels/paged_batch.h"

namespace octavo::kernels::testing {

struct RandomStep {
  explicit RandomStep(std::mt19937_64& random) {
    const auto below = [&](std::int64_t end) {
      return static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(end));
    };
    constexpr std::int32_t kBlockSize = 16;
    const std::int32_t num_sequences = 1 + below(12);
    max_context = 1 + below(6'000);
    max_blocks = (max_context + kBlockSize - 1) / kBlockSize;
    for (std::int32_t i = 0; i < num_sequences; ++i) {
      const std::int32_t context = 1 + below(max_context),
                         rows = 1 + below(std::min(context, below(3) == 0 ? 300 : 2));
      for (std::int32_t row = 0; row < rows; ++row) positions.push_back(context - rows + row);
      query_start.push_back(static_cast<std::int32_t>(positions.size()));
      context_lens.push_back(context);
      const std::int32_t num_shared = below(2) == 0 ? 0 : below(max_blocks + 1);
      for (std::int32_t block = 0; block < max_blocks; ++block)
        tables.push_back(block < num_shared ? block : 100'000 * (i + 1) + block);
    }
    plan = {.block_size = kBlockSize,
            .num_kv_heads = 1 + below(8),
            .group_size = 1 + below(8),
            .num_threads = 1 + below(8),
            .floats_per_row = 1 + below(500)};
  }

  // Valid as long as the step.
  PagedBatch batch() const {
    return {.num_tokens = static_cast<std::int32_t>(positions.size()),
            .num_sequences = static_cast<std::int32_t>(context_lens.size()),
            .positions = positions,
            .slot_mapping = {},
            .query_start = query_start,
            .context_lens = context_lens,
            .block_tables = tables,
            .max_blocks = max_blocks,
            .rotations = {}};
  }

  std::vector<std::int32_t> positions, query_start = {0}, context_lens, tables;
  std::int32_t max_context = 0, max_blocks = 0;
  cpu::AttentionPlan plan;
};

}  // namespace octavo::kernels::testing
