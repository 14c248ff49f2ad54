// Slices of 16 tokens of one KV head in shared memory: their shape, and how a warp brings one in from the
// blocks.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/attention/attention_kernels.h"
#include "kernels/cuda/attention/stored.cuh"
#include "kernels/cuda/runtime/hardware.cuh"
#include "kernels/cuda/runtime/reduction.cuh"

namespace octavo::kernels::cuda {

template <KvType kType, int kHeadDim, bool kIsPrefill>
struct Shape {
  using Stored = Operand<kType>;
  static constexpr int kPlanes = Stored::kPlanes;
  // 16-bit numbers whose sum is a query's element, or a weight.
  static constexpr int kParts = kIsPrefill && Stored::kIsHalf ? 1 : 2;
  static constexpr int kUpdate = kIsPrefill ? 2 : 1;  // slices for each step of the softmax
  // Numbers from row to row of queries and values: 16 bytes more than a power of two, against bank conflicts.
  static constexpr int kPitch = kHeadDim + 8;
  static constexpr int kKeyNumbers = kHeadDim * kSliceTokens;
  static constexpr int kPlaneNumbers = kKeyNumbers + kSliceTokens * kPitch;
  // Two floats for each token, counted in 16-bit numbers
  static constexpr int kScaleNumbers = 2 * 2 * kSliceTokens;
  static constexpr int kSliceNumbers = kPlanes * kPlaneNumbers + kScaleNumbers;
};

// A slice in shared memory. The two halves of a key row of 32 bytes change places every four rows, so that
// eight rows meet eight groups of banks.
template <class Shape>
struct Slice {
  std::uint16_t* numbers;

  __device__ std::uint16_t* keys(int plane, int dimension, int octet) const {
    return numbers + plane * Shape::kPlaneNumbers + dimension * kSliceTokens +
           (octet ^ (dimension >> 2 & 1)) * 8;
  }
  __device__ std::uint16_t* values(int plane, int token) const {
    return numbers + plane * Shape::kPlaneNumbers + Shape::kKeyNumbers + token * Shape::kPitch;
  }
  __device__ float* key_scales() const {
    return reinterpret_cast<float*>(numbers + Shape::kPlanes * Shape::kPlaneNumbers);
  }
  __device__ float* value_scales() const { return key_scales() + kSliceTokens; }
};

__device__ inline void store_octet(std::uint16_t* target, const Octet& octet) {
  *reinterpret_cast<uint4*>(target) =
      make_uint4(octet.words[0], octet.words[1], octet.words[2], octet.words[3]);
}

// Lane t knows where token t of a slice stands.
struct TokenPlace {
  const std::byte* head;  // start of the block's head; null: beyond the context
  int offset;             // in the block
};

__device__ inline TokenPlace token_of_lane(TokenPlace place, int lane) {
  const auto address = __shfl_sync(kAllLanes, reinterpret_cast<unsigned long long>(place.head), lane);
  return {reinterpret_cast<const std::byte*>(address), __shfl_sync(kAllLanes, place.offset, lane)};
}

// What a block reads: one sequence's keys and values of one KV head.
struct Context {
  const KvPlaces& places;
  const std::int32_t* block_table;
  int kv_head;
  int begin, end;  // positions; what stands before and behind is not read, and zero
  // From which there are values: those of tokens that share eight keys with the first that is seen are zero,
  // since no weight of 0 makes a NaN harmless in a product.
  int first_seen;

