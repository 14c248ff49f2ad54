// The paper's fused reshape and block write, with norms of single heads (Zhang & Sennrich 2019,
// arXiv:1910.07467) and rotation by position (Su et al. 2021, arXiv:2104.09864): a warp for each head of each
// row. A key's numbers go to head_dim different places, block_size apart, as kv_layout.h wants it: a step of
// one token writes a sector of 32 bytes for each; for 64 sequences of an 8-head layer of 128 that is 2 MB,
// where attention over 8,192 tokens reads 2 GB.
#include <cfloat>
#include <cmath>

#include "kernels/cuda/attention/kv_write.h"
#include "kernels/cuda/attention/stored.cuh"
#include "kernels/cuda/runtime/reduction.cuh"

namespace octavo::kernels::cuda {
namespace {

constexpr unsigned kWarps = 4;
constexpr int kMostNumbers = 8;  // of a head in one lane

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

  __device__ float at(const Head& head, int dimension) const {
    if (dimension >= rotary_dim) return head.at(dimension);
    const int pair = is_interleaved ? dimension / 2 : dimension % (rotary_dim / 2);
    const float first = head.at(first_of_pair(pair)), second = head.at(second_of_pair(pair));
    const float cosine = angles[2 * pair], sine = angles[2 * pair + 1];
    return dimension == first_of_pair(pair) ? first * cosine - second * sine : first * sine + second * cosine;
  }
};

// A lane reads the two numbers that it writes, and no others.
__device__ void rotate_in_place(float* numbers, int head_dim, const Head& head,
                                const HeadRotation& rotation) {
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  for (int pair = lane; pair < rotation.rotary_dim / 2; pair += static_cast<int>(kWarp)) {
    const int first = rotation.first_of_pair(pair), second = rotation.second_of_pair(pair);
    const float rotated_first = rotation.at(head, first), rotated_second = rotation.at(head, second);
    numbers[first] = rotated_first;
    numbers[second] = rotated_second;
  }
  if (head.norm == nullptr) return;
  for (int i = rotation.rotary_dim + lane; i < head_dim; i += static_cast<int>(kWarp))
    numbers[i] = head.at(i);
}

// The scale of kv_layout.h for a head's numbers, `count` of them in this lane.
__device__ float int8_scale(const float (&numbers)[kMostNumbers], int count) {
  float largest = 0.0f;
  bool is_finite = true;
  for (int i = 0; i < count; ++i) {
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
    for (int i = 0; i < count; ++i) {
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
  for (int i = 0; i < count; ++i) {
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
  const float* rotations;  // the batch's of this layer
  const float* query_norm;
  const float* key_norm;
  float norm_epsilon;
  std::int32_t num_heads, num_kv_heads, rotary_dim, is_interleaved, padding;
};

template <KvType kType>
__global__ void __launch_bounds__(kWarps* kWarp)
    write_kv_kernel(const __grid_constant__ WriteArguments arguments) {
  const std::int64_t row = blockIdx.x;
  const int head = static_cast<int>(blockIdx.y * kWarps + threadIdx.x / kWarp);
  const KvPlaces& places = arguments.places;
  const HeadRotation rotation{arguments.rotations + row * arguments.rotary_dim, arguments.rotary_dim,
                              arguments.is_interleaved != 0};
  if (head >= arguments.num_kv_heads) {
    const int query_head = head - arguments.num_kv_heads;
    if (arguments.q == nullptr || query_head >= arguments.num_heads) return;
    float* const query = arguments.q + row * arguments.q_stride + query_head * places.head_dim;
    rotate_in_place(query, places.head_dim,
                    Head::of(query, places.head_dim, arguments.query_norm, arguments.norm_epsilon), rotation);
    return;
  }
  const Head key = Head::of(arguments.k + row * arguments.kv_stride + head * places.head_dim, places.head_dim,
                            arguments.key_norm, arguments.norm_epsilon);
  const float* const value = arguments.v + row * arguments.kv_stride + head * places.head_dim;
  float keys[kMostNumbers] = {}, values[kMostNumbers] = {};
#pragma unroll
  for (int i = 0; i < kMostNumbers; ++i) {
    const int dimension = static_cast<int>(threadIdx.x % kWarp) + i * static_cast<int>(kWarp);
    if (dimension >= places.head_dim) continue;
    keys[i] = rotation.at(key, dimension);
    values[i] = value[dimension];
  }
  const std::int32_t slot = arguments.batch.slot_mapping[row], offset = slot % places.block_size;
  if (slot < 0) return;  // a row that only fills the step up
  std::byte* const start = places.head(slot / places.block_size, head);
  store_head<kType>(keys, places.head_dim, start, places.key_index(0, offset),
                    places.key_index(1, 0) - places.key_index(0, 0),
                    start + places.key_scale_offset + kKvScaleBytes * offset);
  store_head<kType>(values, places.head_dim, start + places.value_offset, places.value_index(offset, 0), 1,
                    start + places.value_scale_offset + kKvScaleBytes * offset);
}

using WriteKernel = void (*)(const WriteArguments);

WriteKernel write_kernel(KvType type) {
  switch (type) {
    case KvType::kF32: return write_kv_kernel<KvType::kF32>;
    case KvType::kF16: return write_kv_kernel<KvType::kF16>;
    case KvType::kBf16: return write_kv_kernel<KvType::kBf16>;
    case KvType::kInt8: return write_kv_kernel<KvType::kInt8>;
    case KvType::kFp8E4m3: return write_kv_kernel<KvType::kFp8E4m3>;
    case KvType::kFp8E5m2: return write_kv_kernel<KvType::kFp8E5m2>;
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
  const dim3 grid(static_cast<unsigned>(batch.num_tokens), num_pieces(heads, kWarps));
  launch(write_kernel(layout.type), {grid, dim3(kWarps * kWarp)}, stream, arguments);
}

}  // namespace octavo::kernels::cuda
