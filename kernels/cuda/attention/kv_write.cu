// The paper's fused reshape and block write, with norms of single heads (Zhang & Sennrich 2019,
// arXiv:1910.07467) and rotation by position (Su et al. 2021, arXiv:2104.09864): a warp for a head of a row.
// A key's numbers go to head_dim different places, block_size apart, as kv_layout.h wants it: a step of one
// token writes a sector of 32 bytes for each; for 64 sequences of an 8-head layer of 128 that is 2 MB, where
// attention over 8,192 tokens reads 2 GB. Of chunks, 16 rows of a head meet in shared memory first, so that
// the keys of neighbouring tokens fill their sectors: of 2,048 rows that saves two million partial sectors.
#include <cfloat>
#include <cmath>
#include <type_traits>

#include "kernels/cuda/attention/kv_write.h"
#include "kernels/cuda/attention/stored.cuh"
#include "kernels/cuda/runtime/hardware.cuh"
#include "kernels/cuda/runtime/reduction.cuh"

namespace octavo::kernels::cuda {
namespace {

constexpr unsigned kWarps = 4;
constexpr int kMostNumbers = 8;  // of a head in one lane
constexpr int kChunkRows = 16;

// A head's numbers, normalised if there is a weight.
struct Head {
  const float* numbers;
  const float* norm;  // null: none
  float factor;

  // REQUIRES: all lanes of the warp
  __device__ static Head of(const float* numbers, int head_dim, const float* norm, float epsilon) {
    if (norm == nullptr) return {numbers, nullptr, 1.0f};
    float sum = 0.0f;
    for (int i = static_cast<int>(threadIdx.x % kWarp); i < head_dim; i += static_cast<int>(kWarp)) {
      sum = fmaf(numbers[i], numbers[i], sum);
    }
    return {numbers, norm, 1.0f / sqrtf(warp_sum(sum) / static_cast<float>(head_dim) + epsilon)};
  }
  __device__ float at(int dimension) const {
    return norm == nullptr ? numbers[dimension] : numbers[dimension] * factor * norm[dimension];
  }
};

struct HeadRotation {
  const float* angles;  // of the row: cosine, sine for each pair
  int rotary_dim;
  bool is_interleaved;

  __device__ int first_of_pair(int pair) const { return is_interleaved ? 2 * pair : pair; }
  __device__ int second_of_pair(int pair) const {
    return is_interleaved ? 2 * pair + 1 : pair + rotary_dim / 2;
  }
  __device__ int pair_of(int dimension) const {
    if (is_interleaved) return dimension / 2;
    return dimension < rotary_dim / 2 ? dimension : dimension - rotary_dim / 2;
  }

