// Slices of 16 tokens of one KV head in shared memory: their shape, how a warp brings one in from the blocks,
// and how it reads them as operands.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/attention/attention_kernels.h"
#include "kernels/cuda/attention/stored.cuh"
#include "kernels/cuda/runtime/device_names.h"
#include "kernels/cuda/runtime/hardware.cuh"
#include "kernels/cuda/runtime/reduction.cuh"

namespace octavo::kernels::cuda {

// Dimensions are multiplied in groups, those that a head lacks as zeros: a whole group without a branch lets
// the loads of one step run beside the products of another.
inline constexpr int kGroupDimensions = 64;

__device__ inline int padded_dimensions(int head_dim) {
  return (head_dim + kGroupDimensions - 1) / kGroupDimensions * kGroupDimensions;
}

template <KvType kKvType, int kDimensions, AttentionKind kKind, HalfParts kHalfParts>
struct Shape {
  static constexpr KvType kType = kKvType;
  static constexpr int kHeadDim = kDimensions;
  using Stored = Operand<kType>;
  static constexpr int kPlanes = Stored::kPlanes;
  static constexpr bool kIsPrefill = kKind != AttentionKind::kSplit;
  // A prefill kernel that may cap scores needs more registers than one that cannot, a split one none, so that
  // prefill alone has two kernels.
  static constexpr bool kMayCap = kKind != AttentionKind::kPrefill;
  // 16-bit numbers whose sum is a query's element, or a weight.
  static constexpr int kParts = static_cast<int>(kHalfParts);
  static constexpr int kUpdate = kIsPrefill ? 2 : 1;  // slices for each step of the softmax
  // Of 16 rows, that a warp has: a fragment of keys or values is read for all of them. Two where the sums of
  // both leave registers for the rest.
  static constexpr bool kIsSmall = kHeadDim <= 64 || (kParts == 1 && !has_kv_scales(kType));
  static constexpr int kRowTiles = kIsPrefill && kHeadDim <= 128 && kIsSmall ? 2 : 1;
  static constexpr int kRows = 16 * kRowTiles;
  // From row to row of queries (numbers) and values (bytes): 16 bytes more than a power of two, against bank
  // conflicts.
  static constexpr int kPitch = kHeadDim + 8;
  static constexpr int kValuePitch = kHeadDim * Stored::kBytes + 16;
  static constexpr int kKeyPitch = kSliceTokens * Stored::kBytes;
  static constexpr int kKeyBytes = kHeadDim * kKeyPitch;
  static constexpr int kPlaneBytes = kKeyBytes + kSliceTokens * kValuePitch;
  // Two floats for each token
  static constexpr int kScaleBytes = has_kv_scales(kType) ? 2 * 4 * kSliceTokens : 0;
  static constexpr int kSliceBytes = kPlanes * kPlaneBytes + kScaleBytes;
  // A split tile's warp leaves its sums [16][head_dim], largest scores [16] and sums of weights [16] where
  // its slices were.
  static constexpr int kSumsBytes = kIsPrefill ? 0 : 4 * kSplitTileRows * (kHeadDim + 2);

  __device__ static int warp_bytes(int num_stages) {
    const int bytes = num_stages * kSliceBytes;
    return bytes > kSumsBytes ? bytes : kSumsBytes;
  }

  // Tensor cores meet the bytes of a pair of numbers of eight bits apart: the even ones as the first eight
  // columns, the odd ones as the others. Which token is a column of scores, and which dimension one of the
  // j-th eight of sums:
  __device__ static int token_of(int half, int column) {
    return Stored::kIsExpanded ? 2 * column + half : 8 * half + column;
  }
  __device__ static int dimension_of(int j, int column) {
    return Stored::kIsExpanded ? j / 2 * 16 + 2 * column + j % 2 : j * 8 + column;
  }
  // The inverse of token_of, both halves counted through: values stand in the order of the columns.
  __device__ static int row_of_token(int token) {
    return Stored::kIsExpanded ? token % 2 * 8 + token / 2 : token;
  }
};

// A slice in shared memory. The two halves of a key row of 32 bytes change places every four rows, so that
// eight rows meet eight groups of banks.
template <class Layout>
struct Slice {
  using Stored = typename Layout::Stored;

  std::byte* bytes;

  // The `piece`-th of a key row.
  __device__ std::byte* keys(int plane, int dimension, int piece) const {
    const int swapped = Stored::kIsExpanded ? piece : piece ^ (dimension >> 2 & 1);
    return bytes + plane * Layout::kPlaneBytes + dimension * Layout::kKeyPitch + swapped * 16;
  }
  // In the order of row_of_token().
  __device__ std::byte* value_row(int plane, int row) const {
    return bytes + plane * Layout::kPlaneBytes + Layout::kKeyBytes + row * Layout::kValuePitch;
  }
  __device__ float* key_scales() const {
    return reinterpret_cast<float*>(bytes + Layout::kPlanes * Layout::kPlaneBytes);
  }
  __device__ float* value_scales() const { return key_scales() + kSliceTokens; }

