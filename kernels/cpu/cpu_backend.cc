#include "kernels/cpu/cpu_backend.h"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "kernels/cpu/attention_work.h"
#include "kernels/cpu/scratch_plan.h"
#include "kernels/cpu/step_experts.h"
#include "kernels/pool_size.h"

namespace octavo::kernels::cpu {
namespace {

class CpuBuffer final : public Buffer {
 public:
  CpuBuffer(MappedMemory memory, std::int64_t size)
      : Buffer(reinterpret_cast<float*>(memory.data()), size), memory_(std::move(memory)) {}

 private:
  MappedMemory memory_;
};

}  // namespace

KvSlot CpuKvCache::slot_of(std::int32_t slot, std::int32_t layer_index, std::int32_t kv_head) const {
  const KvLayer& layer = layout().layer(layer_index);
  const std::int32_t block = slot / layer.block_size, offset = slot % layer.block_size;
  OCTAVO_CHECK(slot >= 0 && block < num_blocks(), "slot %d of %d blocks", slot, num_blocks());
  std::byte* const start = data() + layout().head_offset(block, layer_index, kv_head);
  const std::int64_t element_bytes = kv_element_bytes(layout().type);
  std::byte* const values = start + layer.half_head_bytes + layer.value_index(offset, 0) * element_bytes;
  const auto scale = [&](std::int64_t scale_offset) {
    return layout().has_scales() ? reinterpret_cast<float*>(start + scale_offset) : nullptr;
  };
  return {.type = layout().type,
          .head_dim = layer.head_dim,
          .key_stride = layer.block_size,
          .key = start + layer.key_index(0, offset) * element_bytes,
          .value = layer.is_latent() ? nullptr : values,
          .key_scale = scale(layer.key_scale_offset(offset)),
          .value_scale = layer.is_latent() ? nullptr : scale(layer.value_scale_offset(offset))};
}

Result<std::unique_ptr<Backend>> create_cpu_backend(std::int32_t num_threads, Activation activation,
                                                    InstructionSet isa) {
  OCTAVO_TRY(std::unique_ptr<ThreadPool> pool, ThreadPool::create(num_threads));
  return std::unique_ptr<Backend>(std::make_unique<CpuBackend>(std::move(pool), activation, isa));
}

CpuBackend::CpuBackend(std::unique_ptr<ThreadPool> pool, Activation activation, InstructionSet isa)
    : pool_(std::move(pool)),
      activation_(activation),
      isa_(isa),
      kernels_(kernel_table(isa)),
      activations_(isa),
      head_activations_(isa),
      worker_scratch_(static_cast<std::size_t>(pool_->num_threads())),
      draft_scratch_(worker_scratch_.size()),
      step_attention_(std::make_unique<StepAttention>()),
      step_experts_(std::make_unique<StepExperts>(isa, pool_->num_threads())) {}

CpuBackend::~CpuBackend() = default;

Result<std::unique_ptr<Matrix>> CpuBackend::prepare_matrix(const MatrixSource& source) {
  OCTAVO_TRY(std::unique_ptr<Matrix> matrix, pack_matrix(source, activation_, isa_, *pool_, packed_memory_,
                                                         keep_column_order(source.column_order)));
  return matrix;
}

const ColumnOrder* CpuBackend::keep_column_order(std::span<const std::int32_t> columns) {
  if (columns.empty()) return nullptr;
  for (const auto& order : column_orders_) {
    if (std::equal(order->begin(), order->end(), columns.begin(), columns.end())) return order.get();
  }
  column_orders_.push_back(std::make_unique<const ColumnOrder>(columns.begin(), columns.end()));
  return column_orders_.back().get();
}

Result<std::unique_ptr<KvCache>> CpuBackend::allocate_kv_cache(const KvLayout& layout,
                                                               std::int32_t num_blocks) {
  OCTAVO_TRY(const std::int64_t num_bytes, kv_pool_bytes(layout, num_blocks));
  OCTAVO_TRY(MappedMemory memory, MappedMemory::create(num_bytes, "the KV pool"));
  return std::unique_ptr<KvCache>(std::make_unique<CpuKvCache>(layout, num_blocks, std::move(memory)));
}

Result<std::unique_ptr<HostKvCache>> CpuBackend::allocate_host_kv_cache(const KvLayout& layout,
                                                                        std::int32_t num_blocks) {
  OCTAVO_TRY(const std::int64_t num_bytes, kv_pool_bytes(layout, num_blocks));
  OCTAVO_TRY(MappedMemory memory, MappedMemory::create(num_bytes, "the host pool"));
  return std::unique_ptr<HostKvCache>(
      std::make_unique<CpuHostKvCache>(layout, num_blocks, std::move(memory)));
}

Result<std::unique_ptr<StateCache>> CpuBackend::allocate_state_cache(const StateLayout& layout,
                                                                     std::int32_t num_states) {
  OCTAVO_TRY(const std::int64_t num_bytes, state_pool_bytes(layout, num_states));
  OCTAVO_TRY(MappedMemory memory,
             MappedMemory::create(num_bytes + layout.draft_bytes(), "the pool of states"));
  return std::unique_ptr<StateCache>(std::make_unique<CpuStateCache>(layout, num_states, std::move(memory)));
}

Result<std::unique_ptr<HostStateCache>> CpuBackend::allocate_host_state_cache(const StateLayout& layout,
                                                                              std::int32_t num_states) {
  OCTAVO_TRY(const std::int64_t num_bytes, state_pool_bytes(layout, num_states));
  OCTAVO_TRY(MappedMemory memory, MappedMemory::create(num_bytes, "the host pool of states"));
  return std::unique_ptr<HostStateCache>(
      std::make_unique<CpuHostStateCache>(layout, num_states, std::move(memory)));
}

Result<std::unique_ptr<Buffer>> CpuBackend::allocate_buffer(std::int64_t num_floats) {
  std::int64_t num_bytes;
  if (num_floats < 0 || __builtin_mul_overflow(num_floats, std::int64_t{sizeof(float)}, &num_bytes)) {
    return Error{ErrorCode::kInvalidArgument,
                 "a buffer of " + std::to_string(num_floats) + " floats is impossible"};
  }
  OCTAVO_TRY(MappedMemory memory, MappedMemory::create(num_bytes, "working memory"));
  return std::unique_ptr<Buffer>(std::make_unique<CpuBuffer>(std::move(memory), num_floats));
}

Result<void> CpuBackend::reserve_step(const StepShape& shape) {
  const ScratchPlan plan = plan_scratch(shape, activation_, pool_->num_threads(), isa_);
  try {
    activations_.reserve(plan.rows, plan.columns, plan.forms);
    head_activations_.reserve(plan.head_rows, plan.head_columns, plan.forms);
    key_rows_.reserve(plan.key_value_floats);
    value_rows_.reserve(plan.key_value_floats);
    product_rows_.reserve(plan.product_floats);
    partials_.reserve(plan.partial_floats);
    item_sums_.reserve(plan.item_sum_floats);
    for (Scratch& scratch : worker_scratch_) scratch.reserve(plan.worker_floats);
    for (Scratch& scratch : draft_scratch_) scratch.reserve(plan.draft_floats);
    if (shape.num_experts > 0) step_experts_->reserve(shape, plan.experts);
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::kOutOfMemory, "working memory needs " + std::to_string(plan.bytes()) +
                                              " bytes, which the system refused; choose a smaller "
                                              "max_num_batched_tokens"};
  }
  return {};
}