  __device__ float2 rotated(const Head& head, int pair) const {
    const float first = head.at(first_of_pair(pair)), second = head.at(second_of_pair(pair));
    const float cosine = angles[2 * pair], sine = angles[2 * pair + 1];
    return make_float2(fmaf(first, cosine, -(second * sine)), fmaf(first, sine, second * cosine));
  }
  __device__ float at(const Head& head, int dimension) const {
    if (dimension >= rotary_dim) return head.at(dimension);
    const int pair = pair_of(dimension);
    const float2 numbers = rotated(head, pair);
    return dimension == first_of_pair(pair) ? numbers.x : numbers.y;
  }
};

// A lane reads the two numbers that it writes, and no others.
__device__ void rotate_in_place(float* numbers, int head_dim, const Head& head,
                                const HeadRotation& rotation) {
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  for (int pair = lane; pair < rotation.rotary_dim / 2; pair += static_cast<int>(kWarp)) {
    const float2 rotated = rotation.rotated(head, pair);
    numbers[rotation.first_of_pair(pair)] = rotated.x;
    numbers[rotation.second_of_pair(pair)] = rotated.y;
  }
  if (head.norm == nullptr) return;
  for (int i = rotation.rotary_dim + lane; i < head_dim; i += static_cast<int>(kWarp))
    numbers[i] = head.at(i);
}

// The scale of kv_layout.h for a head's numbers, `count` of them in this lane.
__device__ float int8_scale(const float (&numbers)[kMostNumbers], int count) {
  float largest = 0.0f;
  bool is_finite = true;
#pragma unroll
  for (int i = 0; i < kMostNumbers; ++i) {
    if (i >= count) break;
    largest = fmaxf(largest, fabsf(numbers[i]));
    is_finite = is_finite && fabsf(numbers[i]) <= FLT_MAX;
  }
  if (__all_sync(kAllLanes, is_finite) == 0) return __uint_as_float(0x7fc00000u);
  const float smallest = warp_max(largest) / 127.0f;
  if (smallest < FLT_MIN) return 0.0f;
  float best = smallest, best_error = FLT_MAX;
  for (int candidate = 0; candidate < 8; ++candidate) {
    const float scale = smallest * (1.0f + static_cast<float>(candidate) / 128.0f);
    float error = 0.0f;
#pragma unroll
    for (int i = 0; i < kMostNumbers; ++i) {
      if (i >= count) break;
      const float difference = fmaf(-scale, rintf(numbers[i] / scale), numbers[i]) / smallest;
      error = fmaf(difference, difference, error);
    }
    error = warp_sum(error);
    if (error < best_error) best = scale, best_error = error;
  }
  return best;
}

// `start`: of the head's keys or values. REQUIRES: stride > 0.
template <KvType kType>
__device__ void store_head(const float (&numbers)[kMostNumbers], int head_dim, std::byte* start,
                           std::int64_t first, std::int64_t stride, std::byte* scale_place) {
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  const int count =
      lane < head_dim ? (head_dim - lane + static_cast<int>(kWarp) - 1) / static_cast<int>(kWarp) : 0;
  float scale = 1.0f;
  if constexpr (kType == KvType::kInt8) {
    scale = int8_scale(numbers, count);
    if (lane == 0) *reinterpret_cast<float*>(scale_place) = scale;
  }
#pragma unroll
  for (int i = 0; i < kMostNumbers; ++i) {
    if (i >= count) break;
    store_number<kType>(start, first + (lane + i * static_cast<int>(kWarp)) * stride, numbers[i], scale);
  }
}

struct WriteArguments {
  DeviceBatch batch;
  KvPlaces places;
  float* q;
  const float* k;
  const float* v;
  std::int64_t q_stride, kv_stride;
  const float* rotations;  // of this layer
  const float* query_norm;
  const float* key_norm;
  float norm_epsilon;
  std::int32_t num_heads, num_kv_heads, rotary_dim, is_interleaved, padding;
};

__device__ HeadRotation rotation_of(const WriteArguments& arguments, std::int64_t row) {
  const std::int32_t* const rows = arguments.batch.rows_of_rotations;
  const std::int64_t index = rows == nullptr ? row : rows[row];
  return {arguments.rotations + index * arguments.rotary_dim, arguments.rotary_dim,
          arguments.is_interleaved != 0};
}

__device__ void rotate_query(const WriteArguments& arguments, std::int64_t row, int query_head) {
  const int head_dim = arguments.places.head_dim;
  float* const query = arguments.q + row * arguments.q_stride + query_head * head_dim;
  rotate_in_place(query, head_dim, Head::of(query, head_dim, arguments.query_norm, arguments.norm_epsilon),
                  rotation_of(arguments, row));
}

// Of this lane: every 32nd number of a row's key and value.
struct KeyAndValue {
  float keys[kMostNumbers] = {}, values[kMostNumbers] = {};

