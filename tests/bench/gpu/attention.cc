#include <algorithm>
#include <cmath>

#include "kernels/cuda/attention/attention.h"
#include "kernels/cuda/attention/kv_write.h"
#include "tests/bench/gpu/batch.h"
#include "tests/bench/gpu/sections.h"

namespace octavo::bench {
namespace {

using kernels::AttentionShape;
using kernels::KvLayout;
using kernels::KvType;
using kernels::PagedBatch;
using kernels::cuda::DeviceBatch;
using kernels::cuda::DeviceMemory;
using kernels::cuda::PagedAttention;

struct NamedType {
  const char* name;
  KvType type;
};
constexpr NamedType kTypes[] = {{"f16", KvType::kF16},          {"bf16", KvType::kBf16},
                                {"int8", KvType::kInt8},        {"fp8_e4m3", KvType::kFp8E4m3},
                                {"fp8_e5m2", KvType::kFp8E5m2}, {"f32", KvType::kF32}};

constexpr std::int32_t kBlockSize = 16;
constexpr std::int32_t kLayers = 2;  // in the pool, so that a block's layers lie apart; used in turn

// The heads of Llama-3-8B.
AttentionShape heads(const Sizes& sizes) {
  AttentionShape shape;
  shape.num_heads = sizes.is_emulated ? 4 : 32;
  shape.num_kv_heads = sizes.is_emulated ? 2 : 8;
  shape.head_dim = shape.rotary_dim = sizes.is_emulated ? 32 : 128;
  shape.score_scale = 1.0f / std::sqrt(static_cast<float>(shape.head_dim));
  return shape;
}

std::vector<BatchShape> decode_shapes(const Sizes& sizes) {
  std::vector<BatchShape> shapes;
  const std::vector<std::int32_t> contexts =
      sizes.is_emulated ? std::vector<std::int32_t>{20, 70} : std::vector<std::int32_t>{512, 8192};
  const std::vector<std::int32_t> sequences =
      sizes.is_emulated ? std::vector<std::int32_t>{1, 3} : std::vector<std::int32_t>{1, 16, 64, 256};
  for (const std::int32_t context : contexts) {
    for (const std::int32_t count : sequences)
      shapes.push_back({count, 1, context, kBlockSize, heads(sizes).head_dim});
  }
  return shapes;
}

std::vector<BatchShape> prefill_shapes(const Sizes& sizes) {
  const std::int32_t head_dim = heads(sizes).head_dim;
  if (sizes.is_emulated) return {{1, 40, 40, kBlockSize, head_dim}, {2, 16, 50, kBlockSize, head_dim}};
  return {{1, 2048, 2048, kBlockSize, head_dim}, {1, 8192, 8192, kBlockSize, head_dim}};
}

// A batch's arrays in device memory.
class UploadedBatch {
 public:
  static Result<UploadedBatch> create(const BatchShape& shape, const HostBatch& batch) {
    const PagedBatch host = batch.view();
    UploadedBatch uploaded;
    DeviceBatch& device = uploaded.batch_;
    device.num_tokens = host.num_tokens;
    device.num_sequences = host.num_sequences;
    device.max_blocks = host.max_blocks;
    device.min_rows = device.max_rows = shape.rows;
    device.max_context_len = shape.context_len;
    OCTAVO_TRY(device.positions, uploaded.upload(host.positions));
    OCTAVO_TRY(device.slot_mapping, uploaded.upload(host.slot_mapping));
    OCTAVO_TRY(device.query_start, uploaded.upload(host.query_start));
    OCTAVO_TRY(device.context_lens, uploaded.upload(host.context_lens));
    OCTAVO_TRY(device.block_tables, uploaded.upload(host.block_tables));
    OCTAVO_TRY(device.rotations, uploaded.upload(host.rotations));
    return Result<UploadedBatch>(std::move(uploaded));
  }
  const DeviceBatch& get() const { return batch_; }

 private:
  template <class T>
  Result<const T*> upload(std::span<const T> values) {
    const auto bytes = static_cast<std::int64_t>(values.size_bytes());
    OCTAVO_TRY(DeviceMemory memory, kernels::cuda::upload(values.data(), bytes, "a step's arrays"));
    return memories_.emplace_back(std::move(memory)).as<const T>();
  }

  std::vector<DeviceMemory> memories_;
  DeviceBatch batch_;
};

class Attention {
 public:
  explicit Attention(Bench& bench) : bench_(bench), heads_(heads(bench.sizes())) {}

