// Each function of portable_hardware.cuh against the one by the hardware's definition (emulated_hardware.h),
// bit for bit: all else of kernels/cuda is the same text for both.
#include "kernels/cuda/runtime/portable_hardware.cuh"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/cuda/runtime/hardware.cuh"
#include "tests/cuda/device_arrays.h"

namespace octavo::kernels::cuda {
namespace {

constexpr int kCases = 200;

class Words {
 public:
  explicit Words(unsigned seed) : random_(seed) {}
  std::uint32_t operator()() { return static_cast<std::uint32_t>(random_()); }

 private:
  std::mt19937 random_;
};

// Of a lane.
struct Operands {
  std::uint32_t halves[6], bfloats[6], bytes[6];  // A, and B in the last two
  float sums[4];
  int integers[4];
};
struct Results {
  float of_halves[4], of_bfloats[4];
  int of_32[4], of_16[4];
  bool operator==(const Results&) const = default;
};

__device__ void split(const std::uint32_t (&words)[6], std::uint32_t (&a)[4], std::uint32_t (&b)[2]) {
  for (int i = 0; i < 4; ++i) a[i] = words[i];
  for (int i = 0; i < 2; ++i) b[i] = words[4 + i];
}

template <class Number>
__device__ void copy_four(const Number (&source)[4], Number (&target)[4]) {
  for (int i = 0; i < 4; ++i) target[i] = source[i];
}

__global__ void step_both(const Operands* operands, Results* by_hardware, Results* by_lanes) {
  const unsigned place = blockIdx.x * blockDim.x + threadIdx.x;
  const Operands& mine = operands[place];
  Results hardware{}, lanes{};
  std::uint32_t a[4], b[2];
  split(mine.halves, a, b);
  copy_four(mine.sums, hardware.of_halves), copy_four(mine.sums, lanes.of_halves);
  multiply_step_f16(hardware.of_halves, a, b), portable::multiply_step_f16(lanes.of_halves, a, b);
  split(mine.bfloats, a, b);
  copy_four(mine.sums, hardware.of_bfloats), copy_four(mine.sums, lanes.of_bfloats);
  multiply_step_bf16(hardware.of_bfloats, a, b), portable::multiply_step_bf16(lanes.of_bfloats, a, b);
  split(mine.bytes, a, b);
  multiply_step_s8_k32(hardware.of_32, a, b, mine.integers);
  portable::multiply_step_s8_k32(lanes.of_32, a, b, mine.integers);
  multiply_step_s8_k16(hardware.of_16, a[0], a[1], b[0], mine.integers);
  portable::multiply_step_s8_k16(lanes.of_16, a[0], a[1], b[0], mine.integers);
  by_hardware[place] = hardware;
  by_lanes[place] = lanes;
}

// Pairs of finite float16 numbers, and of bfloat16 ones whose products neither overflow nor vanish.
std::uint32_t half_pair_of(Words& random) {
  std::uint32_t pair = random();
  for (const std::uint32_t exponent : {0x7c00u, 0x7c000000u})
    if ((pair & exponent) == exponent) pair &= ~exponent;
  return pair;
}
std::uint32_t bfloat_pair_of(Words& random) {
  const auto number = [&] { return (random() & 0x807fu) | (100 + random() % 55) << 7; };
  const std::uint32_t low = number();
  return number() << 16 | low;
}

TEST(PortableHardware, StepsGiveTheBitsOfTheHardwares) {
  Words random(1);
  std::vector<Operands> operands(kCases * kWarp);
  for (Operands& each : operands) {
    for (std::uint32_t& word : each.halves) word = half_pair_of(random);
    for (std::uint32_t& word : each.bfloats) word = bfloat_pair_of(random);
    for (std::uint32_t& word : each.bytes) word = random() % 8 == 0 ? 0x80808080u : random();
    for (float& sum : each.sums) sum = std::ldexp(static_cast<float>(random() % 2001) - 1000.0f, -5);
    for (int& sum : each.integers) sum = static_cast<int>(random());
  }
  TestStream stream;
  const DeviceArray<Operands> on_device(operands);
  const std::vector<Results> none(operands.size());
  const DeviceArray<Results> by_hardware(none), by_lanes(none);
  launch(step_both, {.grid = dim3(kCases / 4), .block = dim3(4 * kWarp)}, stream.get(), on_device.data(),
         by_hardware.data(), by_lanes.data());
  stream.finish();
  const std::vector<Results> expected = by_hardware.read(), got = by_lanes.read();
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], expected[i]) << "lane " << i;
}

struct Matrices {
  std::uint32_t four[4], four_transposed[4], two[2], two_transposed[2];
  bool operator==(const Matrices&) const = default;
};

constexpr int kPitch = 12;  // numbers from row to row

