#include "kernels/cuda/attention/attention.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/base/check.h"
#include "kernels/cuda/attention/attention_kernels.h"

namespace octavo::kernels::cuda {
namespace {

constexpr std::int32_t kMostHeadDim = 256;
constexpr float kLog2OfE = 1.4426950408889634f;
// Rows times group of a sequence that is still computed by split tiles: a decode with guesses. Its tiles of
// 16 read the context up to four times, from the second-level cache, and keep the whole device busy where one
// prefill tile would not.
constexpr std::int32_t kMostSplitRows = 64;
constexpr std::int64_t kFullRounds = 3;  // enough for the last one to be a small part
// Positions; less is not worth a merge, in one round of blocks and in several.
constexpr std::int32_t kLeastPartition = 128, kLeastPartitionOfRounds = 512;

struct BlockShape {
  int num_warps, num_stages;
};

// The largest that shared memory takes. A function of type and head size only, since in a split tile the
// number of warps belongs to the order of the sums.
BlockShape block_shape(const ChosenAttention& kernel, std::int64_t max_shared_bytes) {
  constexpr std::int64_t kDeclaredBytes = 1024;  // or less, that the kernel has besides
  for (const BlockShape shape : {BlockShape{4, 2}, {4, 1}, {2, 2}, {2, 1}, {1, 1}}) {
    if (kernel.shared_bytes(shape.num_warps, shape.num_stages) + kDeclaredBytes <= max_shared_bytes)
      return shape;
  }
  OCTAVO_CHECK(false, "a row of %lld bytes does not fit %lld bytes of shared memory",
               static_cast<long long>(kernel.query_bytes), static_cast<long long>(max_shared_bytes));
  return {};
}

class Attention final : public PagedAttention {
 public:
  Attention(Stream& stream, const AttentionOptions& options) : stream_(stream), options_(options) {}

  Result<void> reserve(const StepShape& shape) override {
    stream_.synchronize();
    values_ = DeviceMemory{};
    weights_ = DeviceMemory{};
    const std::int64_t fixed = num_pieces(shape.max_context_len, kFixedPartition);
    capacity_ = std::max((kFullRounds + 1) * blocks_at_once(), shape.num_kv_heads * fixed);
    head_dim_ = shape.head_dim;
    num_kv_heads_ = shape.num_kv_heads;
    group_ = shape.num_heads / std::max(shape.num_kv_heads, 1);
    max_context_len_ = shape.max_context_len;
    const std::int64_t rows = capacity_ * kSplitTileRows;
    OCTAVO_TRY_VOID(take(values_, rows * head_dim_ * 4));
    return take(weights_, rows * 8);
  }

  std::int64_t scratch_bytes() const override { return values_.bytes() + weights_.bytes(); }

  std::vector<std::int32_t> decode_contexts(std::int32_t num_sequences) const override {
    if (decode_partition(num_sequences, max_context_len_) == 0) return {max_context_len_};
    if (!options_.deterministic) {
      const std::int64_t blocks = std::int64_t{num_sequences} * num_kv_heads_;
      return {2 * least_partition(blocks) - 1, max_context_len_};
    }
    std::vector<std::int32_t> contexts;
    for (std::int64_t context = kFixedPartition; context < max_context_len_; context *= 4)
      contexts.push_back(static_cast<std::int32_t>(context));
    contexts.push_back(max_context_len_);
    return contexts;
  }

  std::int32_t decode_partition(std::int32_t num_sequences, std::int32_t context_len) const override {
    return partition_for(std::int64_t{num_sequences} * num_kv_heads_, context_len);
  }

  std::int32_t num_split_tiles(std::span<const std::int32_t> query_start) const override {
    for (std::size_t sequence = query_start.size() - 1; sequence-- > 0;) {
      const std::int64_t first = std::int64_t{query_start[sequence]} * group_,
                         rows = std::int64_t{query_start[sequence + 1]} * group_ - first;
      if (rows == 0 || rows > most_split_rows()) continue;
      return static_cast<std::int32_t>(first / kSplitTileRows + static_cast<std::int64_t>(sequence) +
                                       num_pieces(rows, kSplitTileRows));
    }
    return 1;
  }

