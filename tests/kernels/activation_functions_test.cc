// Activations and soft caps on every instruction set, over the whole range of floats.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/simd/kernel_table.h"
#include "tests/kernels/paged_problem.h"

namespace octavo::kernels::testing {
namespace {

class ActivationFunctions : public ::testing::TestWithParam<cpu::InstructionSet> {};

INSTANTIATE_TEST_SUITE_P(EveryInstructionSet, ActivationFunctions,
                         ::testing::ValuesIn(cpu::usable_instruction_sets()),
                         [](const auto& info) { return std::string(cpu::instruction_set_name(info.param)); });

TEST_P(ActivationFunctions, SiluIsAccurateOverTheWholeRange) {
  const cpu::KernelTable& kernels = cpu::kernel_table(GetParam());
  std::vector<float> z;
  for (float value = -80.0f; value < 80.0f; value += 0.00731f) z.push_back(value);
  for (const float value : {0.0f, -0.0f, 1e-30f, -1e-30f, 1e-6f, 90.0f, 1000.0f, -100.0f, -1000.0f})
    z.push_back(value);
  std::vector<float> got = z;
  const std::vector<float> ones(z.size(), 1.0f);
  kernels.silu_mul(got.data(), ones.data(), static_cast<std::int64_t>(got.size()));
  for (std::size_t i = 0; i < z.size(); ++i) {
    const double expected = double{z[i]} / (1.0 + std::exp(-double{z[i]}));
    EXPECT_NEAR(got[i], expected, 4e-7 * std::fabs(expected) + 1e-35) << z[i];
  }
}

TEST_P(ActivationFunctions, SiluAloneIsThatOfAGateOfOnes) {
  const cpu::KernelTable& kernels = cpu::kernel_table(GetParam());
  for (const std::int64_t size : {1, 15, 16, 17, 100}) {
    std::vector<float> alone = noise_row(1, 0, size, 20.0f), gated = alone;
    const std::vector<float> ones(static_cast<std::size_t>(size), 1.0f);
    kernels.silu(alone.data(), size);
    kernels.silu_mul(gated.data(), ones.data(), size);
    EXPECT_TRUE(same_bits(alone.data(), gated.data(), size));
  }
}

TEST_P(ActivationFunctions, GeluIsAccurateOverTheWholeRange) {
  const cpu::KernelTable& kernels = cpu::kernel_table(GetParam());
  std::vector<float> z;
  for (float value = -12.0f; value < 12.0f; value += 0.00131f) z.push_back(value);
  for (const float value : {0.0f, 1e-30f, -1e-30f, 90.0f, 1e20f, -100.0f, -1e20f}) z.push_back(value);
  std::vector<float> alone = z, gated = z;
  const std::vector<float> ones(z.size(), 1.0f);
  kernels.gelu(alone.data(), static_cast<std::int64_t>(alone.size()));
  kernels.gelu_mul(gated.data(), ones.data(), static_cast<std::int64_t>(gated.size()));
  EXPECT_TRUE(same_bits(alone.data(), gated.data(), static_cast<std::int64_t>(z.size())));
  for (std::size_t i = 0; i < z.size(); ++i) {
    const double value = z[i],
                 inner = std::sqrt(2.0 / 3.14159265358979323846) * (value + 0.044715 * value * value * value);
    const double expected = 0.5 * value * (1.0 + std::tanh(inner));
    EXPECT_NEAR(alone[i], expected, 3e-6 * std::fabs(expected) + 1e-9) << value;
  }
}

TEST_P(ActivationFunctions, AReluAndItsSquareAreExactAndKeepWhatIsNoNumber) {
  const cpu::KernelTable& kernels = cpu::kernel_table(GetParam());
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> z = {-2.0f, -0.0f, 0.0f, 0.5f,      3.0f,  -1e30f, 1e-30f, 1e18f, -7.0f,
                                -1.0f, 1.5f,  2.0f, -infinity, 11.0f, -3.0f,  4.0f,   7.0f,  -0.5f};
  std::vector<float> alone = z, gated = z;
  const std::vector<float> twos(z.size(), 2.0f);
  const auto size = static_cast<std::int64_t>(z.size());
  kernels.squared_relu(alone.data(), size);
  kernels.squared_relu_mul(gated.data(), twos.data(), size);
  std::vector<float> relu = z, gated_relu = z;
  kernels.relu(relu.data(), size);
  kernels.relu_mul(gated_relu.data(), twos.data(), size);
  for (std::size_t i = 0; i < z.size(); ++i) {
    const float expected = z[i] > 0.0f ? z[i] * z[i] : 0.0f;
    EXPECT_EQ(alone[i], expected) << z[i];
    EXPECT_EQ(gated[i], 2.0f * expected) << z[i];
    EXPECT_EQ(relu[i], z[i] > 0.0f ? z[i] : 0.0f) << z[i];
    EXPECT_EQ(gated_relu[i], 2.0f * relu[i]) << z[i];
  }
  float no_number = nan, neither = nan;
  kernels.squared_relu(&no_number, 1);
  kernels.relu(&neither, 1);
  EXPECT_TRUE(std::isnan(no_number) && std::isnan(neither));
}

// Numbers of both signs and every size, and what lies at the ends.
std::vector<float> numbers_of_every_size() {
  std::vector<float> x;
  for (float value = -90.0f; value < 90.0f; value += 0.00731f) x.push_back(value);
  for (const float value : {0.0f, -0.0f, 1e-30f, -1e-30f, 1e-6f, -1e-6f, 20.0f, 1e10f, -1e10f})
    x.push_back(value);
  return x;
}

TEST_P(ActivationFunctions, SigmoidsAreAccurateOverTheWholeRange) {
  const cpu::KernelTable& kernels = cpu::kernel_table(GetParam());
  const std::vector<float> x = numbers_of_every_size();
  const auto size = static_cast<std::int64_t>(x.size());
  std::vector<float> alone = x, gated(x.size(), -3.0f);
  kernels.sigmoid(alone.data(), size);
  kernels.sigmoid_mul(gated.data(), x.data(), size);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double expected = 1.0 / (1.0 + std::exp(-double{x[i]}));
    EXPECT_NEAR(alone[i], expected, 4e-7 * expected + 3e-38) << x[i];
    EXPECT_NEAR(gated[i], -3.0 * expected, 3 * (4e-7 * expected + 3e-38)) << x[i];
  }
}

TEST_P(ActivationFunctions, SoftplusIsAccurateOverTheWholeRangeAndXAbove20) {
  const cpu::KernelTable& kernels = cpu::kernel_table(GetParam());
  const std::vector<float> x = numbers_of_every_size();
  const std::vector<float> zeros(x.size(), 0.0f);
  std::vector<float> got = x;
  kernels.softplus(got.data(), zeros.data(), static_cast<std::int64_t>(got.size()));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double expected = std::log1p(std::exp(-std::fabs(double{x[i]}))) + std::max(double{x[i]}, 0.0);
    EXPECT_NEAR(got[i], expected, 4e-7 * expected + 3e-38) << x[i];
    if (x[i] > 20.0f) {
      EXPECT_EQ(got[i], x[i]);
    }
  }
  std::vector<float> biased = {1.0f, -2.0f};
  const std::vector<float> bias = {-1.0f, 32.0f};
  kernels.softplus(biased.data(), bias.data(), 2);
  EXPECT_NEAR(biased[0], std::log(2.0), 1e-7);
  EXPECT_EQ(biased[1], 30.0f);
}