  // Operands of 16 dimensions from 16 * step on and of 16 tokens: those of the first eight columns of scores,
  // and those of the others.
  __device__ void read_keys(int plane, int step, std::uint32_t (&first)[2],
                            std::uint32_t (&second)[2]) const {
    const int lane = static_cast<int>(threadIdx.x % kWarp);
    read(keys(plane, step * 16 + lane % 16, lane / 16), first, second);
  }
  // Of 16 tokens and of the dimensions from 16 * step on, for the sums 2 * step and 2 * step + 1.
  __device__ void read_values(int plane, int step, std::uint32_t (&first)[2],
                              std::uint32_t (&second)[2]) const {
    const int lane = static_cast<int>(threadIdx.x % kWarp);
    constexpr int kStepBytes = 16 * Stored::kBytes;
    read(value_row(plane, lane % 16) + step * kStepBytes + lane / 16 * 16, first, second);
  }

 private:
  // `row`: of this lane, of 16 rows with 16 columns, whose second half of 16 bytes the upper lanes have. Of
  // rows of 16 bytes there is one half, and nothing to read for the upper lanes.
  __device__ static void read(const std::byte* row, std::uint32_t (&first)[2], std::uint32_t (&second)[2]) {
    if constexpr (Stored::kIsExpanded) {
      std::uint32_t bytes[2];
      load_matrices_x2_transposed(bytes, row);
      expand_bytes<Layout::kType>(bytes[0], first[0], second[0]);
      expand_bytes<Layout::kType>(bytes[1], first[1], second[1]);
    } else {
      std::uint32_t matrices[4];
      load_matrices_x4_transposed(matrices, row);
      first[0] = matrices[0], first[1] = matrices[1];
      second[0] = matrices[2], second[1] = matrices[3];
    }
  }
};

// Where a token's key and value begin; null: there is nothing to read. Of a type with scales, these too.
struct TokenPlace {
  const std::byte* key = nullptr;
  const std::byte* value = nullptr;
  float key_scale = 0.0f, value_scale = 0.0f;
};

__device__ inline const std::byte* of_lane(const std::byte* place, int lane) {
  const auto address = __shfl_sync(kAllLanes, reinterpret_cast<unsigned long long>(place), lane);
  return reinterpret_cast<const std::byte*>(address);
}

// What a block reads: one sequence's keys and values of one KV head.
template <class Layout>
struct Context {
  using Stored = typename Layout::Stored;
  static constexpr std::int64_t kStoredBytes = kv_element_bytes(Layout::kType);

  const KvPlaces& places;
  const std::int32_t* block_table;
  int kv_head;
  bool has_pieces;
  int begin, end;  // positions; what stands before and behind is not read, and zero
  // From which there are values: those of tokens that share a piece with the first that is seen are zero,
  // since no weight of 0 makes a NaN harmless in a product. Likewise their scales.
  int first_seen;

  // Of this lane in the slice from `first` on; lane t knows token t.
  __device__ TokenPlace place(int first) const {
    const int lane = static_cast<int>(threadIdx.x % kWarp), position = first + lane;
    if (lane >= kSliceTokens || position < begin || position >= end) return {};
    const int block = position / places.block_size, offset = position - block * places.block_size;
    const std::byte* const head = places.head(block_table[block], kv_head);
    TokenPlace found{.key = head + offset * kStoredBytes};
    const bool has_value = position >= first_seen;
    if (has_value) found.value = head + places.value_offset + places.value_index(offset, 0) * kStoredBytes;
    if constexpr (has_kv_scales(Layout::kType)) {
      const std::byte* const scales = head + kKvScaleBytes * offset;
      found.key_scale = *reinterpret_cast<const float*>(scales + places.key_scale_offset);
      if (has_value) found.value_scale = *reinterpret_cast<const float*>(scales + places.value_scale_offset);
    }
    return found;
  }

  // A warp brings in the tokens whose places its lanes know; zeros for what is not there.
  __device__ void load_slice(const TokenPlace& mine, const Slice<Layout>& slice) const {
    if (has_pieces) {
      load_pieces(mine, slice);
    } else {
      load_numbers(mine, slice);
    }
    if constexpr (has_kv_scales(Layout::kType)) {
      const int lane = static_cast<int>(threadIdx.x % kWarp);
      if (lane >= kSliceTokens) return;
      slice.key_scales()[lane] = mine.key_scale;
      slice.value_scales()[lane] = mine.value_scale;
    }
  }

