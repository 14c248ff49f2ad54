// A step's inputs on their way to the device, and steps of a few shapes, recorded and started as one.
#include <algorithm>

#include "engine/base/check.h"
#include "kernels/cuda/cuda_backend.h"

namespace octavo::kernels::cuda {
namespace {

// Of a step that is filled up and no decode: each is a tile of attention or more, which steps of fewer have
// in vain.
constexpr std::int32_t kFilledSequences = 16;

std::int32_t longest_context(const PagedBatch& batch) {
  std::int32_t longest = 0;
  for (const std::int32_t context_len : batch.context_lens) longest = std::max(longest, context_len);
  return longest;
}

// The smallest of an ascending list that is no smaller than `value`.
std::optional<std::int32_t> first_from(const std::vector<std::int32_t>& ascending, std::int32_t value) {
  const auto found = std::lower_bound(ascending.begin(), ascending.end(), value);
  if (found == ascending.end()) return std::nullopt;
  return *found;
}

}  // namespace

// At addresses that depend on the numbers of rows and sequences alone: lists of draws, which not every step
// has, end where the rest begins, and what has another size in every step is last.
void CudaBackend::send_inputs(const PagedBatch& batch, std::span<const std::int32_t> token_ids,
                              const StepNumbers* numbers) {
  OCTAVO_CHECK(scratch_.has_value() && batch.num_tokens <= shape_.num_rows,
               "a step of %d rows, %d are reserved", batch.num_tokens, shape_.num_rows);
  UploadRing& inputs = scratch_->inputs;
  const std::span<const StepNumbers> given(numbers, numbers != nullptr ? 1 : 0);
  const std::span<const DeviceDraw> draws = sent_draws_.list;
  const std::span<const std::int32_t> rows = sent_draws_.rows;
  const std::int64_t draw_bytes = draw_list_bytes(std::ssize(rows), std::ssize(draws));
  std::int64_t num_bytes = draw_bytes + UploadRing::padded(static_cast<std::int64_t>(given.size_bytes()));
  for (const auto& array : {token_ids, batch.positions, batch.slot_mapping, batch.query_start,
                            batch.context_lens, batch.block_tables}) {
    num_bytes += UploadRing::padded(static_cast<std::int64_t>(array.size_bytes()));
  }
  for (const auto& angles : {batch.rotations, batch.local_rotations}) {
    num_bytes += UploadRing::padded(static_cast<std::int64_t>(angles.size_bytes()));
  }
  const std::int64_t before = scratch_->draw_bytes - draw_bytes;
  OCTAVO_CHECK(before >= 0 && before + num_bytes <= scratch_->step_inputs.bytes(),
               "a step's inputs of %lld bytes were not reserved", static_cast<long long>(num_bytes));
  inputs.begin_at(*compute_, num_bytes, scratch_->step_inputs.data() + before);
  host_positions_ = batch.positions.data();
  host_token_ids_ = token_ids.data();
  put_draws();
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
  inputs.send(*compute_);
}

void CudaBackend::begin_step(const PagedBatch& batch, std::span<const std::int32_t> token_ids) {
  sent_draws_ = {};
  begin_step_as_it_is(batch, token_ids);
}

void CudaBackend::begin_step_as_it_is(const PagedBatch& batch, std::span<const std::int32_t> token_ids) {
  send_inputs(batch, token_ids, nullptr);
  batch_.min_rows = batch.num_tokens;
  for (std::size_t i = 0; i < static_cast<std::size_t>(batch.num_sequences); ++i) {
    const std::int32_t num_rows = batch.query_start[i + 1] - batch.query_start[i];
    batch_.min_rows = std::min(batch_.min_rows, num_rows);
    batch_.max_rows = std::max(batch_.max_rows, num_rows);
  }
  batch_.max_context_len = longest_context(batch);
  batch_.num_split_tiles = attention_->num_split_tiles(batch.query_start);
}

const DeviceBatch& CudaBackend::device_batch(const PagedBatch& batch) const {
  OCTAVO_CHECK(batch.positions.data() == host_positions_ && batch.num_tokens == batch_.num_tokens,
               "a batch that begin_step did not get");
  return batch_;
}

// nullopt: more rows or sequences, or a longer context, than are worth it. With `deterministic` all rows go
// through split tiles, of which only the true number is worth starting: then mixed_rows_ is empty.
std::optional<CudaBackend::FilledShape> CudaBackend::filled_shape(const PagedBatch& batch) const {
  const bool has_one_row_each = is_decode(batch);
  const std::optional<std::int32_t> rows =
      first_from(has_one_row_each ? decode_rows_ : mixed_rows_, batch.num_tokens);
  if (batch.num_tokens == 0 || !rows) return std::nullopt;
  FilledShape shape{.num_rows = *rows, .num_sequences = *rows, .is_decode = has_one_row_each};
  if (!has_one_row_each) {
    shape.num_sequences = std::min(*rows, kFilledSequences);
    const std::int32_t needed = batch.num_sequences + (batch.num_tokens < *rows ? 1 : 0);
    const bool has_room =
        needed <= shape.num_sequences && attention_->num_split_tiles(batch.query_start) <= kFilledSplitTiles;
    if (!has_room) return std::nullopt;
  }
  const std::optional<std::int32_t> context =
      first_from(attention_->decode_contexts(shape.num_sequences), longest_context(batch));
  if (!context) return std::nullopt;
  shape.context_len = *context;
  return shape;
}

// All that a launch takes as an argument follows from `shape`, the model and the pool. `context_len`: the
// longest of the batch, or longer.
void CudaBackend::begin_filled_step(const PagedBatch& batch, std::span<const std::int32_t> token_ids,
                                    const FilledShape& shape, std::int32_t context_len) {
  const StepNumbers numbers{.max_blocks = batch.max_blocks,
                            .partition = attention_->decode_partition(shape.num_sequences, context_len)};
  filled_batch_.fill(batch, token_ids, shape.num_rows, shape.num_sequences);
  send_inputs(filled_batch_.batch(), filled_batch_.token_ids(), &numbers);
  batch_.max_blocks = 0;  // in `numbers`
  batch_.min_rows = shape.is_decode ? 1 : 0;
  batch_.max_rows = shape.is_decode ? 1 : shape.num_rows;
  batch_.max_context_len = shape.context_len;
  batch_.num_split_tiles = kFilledSplitTiles;
}

// Also without graphs a step is filled up, so that they change no bit.
void CudaBackend::run_step(const PagedBatch& batch, std::span<const std::int32_t> token_ids,
                           const StepBody& body, const StepDraws& draws) {
  const std::optional<FilledShape> shape = filled_shape(batch);
  list_draws(draws);
  if (!shape) {
    begin_step_as_it_is(batch, token_ids);
    body(batch, token_ids);
    return;
  }
  begin_filled_step(batch, token_ids, *shape, longest_context(batch));
  const auto recorded = recorded_.find(*shape);
  if (recorded == recorded_.end()) {
    body(filled_batch_.batch(), filled_batch_.token_ids());
    return;
  }
  await_moves();  // an event from outside cannot be waited for inside
  recorded->second.launch(*compute_);
}

// One for each shape that steps are filled up to, but where that takes more sequences than there can be.
std::vector<SampleStep> CudaBackend::filled_steps() const {
  std::vector<SampleStep> steps;
  for (const std::int32_t rows : decode_rows_) {
    for (const std::int32_t context : attention_->decode_contexts(rows))
      steps.push_back({rows, rows, context});
  }
  for (const std::int32_t rows : mixed_rows_) {
    const std::int32_t sequences = std::min(rows, kFilledSequences);
    const std::int64_t most = std::min(sequences, most_sequences(shape_));
    for (const std::int32_t context : attention_->decode_contexts(sequences)) {
      if (context > 1 && most * context >= rows) steps.push_back({rows, 0, context});
    }
  }
  return steps;
}

// Products take other kernels for other numbers of rows (plan_product), and the library chooses anew for each
// power of two, attention for contexts that are cut and for rows of a prompt beside a decode's: all shapes
// that steps are filled up to, some larger ones, and the largest. Also 3 rows (a kernel for up to 4) and 12
// (tiles of 16), of which draws that are not filled up may be.
std::vector<SampleStep> CudaBackend::steps_to_rehearse() const {
  const std::int32_t longest = shape_.max_context_len;
  const std::int64_t sequences = most_sequences(shape_);
  const auto most = static_cast<std::int32_t>(std::min<std::int64_t>(shape_.num_rows, sequences * longest));
  std::vector<SampleStep> steps = {{1, 1, longest}};
  std::vector<std::int32_t> numbers = {3, 12};
  for (std::int32_t rows = mixed_rows_.empty() ? 2 : 2 * mixed_rows_.back(); rows < most; rows *= 2)
    numbers.push_back(rows);
  for (const std::int32_t rows : numbers) {
    if (rows < most) steps.push_back({rows, 0, std::min(rows, longest)});
  }
  if (most > 1) steps.push_back({most, 0, longest});
  if (most > 1 && sequences > 1 && longest > 1) steps.push_back({std::min(most, longest), 1, longest});
  if (options_.graphs) return steps;  // record_step() rehearses what it records
  const std::vector<SampleStep> filled = filled_steps();
  steps.insert(steps.end(), filled.begin(), filled.end());
  return steps;
}

std::vector<SampleStep> CudaBackend::steps_to_record() const {
  return options_.graphs ? filled_steps() : std::vector<SampleStep>();
}

// Once as it is, before it is recorded: the first call of a kernel, and of the library for products
// of a shape, may load code, allocate or wait, which a capture forbids. In rows that fill up only,
// which write nothing into the pool.
Result<void> CudaBackend::rehearse_step(const PagedBatch& batch, std::span<const std::int32_t> token_ids,
                                        const FilledShape& shape, const StepBody& body) {
  const std::vector<std::int32_t> slots(batch.slot_mapping.size(), -1),
      contexts(batch.context_lens.size(), 1);
  sent_draws_ = {};
  PagedBatch idle = batch;
  idle.slot_mapping = slots;
  idle.context_lens = contexts;
  begin_filled_step(idle, token_ids, shape, longest_context(batch));
  await_moves();
  body(filled_batch_.batch(), filled_batch_.token_ids());
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
  const std::optional<FilledShape> shape = filled_shape(batch);
  OCTAVO_CHECK(shape.has_value() && options_.graphs, "a step that need not be recorded");
  OCTAVO_TRY_VOID(rehearse_step(batch, token_ids, *shape, body));
  begin_filled_step(batch, token_ids, *shape, longest_context(batch));
  compute_->synchronize();
  OCTAVO_TRY_VOID(status_.result());
  OCTAVO_TRY(Graph graph, record_graph("a step", shape->num_rows,
                                       [&] { body(filled_batch_.batch(), filled_batch_.token_ids()); }));
  recorded_.emplace(*shape, std::move(graph));
  return status_.result();
}

}  // namespace octavo::kernels::cuda