  __device__ TokenPlace place(int position) const {
    if (position < begin || position >= end) return {nullptr, 0};
    const int block = position / places.block_size;
    return {places.head(block_table[block], kv_head), position - block * places.block_size};
  }
};

template <KvType kType, class Shape>
__device__ void load_octets(const Context& context, TokenPlace mine, int first_position, int row_steps,
                            const Slice<Shape>& slice) {
  constexpr std::int64_t kBytes = kv_element_bytes(kType);
  constexpr int kOctetsOfValue = (Shape::kPitch - 8) / 8;
  const int lane = static_cast<int>(threadIdx.x % kWarp), head_dim = context.places.head_dim;
  // `offset` from the start of the head, which is null where there is nothing to read.
  const auto load = [&](const std::byte* head, std::int64_t offset, bool is_there, auto&& target_of_plane) {
    if constexpr (Operand<kType>::kNeedsNoConversion) {
      copy_async_16(target_of_plane(0), is_there ? head + offset : context.places.pool, is_there);
    } else {
      Octet planes[Shape::kPlanes] = {};
      if (is_there) load_octet<kType>(head + offset, planes);
#pragma unroll
      for (int plane = 0; plane < Shape::kPlanes; ++plane) store_octet(target_of_plane(plane), planes[plane]);
    }
  };
  const int octet = lane % 2;
  const TokenPlace first = token_of_lane(mine, octet * 8);
#pragma unroll 4
  for (int dimension = lane / 2; dimension < row_steps * 16; dimension += static_cast<int>(kWarp) / 2) {
    const bool is_there = first.head != nullptr && dimension < head_dim;
    load(first.head, context.places.key_index(dimension, first.offset) * kBytes, is_there,
         [&](int plane) { return slice.keys(plane, dimension, octet); });
  }
#pragma unroll 4
  for (int i = lane; i < kSliceTokens * kOctetsOfValue; i += static_cast<int>(kWarp)) {
    const int token = i / kOctetsOfValue, piece = i % kOctetsOfValue;
    const TokenPlace place = token_of_lane(mine, token);
    if (piece >= row_steps * 2) continue;
    const bool is_there =
        place.head != nullptr && first_position + token >= context.first_seen && piece * 8 < head_dim;
    load(place.head,
         context.places.value_offset + context.places.value_index(place.offset, piece * 8) * kBytes, is_there,
         [&](int plane) { return slice.values(plane, token) + piece * 8; });
  }
}

// For block sizes and head sizes that are no multiples of eight: number by number.
template <KvType kType, class Shape>
__device__ void load_numbers(const Context& context, TokenPlace mine, int row_steps,
                             const Slice<Shape>& slice) {
  constexpr std::int64_t kBytes = kv_element_bytes(kType);
  const int lane = static_cast<int>(threadIdx.x % kWarp), token = lane % kSliceTokens;
  const TokenPlace place = token_of_lane(mine, token);
  for (int dimension = lane / kSliceTokens; dimension < row_steps * 16; dimension += 2) {
    std::uint16_t key[Shape::kPlanes] = {}, value[Shape::kPlanes] = {};
    if (place.head != nullptr && dimension < context.places.head_dim) {
      load_number<kType>(place.head + context.places.key_index(dimension, place.offset) * kBytes, key);
      load_number<kType>(place.head + context.places.value_offset +
                             context.places.value_index(place.offset, dimension) * kBytes,
                         value);
    }
#pragma unroll
    for (int plane = 0; plane < Shape::kPlanes; ++plane) {
      slice.keys(plane, dimension, token / 8)[token % 8] = key[plane];
      slice.values(plane, token)[dimension] = value[plane];
    }
  }
}

// A warp brings in positions first .. first + 15: keys and values of those in the context, else zeros.
template <KvType kType, class Shape>
__device__ void load_slice(const Context& context, int first, int row_steps, bool has_octets,
                           const Slice<Shape>& slice) {
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  TokenPlace mine{nullptr, 0};
  if (lane < kSliceTokens) mine = context.place(first + lane);
  if (has_octets) {
    load_octets<kType, Shape>(context, mine, first, row_steps, slice);
  } else {
    load_numbers<kType, Shape>(context, mine, row_steps, slice);
  }
  if constexpr (kType == KvType::kInt8) {
    if (lane < kSliceTokens) {
      float key_scale = 0.0f, value_scale = 0.0f;
      if (mine.head != nullptr) {
        const std::byte* const scales = mine.head + kKvScaleBytes * mine.offset;
        key_scale = *reinterpret_cast<const float*>(scales + context.places.key_scale_offset);
        value_scale = *reinterpret_cast<const float*>(scales + context.places.value_scale_offset);
      }
      slice.key_scales()[lane] = key_scale;
      slice.value_scales()[lane] = value_scale;
    }
  }
}

}  // namespace octavo::kernels::cuda