 private:
  // As many neighbouring numbers as shared memory has in 16 bytes; null: zeros.
  template <class TargetOfPlane>
  __device__ void load_piece(const std::byte* source, TargetOfPlane&& target_of_plane) const {
    if constexpr (Stored::kIsCopied) {
      copy_async_16(target_of_plane(0), source != nullptr ? source : places.pool, source != nullptr);
    } else {
      uint4 high = make_uint4(0, 0, 0, 0), low = high;
      if (source != nullptr) load_split_octet(source, high, low);
      *reinterpret_cast<uint4*>(target_of_plane(0)) = high;
      *reinterpret_cast<uint4*>(target_of_plane(1)) = low;
    }
  }

  __device__ void load_pieces(const TokenPlace& mine, const Slice<Layout>& slice) const {
    constexpr int kNumbers = Stored::kPieceNumbers, kLanes = static_cast<int>(kWarp);
    constexpr int kOfKeys = kSliceTokens / kNumbers, kOfValue = Layout::kHeadDim / kNumbers;
    const int lane = static_cast<int>(threadIdx.x % kWarp), head_dim = places.head_dim;
    const int padded = padded_dimensions(head_dim), piece_of_keys = lane % kOfKeys;
    const std::byte* const keys = of_lane(mine.key, piece_of_keys * kNumbers);
#pragma unroll 4
    for (int dimension = lane / kOfKeys; dimension < padded; dimension += kLanes / kOfKeys) {
      const bool is_there = keys != nullptr && dimension < head_dim;
      load_piece(is_there ? keys + places.key_index(dimension, 0) * kStoredBytes : nullptr,
                 [&](int plane) { return slice.keys(plane, dimension, piece_of_keys); });
    }
#pragma unroll 4
    for (int i = lane; i < kSliceTokens * kOfValue; i += kLanes) {
      const int token = i / kOfValue, dimension = i % kOfValue * kNumbers;
      const std::byte* const value = of_lane(mine.value, token);
      if (dimension >= padded) continue;
      const bool is_there = value != nullptr && dimension < head_dim;
      load_piece(is_there ? value + dimension * kStoredBytes : nullptr, [&](int plane) {
        return slice.value_row(plane, Layout::row_of_token(token)) + dimension * Stored::kBytes;
      });
    }
  }

  // Null: zero.
  template <class TargetOfPlane>
  __device__ static void load_number(const std::byte* source, TargetOfPlane&& target_of_plane) {
    if constexpr (Stored::kIsExpanded) {
      *target_of_plane(0) = source != nullptr ? *source : std::byte{0};
    } else if constexpr (Stored::kIsCopied) {
      *reinterpret_cast<std::uint16_t*>(target_of_plane(0)) =
          source != nullptr ? *reinterpret_cast<const std::uint16_t*>(source) : std::uint16_t{0};
    } else {
      const float number = source != nullptr ? *reinterpret_cast<const float*>(source) : 0.0f;
      std::uint32_t high = 0, low = 0;
      split_number<false>(number, high, low);
      *reinterpret_cast<std::uint16_t*>(target_of_plane(0)) = static_cast<std::uint16_t>(high);
      *reinterpret_cast<std::uint16_t*>(target_of_plane(1)) = static_cast<std::uint16_t>(low);
    }
  }

  // For block sizes and head sizes that are no multiples of a piece: number by number.
  __device__ void load_numbers(const TokenPlace& mine, const Slice<Layout>& slice) const {
    const int lane = static_cast<int>(threadIdx.x % kWarp), token = lane % kSliceTokens;
    const std::byte* const keys = of_lane(mine.key, token);
    const std::byte* const values = of_lane(mine.value, token);
    const int padded = padded_dimensions(places.head_dim);
    for (int dimension = lane / kSliceTokens; dimension < padded; dimension += 2) {
      const bool is_there = dimension < places.head_dim;
      const std::byte* const key =
          keys != nullptr && is_there ? keys + places.key_index(dimension, 0) * kStoredBytes : nullptr;
      const std::byte* const value =
          values != nullptr && is_there ? values + dimension * kStoredBytes : nullptr;
      load_number(key, [&](int plane) {
        return slice.keys(plane, dimension, token / Stored::kPieceNumbers) +
               token % Stored::kPieceNumbers * Stored::kBytes;
      });
      load_number(value, [&](int plane) {
        return slice.value_row(plane, Layout::row_of_token(token)) + dimension * Stored::kBytes;
      });
    }
  }
};

}  // namespace octavo::kernels::cuda
