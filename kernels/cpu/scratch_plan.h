// The working memory of the CPU's operations for the largest step of a model. One definition, for the
// arithmetic before loading and for CpuBackend::reserve_step.
#pragma once

#include <cstdint>

#include "kernels/backend.h"
#include "kernels/cpu/activation_rows.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/step_experts.h"

namespace octavo::kernels::cpu {

// Sizes in floats, except where rows and columns are meant. Lists of indices, some dozen bytes
// for each row, are not counted.
struct ScratchPlan {
  std::int64_t rows = 0, columns = 0;  // of ActivationRows
  ActivationForm forms = ActivationForm::kFloat;
  std::int64_t head_rows = 0, head_columns = 0;  // of those of project_heads, in the same forms
  std::int64_t key_value_floats = 0;             // twice: keys and values
  std::int64_t product_floats = 0;
  std::int64_t partial_floats = 0;
  std::int64_t item_sum_floats = 0;
  std::int64_t worker_floats = 0;  // of each thread
  std::int64_t draft_floats = 0;   // of each thread: parts of states that drafts go on from
  ExpertPlan experts;
  std::int32_t num_threads = 1;

  std::int64_t bytes() const;
};

ScratchPlan plan_scratch(const StepShape& shape, Activation activation, std::int32_t num_threads,
                         InstructionSet isa);

// Of the sums that logits() keeps for `num_rows` rows.
std::int64_t logits_sum_floats(std::int64_t num_rows, std::int64_t vocabulary_size);

}  // namespace octavo::kernels::cpu
