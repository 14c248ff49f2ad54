#include "engine/scheduler/measured_costs.h"

#include <algorithm>

namespace octavo::scheduler {
namespace {

constexpr std::int32_t kStepsOfLine = 50;
// A slope counts by how far apart the measured contexts lie, against this, in tokens and in parts of their
// mean: one from a few neighbouring chunks is mostly noise, the more so the further it is drawn.
constexpr double kUntoldTokens = 256.0, kUntoldPart = 0.25;
// Of a row's mean time: what it takes before it attends to anything. A line through nothing would promise
// rows for free.
constexpr double kLeastBase = 0.05;
constexpr double kLeastUs = 1e-3;
constexpr double kWeightOfNewestStep = 0.5;
// How far one step counts, beside what was expected of it. What holds a step up is seldom the model's doing;
// what makes it fast is no chance.
struct Bounds {
  double fastest, slowest;
  double bound(double us, double expected_us) const {
    return std::clamp(us, fastest * expected_us, slowest * expected_us);
  }
};
constexpr Bounds kOfLine{.fastest = 0.5, .slowest = 1.25}, kOfPace{.fastest = 0.5, .slowest = 4.0};

}  // namespace

StepWork StepWork::of_rows(std::int32_t start_position, std::int32_t num_rows) {
  const std::int64_t start = start_position, rows = num_rows;
  return {.num_rows = rows, .num_context_tokens = rows * start + rows * (rows + 1) / 2};
}

StepWork& StepWork::operator+=(const StepWork& more) {
  num_rows += more.num_rows;
  num_context_tokens += more.num_context_tokens;
  return *this;
}

void StepCosts::learn(const StepWork& work, double us) {
  us = std::max(us, kLeastUs * static_cast<double>(work.num_rows));
  fit_line(work, is_known() ? kOfLine.bound(us, us_by_line(work)) : us);
  pace_ += kWeightOfNewestStep * (kOfPace.bound(us / us_by_line(work), pace_) - pace_);
}

void StepCosts::fit_line(const StepWork& work, double us) {
  const auto num_rows = static_cast<double>(work.num_rows);
  const double context_from_mean = static_cast<double>(work.num_context_tokens) / num_rows - mean_context_;
  const double us_from_mean = us / num_rows - mean_us_;
  num_learned_ = std::min(num_learned_ + 1, kStepsOfLine);
  const double weight = 1.0 / num_learned_;
  mean_context_ += weight * context_from_mean;
  mean_us_ += weight * us_from_mean;
  variance_ = (1.0 - weight) * (variance_ + weight * context_from_mean * context_from_mean);
  covariance_ = (1.0 - weight) * (covariance_ + weight * context_from_mean * us_from_mean);
  const double part = kUntoldPart * mean_context_;
  const double untold = weight * (kUntoldTokens * kUntoldTokens + part * part);
  const double steepest = (1.0 - kLeastBase) * mean_us_ / std::max(mean_context_, 1.0);
  slope_us_ = std::clamp(covariance_ / (variance_ + untold), 0.0, steepest);
  base_us_ = mean_us_ - slope_us_ * mean_context_;
}

double StepCosts::us_by_line(const StepWork& work) const {
  return base_us_ * static_cast<double>(work.num_rows) +
         slope_us_ * static_cast<double>(work.num_context_tokens);
}

}  // namespace octavo::scheduler
