// Rows of logits of every kind that a draw has to get right.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <random>
#include <vector>

namespace octavo::kernels::cuda {

enum class RowKind {
  kBell,
  kTies,
  kFlat,
  kPeaked,
  kFewPossible,
  kAllEqual,
  kFarFromZero,
  kTinyNumbers,
  kNumKinds
};

inline std::vector<float> some_row(RowKind kind, std::size_t size, std::mt19937_64& random) {
  std::normal_distribution<float> bell(0.0f, 2.5f);
  std::vector<float> logits(size);
  for (float& logit : logits) logit = bell(random);
  const std::size_t any = random() % size;
  switch (kind) {
    case RowKind::kTies:
      for (float& logit : logits) logit = 0.5f * std::round(2.0f * logit);  // minus zero among them
      break;
    case RowKind::kFlat:
      for (float& logit : logits) logit *= 0.01f;
      break;
    case RowKind::kPeaked: logits[any] += 30.0f; break;
    case RowKind::kFewPossible:
      for (float& logit : logits) logit = random() % 4 == 0 ? logit : -INFINITY;
      logits[any] = 1.0f;
      break;
    case RowKind::kAllEqual: std::fill(logits.begin(), logits.end(), -3.25f); break;
    case RowKind::kFarFromZero:
      for (float& logit : logits) logit = 1e8f + 1e3f * logit;
      break;
    case RowKind::kTinyNumbers:
      for (float& logit : logits) logit *= 1e-39f;
      break;
    default:
      for (int i = 0; i < 8; ++i) logits[random() % size] += 6.0f + static_cast<float>(i);
  }
  return logits;
}

inline std::vector<float> some_rows(std::size_t num_rows, std::size_t size, std::mt19937_64& random) {
  std::vector<float> rows;
  for (std::size_t i = 0; i < num_rows; ++i) {
    const std::vector<float> row =
        some_row(static_cast<RowKind>(i % static_cast<std::size_t>(RowKind::kNumKinds)), size, random);
    rows.insert(rows.end(), row.begin(), row.end());
  }
  return rows;
}

}  // namespace octavo::kernels::cuda
