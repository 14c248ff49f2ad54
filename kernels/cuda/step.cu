// A step's inputs on their way to the device, and decode steps of a few shapes, recorded and started as one.
#include <algorithm>
#include <array>

#include "engine/base/check.h"
#include "kernels/cuda/cuda_backend.h"

namespace octavo::kernels::cuda {
namespace {

std::int32_t longest_context(const PagedBatch& batch) {
  std::int32_t longest = 0;
  for (const std::int32_t context_len : batch.context_lens) longest = std::max(longest, context_len);
  return longest;
}

bool has_one_row_each(const PagedBatch& batch) {
  if (batch.num_tokens == 0 || batch.num_tokens != batch.num_sequences) return false;
  for (std::size_t i = 0; i < batch.query_start.size(); ++i) {
    if (batch.query_start[i] != static_cast<std::int32_t>(i)) return false;
  }
  return true;
}

// The smallest of an ascending list that is no smaller than `value`.
std::optional<std::int32_t> first_from(const std::vector<std::int32_t>& ascending, std::int32_t value) {
  const auto found = std::lower_bound(ascending.begin(), ascending.end(), value);
  if (found == ascending.end()) return std::nullopt;
  return *found;
}

}  // namespace

// With `numbers` at addresses that depend on the number of rows alone: what has another size in every step
// comes last.
void CudaBackend::send_inputs(const PagedBatch& batch, std::span<const std::int32_t> token_ids,
                              const StepNumbers* numbers) {
  OCTAVO_CHECK(scratch_.has_value() && batch.num_tokens <= shape_.num_rows,
               "a step of %d rows, %d are reserved", batch.num_tokens, shape_.num_rows);
  UploadRing& inputs = scratch_->inputs;
  const std::span<const StepNumbers> given(numbers, numbers != nullptr ? 1 : 0);
  std::int64_t num_bytes = UploadRing::padded(static_cast<std::int64_t>(given.size_bytes()));
  for (const auto& array : {token_ids, batch.positions, batch.slot_mapping, batch.query_start,
                            batch.context_lens, batch.block_tables}) {
    num_bytes += UploadRing::padded(static_cast<std::int64_t>(array.size_bytes()));
  }
  for (const auto& angles : {batch.rotations, batch.local_rotations}) {
    num_bytes += UploadRing::padded(static_cast<std::int64_t>(angles.size_bytes()));
  }
  std::byte* const target = numbers != nullptr ? scratch_->decode_inputs.data() : nullptr;
  OCTAVO_CHECK(target == nullptr || num_bytes <= scratch_->decode_inputs.bytes(),
               "a decode step's inputs of %lld bytes were not reserved", static_cast<long long>(num_bytes));
  inputs.begin_at(*compute_, num_bytes, target);
  host_positions_ = batch.positions.data();
  host_token_ids_ = token_ids.data();
  const StepNumbers* const device_numbers = inputs.put(given);
  token_ids_ = inputs.put(token_ids);
  batch_ = {.num_tokens = batch.num_tokens,
            .num_sequences = batch.num_sequences,
            .max_blocks = batch.max_blocks,
            .numbers = numbers != nullptr ? device_numbers : nullptr,
            .positions = inputs.put(batch.positions),
            .slot_mapping = inputs.put(batch.slot_mapping),
            .query_start = inputs.put(batch.query_start),
            .context_lens = inputs.put(batch.context_lens),
            .rotations = inputs.put(batch.rotations),
            .local_rotations = inputs.put(batch.local_rotations)};
  batch_.block_tables = inputs.put(batch.block_tables);
  inputs.send(*compute_);
}

void CudaBackend::begin_step(const PagedBatch& batch, std::span<const std::int32_t> token_ids) {
  send_inputs(batch, token_ids, nullptr);
  batch_.min_rows = batch.num_tokens;
  for (std::size_t i = 0; i < static_cast<std::size_t>(batch.num_sequences); ++i) {
    const std::int32_t num_rows = batch.query_start[i + 1] - batch.query_start[i];
    batch_.min_rows = std::min(batch_.min_rows, num_rows);
    batch_.max_rows = std::max(batch_.max_rows, num_rows);
  }
  batch_.max_context_len = longest_context(batch);
}

const DeviceBatch& CudaBackend::device_batch(const PagedBatch& batch) const {
  OCTAVO_CHECK(batch.positions.data() == host_positions_ && batch.num_tokens == batch_.num_tokens,
               "a batch that begin_step did not get");
  return batch_;
}

// nullopt: no decode step, or one of more rows or a longer context than are worth it.
std::optional<DecodeShape> CudaBackend::decode_shape(const PagedBatch& batch) const {
  if (!has_one_row_each(batch)) return std::nullopt;
  const std::optional<std::int32_t> rows = first_from(decode_rows_, batch.num_tokens);
  if (!rows) return std::nullopt;
  const std::optional<std::int32_t> context =
      first_from(attention_->decode_contexts(*rows), longest_context(batch));
  if (!context) return std::nullopt;
  return DecodeShape{.num_rows = *rows, .context_len = *context};
}

// All that a launch takes as an argument follows from `shape`, the model and the pool. `context_len`: the
// longest of the batch, or longer.
void CudaBackend::begin_decode_step(const PagedBatch& batch, std::span<const std::int32_t> token_ids,
                                    const DecodeShape& shape, std::int32_t context_len) {
  const StepNumbers numbers{.max_blocks = batch.max_blocks,
                            .partition = attention_->decode_partition(shape.num_rows, context_len)};
  decode_batch_.fill(batch, token_ids, shape.num_rows);
  send_inputs(decode_batch_.batch(), decode_batch_.token_ids(), &numbers);
  batch_.max_blocks = 0;  // in `numbers`
  batch_.min_rows = batch_.max_rows = 1;
  batch_.max_context_len = shape.context_len;
}

// Also without graphs a decode step is filled up, so that they change no bit.
void CudaBackend::run_step(const PagedBatch& batch, std::span<const std::int32_t> token_ids,
                           const StepBody& body) {
  const std::optional<DecodeShape> shape = decode_shape(batch);
  if (!shape) {
    begin_step(batch, token_ids);
    body(batch, token_ids);
    return;
  }
  begin_decode_step(batch, token_ids, *shape, longest_context(batch));
  const auto recorded = recorded_.find({shape->num_rows, shape->context_len});
  if (recorded == recorded_.end()) {
    body(decode_batch_.batch(), decode_batch_.token_ids());
    return;
  }
  await_moves();  // an event from outside cannot be waited for inside
  recorded->second.launch(*compute_);
}

std::vector<DecodeShape> CudaBackend::steps_to_record() const {
  std::vector<DecodeShape> shapes;
  if (!options_.graphs) return shapes;
  for (const std::int32_t rows : decode_rows_) {
    for (const std::int32_t context : attention_->decode_contexts(rows)) {
      shapes.push_back({.num_rows = rows, .context_len = context});
    }
  }
  return shapes;
}

// Once as it is, before it is recorded: the first call of a kernel, and of the library for products
// of a shape, may load code, allocate or wait, which a capture forbids. In rows that fill up only,
// which write nothing into the pool.
Result<void> CudaBackend::rehearse_step(const PagedBatch& batch, std::span<const std::int32_t> token_ids,
                                        const DecodeShape& shape, const StepBody& body) {
  const auto rows = static_cast<std::size_t>(batch.num_tokens);
  const std::vector<std::int32_t> slots(rows, -1), contexts(rows, 1);
  PagedBatch idle = batch;
  idle.slot_mapping = slots;
  idle.context_lens = contexts;
  begin_decode_step(idle, token_ids, shape, longest_context(batch));
  await_moves();
  body(decode_batch_.batch(), decode_batch_.token_ids());
  compute_->synchronize();
  return status_.result();
}

Result<void> CudaBackend::record_step(const PagedBatch& batch, std::span<const std::int32_t> token_ids,
                                      const StepBody& body) {
  const std::optional<DecodeShape> shape = decode_shape(batch);
  OCTAVO_CHECK(shape.has_value() && options_.graphs, "a step that need not be recorded");
  OCTAVO_TRY_VOID(rehearse_step(batch, token_ids, *shape, body));
  begin_decode_step(batch, token_ids, *shape, longest_context(batch));
  compute_->synchronize();
  OCTAVO_TRY_VOID(status_.result());
  const std::optional<DeviceBytes> before = device_bytes();
  const std::string purpose = "a decode step of " + std::to_string(shape->num_rows) + " rows";
  OCTAVO_TRY(Graph graph, Graph::record(*compute_, purpose.c_str(),
                                        [&] { body(decode_batch_.batch(), decode_batch_.token_ids()); }));
  const std::optional<DeviceBytes> after = device_bytes();
  graph_bytes_ += std::max<std::int64_t>(before->free_bytes - after->free_bytes, 0);
  recorded_.emplace(std::pair(shape->num_rows, shape->context_len), std::move(graph));
  return status_.result();
}

}  // namespace octavo::kernels::cuda
