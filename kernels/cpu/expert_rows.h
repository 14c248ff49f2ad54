// The rows of a step sorted by expert. A row that uses k experts stands in k slots; the slots of an expert
// are neighbours, in the order of their rows. So each expert's weights are read once for all its rows.
//
// Thread: one; between choosing and sort(), different threads may fill in different rows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace octavo::kernels::cpu {

class ExpertRows {
 public:
  struct Expert {
    std::int32_t index;
    std::int32_t first_slot, end_slot;
    std::int32_t num_rows() const { return end_slot - first_slot; }
  };

  // So that no step allocates.
  void reserve(std::int64_t num_rows, std::int32_t num_experts, std::int32_t num_used);
  // Forgets the step before.
  void begin(std::int64_t num_rows, std::int32_t num_experts, std::int32_t num_used);

  // What a row chose, [num_used]; to be filled in, each expert once.
  std::int32_t* experts_of(std::int64_t row) { return experts_.data() + row * num_used_; }
  float* weights_of(std::int64_t row) { return weights_.data() + row * num_used_; }

  void sort();

  std::int64_t num_slots() const { return static_cast<std::int64_t>(rows_.size()); }
  // Those that any row uses; the ones with most rows first, so that the last work to be taken is small.
  std::span<const Expert> used() const { return used_; }
  std::int32_t row_of(std::int64_t slot) const { return rows_[static_cast<std::size_t>(slot)]; }
  // Where the row stands with the i-th expert that it chose.
  std::int32_t slot_of(std::int64_t row, std::int32_t i) const {
    return slots_[static_cast<std::size_t>(row * num_used_ + i)];
  }

 private:
  std::int32_t num_experts_ = 0, num_used_ = 0;
  std::vector<std::int32_t> experts_, slots_;  // [num_rows, num_used]
  std::vector<float> weights_;
  std::vector<std::int32_t> rows_;  // of each slot
  std::vector<std::int32_t> next_;  // of each expert, while slots are given out
  std::vector<Expert> used_;
};

}  // namespace octavo::kernels::cpu