TEST_P(ActivationFunctions, ExponentialsAreOfTheProduct) {
  const cpu::KernelTable& kernels = cpu::kernel_table(GetParam());
  std::vector<float> a = {0.0f, 1.0f, 2.0f, 1e4f};
  const std::vector<float> factors = {-5.0f, -0.5f, -1.5f, -1.0f};
  kernels.exp_scaled(a.data(), factors.data(), 4);
  EXPECT_EQ(a[0], 1.0f);
  EXPECT_FLOAT_EQ(a[1], static_cast<float>(std::exp(-0.5)));
  EXPECT_FLOAT_EQ(a[2], static_cast<float>(std::exp(-3.0)));
  EXPECT_EQ(a[3], 0.0f);
}

TEST_P(ActivationFunctions, WhatIsNotANumberStaysOne) {
  const cpu::KernelTable& kernels = cpu::kernel_table(GetParam());
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> ones(3, 1.0f);
  using Function = void (*)(float*, const float*, std::int64_t);
  for (const Function function : {kernels.softplus, kernels.exp_scaled, kernels.sigmoid_mul}) {
    std::vector<float> a = {nan, 1.0f, nan};
    function(a.data(), ones.data(), 3);
    EXPECT_TRUE(std::isnan(a[0]) && std::isfinite(a[1]) && std::isnan(a[2]));
  }
  std::vector<float> a = {nan}, gated = {1.0f};
  kernels.sigmoid_mul(gated.data(), a.data(), 1);
  kernels.sigmoid(a.data(), 1);
  EXPECT_TRUE(std::isnan(a[0]) && std::isnan(gated[0]));
}

TEST_P(ActivationFunctions, SoftCapsAreAccurateOverTheWholeRange) {
  const cpu::KernelTable& kernels = cpu::kernel_table(GetParam());
  for (const float cap : {0.5f, 30.0f, 50.0f}) {
    std::vector<float> x;
    for (float value = -12.0f; value < 12.0f; value += 0.0013f) x.push_back(value * cap);
    for (const float value : {0.0f, 1e-30f, -1e-30f, 1e-6f, 0.624999f, 0.625f, 1e10f, -1e30f})
      x.push_back(value * cap);
    std::vector<float> got = x;
    kernels.soft_cap(got.data(), cap, static_cast<std::int64_t>(got.size()));
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double expected = double{cap} * std::tanh(double{x[i]} / double{cap});
      EXPECT_NEAR(got[i], expected, 4e-7 * std::fabs(expected) + 1e-37) << x[i];
    }
  }
  std::vector<float> broken = {std::numeric_limits<float>::infinity(),
                               -std::numeric_limits<float>::infinity(),
                               std::numeric_limits<float>::quiet_NaN()};
  kernels.soft_cap(broken.data(), 30.0f, 3);
  for (const float value : broken)
    EXPECT_TRUE(std::isnan(value)) << "what is not finite must not look like an answer";
}

}  // namespace
}  // namespace octavo::kernels::testing
