#include "kernels/cpu/scratch_plan.h"

#include <algorithm>

#include "kernels/cpu/attention_work.h"
#include "kernels/cpu/recurrent_work.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/simd/kernel_table.h"

namespace octavo::kernels::cpu {
namespace {

ActivationForm forms_of(const StepShape& shape, Activation activation) {
  if (!shape.has_quantised_weights || activation == Activation::kF32) return ActivationForm::kFloat;
  const ActivationForm integers =
      activation == Activation::kInt8 ? ActivationForm::kInt8 : ActivationForm::kInt16;
  return shape.has_unquantised_weights ? integers | ActivationForm::kFloat : integers;
}

}  // namespace

std::int64_t ScratchPlan::bytes() const {
  return ActivationRows::bytes_for(rows, columns, forms) + 2 * Scratch::bytes_for(key_value_floats) +
         Scratch::bytes_for(product_floats) + Scratch::bytes_for(partial_floats) +
         Scratch::bytes_for(item_sum_floats) + num_threads * Scratch::bytes_for(worker_floats) +
         experts.bytes();
}

ScratchPlan plan_scratch(const StepShape& shape, Activation activation, std::int32_t num_threads,
                         InstructionSet isa) {
  const KernelTable& kernels = kernel_table(isa);
  const std::int32_t group_size = shape.num_heads / shape.num_kv_heads;
  const AttentionPlan attention{
      .block_size = 1,
      .num_kv_heads = shape.num_kv_heads,
      .group_size = group_size,
      .num_threads = num_threads,
      .floats_per_row = group_size * kernels.attention_partial_floats(shape.head_dim)};
  const std::int64_t attention_width = std::int64_t{shape.num_heads} * shape.head_dim;
  const std::int64_t rows = shape.num_rows;
  const RecurrentPlan recurrent = plan_recurrent_layers(shape);
  ScratchPlan plan;
  plan.rows = std::max<std::int64_t>(rows, shape.num_logits_rows);
  plan.columns = std::max({std::int64_t{shape.embedding_length}, attention_width,
                           std::int64_t{shape.feed_forward_length}, recurrent.columns});
  plan.forms = forms_of(shape, activation);
  // The widest row may meet an unquantised matrix only, and be of any width.
  if (plan.forms != ActivationForm::kFloat) plan.columns = whole_groups(plan.columns);
  if (shape.num_experts > 0) {
    plan.experts = plan_experts(shape, plan.forms);
    plan.forms = plan.forms | ActivationForm::kFloat;  // the router's
  }
  plan.key_value_floats = rows * shape.num_kv_heads * shape.head_dim;
  plan.product_floats =
      rows * std::max({std::int64_t{shape.embedding_length}, std::int64_t{shape.feed_forward_length},
                       shape.has_attention_gates ? attention_width : 0, recurrent.product_row_floats});
  plan.partial_floats = most_partial_floats(attention, shape.num_rows, shape.max_context_len);
  plan.item_sum_floats = logits_sum_floats(shape.num_logits_rows, shape.vocabulary_size);
  plan.worker_floats =
      std::max({std::int64_t{shape.embedding_length},
                kernels.attention_scratch_floats(attention.rows_per_tile(), group_size, shape.head_dim),
                recurrent.convolution_floats});
  plan.num_threads = num_threads;
  return plan;
}

}  // namespace octavo::kernels::cpu