std::int64_t CpuBackend::scratch_bytes() const {
  std::int64_t bytes = activations_.bytes() + head_activations_.bytes();
  for (const Scratch* scratch : {&key_rows_, &value_rows_, &product_rows_, &partials_, &item_sums_})
    bytes += scratch->bytes();
  for (const Scratch& scratch : worker_scratch_) bytes += scratch.bytes();
  for (const Scratch& scratch : draft_scratch_) bytes += scratch.bytes();
  return bytes + step_experts_->bytes();
}

std::int64_t CpuBackend::panels_per_item(std::int64_t num_panels) const {
  constexpr std::int64_t kItemsPerThread = 8, kMostPanels = 16;
  return std::clamp(num_panels / (kItemsPerThread * pool_->num_threads()), std::int64_t{1}, kMostPanels);
}

void CpuBackend::set_activations(ConstMatrixView x, const ActivationForms& forms) {
  activations_.reserve(x.rows, x.columns, forms);
  for_each_row(x.rows, [&](std::int64_t row, std::int32_t) { activations_.set_row(row, x.row(row)); });
}

void CpuBackend::normalise(const NormWeights& norm, const float* x, float* out) const {
  const auto size = static_cast<std::int64_t>(norm.weight.size());
  const float* bias = norm.bias.empty() ? nullptr : norm.bias.data();
  if (norm.kind == NormKind::kLayer)
    return kernels_.layer_norm(x, norm.weight.data(), bias, norm.epsilon, size, out);
  kernels_.rms_norm(x, norm.weight.data(), norm.epsilon, size, out);
  if (bias != nullptr) kernels_.add_row(out, bias, size);
}

