#include "kernels/cpu/recurrent_work.h"

namespace octavo::kernels::cpu {
namespace {

void add(RecurrentPlan& plan, std::int64_t columns, std::int64_t row_floats, const ChannelPieces& pieces,
         std::int32_t convolution_width, std::int64_t head_floats) {
  plan.columns = std::max(plan.columns, columns);
  plan.product_row_floats = std::max(plan.product_row_floats, row_floats);
  plan.convolution_floats = std::max(plan.convolution_floats, pieces.largest() * convolution_width);
  plan.part_floats = std::max({plan.part_floats, head_floats, pieces.largest() * (convolution_width - 1)});
}

std::int64_t num_drafted(const PagedBatch& batch, std::size_t sequence) {
  return batch.num_drafted.empty() ? 0 : batch.num_drafted[sequence];
}

}  // namespace

void list_rows(const PagedBatch& batch, std::vector<SequenceRows>& rows) {
  rows.clear();
  std::int64_t num_drafts = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(batch.num_sequences); ++i) {
    const std::int64_t first = batch.query_start[i], count = batch.query_start[i + 1] - first;
    rows.push_back({first, count, batch.states[i], num_drafted(batch, i), num_drafts});
    num_drafts += num_drafted(batch, i);
  }
}

void list_accepted(const PagedBatch& batch, std::span<const std::int32_t> num_accepted,
                   std::vector<SequenceRows>& rows) {
  rows.clear();
  std::int64_t num_drafts = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(batch.num_sequences); ++i) {
    rows.push_back({num_drafts, num_accepted[i], batch.states[i]});
    num_drafts += num_drafted(batch, i);
  }
}

ChannelPieces pieces_of(const DeltaNetShape& shape) {
  return {2 * std::int64_t{shape.num_key_heads}, shape.key_dim, shape.num_value_heads, shape.value_dim};
}

ChannelPieces pieces_of(const StateSpaceShape& shape) {
  return {shape.num_heads, shape.head_dim, 2 * std::int64_t{shape.num_groups}, shape.state_size};
}

ChannelPieces pieces_of(const ShortConvolutionShape& shape) {
  constexpr std::int64_t kChannels = 128;
  const std::int64_t rest = shape.num_channels % kChannels;
  return {shape.num_channels / kChannels, kChannels, rest > 0 ? 1 : 0, rest};
}

std::int64_t product_row_floats(const DeltaNetShape& shape) { return shape.draft_floats(); }
std::int64_t product_row_floats(const StateSpaceShape& shape) { return shape.draft_floats(); }

std::int64_t product_row_floats(const ShortConvolutionShape& shape) {
  return 2 * std::int64_t{shape.num_channels};
}

RecurrentPlan plan_recurrent_layers(const StepShape& shape) {
  const DeltaNetShape& delta_net = shape.delta_net;
  const StateSpaceShape& state_space = shape.state_space;
  const ShortConvolutionShape& convolution = shape.short_convolution;
  RecurrentPlan plan;
  add(plan, delta_net.value_columns(), product_row_floats(delta_net), pieces_of(delta_net),
      delta_net.convolution_width, std::int64_t{delta_net.key_dim} * delta_net.value_dim);
  add(plan, state_space.inner_columns(), product_row_floats(state_space), pieces_of(state_space),
      state_space.convolution_width, std::int64_t{state_space.state_size} * state_space.head_dim);
  add(plan, convolution.num_channels, product_row_floats(convolution), pieces_of(convolution),
      convolution.convolution_width, 0);
  return plan;
}

}  // namespace octavo::kernels::cpu
