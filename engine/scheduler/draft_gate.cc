#include "engine/scheduler/draft_gate.h"

#include <algorithm>

namespace octavo::scheduler {
namespace {

double least_acceptance(std::int32_t num_rows) {
  return kRowCost * num_rows / (1.0 + kRowCost * (num_rows - 1));
}

}  // namespace

std::int32_t DraftGate::most_drafts(std::int32_t num_rows, std::int32_t num_tokens) const {
  const std::int32_t num_left = kMostRowsWithDrafts - num_rows;
  if (num_left <= 0 || num_tokens < resumes_at_) return 0;
  const bool tries_again = acceptance_ < least_acceptance(1);
  if (tries_again) return 1;
  const double least = least_acceptance(num_rows);
  std::int32_t num_drafts = 0;
  for (double chance = acceptance_; num_drafts < num_left && chance >= least; chance *= acceptance_) {
    ++num_drafts;
  }
  return num_drafts;
}

void DraftGate::note(std::int32_t num_drafted, std::int32_t num_accepted, std::int32_t num_tokens) {
  const auto learn = [&](double outcome) { acceptance_ += kWeightOfNewest * (outcome - acceptance_); };
  for (std::int32_t i = 0; i < num_accepted; ++i) learn(1.0);
  if (num_accepted < num_drafted) learn(0.0);  // those after it were not put to the test
  if (acceptance_ < least_acceptance(1)) resumes_at_ = num_tokens + kTokensUntilRetry;
}

}  // namespace octavo::scheduler
