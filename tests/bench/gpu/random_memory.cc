#include "tests/bench/gpu/random_memory.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

namespace octavo::bench {
namespace {

using kernels::KvLayout;
using kernels::KvType;
using kernels::TensorType;
using kernels::cuda::DeviceMatrix;
using kernels::cuda::DeviceMemory;

// Bits of a float with `exponent_bits` and `mantissa_bits`: any sign and mantissa, one of four exponents from
// `least` on.
struct FloatForm {
  std::uint32_t exponent_bits, mantissa_bits, least;
};

std::uint32_t draw_float(FloatForm form, std::uint32_t random) {
  const std::uint32_t sign = random >> 31, exponent = form.least + (random >> 29 & 3u);
  const std::uint32_t mantissa = random & ((1u << form.mantissa_bits) - 1u);
  return sign << (form.exponent_bits + form.mantissa_bits) | exponent << form.mantissa_bits | mantissa;
}

std::uint32_t draw_number(Numbers numbers, std::uint32_t random) {
  switch (numbers) {
    case Numbers::kF32: return draw_float({8, 23, 120}, random);  // up to 1/16
    case Numbers::kF16: return draw_float({5, 10, 8}, random);
    case Numbers::kBf16: return draw_float({8, 7, 120}, random);
    case Numbers::kFp8E4m3: return draw_float({4, 3, 4}, random);
    case Numbers::kFp8E5m2: return draw_float({5, 2, 12}, random);
    case Numbers::kScales: return draw_float({5, 10, 3}, random & 0x7fffffffu);
    case Numbers::kBytes: break;
  }
  return random & 0xffu;
}

std::size_t bytes_of(Numbers numbers) {
  if (numbers == Numbers::kF32) return 4;
  return numbers == Numbers::kF16 || numbers == Numbers::kBf16 || numbers == Numbers::kScales ? 2 : 1;
}

std::vector<std::byte> draw(Numbers numbers, std::int64_t bytes) {
  std::mt19937 random(17u + static_cast<unsigned>(numbers));
  const std::size_t size = bytes_of(numbers);
  std::vector<std::byte> drawn(static_cast<std::size_t>(bytes));
  for (std::size_t i = 0; i < drawn.size(); i += size) {
    const std::uint32_t number = draw_number(numbers, static_cast<std::uint32_t>(random()));
    std::memcpy(drawn.data() + i, &number, size);  // little-endian, as everywhere here
  }
  return drawn;
}

Numbers numbers_of(KvType type) {
  switch (type) {
    case KvType::kF32: return Numbers::kF32;
    case KvType::kF16: return Numbers::kF16;
    case KvType::kBf16: return Numbers::kBf16;
    case KvType::kFp8E4m3: return Numbers::kFp8E4m3;
    case KvType::kFp8E5m2: return Numbers::kFp8E5m2;
    case KvType::kInt8: break;
  }
  return Numbers::kBytes;
}

Numbers numbers_of(TensorType type) {
  if (type == TensorType::kF32) return Numbers::kF32;
  return type == TensorType::kF16 ? Numbers::kF16 : Numbers::kBf16;
}

constexpr std::int64_t aligned(std::int64_t bytes) { return (bytes + 255) / 256 * 256; }

}  // namespace

Result<void> RandomMemory::fill(Numbers numbers, std::byte* target, std::int64_t bytes) {
  std::optional<DeviceMemory>& pattern = patterns_[static_cast<std::size_t>(numbers)];
  if (!pattern) {
    OCTAVO_TRY(DeviceMemory uploaded, kernels::cuda::upload(draw(numbers, pattern_bytes_).data(),
                                                            pattern_bytes_, "a random pattern"));
    pattern.emplace(std::move(uploaded));
  }
  for (std::int64_t done = 0; done < bytes;) {
    const std::int64_t some = std::min(bytes - done, pattern_bytes_ - offset_);
    stream_.copy(target + done, pattern->data() + offset_, some);
    done += some;
    offset_ = (offset_ + some) % pattern_bytes_;
  }
  offset_ = (offset_ + 4 * 1021) % pattern_bytes_;  // two matrices of a size begin differently
  return stream_.status().result();
}

Result<DeviceMemory> RandomMemory::allocate(Numbers numbers, std::int64_t bytes) {
  OCTAVO_TRY(DeviceMemory memory, DeviceMemory::allocate(bytes, "memory to measure with"));
  OCTAVO_TRY_VOID(fill(numbers, memory.data(), bytes));
  return Result<DeviceMemory>(std::move(memory));
}

Result<std::unique_ptr<DeviceMatrix>> RandomMemory::matrix(TensorType type, std::int64_t rows,
                                                           std::int64_t columns) {
  kernels::cuda::WeightPlanes planes;
  planes.type = type;
  planes.rows = rows;
  planes.columns = columns;
  planes.stride = kernels::cuda::padded_columns(columns);
  const kernels::cuda::GroupBytes group = kernels::cuda::group_bytes(type);
  const std::int64_t num_groups = rows * planes.stride / kernels::cuda::kGroupColumns;
  const bool is_quantised = kernels::traits_of(type).quantised;
  const bool is_super = group.super > 0;  // then a group's scales are bytes
  struct Plane {
    const std::byte** view;
    Numbers numbers;
    std::int64_t bytes;
  };
  const Plane parts[] = {
      {&planes.low, is_quantised ? Numbers::kBytes : numbers_of(type),
       is_quantised ? num_groups * group.low : rows * planes.stride * kernels::traits_of(type).block_bytes},
      {&planes.high, Numbers::kBytes, num_groups * group.high},
      {&planes.scale, is_super ? Numbers::kBytes : Numbers::kScales, num_groups * group.scale},
      {&planes.super, Numbers::kScales, num_groups / kernels::cuda::kSuperGroups * group.super}};
  std::int64_t total = 0;
  for (const Plane& plane : parts) total += aligned(plane.bytes);
  OCTAVO_TRY(DeviceMemory memory, DeviceMemory::allocate(total, "a weight matrix"));
  std::int64_t offset = 0;
  for (const Plane& plane : parts) {
    *plane.view = memory.data() + offset;
    OCTAVO_TRY_VOID(fill(plane.numbers, memory.data() + offset, aligned(plane.bytes)));
    offset += aligned(plane.bytes);
  }
  const kernels::MatrixSource source{.type = type, .rows = rows, .columns = columns, .bytes = {}};
  return std::make_unique<DeviceMatrix>(source, planes, std::move(memory));
}

Result<void> RandomMemory::fill_pool(const KvLayout& layout, std::byte* pool, std::int64_t num_blocks) {
  const std::int64_t bytes = num_blocks * layout.block_bytes();
  if (!layout.has_scales()) return fill(numbers_of(layout.type), pool, bytes);
  // Heads with scales, drawn once; what is there already is doubled until the pool is full.
  const std::int64_t head_bytes = layout.layer(0).head_bytes;
  const std::int64_t num_heads = std::clamp<std::int64_t>(pattern_bytes_ / head_bytes, 1, bytes / head_bytes);
  std::vector<std::byte> heads = draw(Numbers::kBytes, num_heads * head_bytes);
  const std::vector<float> scales(static_cast<std::size_t>(2 * layout.block_size), 0.001f);
  for (std::int64_t head = 0; head < num_heads; ++head) {
    std::memcpy(heads.data() + head * head_bytes + layout.layer(0).scales_offset, scales.data(),
                scales.size() * sizeof(float));
  }
  OCTAVO_TRY(
      const DeviceMemory drawn,
      kernels::cuda::upload(heads.data(), static_cast<std::int64_t>(heads.size()), "a random pattern"));
  stream_.copy(pool, drawn.data(), drawn.bytes());
  for (std::int64_t done = drawn.bytes(); done < bytes; done *= 2) {
    stream_.copy(pool + done, pool, std::min(done, bytes - done));
  }
  stream_.synchronize();
  return stream_.status().result();
}

}  // namespace octavo::bench
