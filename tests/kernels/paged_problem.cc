#include "tests/kernels/paged_problem.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "engine/base/half.h"
#include "engine/base/hash.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/float8.h"
#include "kernels/reference/reference_backend.h"

namespace octavo::kernels::testing {
namespace {

constexpr std::int32_t kInvalidBlock = std::numeric_limits<std::int32_t>::max();
constexpr std::int32_t kUnusedBlocks = 5;

std::vector<std::int32_t> shuffled_blocks(std::int32_t count, std::uint64_t seed) {
  std::vector<std::int32_t> blocks(static_cast<std::size_t>(count));
  std::iota(blocks.begin(), blocks.end(), 0);
  for (std::size_t i = blocks.size(); i > 1; --i) std::swap(blocks[i - 1], blocks[hash_combine(seed, i) % i]);
  return blocks;
}

std::int32_t blocks_for(const SequenceSpec& sequence, std::int32_t block_size) {
  return (sequence.history + sequence.new_tokens + block_size - 1) / block_size;
}

// The sequence whose keys and values stand at the position.
const SequenceSpec& owner_of(const std::vector<SequenceSpec>& sequences, std::int32_t sequence,
                             std::int32_t position) {
  const SequenceSpec& spec = sequences[static_cast<std::size_t>(sequence)];
  return position < spec.num_shared ? owner_of(sequences, spec.parent, position) : spec;
}

void add_rotations(PagedProblem& problem, std::int32_t position) {
  const std::int32_t rotary_dim = problem.shape.attention.rotary_dim;
  for (std::int32_t i = 0; i < rotary_dim / 2; ++i) {
    const double angle = position * std::pow(10000.0, -2.0 * i / rotary_dim);
    problem.rotations.push_back(static_cast<float>(std::cos(angle)));
    problem.rotations.push_back(static_cast<float>(std::sin(angle)));
  }
}

void fill_token(PagedProblem& problem, std::int32_t sequence, std::int32_t position, std::uint64_t seed) {
  const std::uint64_t token =
      hash_combine(owner_of(problem.sequences, sequence, position).id, static_cast<std::uint64_t>(position));
  for (std::int32_t layer = 0; layer < problem.layout.num_layers(); ++layer) {
    for (std::int32_t head = 0; head < problem.layout.layer(layer).num_kv_heads; ++head) {
      const auto place = static_cast<std::uint64_t>(layer * 1000 + head);
      std::vector<float> key, value;
      for (std::int32_t d = 0; d < problem.layout.layer(layer).head_dim; ++d) {
        const auto dimension = static_cast<std::uint64_t>(d);
        key.push_back(2 * noise(seed, token, place, dimension));
        value.push_back(noise(seed + 1, token, place, dimension));
      }
      problem.store(sequence, position, layer, head, key, value);
    }
  }
}

}  // namespace

float noise(std::uint64_t seed, std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  const std::uint64_t bits = hash_combine(hash_combine(hash_combine(seed, a), b), c);
  return static_cast<float>(static_cast<double>(bits >> 11) * 0x1.0p-52 - 1.0);
}

std::vector<float> noise_row(std::uint64_t seed, std::uint64_t index, std::int64_t size, float scale) {
  std::vector<float> row(static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < row.size(); ++i) row[i] = scale * noise(seed, index, i);
  return row;
}

Shape smollm2_shape() { return {"smollm2", {9, 3, 64, 64, RopePairing::kInterleaved, 0.125f}, 576, 1536}; }
Shape llama3_shape() {
  return {"llama3", {32, 8, 128, 128, RopePairing::kInterleaved, 0.08838835f}, 4096, 14336};
}
Shape one_tiny_head() { return {"one_tiny_head", {1, 1, 8, 8, RopePairing::kHalves, 0.35355339f}, 32, 64}; }
Shape odd_shape() { return {"odd", {4, 2, 80, 32, RopePairing::kHalves, 0.11180340f}, 96, 160}; }
Shape latent_shape() {
  Shape shape{"latent", {20, 1, 72, 8, RopePairing::kInterleaved, 0.11785113f}, 96, 160};
  shape.attention.latent_dim = 64;
  return shape;
}
Shape odd_latent_shape() {
  Shape shape{"odd_latent", {5, 1, 27, 6, RopePairing::kInterleaved, 0.19245009f}, 57, 71};
  shape.attention.latent_dim = 21;
  return shape;
}

PagedBatch PagedProblem::batch() const {
  return {.num_tokens = static_cast<std::int32_t>(positions.size()),
          .num_sequences = static_cast<std::int32_t>(sequences.size()),
          .positions = positions,
          .slot_mapping = slot_mapping,
          .query_start = query_start,
          .context_lens = context_lens,
          .block_tables = block_tables,
          .max_blocks = max_blocks,
          .rotations = rotations};
}

std::byte* PagedProblem::head_start(std::int32_t sequence, std::int32_t position, std::int32_t layer,
                                    std::int32_t head) {
  const std::int32_t block =
      block_tables[static_cast<std::size_t>(sequence * max_blocks + position / layout.block_size)];
  return pool.data() + layout.head_offset(block, layer, head);
}

std::byte* PagedProblem::key(std::int32_t sequence, std::int32_t position, std::int32_t layer,
                             std::int32_t head, std::int32_t dimension) {
  return head_start(sequence, position, layer, head) +
         layout.layer(layer).key_index(dimension, position % layout.block_size) *
             kv_element_bytes(layout.type);
}

std::byte* PagedProblem::value(std::int32_t sequence, std::int32_t position, std::int32_t layer,
                               std::int32_t head, std::int32_t dimension) {
  if (layout.layer(layer).is_latent()) return key(sequence, position, layer, head, dimension);
  return head_start(sequence, position, layer, head) + layout.layer(layer).half_head_bytes +
         layout.layer(layer).value_index(position % layout.block_size, dimension) *
             kv_element_bytes(layout.type);
}

std::byte* PagedProblem::key_scale(std::int32_t sequence, std::int32_t position, std::int32_t layer,
                                   std::int32_t head) {
  return head_start(sequence, position, layer, head) +
         layout.layer(layer).key_scale_offset(position % layout.block_size);
}

std::byte* PagedProblem::value_scale(std::int32_t sequence, std::int32_t position, std::int32_t layer,
                                     std::int32_t head) {
  return head_start(sequence, position, layer, head) +
         layout.layer(layer).value_scale_offset(position % layout.block_size);
}

void PagedProblem::store(std::int32_t sequence, std::int32_t position, std::int32_t layer, std::int32_t head,
                         const std::vector<float>& key_values, const std::vector<float>& value_values) {
  const auto store_all = [&](const std::vector<float>& numbers, std::byte* scale, auto&& address_of) {
    const float factor = int8_scale(numbers);
    if (layout.has_scales()) std::memcpy(scale, &factor, sizeof factor);
    for (std::int32_t d = 0; d < layout.layer(layer).head_dim; ++d)
      write_element(layout.type, address_of(d), numbers[static_cast<std::size_t>(d)], factor);
  };
  store_all(key_values, key_scale(sequence, position, layer, head),
            [&](std::int32_t d) { return key(sequence, position, layer, head, d); });
  if (layout.layer(layer).is_latent()) return;
  store_all(value_values, value_scale(sequence, position, layer, head),
            [&](std::int32_t d) { return value(sequence, position, layer, head, d); });
}

double PagedProblem::stored_key(std::int32_t sequence, std::int32_t position, std::int32_t layer,
                                std::int32_t head, std::int32_t dimension) {
  float scale = 1.0f;
  if (layout.has_scales()) std::memcpy(&scale, key_scale(sequence, position, layer, head), sizeof scale);
  return read_element(layout.type, key(sequence, position, layer, head, dimension), scale);
}

double PagedProblem::stored_value(std::int32_t sequence, std::int32_t position, std::int32_t layer,
                                  std::int32_t head, std::int32_t dimension) {
  float scale = 1.0f;
  if (layout.has_scales()) std::memcpy(&scale, value_scale(sequence, position, layer, head), sizeof scale);
  return read_element(layout.type, value(sequence, position, layer, head, dimension), scale);
}

void PagedProblem::spoil(std::int32_t sequence, std::int32_t position, std::int32_t layer,
                         std::optional<float> key_number, float value_number) {
  for (std::int32_t head = 0; head < layout.layer(layer).num_kv_heads; ++head) {
    if (layout.has_scales()) {
      if (key_number) std::memcpy(key_scale(sequence, position, layer, head), &*key_number, sizeof(float));
      std::memcpy(value_scale(sequence, position, layer, head), &value_number, sizeof(float));
      continue;
    }
    for (std::int32_t d = 0; d < layout.layer(layer).head_dim; ++d) {
      if (key_number) write_element(layout.type, key(sequence, position, layer, head, d), *key_number);
      write_element(layout.type, value(sequence, position, layer, head, d), value_number);
    }
  }
}

const char* name_of(KvType type) {
  static constexpr const char* kNames[] = {"f32", "f16", "bf16", "int8", "e4m3", "e5m2"};
  return kNames[static_cast<std::size_t>(type)];
}

PagedProblem make_problem(const Shape& shape, const std::vector<SequenceSpec>& sequences,
                          const ProblemOptions& options) {
  PagedProblem problem;
  problem.shape = shape;
  problem.sequences = sequences;
  problem.layout = {options.type, options.block_size,
                    std::vector<KvHeads>(static_cast<std::size_t>(options.num_layers),
                                         {shape.attention.num_kv_heads, shape.attention.head_dim,
                                          shape.attention.latent_dim})};
  std::int32_t used = 0;
  for (const SequenceSpec& sequence : sequences) {
    problem.max_blocks = std::max(problem.max_blocks, blocks_for(sequence, options.block_size) + 2);
    used += blocks_for(sequence, options.block_size);
  }
  problem.num_blocks = used + kUnusedBlocks;
  problem.pool.assign(static_cast<std::size_t>(problem.num_blocks * problem.layout.block_bytes()),
                      std::byte{0xff});
  problem.block_tables.assign(sequences.size() * static_cast<std::size_t>(problem.max_blocks), kInvalidBlock);

  const std::vector<std::int32_t> blocks = shuffled_blocks(problem.num_blocks, options.seed);
  std::size_t next_block = 0;
  problem.query_start.push_back(0);
  for (std::int32_t s = 0; s < static_cast<std::int32_t>(sequences.size()); ++s) {
    const SequenceSpec& sequence = sequences[static_cast<std::size_t>(s)];
    const std::int32_t num_shared = options.share_blocks ? sequence.num_shared / options.block_size : 0;
    for (std::int32_t i = 0; i < blocks_for(sequence, options.block_size); ++i) {
      const auto parent_block = static_cast<std::size_t>(sequence.parent * problem.max_blocks + i);
      problem.block_tables[static_cast<std::size_t>(s * problem.max_blocks + i)] =
          i < num_shared ? problem.block_tables[parent_block] : blocks[next_block++];
    }
    const std::int32_t context = sequence.history + sequence.new_tokens;
    for (std::int32_t position = sequence.history; position < context; ++position) {
      const std::int32_t block =
          problem
              .block_tables[static_cast<std::size_t>(s * problem.max_blocks + position / options.block_size)];
      problem.positions.push_back(position);
      problem.slot_mapping.push_back(block * options.block_size + position % options.block_size);
      add_rotations(problem, position);
    }
    problem.context_lens.push_back(context);
    problem.query_start.push_back(static_cast<std::int32_t>(problem.positions.size()));
    const std::int32_t stored = options.new_tokens_stored ? context : sequence.history;
    for (std::int32_t position = 0; position < stored; ++position)
      fill_token(problem, s, position, options.seed);
  }
  return problem;
}

float int8_scale(const std::vector<float>& values) {
  float largest = 0.0f;
  for (const float value : values) largest = std::max(largest, std::fabs(value));
  return largest / 127.0f;
}

void write_element(KvType type, std::byte* target, float value, float scale) {
  const auto put = [target](auto word) { std::memcpy(target, &word, sizeof word); };
  switch (type) {
    case KvType::kF32: return put(value);
    case KvType::kF16: return put(float_to_half(value));
    case KvType::kBf16: return put(float_to_bfloat16(value));
    case KvType::kInt8: return put(static_cast<std::int8_t>(std::nearbyint(value / scale)));
    case KvType::kFp8E4m3: return put(Fp8E4m3::from_float(value));
    case KvType::kFp8E5m2: return put(Fp8E5m2::from_float(value));
  }
}

double read_element(KvType type, const std::byte* source, float scale) {
  const auto get = [source](auto word) {
    std::memcpy(&word, source, sizeof word);
    return word;
  };
  // sign, exponent, mantissa; infinities and NaNs are not asked for
  const auto small_float = [&](int mantissa_bits, int bias) {
    const int code = get(std::uint8_t{}), magnitude = code & 0x7f, exponent = magnitude >> mantissa_bits;
    const double mantissa =
        (magnitude & ((1 << mantissa_bits) - 1)) + (exponent > 0 ? 1 << mantissa_bits : 0);
    const double value = std::ldexp(mantissa, std::max(exponent, 1) - bias - mantissa_bits);
    return code >= 0x80 ? -value : value;
  };
  switch (type) {
    case KvType::kF32: return get(float{});
    case KvType::kF16: return half_to_float(get(std::uint16_t{}));
    case KvType::kBf16: return bfloat16_to_float(get(std::uint16_t{}));
    case KvType::kInt8: return double{scale} * get(std::int8_t{});
    case KvType::kFp8E4m3: return small_float(3, 7);
    case KvType::kFp8E5m2: return small_float(2, 15);
  }
  return 0.0;
}

std::vector<float> rows_of(const PagedProblem& problem, std::uint64_t seed, std::int64_t width, float scale) {
  std::vector<float> rows;
  for (const SequenceSpec& sequence : problem.sequences) {
    for (std::int32_t i = 0; i < sequence.new_tokens; ++i) {
      const std::uint64_t token = hash_combine(sequence.id, static_cast<std::uint64_t>(sequence.history + i));
      const std::vector<float> row = noise_row(seed, token, width, scale);
      rows.insert(rows.end(), row.begin(), row.end());
    }
  }
  return rows;
}

std::byte* pool_bytes(Backend& backend, KvCache& kv) {
  if (backend.name() == "reference") return static_cast<reference::ReferenceKvCache&>(kv).data();
  return static_cast<cpu::CpuKvCache&>(kv).data();
}

std::byte* pool_bytes(Backend& backend, HostKvCache& kv) {
  if (backend.name() == "reference") return static_cast<reference::ReferenceHostKvCache&>(kv).data();
  return static_cast<cpu::CpuHostKvCache&>(kv).data();
}

std::unique_ptr<KvCache> cache_with(Backend& backend, const PagedProblem& problem) {
  std::unique_ptr<KvCache> kv = backend.allocate_kv_cache(problem.layout, problem.num_blocks).value();
  std::memcpy(pool_bytes(backend, *kv), problem.pool.data(), problem.pool.size());
  return kv;
}

std::unique_ptr<Backend> cpu_backend(cpu::InstructionSet isa, std::int32_t threads, Activation activation) {
  return cpu::create_cpu_backend(threads, activation, isa).value();
}

std::unique_ptr<Backend> reference_backend(Activation activation) {
  return reference::create_reference_backend(activation);
}

std::vector<float> queries_of(const PagedProblem& problem) {
  return rows_of(problem, 7, problem.shape.query_width(), 3.0f);
}

std::vector<float> run_attention(Backend& backend, const PagedProblem& problem, std::int32_t layer) {
  const std::int64_t width = problem.shape.query_width(), out_width = problem.shape.output_width();
  const std::vector<float> q = queries_of(problem);
  std::vector<float> out(static_cast<std::size_t>(problem.num_rows() * out_width),
                         std::numeric_limits<float>::quiet_NaN());
  const std::unique_ptr<KvCache> kv = cache_with(backend, problem);
  backend.begin_step(problem.batch(), {});
  backend.paged_attention(problem.shape.attention, problem.batch(), layer, *kv, view(q, width),
                          view(out, out_width));
  return out;
}

MatrixView view(std::vector<float>& values, std::int64_t columns) {
  return {values.data(), static_cast<std::int64_t>(values.size()) / columns, columns, columns};
}

ConstMatrixView view(const std::vector<float>& values, std::int64_t columns) {
  return {values.data(), static_cast<std::int64_t>(values.size()) / columns, columns, columns};
}

namespace {

// Where a block of a quantised type has its f16 numbers. -1: no min.
struct F16Fields {
  int scale = 0, min = -1;
};

F16Fields f16_fields(TensorType type) {
  switch (type) {
    case TensorType::kQ4_1:
    case TensorType::kQ5_1:
    case TensorType::kQ4_K:
    case TensorType::kQ5_K: return {0, 2};
    case TensorType::kQ2_K: return {80, 82};
    case TensorType::kQ3_K: return {108, -1};
    case TensorType::kQ6_K: return {208, -1};
    default: return {};
  }
}

}  // namespace

OwnedMatrix random_matrix(TensorType type, std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
  const TensorTypeTraits& traits = traits_of(type);
  OwnedMatrix matrix;
  const std::int64_t num_blocks = rows * columns / traits.block_elements;
  matrix.bytes.resize(static_cast<std::size_t>(num_blocks * traits.block_bytes));
  for (std::int64_t b = 0; b < num_blocks; ++b) {
    std::byte* block = matrix.bytes.data() + b * traits.block_bytes;
    const auto index = static_cast<std::uint64_t>(b);
    if (!traits.quantised) {
      const KvType element = type == TensorType::kF32   ? KvType::kF32
                             : type == TensorType::kF16 ? KvType::kF16
                                                        : KvType::kBf16;
      write_element(element, block, 0.1f * noise(seed, index));
      continue;
    }
    for (std::int32_t i = 0; i < traits.block_bytes; ++i) {
      block[i] = static_cast<std::byte>(
          hash_combine(hash_combine(seed, index), static_cast<std::uint64_t>(i)) & 0xff);
    }
    // Small, as in real files, and finite.
    if (type == TensorType::kMXFP4) {
      block[0] = static_cast<std::byte>(117 + index % 4);
      continue;
    }
    const F16Fields fields = f16_fields(type);
    const float scale = (type == TensorType::kQ4_1 ? 0.01f : 0.001f) * (1.0f + 0.5f * noise(seed, index, 1));
    write_element(KvType::kF16, block + fields.scale, scale);
    if (fields.min >= 0) write_element(KvType::kF16, block + fields.min, -7.5f * scale);
  }
  matrix.source = {type, rows, columns, matrix.bytes};
  return matrix;
}

double relative_difference(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double difference = 0.0, largest = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) return std::numeric_limits<double>::infinity();
    difference = std::max(difference, std::fabs(double{a[i]} - double{b[i]}));
    largest = std::max(largest, std::fabs(double{b[i]}));
  }
  return difference / std::max(largest, 1e-30);
}

bool same_bits(const float* a, const float* b, std::int64_t size) {
  return std::memcmp(a, b, static_cast<std::size_t>(size) * sizeof(float)) == 0;
}

}  // namespace octavo::kernels::testing
