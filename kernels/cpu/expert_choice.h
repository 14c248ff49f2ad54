// From the router's scores of one row to the experts that the row uses, and their weights: as Routing of
// backend.h says, in double, with an exponential of our own, so that the same scores choose the same experts
// with the same weights on every machine.
//
// Thread: any number at once, each with a room of its own.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cpu/simd/kernel_table.h"

namespace octavo::kernels::cpu {

// What choosing works in; nothing is allocated once it has grown to the number of experts.
struct ChoiceRoom {
  std::vector<double> scores, probabilities, values, sums, group_values;
  std::vector<std::int32_t> candidates, groups;

  void reserve(std::int32_t num_experts);
};

// Fills `experts` and `weights`, [routing.num_used], the best first.
//   scores  [num_experts], biases included
void choose_experts(const KernelTable& kernels, const Routing& routing, std::span<const float> scores,
                    ChoiceRoom& room, std::int32_t* experts, float* weights);

// 1 / (1 + exp(-x))
double sigmoid(const KernelTable& kernels, double x);

}  // namespace octavo::kernels::cpu