  Result<void> prepare() {
    for (const auto& shapes : {decode_shapes(bench_.sizes()), prefill_shapes(bench_.sizes())}) {
      for (const BatchShape& shape : shapes) {
        most_rows_ = std::max(most_rows_, shape.num_sequences * shape.rows);
        most_blocks_ = std::max<std::int64_t>(most_blocks_, shape.num_blocks());
        longest_ = std::max(longest_, shape.context_len);
        most_sequences_ = std::max(most_sequences_, shape.num_sequences);
      }
    }
    const std::int64_t width = std::int64_t{heads_.num_heads} * heads_.head_dim;
    const std::int64_t bytes = most_rows_ * width * 4;
    OCTAVO_TRY(queries_, bench_.random().allocate(Numbers::kF32, bytes));
    OCTAVO_TRY(rotated_, bench_.random().allocate(Numbers::kF32, bytes));
    OCTAVO_TRY(keys_, bench_.random().allocate(Numbers::kF32, bytes));
    OCTAVO_TRY(values_, bench_.random().allocate(Numbers::kF32, bytes));
    OCTAVO_TRY(out_, bench_.random().allocate(Numbers::kF32, bytes));
    attention_ =
        PagedAttention::create(bench_.stream(), {.num_multiprocessors = bench_.figures().num_multiprocessors,
                                                 .max_shared_bytes = bench_.figures().max_shared_bytes});
    return attention_->reserve(step_shape());
  }

  Result<void> measure(const NamedType& type) {
    const KvLayout layout{type.type, kBlockSize, kLayers, heads_.num_kv_heads, heads_.head_dim};
    const std::int64_t enough =
        bench_.sizes().is_emulated ? 0 : 8 * bench_.figures().cache_bytes / layout.layer(0).bytes();
    const std::int64_t num_blocks = std::max(most_blocks_, enough);
    const std::string missing = bench_.memory_is_missing(num_blocks * layout.block_bytes());
    if (!missing.empty()) {
      bench_.leave_out(named_record(type, "all"), missing);
      return {};
    }
    OCTAVO_TRY(const DeviceMemory pool,
               DeviceMemory::allocate(num_blocks * layout.block_bytes(), "the KV pool"));
    OCTAVO_TRY_VOID(bench_.random().fill_pool(layout, pool.data(), num_blocks));
    blocks_ = shuffled_blocks(num_blocks);
    OCTAVO_TRY_VOID(measure_shapes(type, layout, pool.data(), decode_shapes(bench_.sizes())));
    return measure_shapes(type, layout, pool.data(), prefill_shapes(bench_.sizes()));
  }

 private:
  kernels::StepShape step_shape() const {
    kernels::StepShape step;
    step.num_rows = most_rows_;
    step.max_context_len = longest_;
    step.max_num_sequences = most_sequences_;
    step.block_size = kBlockSize;
    step.embedding_length = heads_.num_heads * heads_.head_dim;
    step.num_heads = heads_.num_heads;
    step.num_kv_heads = heads_.num_kv_heads;
    step.head_dim = heads_.head_dim;
    return step;
  }

  Record named_record(const NamedType& type, const std::string& what) const {
    Record record;
    record.section = "attention";
    record.name = std::string("KV ") + type.name + ", " + what;
    record.facts = {{"kv", type.name}};
    record.limit_bytes = bench_.limits().copy_bytes;
    return record;
  }

  // Several batches of other blocks, as far as the pool has them: decode reads little enough for the
  // second-level cache.
  Result<std::vector<UploadedBatch>> batches(const BatchShape& shape) const {
    const std::int64_t most = shape.rows == 1 ? 64 : 2;
    const auto room = static_cast<std::int64_t>(blocks_.size()) / shape.num_blocks();
    std::vector<UploadedBatch> uploaded;
    for (std::int64_t i = 0; i < std::min(room, most); ++i) {
      OCTAVO_TRY(UploadedBatch batch,
                 UploadedBatch::create(
                     shape, HostBatch(shape, blocks_, static_cast<std::size_t>(i * shape.num_blocks()))));
      uploaded.push_back(std::move(batch));
    }
    return uploaded;
  }

  Result<void> measure_shapes(const NamedType& type, const KvLayout& layout, std::byte* pool,
                              const std::vector<BatchShape>& shapes) {
    std::vector<std::vector<UploadedBatch>> all;
    for (const BatchShape& shape : shapes) {
      OCTAVO_TRY(std::vector<UploadedBatch> uploaded, batches(shape));
      all.push_back(std::move(uploaded));
    }
    std::vector<Case> cases;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      cases.push_back({attend_record(type, layout, shapes[i]),
                       [this, &layout, pool, &batches = all[i]](std::int64_t call) {
                         attend(layout, pool, batches, call);
                       }});
      cases.push_back({write_record(type, layout, shapes[i]),
                       [this, &layout, pool, &batches = all[i]](std::int64_t call) {
                         write(layout, pool, batches, call);
                       }});
    }
    return bench_.measure(std::move(cases), bench_.stream_timer());
  }

