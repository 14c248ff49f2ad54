// Keys and values of eight bits as operands of tensor cores, run on the host.
#include "kernels/cuda/attention/stored.cuh"

#include <gtest/gtest.h>

#include <cstdint>

namespace octavo::kernels::cuda {
namespace {

// Every code in every byte. The arithmetic; that the instruction of sm_89 gives the same bits is what PTX
// says of it, since all of the numbers are exact.
template <KvType kType, class Meaning>
void expect_expanded(Meaning&& meaning) {
  for (std::uint32_t code = 0; code < 256; ++code) {
    const std::uint32_t bytes = code | (code ^ 1u) << 8 | (code ^ 2u) << 16 | (code ^ 3u) << 24;
    std::uint32_t even = 0, odd = 0;
    expand_bytes<kType>(bytes, even, odd);
    EXPECT_EQ(even & 0xffffu, meaning(code)) << code;
    EXPECT_EQ(odd & 0xffffu, meaning(code ^ 1u)) << code;
    EXPECT_EQ(even >> 16, meaning(code ^ 2u)) << code;
    EXPECT_EQ(odd >> 16, meaning(code ^ 3u)) << code;
  }
}

TEST(StoredNumbers, OfEightBitsAreExpandedExactly) {
  expect_expanded<KvType::kInt8>([](std::uint32_t code) -> std::uint32_t {
    return float_to_bfloat16(static_cast<float>(static_cast<std::int8_t>(code)));
  });
  expect_expanded<KvType::kFp8E5m2>([](std::uint32_t code) { return code << 8; });
  expect_expanded<KvType::kFp8E4m3>([](std::uint32_t code) -> std::uint32_t {
    const bool is_nan = (code & 0x7fu) == Fp8E4m3::kNan;
    return is_nan ? 0x7fffu : float_to_half(Fp8E4m3::to_float(static_cast<std::uint8_t>(code)));
  });
}

}  // namespace
}  // namespace octavo::kernels::cuda
