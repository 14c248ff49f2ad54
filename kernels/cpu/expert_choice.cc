#include "kernels/cpu/expert_choice.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace octavo::kernels::cpu {
namespace {

bool is_larger(double a, double b) { return std::isnan(a) ? !std::isnan(b) : a > b; }

// In place: NaN all of them if a score is NaN or the largest is infinite, as the definition has it. The
// kernel wants finite numbers.
void replace_by_softmax(const KernelTable& kernels, std::vector<double>& scores, std::vector<double>& out,
                        std::vector<double>& sums) {
  const std::size_t count = scores.size();
  out.resize(count);
  sums.resize(static_cast<std::size_t>(num_logits_pieces(static_cast<std::int64_t>(count))));
  double best = -std::numeric_limits<double>::infinity();
  bool has_nan = false;
  for (const double score : scores) {
    best = std::max(best, score);
    has_nan |= std::isnan(score);
  }
  if (has_nan || !std::isfinite(best)) {
    std::fill(out.begin(), out.end(), std::numeric_limits<double>::quiet_NaN());
    return;
  }
  kernels.softmax_weights(scores.data(), static_cast<std::int64_t>(count), best, 1.0, out.data(),
                          sums.data());
  double total = 0.0;
  for (const double sum : sums) total += sum;
  for (double& each : out) each /= total;
}

// The place in `candidates` of the one with the largest value; of equals the first.
std::size_t best_of(const std::vector<std::int32_t>& candidates, const std::vector<double>& values) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < candidates.size(); ++i) {
    if (is_larger(values[static_cast<std::size_t>(candidates[i])],
                  values[static_cast<std::size_t>(candidates[best])]))
      best = i;
  }
  return best;
}

// Takes the best one out; the others keep their order.
std::int32_t take_best(std::vector<std::int32_t>& candidates, const std::vector<double>& values) {
  const std::size_t place = best_of(candidates, values);
  const std::int32_t best = candidates[place];
  candidates.erase(candidates.begin() + static_cast<std::ptrdiff_t>(place));
  return best;
}

void list(std::vector<std::int32_t>& numbers, std::int32_t first, std::int32_t end) {
  numbers.clear();
  for (std::int32_t i = first; i < end; ++i) numbers.push_back(i);
}

// The sum of the two largest of a group.
double worth_of_group(std::int32_t first, std::int32_t end, ChoiceRoom& room) {
  list(room.candidates, first, end);
  double worth = room.values[static_cast<std::size_t>(take_best(room.candidates, room.values))];
  worth += room.values[static_cast<std::size_t>(take_best(room.candidates, room.values))];
  return worth;
}

// The experts that can be chosen, ascending.
void list_candidates(const Routing& routing, std::int32_t num_experts, ChoiceRoom& room) {
  if (routing.num_groups <= 1) return list(room.candidates, 0, num_experts);
  const std::int32_t size = num_experts / routing.num_groups;
  room.group_values.clear();
  for (std::int32_t group = 0; group < routing.num_groups; ++group)
    room.group_values.push_back(worth_of_group(group * size, (group + 1) * size, room));
  list(room.groups, 0, routing.num_groups);
  for (std::int32_t i = routing.num_used_groups; i < routing.num_groups; ++i) {
    // Of equals the last one goes.
    std::size_t worst = 0;
    for (std::size_t j = 1; j < room.groups.size(); ++j) {
      if (!is_larger(room.group_values[static_cast<std::size_t>(room.groups[j])],
                     room.group_values[static_cast<std::size_t>(room.groups[worst])]))
        worst = j;
    }
    room.groups.erase(room.groups.begin() + static_cast<std::ptrdiff_t>(worst));
  }
  room.candidates.clear();
  for (const std::int32_t group : room.groups) {
    for (std::int32_t i = group * size; i < (group + 1) * size; ++i) room.candidates.push_back(i);
  }
}

}  // namespace

void ChoiceRoom::reserve(std::int32_t num_experts) {
  const auto count = static_cast<std::size_t>(num_experts);
  for (std::vector<double>* numbers : {&scores, &probabilities, &values, &group_values})
    numbers->reserve(count);
  sums.reserve(static_cast<std::size_t>(num_logits_pieces(num_experts)));
  candidates.reserve(count);
  groups.reserve(count);
}

double sigmoid(const KernelTable& kernels, double x) {
  if (std::isnan(x)) return x;
  const double score = -std::fabs(x);
  double power, sum;  // of a score that is not positive, so that it cannot overflow
  kernels.softmax_weights(&score, 1, 0.0, 1.0, &power, &sum);
  return x >= 0.0 ? 1.0 / (1.0 + power) : power / (1.0 + power);
}

void choose_experts(const KernelTable& kernels, const Routing& routing, std::span<const float> scores,
                    ChoiceRoom& room, std::int32_t* experts, float* weights) {
  room.scores.assign(scores.begin(), scores.end());
  switch (routing.scoring) {
    case RouterScoring::kSoftmax:
      replace_by_softmax(kernels, room.scores, room.probabilities, room.sums);
      break;
    case RouterScoring::kSigmoid:
      room.probabilities.clear();
      for (const double score : room.scores) room.probabilities.push_back(sigmoid(kernels, score));
      break;
    case RouterScoring::kSoftmaxOfSelected:
    case RouterScoring::kSigmoidOfSelected: room.probabilities = room.scores; break;
  }
  room.values = room.probabilities;
  for (std::size_t i = 0; i < routing.selection_bias.size(); ++i)
    room.values[i] += double{routing.selection_bias[i]};
  list_candidates(routing, static_cast<std::int32_t>(scores.size()), room);
  room.scores.clear();
  for (std::int32_t i = 0; i < routing.num_used; ++i) {
    experts[i] = take_best(room.candidates, room.values);
    room.scores.push_back(room.probabilities[static_cast<std::size_t>(experts[i])]);
  }
  std::vector<double>& chosen = room.values;
  if (routing.scoring == RouterScoring::kSoftmaxOfSelected) {
    replace_by_softmax(kernels, room.scores, chosen, room.sums);
  } else {
    chosen = room.scores;
  }
  if (routing.scoring == RouterScoring::kSigmoidOfSelected) {
    for (double& each : chosen) each = sigmoid(kernels, each);
  }
  double sum = 0.0;
  for (const double weight : chosen) sum += weight;
  const double divisor = !routing.normalises             ? 1.0
                         : sum < double{kLeastWeightSum} ? double{kLeastWeightSum}
                                                         : sum;
  for (std::size_t i = 0; i < chosen.size(); ++i)
    weights[i] = static_cast<float>(chosen[i] / divisor * double{routing.scale});
}

}  // namespace octavo::kernels::cpu
