// A made-up step (tests/kernels/paged_problem.h) on the emulated device, for kernels of attention without a
// backend.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/cuda/runtime/device_batch.h"
#include "tests/cuda/device_arrays.h"
#include "tests/kernels/paged_problem.h"

namespace octavo::kernels::cuda {

// A problem's arrays on the device.
class DeviceStep {
 public:
  explicit DeviceStep(const testing::PagedProblem& problem)
      : positions_(problem.positions),
        slots_(problem.slot_mapping),
        starts_(problem.query_start),
        contexts_(problem.context_lens),
        tables_(problem.block_tables),
        rotations_(problem.rotations),
        pool_(problem.pool) {
    batch_.num_tokens = static_cast<std::int32_t>(problem.positions.size());
    batch_.num_sequences = static_cast<std::int32_t>(problem.sequences.size());
    batch_.max_blocks = problem.max_blocks;
    batch_.min_rows = std::numeric_limits<std::int32_t>::max();
    for (const testing::SequenceSpec& sequence : problem.sequences) {
      batch_.min_rows = std::min(batch_.min_rows, sequence.new_tokens);
      batch_.max_rows = std::max(batch_.max_rows, sequence.new_tokens);
      batch_.max_context_len = std::max(batch_.max_context_len, sequence.history + sequence.new_tokens);
    }
    batch_.positions = positions_.data(), batch_.slot_mapping = slots_.data(),
    batch_.query_start = starts_.data();
    batch_.context_lens = contexts_.data(), batch_.block_tables = tables_.data(),
    batch_.rotations = rotations_.data();
  }

  DeviceBatch& batch() { return batch_; }
  std::byte* pool() const { return pool_.data(); }
  std::vector<std::byte> read_pool() const { return pool_.read(); }

 private:
  DeviceArray<std::int32_t> positions_, slots_, starts_, contexts_, tables_;
  DeviceArray<float> rotations_;
  DeviceArray<std::byte> pool_;
  DeviceBatch batch_;
};

}  // namespace octavo::kernels::cuda
