#include "engine/core/embedding_pool.h"

#include <cmath>
#include <cstddef>

#include "engine/base/check.h"

namespace octavo {

void EmbeddingPool::add(std::int32_t first_position, std::int32_t width, std::span<const float> rows) {
  const auto size = static_cast<std::size_t>(width);
  if (params_.pooling == Pooling::kLast && next_position_ == 0) next_position_ = num_prompt_tokens_ - 1;
  for (std::int32_t position = first_position; rows.size() >= size; ++position, rows = rows.subspan(size)) {
    if (position < next_position_) continue;
    OCTAVO_CHECK(position == next_position_, "hidden states of position %d, wanted are those of %d", position,
                 next_position_);
    sums_.resize(size);
    for (std::size_t i = 0; i < size; ++i) sums_[i] += double{rows[i]};
    ++next_position_;
  }
}

std::optional<std::vector<float>> EmbeddingPool::take() const {
  double squares = 0.0;
  for (const double sum : sums_) squares += sum * sum;
  if (!std::isfinite(squares) || squares == 0.0) return std::nullopt;
  const double divisor = params_.normalise                   ? std::sqrt(squares)
                         : params_.pooling == Pooling::kMean ? static_cast<double>(num_prompt_tokens_)
                                                             : 1.0;
  std::vector<float> values;
  values.reserve(sums_.size());
  for (const double sum : sums_) values.push_back(static_cast<float>(sum / divisor));
  return values;
}

}  // namespace octavo
