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

// Of a step filled up to so many rows.
std::int64_t decode_draw_bytes(std::int32_t num_rows) {
  return UploadRing::padded(num_rows * static_cast<std::int64_t>(sizeof(DeviceDraw)));
}

// The smallest of an ascending list that is no smaller than `value`.
std::optional<std::int32_t> first_from(const std::vector<std::int32_t>& ascending, std::int32_t value) {
  const auto found = std::lower_bound(ascending.begin(), ascending.end(), value);
  if (found == ascending.end()) return std::nullopt;
  return *found;
}

}  // namespace

// With `numbers` at addresses that depend on the number of rows alone: draws, which not every step has, come
// first, and what has another size in every step last. Without, the rows that are drawn from come last.
void CudaBackend::send_inputs(const PagedBatch& batch, std::span<const std::int32_t> token_ids,
                              const StepNumbers* numbers) {
  OCTAVO_CHECK(scratch_.has_value() && batch.num_tokens <= shape_.num_rows,
               "a step of %d rows, %d are reserved", batch.num_tokens, shape_.num_rows);
  UploadRing& inputs = scratch_->inputs;
  const std::span<const StepNumbers> given(numbers, numbers != nullptr ? 1 : 0);
  const std::span<const DeviceDraw> draws = sent_draws_.list;
  const std::span<const std::int32_t> rows =
      sent_draws_.num_filled > 0 ? std::span<const std::int32_t>() : sent_draws_.asked.rows;
  const std::int64_t draw_bytes = UploadRing::padded(static_cast<std::int64_t>(draws.size_bytes()));
  std::int64_t num_bytes = draw_bytes + UploadRing::padded(static_cast<std::int64_t>(given.size_bytes()));
  for (const auto& array : {rows, token_ids, batch.positions, batch.slot_mapping, batch.query_start,
                            batch.context_lens, batch.block_tables}) {
    num_bytes += UploadRing::padded(static_cast<std::int64_t>(array.size_bytes()));
  }
  for (const auto& angles : {batch.rotations, batch.local_rotations}) {
    num_bytes += UploadRing::padded(static_cast<std::int64_t>(angles.size_bytes()));
  }
  const std::int64_t room_of_draws = decode_draw_bytes(batch.num_tokens);
  std::byte* const target =
      numbers != nullptr ? scratch_->decode_inputs.data() + room_of_draws - draw_bytes : nullptr;
  OCTAVO_CHECK(target == nullptr || num_bytes - draw_bytes + room_of_draws <= scratch_->decode_inputs.bytes(),
               "a decode step's inputs of %lld bytes were not reserved", static_cast<long long>(num_bytes));
  inputs.begin_at(*compute_, num_bytes, target);
  host_positions_ = batch.positions.data();
  host_token_ids_ = token_ids.data();
  sent_draws_.draws = draws.empty() ? nullptr : inputs.put(draws);
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
  if (batch.rotations.empty() && scratch_->kept_rotations != nullptr) {
    batch_.rotations = scratch_->kept_rotations;
    batch_.local_rotations = scratch_->kept_local_rotations;
    batch_.rows_of_rotations = batch_.positions;
  }
  batch_.block_tables = inputs.put(batch.block_tables);
  sent_draws_.rows = inputs.put(rows);
  inputs.send(*compute_);
}

void CudaBackend::begin_step(const PagedBatch& batch, std::span<const std::int32_t> token_ids) {
  sent_draws_ = {};
  begin_prompt_step(batch, token_ids);
}

void CudaBackend::begin_prompt_step(const PagedBatch& batch, std::span<const std::int32_t> token_ids) {
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
                           const StepBody& body, const StepDraws& draws) {
  const std::optional<DecodeShape> shape = decode_shape(batch);
  list_draws(draws, shape ? shape->num_rows : 0);
  if (!shape) {
    begin_prompt_step(batch, token_ids);
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

// Products take other kernels for other numbers of rows (plan_product): as vectors for up to four, in tiles
// of 8, 16 (for which the library leaves 9 to 15 rows), 32 and 64, and by the library, which chooses anew for
// each number and is rehearsed for some of them. With and without contexts before, which may be cut; and rows
// of a prompt beside a decode's.
std::vector<RehearsedStep> CudaBackend::steps_to_rehearse() const {
  const std::int32_t longest = shape_.max_context_len;
  const std::int64_t most_sequences =
      shape_.max_num_sequences > 0 ? shape_.max_num_sequences : shape_.num_rows;
  const auto most =
      static_cast<std::int32_t>(std::min<std::int64_t>(shape_.num_rows, most_sequences * longest));
  std::vector<RehearsedStep> steps = {{1, 1, longest}};
  std::vector<std::int32_t> numbers = {2, 3, 4, 8, 12};
  for (std::int32_t rows = 16; rows < most; rows *= 2) numbers.push_back(rows);
  for (const std::int32_t rows : numbers) {
    if (rows < most) steps.push_back({rows, 0, std::min(rows, longest)});
  }
  if (most > 1) steps.push_back({most, 0, longest});
  if (most > 1 && most_sequences > 1 && longest > 1) steps.push_back({std::min(most, longest), 1, longest});
  if (options_.graphs) return steps;  // record_step() rehearses what it records
  for (const std::int32_t rows : decode_rows_) steps.push_back({rows, rows, longest});
  return steps;
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
  sent_draws_ = {};
  PagedBatch idle = batch;
  idle.slot_mapping = slots;
  idle.context_lens = contexts;
  begin_decode_step(idle, token_ids, shape, longest_context(batch));
  await_moves();
  body(decode_batch_.batch(), decode_batch_.token_ids());
  compute_->synchronize();
  return status_.result();
}

Result<Graph> CudaBackend::record_graph(const std::string& what, std::int32_t num_rows,
                                        const std::function<void()>& body) {
  const std::optional<DeviceBytes> before = device_bytes();
  const std::string purpose = what + " of " + std::to_string(num_rows) + " rows";
  OCTAVO_TRY(Graph graph, Graph::record(*compute_, purpose.c_str(), body));
  const std::optional<DeviceBytes> after = device_bytes();
  graph_bytes_ += std::max<std::int64_t>(before->free_bytes - after->free_bytes, 0);
  return Result<Graph>(std::move(graph));
}

Result<void> CudaBackend::record_step(const PagedBatch& batch, std::span<const std::int32_t> token_ids,
                                      const StepBody& body) {
  const std::optional<DecodeShape> shape = decode_shape(batch);
  OCTAVO_CHECK(shape.has_value() && options_.graphs, "a step that need not be recorded");
  OCTAVO_TRY_VOID(rehearse_step(batch, token_ids, *shape, body));
  begin_decode_step(batch, token_ids, *shape, longest_context(batch));
  compute_->synchronize();
  OCTAVO_TRY_VOID(status_.result());
  OCTAVO_TRY(Graph graph, record_graph("a decode step", shape->num_rows,
                                       [&] { body(decode_batch_.batch(), decode_batch_.token_ids()); }));
  recorded_.emplace(std::pair(shape->num_rows, shape->context_len), std::move(graph));
  return status_.result();
}

}  // namespace octavo::kernels::cuda