__global__ void load_both(const std::uint16_t* numbers, Matrices* by_hardware, Matrices* by_lanes) {
  std::uint16_t* const shared = dynamic_shared<std::uint16_t>();
  for (unsigned i = threadIdx.x; i < kWarp * 2 * kPitch; i += kWarp) shared[i] = numbers[i];
  __syncthreads();
  // Rows of the four matrices in an order of their own; of two, addresses of the upper lanes count for
  // nothing.
  const std::uint16_t* const row = shared + (threadIdx.x * 7 % kWarp) * 2 * kPitch;
  const std::uint16_t* const row_of_two = threadIdx.x < 16 ? row : nullptr;
  Matrices& hardware = by_hardware[threadIdx.x];
  load_matrices_x4(hardware.four, row), load_matrices_x4_transposed(hardware.four_transposed, row);
  load_matrices_x2(hardware.two, row_of_two);
  load_matrices_x2_transposed(hardware.two_transposed, row_of_two);
  Matrices& lanes = by_lanes[threadIdx.x];
  portable::load_matrices_x4(lanes.four, row);
  portable::load_matrices_x4_transposed(lanes.four_transposed, row);
  portable::load_matrices_x2(lanes.two, row_of_two);
  portable::load_matrices_x2_transposed(lanes.two_transposed, row_of_two);
}

TEST(PortableHardware, LoadsGiveTheWordsOfTheHardwares) {
  Words random(2);
  std::vector<std::uint16_t> numbers(kWarp * 2 * kPitch);
  for (std::uint16_t& number : numbers) number = static_cast<std::uint16_t>(random());
  TestStream stream;
  const DeviceArray<std::uint16_t> on_device(numbers);
  const std::vector<Matrices> none(kWarp);
  const DeviceArray<Matrices> by_hardware(none), by_lanes(none);
  launch(load_both, {.grid = dim3(1), .block = dim3(kWarp), .shared_bytes = numbers.size() * 2}, stream.get(),
         on_device.data(), by_hardware.data(), by_lanes.data());
  stream.finish();
  EXPECT_EQ(by_lanes.read(), by_hardware.read());
  EXPECT_NE(by_lanes.read()[0], by_lanes.read()[1]);
}

TEST(PortableHardware, ArithmeticOfOneLaneGivesTheHardwaresBits) {
  Words random(3);
  for (int i = 0; i < 100000; ++i) {
    const std::uint32_t a = random(), b = i % 100 == 0 ? 0x80808080u : random();
    const int sum = static_cast<int>(random() % 200001) - 100000;
    ASSERT_EQ(portable::dot_of_four(a, b, sum), dot_of_four(a, b, sum));
    const float x = std::ldexp(static_cast<float>(a) - 2e9f, static_cast<int>(b % 60) - 50);
    const float y = std::ldexp(static_cast<float>(b) - 2e9f, static_cast<int>(a % 60) - 50);
    ASSERT_EQ(portable::half_pair(x, y), half_pair(x, y)) << x << " " << y;
    ASSERT_EQ(portable::bfloat_pair(x, y), bfloat_pair(x, y)) << x << " " << y;
    const float power = static_cast<float>(a % 300001) / 1000.0f - 160.0f;
    ASSERT_EQ(std::bit_cast<std::uint32_t>(portable::quick_exp2(power)),
              std::bit_cast<std::uint32_t>(quick_exp2(power)))
        << power;
  }
}

// The sums that stored.cuh makes numbers of eight bits from.
TEST(PortableHardware, StoredNumbersOfEightBitsAreExpandedToTheHardwaresBits) {
  for (std::uint32_t word = 0; word < 0x10000u; ++word) {
    const std::uint32_t upper = (word & 0xffu) << 8 | (word >> 8) << 24, lower = (word & 0xffu) | (word >> 8)
                                                                                                      << 16;
    const std::uint32_t shifted = (upper & 0x80008000u) | (upper & 0x7f007f00u) >> 1;
    ASSERT_EQ(portable::fma_half_pairs(shifted, 0x5c005c00u, 0x80008000u),
              fma_half_pairs(shifted, 0x5c005c00u, 0x80008000u))
        << word;
    const std::uint32_t signs = (lower & 0x00800080u) | 0x43004300u,
                        rest = (lower & 0x007f007fu) | 0x43004300u;
    ASSERT_EQ(portable::fma_bfloat_pairs(signs, 0xbf80bf80u, rest),
              fma_bfloat_pairs(signs, 0xbf80bf80u, rest))
        << word;
  }
}

__global__ void copy_both(const uint4* source, uint4* copies) {
  __shared__ uint4 shared[2][kWarp];
  const bool is_there = threadIdx.x % 3 != 0;
  copy_async_16(&shared[0][threadIdx.x], source + threadIdx.x, is_there);
  portable::copy_async_16(&shared[1][threadIdx.x], is_there ? source + threadIdx.x : nullptr, is_there);
  copy_async_commit(), portable::copy_async_commit();
  copy_async_wait<0>(), portable::copy_async_wait<0>();
  __syncthreads();
  for (int way = 0; way < 2; ++way) copies[way * kWarp + threadIdx.x] = shared[way][threadIdx.x];
}

TEST(PortableHardware, CopiesGiveTheBytesAndZerosOfTheHardwares) {
  Words random(4);
  std::vector<uint4> words(kWarp);
  for (uint4& each : words) each = {random(), random(), random(), random()};
  TestStream stream;
  const std::vector<uint4> none(2 * kWarp);
  const DeviceArray<uint4> source(words), copies(none);
  launch(copy_both, {.grid = dim3(1), .block = dim3(kWarp)}, stream.get(), source.data(), copies.data());
  stream.finish();
  const std::vector<uint4> got = copies.read();
  EXPECT_EQ(std::memcmp(got.data(), got.data() + kWarp, kWarp * sizeof(uint4)), 0);
  EXPECT_EQ(std::memcmp(&got[1], &words[1], sizeof(uint4)), 0);
}

}  // namespace
}  // namespace octavo::kernels::cuda