  void attend(const AttentionShape& shape, const DeviceBatch& batch, const KvLayout& layout,
              std::int32_t layer, const std::byte* pool, const float* q, std::int64_t q_stride, float* out,
              std::int64_t out_stride) override {
    if (batch.num_tokens == 0) return;
    OCTAVO_CHECK(shape.head_dim <= kMostHeadDim && shape.head_dim <= head_dim_,
                 "head_dim %d was not reserved", shape.head_dim);
    AttentionArguments arguments;
    arguments.batch = batch;
    arguments.places = KvPlaces::of(layout, layer, const_cast<std::byte*>(pool));  // only read
    arguments.partials = {values_.as<float>(), weights_.as<float2>()};
    arguments.q = q, arguments.out = out;
    arguments.q_stride = q_stride, arguments.out_stride = out_stride;
    arguments.score_scale = shape.score_scale * kLog2OfE;
    arguments.score_soft_cap = shape.score_soft_cap * kLog2OfE;
    if (shape.window > 0) arguments.window = static_cast<std::uint32_t>(shape.window);
    arguments.num_heads = shape.num_heads, arguments.num_kv_heads = shape.num_kv_heads;
    arguments.group = shape.num_heads / shape.num_kv_heads;

    OCTAVO_CHECK(batch.num_split_tiles == 0 || arguments.group == group_,
                 "groups of %d heads, %d are reserved", arguments.group, group_);

    const std::int32_t most_split = most_split_rows();
    const std::int64_t least = std::int64_t{batch.min_rows} * arguments.group;
    const std::int64_t most = std::int64_t{batch.max_rows} * arguments.group;
    if (least <= most_split) attend_split(arguments, layout, most, most_split);
    if (most > most_split) attend_prefill(arguments, layout, most_split + 1);
  }

 private:
  // Rows times group of a sequence.
  std::int32_t most_split_rows() const {
    return options_.deterministic ? std::numeric_limits<std::int32_t>::max() : kMostSplitRows;
  }

  // That run at once, by what most kernels take of a multiprocessor.
  std::int64_t blocks_at_once() const { return 3 * std::int64_t{options_.num_multiprocessors}; }

  Result<void> take(DeviceMemory& memory, std::int64_t bytes) {
    Result<DeviceMemory> taken = DeviceMemory::allocate(bytes, "the working memory of attention");
    if (!taken) return taken.error();
    memory = std::move(taken).value();
    return {};
  }

  static std::int32_t num_tiles(const AttentionArguments& arguments) {
    const DeviceBatch& batch = arguments.batch;
    const std::int64_t rows = std::int64_t{batch.num_tokens} * arguments.group;
    return static_cast<std::int32_t>(rows / arguments.tile_rows) + batch.num_sequences;
  }

  // Most positions that the rows of a split tile see.
  static std::int32_t positions_of_tile(const AttentionArguments& arguments) {
    const std::int64_t of_window = std::int64_t{arguments.window} + kSplitTileRows - 1;
    return static_cast<std::int32_t>(std::min<std::int64_t>(arguments.batch.max_context_len, of_window));
  }

  // That the positions of a tile may touch; a window may begin anywhere in its first.
  static std::int32_t partitions_of_tile(const AttentionArguments& arguments) {
    if (arguments.partition == 0) return 1;
    const auto of_context =
        static_cast<std::int32_t>(num_pieces(arguments.batch.max_context_len, arguments.partition));
    const auto of_window =
        static_cast<std::int32_t>(num_pieces(positions_of_tile(arguments), arguments.partition)) + 1;
    return std::min(of_context, of_window);
  }

  // Of a context, where `blocks` are there without being cut: as many as run at once, all in one round; or if
  // they are more without, so many that the last round, which is not full, is a small part, unless pieces
  // become short.
  std::int64_t wanted_partitions(std::int64_t blocks, std::int32_t context) const {
    const std::int64_t at_once = blocks_at_once(), most = std::max(context / least_partition(blocks), 1);
    const std::int64_t wanted =
        blocks <= at_once ? at_once / blocks : num_pieces(kFullRounds * at_once, blocks);
    return std::clamp<std::int64_t>(wanted, 1, most);
  }
  // A context twice as long is cut, if any is: decode_contexts() relies on it.
  std::int32_t least_partition(std::int64_t blocks) const {
    return blocks <= blocks_at_once() ? kLeastPartition : kLeastPartitionOfRounds;
  }

