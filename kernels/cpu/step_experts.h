// What feed_forward_experts works in: the step's rows by expert, and the rows of activations between its
// loops. One definition of the sizes, for the arithmetic before loading and for reserve_step.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cpu/activation_rows.h"
#include "kernels/cpu/expert_choice.h"
#include "kernels/cpu/expert_rows.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/scratch.h"

namespace octavo::kernels::cpu {

// Of the largest step of a model. All zero: no layer has experts.
struct ExpertPlan {
  std::int64_t rows = 0, slots = 0;
  std::int64_t input_columns = 0, hidden_columns = 0, shared_columns = 0;
  std::int64_t latent_columns = 0;  // 0: experts read rows as they are
  std::int64_t num_scores = 0;      // of a row
  bool shared_has_norm = false;
  ActivationForm forms = ActivationForm::kFloat;

  std::int64_t bytes() const;
};
ExpertPlan plan_experts(const StepShape& shape, ActivationForm forms);

struct StepExperts {
  StepExperts(InstructionSet isa, std::int32_t num_threads)
      : inputs(isa),
        hidden(isa),
        shared_inputs(isa),
        shared_hidden(isa),
        rooms(static_cast<std::size_t>(num_threads)) {}

  void reserve(const StepShape& shape, const ExpertPlan& plan);  // throws std::bad_alloc
  std::int64_t bytes() const;

  ExpertRows rows;
  ActivationRows inputs;         // [slots]: what experts read, sorted
  ActivationRows hidden;         // [slots]
  ActivationRows shared_inputs;  // [rows]: of a shared expert with a norm of its own
  ActivationRows shared_hidden;  // [rows]
  Scratch scores, shared_scores;
  Scratch latent;                                  // [rows, ...]: what experts read, then what they give
  Scratch gate, up, outputs;                       // [slots, ...]
  Scratch shared_gate, shared_up, shared_outputs;  // [rows, ...]
  std::vector<ChoiceRoom> rooms;                   // of each thread
};

}  // namespace octavo::kernels::cpu