  static std::pair<const DeviceBatch*, std::int32_t> turn(const std::vector<UploadedBatch>& batches,
                                                          std::int64_t call) {
    const auto index = static_cast<std::size_t>(call);
    return {&batches[index % batches.size()].get(),
            static_cast<std::int32_t>(index / batches.size() % kLayers)};
  }

  void attend(const KvLayout& layout, const std::byte* pool, const std::vector<UploadedBatch>& batches,
              std::int64_t call) {
    const auto [batch, layer] = turn(batches, call);
    const std::int64_t width = std::int64_t{heads_.num_heads} * heads_.head_dim;
    attention_->attend(heads_, *batch, layout, layer, pool, queries_.as<float>(), width, out_.as<float>(),
                       width);
  }

  void write(const KvLayout& layout, std::byte* pool, const std::vector<UploadedBatch>& batches,
             std::int64_t call) {
    const auto [batch, layer] = turn(batches, call);
    const std::int64_t head_dim = heads_.head_dim;
    kernels::cuda::write_kv(bench_.stream(), heads_, *batch, layout, layer, rotated_.as<float>(),
                            heads_.num_heads * head_dim, keys_.as<float>(), values_.as<float>(),
                            heads_.num_kv_heads * head_dim, pool);
  }

  static std::string name_of(const BatchShape& shape) {
    if (shape.rows == 1)
      return "decode " + std::to_string(shape.num_sequences) + " x " + std::to_string(shape.context_len);
    return "prefill " + std::to_string(shape.num_sequences) + " x " + std::to_string(shape.rows);
  }

  // A row's queries and results, and each key and value once. Prefill: only scores below the diagonal are
  // needed.
  Record attend_record(const NamedType& type, const KvLayout& layout, const BatchShape& shape) const {
    const double rows = shape.num_sequences * static_cast<double>(shape.rows);
    const double width = heads_.num_heads * static_cast<double>(heads_.head_dim);
    const double kv_bytes = static_cast<double>(layout.layer(0).bytes()) / layout.block_size;
    const double mean_context = shape.context_len - 0.5 * (shape.rows - 1);
    Record record = named_record(type, name_of(shape));
    record.facts.emplace_back("operation", shape.rows == 1 ? "decode" : "prefill");
    record.bytes = kv_bytes * shape.num_sequences * shape.context_len + 2 * 4 * rows * width;
    record.operations = 4 * rows * mean_context * width;
    record.limit_operations = bench_.limits().f16_operations;
    record.tokens = rows;
    return record;
  }

  // Queries are rotated where they stand; keys and values come as floats and leave as the pool's type.
  Record write_record(const NamedType& type, const KvLayout& layout, const BatchShape& shape) const {
    const double rows = shape.num_sequences * static_cast<double>(shape.rows);
    const double head_dim = heads_.head_dim;
    const double kv_bytes = static_cast<double>(layout.layer(0).bytes()) / layout.block_size;
    Record record = named_record(type, "write after " + name_of(shape));
    record.facts.emplace_back("operation", "write");
    record.bytes =
        rows * (2 * 4 * heads_.num_heads * head_dim + 2 * 4 * heads_.num_kv_heads * head_dim + kv_bytes);
    record.tokens = rows;
    return record;
  }

  Bench& bench_;
  const AttentionShape heads_;
  std::unique_ptr<PagedAttention> attention_;
  DeviceMemory queries_, rotated_, keys_, values_, out_;
  std::vector<std::int32_t> blocks_;
  std::int32_t most_rows_ = 0, longest_ = 0, most_sequences_ = 0;
  std::int64_t most_blocks_ = 0;
};

}  // namespace

Result<void> measure_attention(Bench& bench) {
  Attention attention(bench);
  OCTAVO_TRY_VOID(attention.prepare());
  for (const NamedType& type : kTypes) {
    const bool is_quick_one = type.type == KvType::kF16 || type.type == KvType::kFp8E4m3;
    if (bench.sizes().is_quick && !is_quick_one) continue;
    OCTAVO_TRY_VOID(attention.measure(type));
  }
  return {};
}

}  // namespace octavo::bench
