#include "kernels/cpu/expert_rows.h"

#include <algorithm>
#include <utility>

namespace octavo::kernels::cpu {

void ExpertRows::reserve(std::int64_t num_rows, std::int32_t num_experts, std::int32_t num_used) {
  const auto num_slots = static_cast<std::size_t>(num_rows * num_used);
  for (std::vector<std::int32_t>* numbers : {&experts_, &slots_, &rows_}) numbers->reserve(num_slots);
  weights_.reserve(num_slots);
  next_.reserve(static_cast<std::size_t>(num_experts));
  used_.reserve(static_cast<std::size_t>(num_experts));
}

void ExpertRows::begin(std::int64_t num_rows, std::int32_t num_experts, std::int32_t num_used) {
  num_experts_ = num_experts;
  num_used_ = num_used;
  const auto num_slots = static_cast<std::size_t>(num_rows * num_used);
  for (std::vector<std::int32_t>* numbers : {&experts_, &slots_, &rows_}) numbers->resize(num_slots);
  weights_.resize(num_slots);
}

void ExpertRows::sort() {
  next_.assign(static_cast<std::size_t>(num_experts_), 0);
  for (const std::int32_t expert : experts_) ++next_[static_cast<std::size_t>(expert)];
  used_.clear();
  std::int32_t slot = 0;
  for (std::int32_t expert = 0; expert < num_experts_; ++expert) {
    std::int32_t& next = next_[static_cast<std::size_t>(expert)];
    if (next > 0) used_.push_back({expert, slot, slot + next});
    slot += std::exchange(next, slot);
  }
  for (std::size_t i = 0; i < experts_.size(); ++i) {
    const std::int32_t taken = next_[static_cast<std::size_t>(experts_[i])]++;
    slots_[i] = taken;
    rows_[static_cast<std::size_t>(taken)] = static_cast<std::int32_t>(i) / num_used_;
  }
  std::sort(used_.begin(), used_.end(), [](const Expert& a, const Expert& b) {
    return a.num_rows() != b.num_rows() ? a.num_rows() > b.num_rows() : a.index < b.index;
  });
}

}  // namespace octavo::kernels::cpu