  __device__ KeyAndValue(const WriteArguments& arguments, std::int64_t row, int head) {
    const int head_dim = arguments.places.head_dim;
    const HeadRotation rotation = rotation_of(arguments, row);
    const std::int64_t first = row * arguments.kv_stride + head * head_dim;
    const Head key = Head::of(arguments.k + first, head_dim, arguments.key_norm, arguments.norm_epsilon);
#pragma unroll
    for (int i = 0; i < kMostNumbers; ++i) {
      const int dimension = static_cast<int>(threadIdx.x % kWarp) + i * static_cast<int>(kWarp);
      if (dimension >= head_dim) continue;
      keys[i] = rotation.at(key, dimension);
      values[i] = arguments.v[first + dimension];
    }
  }
};

struct SlotOfHead {
  const KvPlaces& places;
  std::byte* start;  // of the block's head
  int offset;

  __device__ SlotOfHead(const KvPlaces& all, std::int32_t slot, int head)
      : places(all), start(all.head(slot / all.block_size, head)), offset(slot % all.block_size) {}

  __device__ std::byte* key_scale() const { return start + places.key_scale_offset + kKvScaleBytes * offset; }
  template <KvType kType>
  __device__ void store_value(const KeyAndValue& numbers) const {
    store_head<kType>(numbers.values, places.head_dim, start + places.value_offset,
                      places.value_index(offset, 0), 1,
                      start + places.value_scale_offset + kKvScaleBytes * offset);
  }
};

// For single rows. A slot below 0 is of a row that only fills the step up.
template <KvType kType>
__global__ void __launch_bounds__(kWarps* kWarp)
    write_kv_rows(const __grid_constant__ WriteArguments arguments) {
  let_next_begin();
  await_inputs();
  const std::int64_t row = blockIdx.x;
  const int head = static_cast<int>(blockIdx.y * kWarps + threadIdx.x / kWarp);
  if (head >= arguments.num_kv_heads) {
    const int query_head = head - arguments.num_kv_heads;
    if (arguments.q != nullptr && query_head < arguments.num_heads) rotate_query(arguments, row, query_head);
    return;
  }
  const std::int32_t slot = arguments.batch.slot_mapping[row];
  if (slot < 0) return;
  const KvPlaces& places = arguments.places;
  const KeyAndValue numbers(arguments, row, head);
  const SlotOfHead place(places, slot, head);
  store_head<kType>(numbers.keys, places.head_dim, place.start, places.key_index(0, place.offset),
                    places.key_index(1, 0) - places.key_index(0, 0), place.key_scale());
  place.store_value<kType>(numbers);
}

// Keys of 16 rows [head_dim][16] as they are stored, four bytes more from dimension to dimension, against
// bank conflicts.
template <KvType kType>
struct KeysOfChunk {
  static constexpr int kBytes = static_cast<int>(kv_element_bytes(kType));
  static constexpr int kPitch = kChunkRows + 4 / kBytes;
  using Number = std::conditional_t<kBytes == 1, std::uint8_t,
                                    std::conditional_t<kBytes == 2, std::uint16_t, std::uint32_t>>;

  Number numbers[kMostNumbers * static_cast<int>(kWarp) * kPitch];

