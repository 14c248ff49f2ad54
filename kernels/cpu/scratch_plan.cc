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

// What layers with these heads take, where it is more than the others'.
void add_attention(const StepShape& shape, KvHeads heads, const KernelTable& kernels, ScratchPlan& plan) {
  const std::int32_t group_size = shape.num_heads / heads.num_kv_heads;
  const std::int32_t value_dim = heads.latent_dim > 0 ? heads.latent_dim : heads.head_dim;
  const AttentionPlan attention{.block_size = 1,
                                .num_kv_heads = heads.num_kv_heads,
                                .group_size = group_size,
                                .num_threads = plan.num_threads,
                                .floats_per_row = group_size * kernels.attention_partial_floats(value_dim)};
  const std::int64_t width = std::int64_t{shape.num_heads} * heads.head_dim;
  if (heads.latent_dim == 0) plan.columns = std::max(plan.columns, width);
  if (shape.has_attention_gates) plan.product_floats = std::max(plan.product_floats, shape.num_rows * width);
  plan.key_value_floats =
      std::max(plan.key_value_floats, std::int64_t{shape.num_rows} * heads.num_kv_heads * heads.head_dim);
  plan.partial_floats =
      std::max(plan.partial_floats, most_partial_floats(attention, shape.num_rows, shape.max_context_len));
  plan.worker_floats = std::max(
      plan.worker_floats,
      kernels.attention_scratch_floats(attention.rows_per_tile(), group_size, heads.head_dim, value_dim));
}

// Of latent attention, around it.
void add_latent_parts(const StepShape& shape, ScratchPlan& plan) {
  const std::int64_t rows = shape.num_rows, heads = shape.num_heads, rank = shape.latent_query_rank;
  plan.columns = std::max({plan.columns, rank, heads * shape.latent_value_dim});
  plan.product_floats = std::max(plan.product_floats, rows * heads * shape.latent_query_dim);
  plan.key_value_floats = std::max(plan.key_value_floats, rows * rank);
  plan.worker_floats = std::max(plan.worker_floats, rank);
  plan.head_rows = rows * heads;
  const std::int32_t rotary_dim = shape.head_dim - shape.latent_dim;
  plan.head_columns = std::max(shape.latent_dim, shape.latent_query_dim - rotary_dim);
}

}  // namespace

std::int64_t ScratchPlan::bytes() const {
  return ActivationRows::bytes_for(rows, columns, forms) +
         ActivationRows::bytes_for(head_rows, head_columns, forms) +
         2 * Scratch::bytes_for(key_value_floats) + Scratch::bytes_for(product_floats) +
         Scratch::bytes_for(partial_floats) + Scratch::bytes_for(item_sum_floats) +
         num_threads * Scratch::bytes_for(worker_floats) + num_threads * Scratch::bytes_for(draft_floats) +
         experts.bytes();
}

ScratchPlan plan_scratch(const StepShape& shape, Activation activation, std::int32_t num_threads,
                         InstructionSet isa) {
  const std::int64_t rows = shape.num_rows;
  const RecurrentPlan recurrent = plan_recurrent_layers(shape);
  ScratchPlan plan;
  plan.num_threads = num_threads;
  plan.rows = std::max<std::int64_t>(rows, shape.num_logits_rows);
  const std::int64_t joined = (shape.joins_next_tokens ? 2 : 1) * std::int64_t{shape.embedding_length};
  plan.columns = std::max({joined, std::int64_t{shape.feed_forward_length},
                           std::int64_t{shape.expert_latent_length}, recurrent.columns});
  plan.product_floats =
      rows * std::max({std::int64_t{shape.embedding_length}, std::int64_t{shape.feed_forward_length},
                       recurrent.product_row_floats});
  plan.worker_floats = std::max({joined, std::int64_t{shape.expert_latent_length},
                                 std::int64_t{shape.layer_embedding_length}, recurrent.convolution_floats});
  if (shape.has_drafts) plan.draft_floats = recurrent.part_floats;
  add_attention(shape, {shape.num_kv_heads, shape.head_dim, shape.latent_dim}, kernel_table(isa), plan);
  for (const KvHeads& heads : shape.other_heads) add_attention(shape, heads, kernel_table(isa), plan);
  if (shape.latent_dim > 0) add_latent_parts(shape, plan);
  plan.forms = forms_of(shape, activation);
  // The widest row may meet an unquantised matrix only, and be of any width.
  if (plan.forms != ActivationForm::kFloat) {
    plan.columns = whole_groups(plan.columns);
    plan.head_columns = whole_groups(plan.head_columns);
  }
  if (shape.num_experts > 0) {
    plan.experts = plan_experts(shape, plan.forms);
    plan.forms = plan.forms | ActivationForm::kFloat;  // the router's
  }
  plan.item_sum_floats = logits_sum_floats(shape.num_logits_rows, shape.vocabulary_size);
  return plan;
}

}  // namespace octavo::kernels::cpu