  // Positions of a partition, 0: the whole context in one piece.
  std::int32_t partition_for(std::int64_t blocks, std::int32_t context) const {
    if (options_.deterministic) return context <= kFixedPartition ? 0 : kFixedPartition;
    const std::int64_t wanted = wanted_partitions(blocks, context);
    if (wanted == 1) return 0;
    return static_cast<std::int32_t>(num_pieces(num_pieces(context, wanted), kRoundPositions)) *
           kRoundPositions;
  }

  void choose_partitions(AttentionArguments& arguments) const {
    const DeviceBatch& batch = arguments.batch;
    const std::int64_t blocks = std::int64_t{batch.num_sequences} * arguments.num_kv_heads;
    const std::int32_t positions = positions_of_tile(arguments);
    arguments.partition = partition_for(blocks, positions);
    arguments.num_partitions = partitions_of_tile(arguments);
    // A window shorter than the longest context has its own partitions, whatever the context.
    const bool follows_context = batch.numbers != nullptr && positions == batch.max_context_len;
    if (!follows_context || arguments.partition == 0 || options_.deterministic) return;
    arguments.partition_of_step = &batch.numbers->partition;  // an address of the device, not followed here
    arguments.num_partitions = static_cast<std::int32_t>(wanted_partitions(blocks, positions));
  }

  void attend_split(AttentionArguments arguments, const KvLayout& layout, std::int64_t most,
                    std::int32_t most_rows) {
    const ChosenAttention kernel =
        choose_attention({layout.type, AttentionKind::kSplit}, arguments.places.head_dim);
    const BlockShape shape = block_shape(kernel, options_.max_shared_bytes);
    arguments.tile_rows = kSplitTileRows;
    arguments.one_tile_each = most <= kSplitTileRows ? 1 : 0;
    arguments.least_rows = 0, arguments.most_rows = most_rows;
    arguments.num_stages = shape.num_stages;
    choose_partitions(arguments);
    const std::int64_t units = std::int64_t{arguments.num_kv_heads} * arguments.num_partitions;
    std::int32_t tiles = num_tiles(arguments);
    if (arguments.batch.num_split_tiles > 0) tiles = std::min(tiles, arguments.batch.num_split_tiles);
    if (arguments.one_tile_each != 0) tiles = arguments.batch.num_sequences;
    OCTAVO_CHECK(arguments.partition == 0 || units <= capacity_, "a context of %d was not reserved",
                 arguments.batch.max_context_len);
    const auto at_once = arguments.partition == 0
                             ? tiles
                             : static_cast<std::int32_t>(std::min<std::int64_t>(capacity_ / units, tiles));
    for (arguments.first_tile = 0; arguments.first_tile < tiles; arguments.first_tile += at_once) {
      const std::int32_t count = std::min(at_once, tiles - arguments.first_tile);
      launch_attention(stream_, kernel, count, shape.num_warps, arguments);
      if (arguments.partition != 0) launch_merge(stream_, count, arguments);
    }
  }

  void attend_prefill(AttentionArguments arguments, const KvLayout& layout, std::int32_t least_rows) {
    const AttentionKind kind =
        arguments.score_soft_cap == 0.0f ? AttentionKind::kPrefill : AttentionKind::kCappedPrefill;
    const ChosenAttention kernel =
        choose_attention({layout.type, kind, options_.half_parts}, arguments.places.head_dim);
    const BlockShape shape = block_shape(kernel, options_.max_shared_bytes);
    arguments.tile_rows = kernel.tile_rows(shape.num_warps);
    arguments.least_rows = least_rows, arguments.most_rows = std::numeric_limits<std::int32_t>::max();
    arguments.num_stages = shape.num_stages;
    launch_attention(stream_, kernel, num_tiles(arguments), shape.num_warps, arguments);
  }

  Stream& stream_;
  const AttentionOptions options_;
  DeviceMemory values_, weights_;
  std::int64_t capacity_ = 0;  // partial sums of so many tiles
  std::int32_t head_dim_ = 0, num_kv_heads_ = 1;
  std::int32_t group_ = 1;
  std::int32_t max_context_len_ = 1;
};

}  // namespace

std::unique_ptr<PagedAttention> PagedAttention::create(Stream& stream, const AttentionOptions& options) {
  return std::make_unique<Attention>(stream, options);
}

}  // namespace octavo::kernels::cuda
