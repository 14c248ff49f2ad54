// Makes one row of numbers of a prompt's hidden states, which come step by step. Sums are one chain in double
// over the positions, ascending: the same bits however the prompt was cut into chunks, and whatever was
// computed a second time after a preemption. A value type; engine thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/api/request.h"

namespace octavo {

class EmbeddingPool {
 public:
  EmbeddingPool(const EmbeddingParams& params, std::int32_t num_prompt_tokens)
      : params_(params), num_prompt_tokens_(num_prompt_tokens) {}

  // Rows of the positions from `first_position` on, [rows, width]; of kLast all but the last position's are
  // passed over. REQUIRES: of kMean, no position before was left out.
  void add(std::int32_t first_position, std::int32_t width, std::span<const float> rows);

  bool is_complete() const { return next_position_ == num_prompt_tokens_; }

  // nullopt: a number is not finite, or all are zero and have no direction. REQUIRES: is_complete().
  std::optional<std::vector<float>> take() const;

 private:
  EmbeddingParams params_;
  std::int32_t num_prompt_tokens_;
  std::int32_t next_position_ = 0;
  std::vector<double> sums_;
};

}  // namespace octavo