void CpuBackend::set_normalised(const NormWeights& norm, ConstMatrixView x,
                                std::span<const std::int32_t> rows, const ActivationForms& forms,
                                ActivationRows& activations) {
  const std::int64_t num_rows = rows.empty() ? x.rows : static_cast<std::int64_t>(rows.size());
  activations.reserve(num_rows, x.columns, forms);
  for_each_row(num_rows, [&](std::int64_t i, std::int32_t worker) {
    const std::int64_t row = rows.empty() ? i : rows[static_cast<std::size_t>(i)];
    if (norm.weight.empty()) return activations.set_row(i, x.row(row));
    float* normalised = worker_scratch_[static_cast<std::size_t>(worker)].reserve(x.columns);
    normalise(norm, x.row(row), normalised);
    activations.set_row(i, normalised);
  });
}

void CpuBackend::keep_drafts(std::int32_t layer, const CpuStateCache& states,
                             std::span<const MatrixView> parts) const {
  check_drafts(layer, states);
  MatrixView drafts = states.drafts(layer);
  for (const MatrixView& part : parts) {
    for (const SequenceRows& sequence : sequence_rows_) keep_draft(sequence, part, drafts);
    drafts.data += part.columns;
  }
}

std::array<MatrixView, 3> CpuBackend::kept_drafts(std::int32_t layer, const CpuStateCache& states,
                                                  const std::array<std::int64_t, 3>& columns) {
  MatrixView drafts = states.drafts(layer);
  std::array<MatrixView, 3> parts;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i] = {drafts.data, drafts.rows, columns[i], drafts.stride};
    drafts.data += columns[i];
  }
  return parts;
}

void CpuBackend::check_drafts(std::int32_t layer, const CpuStateCache& states) const {
  if (sequence_rows_.empty()) return;
  const std::int64_t num_rows = sequence_rows_.back().first_draft + sequence_rows_.back().num_drafted;
  OCTAVO_CHECK(num_rows <= states.drafts(layer).rows, "%lld rows of drafts, and room for %lld",
               static_cast<long long>(num_rows), static_cast<long long>(states.drafts(layer).rows));
}

StatePart CpuBackend::convolution_part(const CpuStateCache& states, std::int32_t state, std::int32_t layer,
                                       std::int64_t num_channels, const ChannelPieces::Piece& piece) {
  return {.numbers = states.convolution(state, layer) + piece.first,
          .num_runs = states.layout().convolution_floats / num_channels,
          .size = piece.count,
          .stride = num_channels};
}

ChannelConvolution CpuBackend::convolution_of(const SequenceRows& sequence, const StatePart& history,
                                              MatrixView channels, std::span<const float> weights,
                                              const ChannelPieces::Piece& piece) {
  const auto width = static_cast<std::int64_t>(weights.size()) / channels.columns;
  return {.weights = weights.data() + piece.first * width,
          .bias = nullptr,
          .width = static_cast<std::int32_t>(width),
          .history = history.numbers,
          .history_stride = history.stride,
          .rows = channels.row(sequence.first) + piece.first,
          .row_stride = channels.stride,
          .num_rows = sequence.count,
          .count = piece.count,
          .applies_silu = false};
}

void CpuBackend::multiply(std::span<const Product> products) {
  std::int64_t num_panels = 0;
  for (const Product& product : products) num_panels += product.matrix->num_panels();
  const std::int64_t size = panels_per_item(num_panels);
  pool_->parallel_for_in_runs((num_panels + size - 1) / size, [&](std::int64_t item, std::int32_t) {
    std::int64_t first = item * size, last = std::min(first + size, num_panels);  // in the list of all panels
    for (const Product& product : products) {
      const std::int64_t panels = product.matrix->num_panels();
      if (first < panels && last > 0) {
        multiply_panels(*product.matrix, activations_, std::max(first, std::int64_t{0}),
                        std::min(last, panels), product.out);
      }
      first -= panels;
      last -= panels;
    }
  });
}

CpuBackend::PlainActivation CpuBackend::activation_of(FeedForwardActivation activation) const {
  switch (activation) {
    case FeedForwardActivation::kSilu: return kernels_.silu;
    case FeedForwardActivation::kGelu: return kernels_.gelu;
    case FeedForwardActivation::kRelu: return kernels_.relu;
    case FeedForwardActivation::kSquaredRelu: return kernels_.squared_relu;
    case FeedForwardActivation::kClampedSwiglu: break;  // of a pair
  }
  return kernels_.silu;
}

CpuBackend::GatedActivation CpuBackend::gated_activation(FeedForwardActivation activation) const {
  switch (activation) {
    case FeedForwardActivation::kSilu: return kernels_.silu_mul;
    case FeedForwardActivation::kGelu: return kernels_.gelu_mul;
    case FeedForwardActivation::kRelu: return kernels_.relu_mul;
    case FeedForwardActivation::kSquaredRelu: return kernels_.squared_relu_mul;
    case FeedForwardActivation::kClampedSwiglu: return kernels_.clamped_swiglu;
  }
  return kernels_.silu_mul;
}

}  // namespace octavo::kernels::cpu