  // Neighbouring threads have neighbouring tokens.
  __device__ void store(const WriteArguments& arguments, std::int64_t first_row, int head) const {
    const int token = static_cast<int>(threadIdx.x) % kChunkRows;
    if (first_row + token >= arguments.batch.num_tokens) return;
    const std::int32_t slot = arguments.batch.slot_mapping[first_row + token];
    if (slot < 0) return;
    const SlotOfHead place(arguments.places, slot, head);
    auto* const keys = reinterpret_cast<Number*>(place.start) + place.offset;
    for (int dimension = static_cast<int>(threadIdx.x) / kChunkRows; dimension < arguments.places.head_dim;
         dimension += static_cast<int>(kWarps * kWarp) / kChunkRows) {
      keys[arguments.places.key_index(dimension, 0)] = numbers[dimension * kPitch + token];
    }
  }
};

// For chunks: a block has one head of 16 rows, its warps take them in turn.
template <KvType kType>
__global__ void __launch_bounds__(kWarps* kWarp)
    write_kv_chunks(const __grid_constant__ WriteArguments arguments) {
  let_next_begin();
  await_inputs();
  __shared__ KeysOfChunk<kType> keys;
  const std::int64_t first_row = static_cast<std::int64_t>(blockIdx.x) * kChunkRows;
  const int head = static_cast<int>(blockIdx.y);
  for (int i = static_cast<int>(threadIdx.x / kWarp); i < kChunkRows; i += static_cast<int>(kWarps)) {
    const std::int64_t row = first_row + i;
    if (row >= arguments.batch.num_tokens) break;
    if (head >= arguments.num_kv_heads) {
      rotate_query(arguments, row, head - arguments.num_kv_heads);
      continue;
    }
    const std::int32_t slot = arguments.batch.slot_mapping[row];
    if (slot < 0) continue;
    const KeyAndValue numbers(arguments, row, head);
    const SlotOfHead place(arguments.places, slot, head);
    store_head<kType>(numbers.keys, arguments.places.head_dim, reinterpret_cast<std::byte*>(keys.numbers), i,
                      KeysOfChunk<kType>::kPitch, place.key_scale());
    place.store_value<kType>(numbers);
  }
  if (head >= arguments.num_kv_heads) return;
  __syncthreads();
  keys.store(arguments, first_row, head);
}

using WriteKernel = void (*)(const WriteArguments);

template <KvType kType>
WriteKernel write_kernel(bool has_chunks) {
  return has_chunks ? write_kv_chunks<kType> : write_kv_rows<kType>;
}

WriteKernel write_kernel(KvType type, bool has_chunks) {
  switch (type) {
    case KvType::kF32: return write_kernel<KvType::kF32>(has_chunks);
    case KvType::kF16: return write_kernel<KvType::kF16>(has_chunks);
    case KvType::kBf16: return write_kernel<KvType::kBf16>(has_chunks);
    case KvType::kInt8: return write_kernel<KvType::kInt8>(has_chunks);
    case KvType::kFp8E4m3: return write_kernel<KvType::kFp8E4m3>(has_chunks);
    case KvType::kFp8E5m2: return write_kernel<KvType::kFp8E5m2>(has_chunks);
  }
  return nullptr;
}

}  // namespace

void write_kv(Stream& stream, const AttentionShape& shape, const DeviceBatch& batch, const KvLayout& layout,
              std::int32_t layer, float* q, std::int64_t q_stride, const float* k, const float* v,
              std::int64_t kv_stride, std::byte* pool, const HeadNorms& norms) {
  const WriteArguments arguments{
      batch,
      KvPlaces::of(layout, layer, pool),
      q,
      k,
      v,
      q_stride,
      kv_stride,
      shape.rotations == Rotations::kLocal ? batch.local_rotations : batch.rotations,
      norms.query,
      norms.key,
      norms.epsilon,
      shape.num_heads,
      shape.num_kv_heads,
      shape.rotary_dim,
      shape.pairing == RopePairing::kInterleaved ? 1 : 0,
      0};
  const bool leaves_queries = q == nullptr || (shape.rotary_dim == 0 && norms.query == nullptr);
  const std::int32_t heads = shape.num_kv_heads + (leaves_queries ? 0 : shape.num_heads);
  const bool has_chunks = batch.max_rows > 1;
  const dim3 grid = has_chunks ? dim3(num_pieces(batch.num_tokens, kChunkRows), static_cast<unsigned>(heads))
                               : dim3(static_cast<unsigned>(batch.num_tokens), num_pieces(heads, kWarps));
  launch(write_kernel(layout.type, has_chunks),
         {.grid = grid, .block = dim3(kWarps * kWarp), .awaits_inputs = true}, stream, arguments);
}

}  // namespace octavo::kernels::cuda
