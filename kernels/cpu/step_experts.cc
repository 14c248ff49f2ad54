#include "kernels/cpu/step_experts.h"

#include <algorithm>

namespace octavo::kernels::cpu {

ExpertPlan plan_experts(const StepShape& shape, ActivationForm forms) {
  ExpertPlan plan;
  plan.rows = shape.num_rows;
  plan.slots = plan.rows * shape.num_used_experts;
  plan.input_columns = whole_groups(std::max(shape.embedding_length, shape.expert_latent_length));
  plan.hidden_columns = whole_groups(shape.expert_length);
  plan.shared_columns = whole_groups(shape.shared_expert_length);
  plan.latent_columns = shape.expert_latent_length;
  plan.num_scores = shape.num_experts;
  plan.forms = forms;
  plan.shared_has_norm = shape.has_shared_expert_norms;
  return plan;
}

std::int64_t ExpertPlan::bytes() const {
  const std::int64_t shared_rows = shared_columns > 0 ? rows : 0;
  return ActivationRows::bytes_for(slots, input_columns, forms) +
         ActivationRows::bytes_for(slots, hidden_columns, forms) +
         ActivationRows::bytes_for(shared_rows, shared_columns, forms) +
         ActivationRows::bytes_for(shared_has_norm ? shared_rows : 0, input_columns, forms) +
         Scratch::bytes_for(rows * num_scores) + Scratch::bytes_for(shared_rows) +
         2 * Scratch::bytes_for(slots * hidden_columns) + Scratch::bytes_for(slots * input_columns) +
         2 * Scratch::bytes_for(shared_rows * shared_columns) + Scratch::bytes_for(rows * latent_columns) +
         Scratch::bytes_for(shared_rows * input_columns);
}

void StepExperts::reserve(const StepShape& shape, const ExpertPlan& plan) {
  const std::int64_t shared_rows = plan.shared_columns > 0 ? plan.rows : 0;
  rows.reserve(plan.rows, shape.num_experts, shape.num_used_experts);
  inputs.reserve(plan.slots, plan.input_columns, plan.forms);
  hidden.reserve(plan.slots, plan.hidden_columns, plan.forms);
  shared_hidden.reserve(shared_rows, plan.shared_columns, plan.forms);
  if (plan.shared_has_norm) shared_inputs.reserve(shared_rows, plan.input_columns, plan.forms);
  scores.reserve(plan.rows * plan.num_scores);
  shared_scores.reserve(shared_rows);
  for (Scratch* scratch : {&gate, &up}) scratch->reserve(plan.slots * plan.hidden_columns);
  for (Scratch* scratch : {&shared_gate, &shared_up}) scratch->reserve(shared_rows * plan.shared_columns);
  outputs.reserve(plan.slots * plan.input_columns);
  latent.reserve(plan.rows * plan.latent_columns);
  shared_outputs.reserve(shared_rows * plan.input_columns);
  for (ChoiceRoom& room : rooms) room.reserve(shape.num_experts);
}

std::int64_t StepExperts::bytes() const {
  std::int64_t bytes = inputs.bytes() + hidden.bytes() + shared_inputs.bytes() + shared_hidden.bytes();
  for (const Scratch* scratch :
       {&scores, &shared_scores, &gate, &up, &outputs, &latent, &shared_gate, &shared_up, &shared_outputs})
    bytes += scratch->bytes();
  return bytes;
}

}  // namespace octavo::kernels::cpu
