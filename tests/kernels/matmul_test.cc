#include "kernels/cpu/matmul.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/half.h"
#include "kernels/cpu/pack.h"
#include "kernels/dequantize.h"

namespace octavo::kernels::cpu {
namespace {

constexpr std::int64_t kMostRows = 33, kMostOutputs = 80;  // five panels: two pairs and one
constexpr std::uint32_t kSeed = 20240607;

// ---- what the tests know of a type, without reading a block's integers themselves

// `length` bytes at `offset` of a block that hold, in the bits of `mask`, bits of the quants; `one` makes
// each quant TypeFacts::unit, `zero` makes it 0 (where there are mins; a table need not have one).
struct QuantBytes {
  int offset, length;
  std::uint8_t one, zero;
  std::uint8_t mask = 0xff;
};

struct TypeFacts {
  TensorType type;
  std::vector<int> half_words = {};          // offsets of the 16-bit floats in a block
  std::vector<QuantBytes> quant_bytes = {};  // empty: not quantised
  int min_word = -1;       // offset of the 16-bit float that multiplies the mins; -1: no mins
  int scale_columns = 32;  // columns that share a scale
  int exponent_byte = -1;  // offset of a scale that is a power of two; -1: none
  int unit = 1;            // what quants become of QuantBytes::one
  float matrix_scale = 1.0f;
  int float_word = -1;      // offset of a scale that is a 32-bit float; -1: none
  int zero_byte = -1;       // offset of a zero point, which makes the mins; -1: none
  std::uint8_t zero = 0;    // the one that makes none
  bool are_floats = false;  // the numbers, so that they meet floats only
};

// IQ2_XXS and IQ3_XXS: four words of seven signs under four bits of scale, every `stride` bytes.
std::vector<QuantBytes> with_sevens(std::vector<QuantBytes> bytes, int first, int stride) {
  for (int i = 0; i < 8; ++i) {
    bytes.push_back({first + stride * i, 3, 0, 0});
    bytes.push_back({first + stride * i + 3, 1, 0, 0, 0x0f});
  }
  return bytes;
}

std::vector<QuantBytes> iq2_xxs_bytes() {
  std::vector<QuantBytes> indices;
  for (int i = 0; i < 8; ++i) indices.push_back({2 + 8 * i, 4, 0, 0});
  return with_sevens(indices, 6, 8);
}

std::vector<QuantBytes> iq1_s_bytes() {
  std::vector<QuantBytes> bytes = {{2, 32, 0, 0}};
  for (int i = 0; i < 8; ++i) {
    bytes.push_back({34 + 2 * i, 1, 0, 0});
    bytes.push_back({35 + 2 * i, 1, 0, 0, 0x8f});
  }
  return bytes;
}

const std::vector<TypeFacts>& all_types() {
  static const std::vector<TypeFacts> types = {
      {TensorType::kQ4_0, {0}, {{2, 16, 0x99, 0x88}}},
      {TensorType::kQ4_1, {0, 2}, {{4, 16, 0x11, 0x00}}, 2},
      {TensorType::kQ5_0, {0}, {{2, 4, 0xff, 0xff}, {6, 16, 0x11, 0x00}}},
      {TensorType::kQ5_1, {0, 2}, {{4, 4, 0x00, 0x00}, {8, 16, 0x11, 0x00}}, 2},
      {TensorType::kQ8_0, {0}, {{2, 32, 0x01, 0x00}}},
      {TensorType::kQ2_K, {80, 82}, {{16, 64, 0x55, 0x00}}, 82, 16},
      {TensorType::kQ3_K, {108}, {{0, 32, 0xff, 0xff}, {32, 64, 0x55, 0x00}}, -1, 16},
      {TensorType::kQ4_K, {0, 2}, {{16, 128, 0x11, 0x00}}, 2},
      {TensorType::kQ5_K, {0, 2}, {{16, 32, 0x00, 0x00}, {48, 128, 0x11, 0x00}}, 2},
      {TensorType::kQ6_K, {208}, {{0, 128, 0x11, 0x00}, {128, 64, 0xaa, 0xaa}}, -1, 16},
      {TensorType::kIQ4_NL, {0}, {{2, 16, 0x88, 0x88}}},
      {TensorType::kIQ4_XS, {0}, {{8, 128, 0x88, 0x88}}},
      {TensorType::kMXFP4, {}, {{1, 16, 0x11, 0x00}}, -1, 32, 0},
      {TensorType::kNVFP4, {}, {{4, 32, 0x11, 0x00}}, -1, 16, -1, 1, 0.3f},
      // The first entries of the grids: 8, 4, 1 or -1 eight or four times.
      {TensorType::kIQ2_XXS, {0}, iq2_xxs_bytes(), -1, 32, -1, 8},
      {TensorType::kIQ2_XS, {0}, {{2, 64, 0, 0}}, -1, 16, -1, 8},
      {TensorType::kIQ2_S, {0}, {{2, 72, 0, 0}}, -1, 16, -1, 8},
      {TensorType::kIQ3_XXS, {0}, with_sevens({{2, 64, 0, 0}}, 66, 4), -1, 32, -1, 4},
      {TensorType::kIQ3_S, {0}, {{2, 104, 0, 0}}},
      // Eighths: -1, and one of them up.
      {TensorType::kIQ1_S, {0}, iq1_s_bytes(), -1, 32, -1, -7},
      {TensorType::kIQ1_M, {}, {{0, 48, 0, 0}}, -1, 16, -1, -7},
      {TensorType::kTQ1_0, {52}, {{0, 52, 0xff, 0}}},
      {TensorType::kTQ2_0, {64}, {{0, 64, 0xaa, 0}}},
      {TensorType::kQ1_0, {0}, {{2, 16, 0xff, 0}}},
      {TensorType::kQ2_0, {0}, {{2, 16, 0xaa, 0}}},
      {.type = TensorType::kU4_G32,
       .quant_bytes = {{5, 16, 0x99, 0x88}},
       .float_word = 0,
       .zero_byte = 4,
       .zero = 8},
      {.type = TensorType::kU4_G128,
       .quant_bytes = {{5, 64, 0x99, 0x88}},
       .float_word = 0,
       .zero_byte = 4,
       .zero = 8},
      {.type = TensorType::kU8_G32,
       .quant_bytes = {{5, 32, 129, 128}},
       .float_word = 0,
       .zero_byte = 4,
       .zero = 128},
      {.type = TensorType::kU8_G128,
       .quant_bytes = {{5, 128, 129, 128}},
       .float_word = 0,
       .zero_byte = 4,
       .zero = 128},
      {.type = TensorType::kF8_G32, .quant_bytes = {{4, 32, 0x38, 0}}, .float_word = 0, .are_floats = true},
      {.type = TensorType::kF8_G128, .quant_bytes = {{4, 128, 0x38, 0}}, .float_word = 0, .are_floats = true},
      {TensorType::kF32, {}, {}},
      {TensorType::kF16, {}, {}},
      {TensorType::kBF16, {}, {}},
  };
  return types;
}

bool is_quantised(const TypeFacts& facts) { return !facts.quant_bytes.empty(); }
bool meets_integers(const TypeFacts& facts) { return is_quantised(facts) && !facts.are_floats; }
bool has_mins(const TypeFacts& facts) { return facts.min_word >= 0 || facts.zero_byte >= 0; }

// 0x7f and 0xff are no numbers.
void make_floats_finite(const TypeFacts& facts, std::byte* block) {
  for (const QuantBytes& range : facts.quant_bytes) {
    for (int i = range.offset; i < range.offset + range.length; ++i)
      if ((block[i] & std::byte{0x7f}) == std::byte{0x7f}) block[i] &= std::byte{0x87};
  }
}

void set_word(std::byte* target, std::uint16_t word) { std::memcpy(target, &word, sizeof word); }

std::int64_t row_bytes(TensorType type, std::int64_t columns) {
  return columns / traits_of(type).block_elements * traits_of(type).block_bytes;
}

struct Weights {
  TypeFacts facts;
  std::int64_t rows, columns;
  std::vector<std::byte> bytes;

  MatrixSource source() const { return first_rows(rows); }
  MatrixSource first_rows(std::int64_t count) const {
    const auto size = static_cast<std::size_t>(count * row_bytes(facts.type, columns));
    return {facts.type, count, columns, std::span(bytes).first(size), facts.matrix_scale};
  }
};

void set_every_block(Weights& weights, const auto& function) {
  const auto block_bytes = static_cast<std::size_t>(traits_of(weights.facts.type).block_bytes);
  for (std::size_t at = 0; at < weights.bytes.size(); at += block_bytes) function(weights.bytes.data() + at);
}

// IQ1_M's scale stands in four nibbles.
void set_iq1_m_scale(std::byte* block, std::uint16_t word) {
  for (int i = 0; i < 4; ++i) {
    std::byte& high = block[49 + 2 * i];
    high = (high & std::byte{15}) | static_cast<std::byte>((word >> (4 * i) & 15) << 4);
  }
}

// Scales of both signs, some zero (powers of two: some denormal); every bit pattern of the quants.
Weights random_weights(const TypeFacts& facts, std::int64_t rows, std::int64_t columns,
                       std::mt19937& random) {
  Weights weights{facts, rows, columns,
                  std::vector<std::byte>(static_cast<std::size_t>(rows * row_bytes(facts.type, columns)))};
  std::normal_distribution<float> normal(0.0f, 0.05f);
  for (std::byte& byte : weights.bytes) byte = static_cast<std::byte>(random());
  set_every_block(weights, [&](std::byte* block) {
    for (const int word : facts.half_words)
      set_word(block + word, random() % 16 == 0 ? 0 : float_to_half(normal(random)));
    if (facts.exponent_byte >= 0) {
      const auto usual = 118 + random() % 8;
      block[facts.exponent_byte] = static_cast<std::byte>(random() % 16 == 0 ? random() % 3 : usual);
    }
    const float value = normal(random);
    if (facts.type == TensorType::kIQ1_M) set_iq1_m_scale(block, float_to_half(value));
    if (facts.type == TensorType::kF32) std::memcpy(block, &value, sizeof value);
    if (facts.type == TensorType::kF16) set_word(block, float_to_half(value));
    if (facts.type == TensorType::kBF16) set_word(block, float_to_bfloat16(value));
    if (facts.float_word >= 0) std::memcpy(block + facts.float_word, &value, sizeof value);
    if (facts.are_floats) make_floats_finite(facts, block);
    if (facts.zero_byte >= 0 && facts.zero == 8) block[facts.zero_byte] &= std::byte{15};
  });
  return weights;
}

std::vector<float> random_activations(std::int64_t rows, std::int64_t columns, std::mt19937& random) {
  std::normal_distribution<float> normal(0.0f, 1.0f);
  std::vector<float> values(static_cast<std::size_t>(rows * columns));
  for (float& value : values) value = random() % 32 == 0 ? 0.0f : normal(random) * std::exp(normal(random));
  return values;
}

// ---- oracles

std::vector<float> dequantized_row(const Weights& weights, std::int64_t row) {
  std::vector<float> values(static_cast<std::size_t>(weights.columns));
  dequantize(weights.facts.type, weights.bytes.data() + row * row_bytes(weights.facts.type, weights.columns),
             weights.columns, values.data());
  return values;
}

// A row of weights as the header of matmul.h speaks of it: w = scale * quant + min, quant a signed integer.
struct QuantisedRow {
  std::vector<float> scale, min;
  std::vector<std::int32_t> quant;
};

// Found by expanding blocks with changed bytes: with quants 1 (or the type's unit) and min 0 a weight is its
// scale (or that many), with quants 0 its min, with min 0 scale * quant, which is exact.
QuantisedRow quantised_row(const Weights& weights, std::int64_t row) {
  const TypeFacts& facts = weights.facts;
  const auto size = row_bytes(facts.type, weights.columns);
  const auto expand = [&](bool without_min, auto byte_of) {
    Weights changed{facts,
                    1,
                    weights.columns,
                    {weights.bytes.begin() + row * size, weights.bytes.begin() + (row + 1) * size}};
    set_every_block(changed, [&](std::byte* block) {
      if (without_min && facts.min_word >= 0) set_word(block + facts.min_word, 0);
      if (without_min && facts.zero_byte >= 0) block[facts.zero_byte] = std::byte{facts.zero};
      for (const QuantBytes& range : facts.quant_bytes) {
        for (int i = 0; i < range.length; ++i) {
          std::byte& byte = block[range.offset + i];
          std::byte changed_byte = byte;
          byte_of(range, changed_byte);
          byte = (byte & ~std::byte{range.mask}) | (changed_byte & std::byte{range.mask});
        }
      }
    });
    return dequantized_row(changed, 0);
  };
  QuantisedRow result;
  result.scale = expand(true, [](const QuantBytes& range, std::byte& byte) { byte = std::byte{range.one}; });
  result.min.resize(result.scale.size());
  if (has_mins(facts)) {
    result.min =
        expand(false, [](const QuantBytes& range, std::byte& byte) { byte = std::byte{range.zero}; });
  }
  for (float& scale : result.scale) scale /= static_cast<float>(facts.unit);
  const std::vector<float> products = expand(true, [](const QuantBytes&, std::byte&) {});
  for (std::size_t i = 0; i < products.size(); ++i) {
    result.quant.push_back(result.scale[i] == 0.0f
                               ? 0
                               : static_cast<std::int32_t>(std::nearbyint(products[i] / result.scale[i])));
  }
  return result;
}

struct RoundedRow {
  std::vector<float> scale;  // for each group of 32
  std::vector<std::int32_t> value;
};

float largest_integer(Activation activation) { return activation == Activation::kInt8 ? 127.0f : 32639.0f; }

RoundedRow rounded_row(std::span<const float> values, float most) {
  RoundedRow result;
  for (std::size_t first = 0; first < values.size(); first += 32) {
    float largest = 0.0f;
    for (std::size_t i = first; i < first + 32; ++i) largest = std::max(largest, std::fabs(values[i]));
    const float scale = largest / most < std::numeric_limits<float>::min() ? 0.0f : largest / most;
    result.scale.push_back(scale);
    for (std::size_t i = first; i < first + 32; ++i) {
      result.value.push_back(scale == 0.0f ? 0
                                           : static_cast<std::int32_t>(std::nearbyint(values[i] / scale)));
    }
  }
  return result;
}

// The chains of matmul.h in scalar code.
float integer_chain(const QuantisedRow& weights, const RoundedRow& activations, const TypeFacts& facts) {
  float sum = 0.0f;
  const auto step = static_cast<std::size_t>(facts.scale_columns);
  for (std::size_t first = 0; first < weights.quant.size(); first += step) {
    std::int32_t dot = 0, value_sum = 0;
    for (std::size_t i = first; i < first + step; ++i) {
      dot += weights.quant[i] * activations.value[i];
      value_sum += activations.value[i];
    }
    const float scale = activations.scale[first / 32];
    sum = std::fma(weights.scale[first] * scale, static_cast<float>(dot), sum);
    if (has_mins(facts)) sum = std::fma(weights.min[first], scale * static_cast<float>(value_sum), sum);
  }
  return sum * facts.matrix_scale;
}

float float_chain(std::span<const float> weights, std::span<const float> activations,
                  const TypeFacts& facts) {
  float sum = 0.0f;
  for (std::size_t i = 0; i < weights.size(); ++i) sum = std::fma(weights[i], activations[i], sum);
  return sum * facts.matrix_scale;
}

// [kMostRows, kMostOutputs] of both: the chain's bits, and the sum in double with what rounding may add to
// it.
struct Expected {
  std::vector<float> chain;
  std::vector<double> exact, tolerance;
};

// Every product and every sum may round by 2^-24 of a partial sum, which is at most the sum of magnitudes.
double rounding_bound(double magnitude, std::int64_t columns) {
  return magnitude * (static_cast<double>(columns) + 4) * 0x1.0p-24 + 1e-37;
}

Expected expect(const Weights& weights, std::span<const float> activations, std::int64_t rows,
                Activation activation) {
  const auto columns = static_cast<std::size_t>(weights.columns);
  const bool rounds = meets_integers(weights.facts) && activation != Activation::kF32;
  std::vector<RoundedRow> rounded;
  for (std::int64_t r = 0; rounds && r < rows; ++r) {
    const auto row = activations.subspan(static_cast<std::size_t>(r) * columns, columns);
    rounded.push_back(rounded_row(row, largest_integer(activation)));
  }
  Expected expected;
  const auto size = static_cast<std::size_t>(rows * weights.rows);
  expected.chain.resize(size), expected.exact.resize(size), expected.tolerance.resize(size);
  for (std::int64_t n = 0; n < weights.rows; ++n) {
    const std::vector<float> row = dequantized_row(weights, n);
    const QuantisedRow quantised = rounds ? quantised_row(weights, n) : QuantisedRow{};
    for (std::int64_t r = 0; r < rows; ++r) {
      const auto at = static_cast<std::size_t>(r * weights.rows + n);
      const auto values = activations.subspan(static_cast<std::size_t>(r) * columns, columns);
      double exact = 0, magnitude = 0;
      for (std::size_t k = 0; k < columns; ++k) {
        const RoundedRow* group = rounds ? &rounded[static_cast<std::size_t>(r)] : nullptr;
        const double value = rounds ? static_cast<double>(group->scale[k / 32]) * group->value[k] : values[k];
        exact += row[k] * value;
        const double parts = rounds
                                 ? std::fabs(static_cast<double>(quantised.scale[k]) * quantised.quant[k]) +
                                       std::fabs(quantised.min[k])
                                 : std::fabs(row[k]);
        magnitude += parts * std::fabs(value);
      }
      expected.chain[at] = rounds
                               ? integer_chain(quantised, rounded[static_cast<std::size_t>(r)], weights.facts)
                               : float_chain(row, values, weights.facts);
      const double scale = weights.facts.matrix_scale;
      expected.exact[at] = scale * exact;
      expected.tolerance[at] = rounding_bound(std::fabs(scale) * magnitude, weights.columns);
    }
  }
  return expected;
}

// ---- running

std::unique_ptr<ThreadPool> make_pool(std::int32_t num_threads) {
  return std::move(*ThreadPool::create(num_threads));
}

ActivationRows make_activations(InstructionSet isa, std::span<const float> values, std::int64_t rows,
                                std::int64_t columns, ActivationForm form) {
  ActivationRows activations(isa);
  activations.reserve(rows, columns, form);
  for (std::int64_t r = 0; r < rows; ++r) activations.set_row(r, values.data() + r * columns);
  return activations;
}

constexpr float kUntouched = -12345.0f;

// [rows, weights.rows()] with a column on either side that no product may touch.
class Output {
 public:
  Output(std::int64_t rows, std::int64_t columns)
      : rows_(rows), columns_(columns), values_(static_cast<std::size_t>(rows * (columns + 2)), kUntouched) {}
  MatrixView view() { return {values_.data() + 1, rows_, columns_, columns_ + 2}; }
  float at(std::int64_t row, std::int64_t column) const {
    return values_[static_cast<std::size_t>(row * (columns_ + 2) + column + 1)];
  }
  bool borders_untouched() const {
    for (std::int64_t r = 0; r < rows_; ++r) {
      if (at(r, -1) != kUntouched || at(r, columns_) != kUntouched) return false;
    }
    return true;
  }

 private:
  std::int64_t rows_, columns_;
  std::vector<float> values_;
};

Output multiply(const PackedMatrix& weights, const ActivationRows& activations) {
  Output out(activations.rows(), weights.rows());
  multiply_panels(weights, activations, 0, weights.num_panels(), out.view());
  return out;
}

bool same_bits(float a, float b) {
  // Zeros of both signs count as one number: a chain may begin with either.
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) || (a == 0.0f && b == 0.0f);
}

// Every output against the expectation of `stride` outputs a row; reports the first difference only.
void expect_outputs(const Output& out, std::int64_t rows, std::int64_t outputs, const Expected& expected,
                    std::int64_t stride, std::int64_t first_row = 0) {
  ASSERT_TRUE(out.borders_untouched());
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t n = 0; n < outputs; ++n) {
      const auto at = static_cast<std::size_t>((first_row + r) * stride + n);
      ASSERT_TRUE(same_bits(out.at(r, n), expected.chain[at]))
          << "row " << r << ", output " << n << ": " << out.at(r, n) << " instead of " << expected.chain[at];
      ASSERT_NEAR(out.at(r, n), expected.exact[at], expected.tolerance[at])
          << "row " << r << ", output " << n;
    }
  }
}

class MatmulTest : public testing::TestWithParam<int> {
 protected:
  const TypeFacts& facts() const { return all_types()[static_cast<std::size_t>(GetParam())]; }

  std::vector<Activation> activation_kinds() const {
    if (!meets_integers(facts())) return {Activation::kF32};
    return {Activation::kInt8, Activation::kInt16, Activation::kF32};
  }
  std::vector<std::int64_t> column_counts(std::initializer_list<std::int64_t> counts) const {
    std::vector<std::int64_t> possible;
    for (const std::int64_t count : counts) {
      if (count % traits_of(facts().type).block_elements == 0) possible.push_back(count);
    }
    return possible;
  }
  std::unique_ptr<PackedMatrix> pack(const MatrixSource& source, Activation activation, InstructionSet isa) {
    return std::move(*pack_matrix(source, activation, isa, *alone_, memory_));
  }

  std::unique_ptr<ThreadPool> alone_ = make_pool(1);
  PackedMemory memory_;
  std::mt19937 random_{kSeed};
};

TEST_P(MatmulTest, EveryOutputIsTheScalarChainOnEveryInstructionSet) {
  // The longest rows are multiplied in pieces.
  for (const std::int64_t columns : column_counts({32, 64, 96, 256, 576, 768, 2560})) {
    const Weights weights = random_weights(facts(), kMostOutputs, columns, random_);
    const std::vector<float> values = random_activations(kMostRows, columns, random_);
    for (const Activation activation : activation_kinds()) {
      const Expected expected = expect(weights, values, kMostRows, activation);
      for (const InstructionSet isa : usable_instruction_sets()) {
        for (const std::int64_t outputs : {1, 15, 16, 17, 80}) {
          const auto matrix = pack(weights.first_rows(outputs), activation, isa);
          for (const std::int64_t rows : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 16, 17, 33}) {
            SCOPED_TRACE(std::string(instruction_set_name(isa)) + ", " + std::to_string(rows) + " rows, " +
                         std::to_string(outputs) + " x " + std::to_string(columns) + ", activation " +
                         std::to_string(static_cast<int>(activation)));
            const ActivationRows activations =
                make_activations(isa, values, rows, columns, matrix->activation_form());
            expect_outputs(multiply(*matrix, activations), rows, outputs, expected, kMostOutputs);
            if (HasFatalFailure()) return;
          }
        }
      }
    }
  }
}

TEST_P(MatmulTest, ARowAloneGivesTheBitsItGivesAmongOthers) {
  const std::int64_t columns = column_counts({288, 512}).front(), outputs = 40;
  const Weights weights = random_weights(facts(), outputs, columns, random_);
  const std::vector<float> values = random_activations(kMostRows, columns, random_);
  for (const Activation activation : activation_kinds()) {
    const Expected expected = expect(weights, values, kMostRows, activation);
    for (const InstructionSet isa : usable_instruction_sets()) {
      SCOPED_TRACE(std::string(instruction_set_name(isa)));
      const auto matrix = pack(weights.source(), activation, isa);
      for (const std::int64_t row : {0, 7, 32}) {
        const auto alone = std::span(values).subspan(static_cast<std::size_t>(row * columns),
                                                     static_cast<std::size_t>(columns));
        const ActivationRows activations =
            make_activations(isa, alone, 1, columns, matrix->activation_form());
        expect_outputs(multiply(*matrix, activations), 1, outputs, expected, outputs, row);
      }
    }
  }
}

// Many rows meet weights that are expanded first; 61 are the fewest that do on any instruction set. Of long
// rows the most come in several chunks.
TEST_P(MatmulTest, ManyRowsGiveTheBitsThatFewGive) {
  constexpr std::int64_t kOutputs = 33, kFew = 3;
  for (const std::int64_t columns : column_counts({256, 2560})) {
    const Weights weights = random_weights(facts(), kOutputs, columns, random_);
    const std::vector<float> values = random_activations(140, columns, random_);
    for (const Activation activation : activation_kinds()) {
      for (const InstructionSet isa : usable_instruction_sets()) {
        const auto matrix = pack(weights.source(), activation, isa);
        for (const std::int64_t rows : {61, 73, 140}) {
          SCOPED_TRACE(std::string(instruction_set_name(isa)) + ", " + std::to_string(rows) + " rows");
          const ActivationRows activations =
              make_activations(isa, values, rows, columns, matrix->activation_form());
          const Output many = multiply(*matrix, activations);
          Output few(rows, kOutputs);
          for (std::int64_t first = 0; first < rows; first += kFew) {
            const RowRange range = {first, std::min(first + kFew, rows)};
            multiply_panels(*matrix, activations, range, 0, matrix->num_panels(), few.view());
          }
          for (std::int64_t r = 0; r < rows; ++r) {
            for (std::int64_t n = 0; n < kOutputs; ++n)
              ASSERT_TRUE(same_bits(many.at(r, n), few.at(r, n))) << "row " << r << ", output " << n;
          }
        }
      }
    }
  }
}

TEST_P(MatmulTest, AnySplitOfThePanelsGivesTheSameBits) {
  const auto pair = make_pool(2);
  const std::int64_t columns = column_counts({96, 256}).front(), outputs = 200, rows = 45;
  const Weights weights = random_weights(facts(), outputs, columns, random_);
  const std::vector<float> values = random_activations(rows, columns, random_);
  for (const Activation activation : activation_kinds()) {
    const Expected expected = expect(weights, values, rows, activation);
    for (const InstructionSet isa : usable_instruction_sets()) {
      SCOPED_TRACE(std::string(instruction_set_name(isa)));
      const auto matrix = pack(weights.source(), activation, isa);
      const ActivationRows activations =
          make_activations(isa, values, rows, columns, matrix->activation_form());
      Output out(rows, outputs);
      std::vector<std::int64_t> cuts = {0, matrix->num_panels()};
      for (int i = 0; i < 4; ++i)
        cuts.push_back(static_cast<std::int64_t>(random_()) % (matrix->num_panels() + 1));
      std::sort(cuts.begin(), cuts.end());
      pair->parallel_for(static_cast<std::int64_t>(cuts.size()) - 1, [&](std::int64_t i, std::int32_t) {
        const auto index = static_cast<std::size_t>(i);
        multiply_panels(*matrix, activations, cuts[index], cuts[index + 1], out.view());
      });
      expect_outputs(out, rows, outputs, expected, outputs);
    }
  }
}

TEST_P(MatmulTest, ARowOfAPanelIsTheFilesBitForBit) {
  for (const std::int64_t columns : column_counts({64, 128, 256, 512, 1280})) {
    const Weights weights = random_weights(facts(), 33, columns, random_);
    const auto matrix = pack(weights.source(), Activation::kInt16, InstructionSet::kPortable);
    std::vector<float> row(static_cast<std::size_t>(columns));
    for (std::int64_t n = 0; n < weights.rows; ++n) {
      unpack_row(matrix->format(), matrix->panel(n / 16), columns, n % 16, row.data());
      const std::vector<float> expected = dequantized_row(weights, n);
      for (std::size_t i = 0; i < row.size(); ++i)
        ASSERT_TRUE(same_bits(row[i], expected[i])) << "row " << n << ", column " << i;
    }
  }
}

TEST_P(MatmulTest, ThreadsAndInstructionSetsDoNotChangeThePanels) {
  const std::int64_t columns = column_counts({576, 768}).front();
  const Weights weights = random_weights(facts(), 333, columns, random_);
  const auto pair = make_pool(2);
  const auto by_one = pack(weights.source(), Activation::kInt8, InstructionSet::kPortable);
  const auto by_two = std::move(
      *pack_matrix(weights.source(), Activation::kInt8, usable_instruction_sets().front(), *pair, memory_));
  ASSERT_EQ(by_one->memory_bytes(), by_two->memory_bytes());
  const auto num_bytes = static_cast<std::size_t>(by_one->memory_bytes());
  EXPECT_EQ(std::memcmp(by_one->panel(0), by_two->panel(0), num_bytes), 0);
}

// The largest sums that integers can reach, in every pairing of signs: where an instruction could saturate,
// it does here.
TEST_P(MatmulTest, ExtremeWeightsAndActivationsAreExact) {
  const std::int64_t columns = 256, outputs = 17;
  std::vector<float> values;
  for (const int pattern : {0, 1, 2, 3, 4}) {
    for (std::int64_t k = 0; k < columns; ++k) {
      const bool minus = pattern == 2 || (pattern == 3 && k % 2 == 1) || (pattern == 4 && k % 3 == 0);
      values.push_back(pattern == 0 ? 0.0f : minus ? -127.0f : 127.0f);
    }
  }
  for (const int fill : {0x00, 0xff, 0x80, 0x7f, 0xf0, 0x0f}) {
    Weights weights = random_weights(facts(), outputs, columns, random_);
    std::fill(weights.bytes.begin(), weights.bytes.end(), static_cast<std::byte>(fill));
    set_every_block(weights, [&](std::byte* block) {
      for (const int word : facts().half_words)
        set_word(block + word, float_to_half(random_() % 2 == 0 ? 1.0f : -0.75f));
      if (facts().exponent_byte >= 0)
        block[facts().exponent_byte] = static_cast<std::byte>(127 + random_() % 2);
      const float value = random_() % 2 == 0 ? 60000.0f : -0x1.0p-14f;
      if (facts().type == TensorType::kIQ1_M)
        set_iq1_m_scale(block, float_to_half(random_() % 2 == 0 ? 1.0f : -0.75f));
      if (facts().type == TensorType::kF32) std::memcpy(block, &value, sizeof value);
      if (facts().type == TensorType::kF16) set_word(block, float_to_half(value));
      if (facts().type == TensorType::kBF16) set_word(block, float_to_bfloat16(value));
      if (facts().float_word >= 0) {
        const float scale = random_() % 2 == 0 ? 1.0f : -0.75f;
        std::memcpy(block + facts().float_word, &scale, sizeof scale);
        if (facts().zero == 8) block[facts().zero_byte] &= std::byte{15};
      }
      if (facts().are_floats) make_floats_finite(facts(), block);
    });
    for (const Activation activation : activation_kinds()) {
      const Expected expected = expect(weights, values, 5, activation);
      for (const InstructionSet isa : usable_instruction_sets()) {
        SCOPED_TRACE(std::string(instruction_set_name(isa)) + ", bytes " + std::to_string(fill));
        const auto matrix = pack(weights.source(), activation, isa);
        const ActivationRows activations =
            make_activations(isa, values, 5, columns, matrix->activation_form());
        expect_outputs(multiply(*matrix, activations), 5, outputs, expected, outputs);
      }
    }
  }
}

TEST_P(MatmulTest, ARowThatIsNotFiniteSpoilsOnlyItself) {
  const std::int64_t columns = 256, outputs = 20, rows = 3;
  const Weights weights = random_weights(facts(), outputs, columns, random_);
  std::vector<float> values = random_activations(rows, columns, random_);
  for (const Activation activation : activation_kinds()) {
    const Expected expected = expect(weights, values, rows, activation);
    for (const float bad :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      std::vector<float> spoiled = values;
      spoiled[static_cast<std::size_t>(columns) + 70] = bad;
      for (const InstructionSet isa : usable_instruction_sets()) {
        SCOPED_TRACE(std::string(instruction_set_name(isa)));
        const auto matrix = pack(weights.source(), activation, isa);
        const Output out =
            multiply(*matrix, make_activations(isa, spoiled, rows, columns, matrix->activation_form()));
        for (std::int64_t n = 0; n < outputs; ++n) {
          EXPECT_FALSE(std::isfinite(out.at(1, n))) << n;
          EXPECT_TRUE(same_bits(out.at(0, n), expected.chain[static_cast<std::size_t>(n)])) << n;
          EXPECT_TRUE(same_bits(out.at(2, n), expected.chain[static_cast<std::size_t>(2 * outputs + n)]))
              << n;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, MatmulTest, testing::Range(0, 34),
                         [](const testing::TestParamInfo<int>& info) {
                           return std::string(
                               traits_of(all_types()[static_cast<std::size_t>(info.param)].type).name);
                         });

TEST(Matmul, UnquantisedColumnsMayBeAnyNumber) {
  std::mt19937 random(kSeed);
  const auto pool = make_pool(1);
  PackedMemory memory;
  for (const TypeFacts& facts : all_types()) {
    if (is_quantised(facts)) continue;
    // 33 rows meet 16-bit floats expanded, 1,100 columns come in pieces.
    for (const std::int64_t columns : {1, 15, 17, 47, 100, 1100}) {
      const std::int64_t rows = columns % 2 == 0 ? 33 : 14;
      const Weights weights = random_weights(facts, 37, columns, random);
      const std::vector<float> values = random_activations(rows, columns, random);
      const Expected expected = expect(weights, values, rows, Activation::kF32);
      for (const InstructionSet isa : usable_instruction_sets()) {
        SCOPED_TRACE(std::string(instruction_set_name(isa)) + ", " + std::to_string(columns) + " columns");
        const auto matrix = std::move(*pack_matrix(weights.source(), Activation::kInt8, isa, *pool, memory));
        ASSERT_EQ(matrix->activation_form(), ActivationForm::kFloat);
        const ActivationRows activations =
            make_activations(isa, values, rows, columns, ActivationForm::kFloat);
        expect_outputs(multiply(*matrix, activations), rows, 37, expected, 37);
      }
    }
  }
}

// The denormal scales of MXFP4, where they are most of a sum, and the largest one, of which sixteen would be
// infinite but twelve are not.
TEST(Matmul, TheSmallestAndTheLargestPowersOfTwoAreExact) {
  std::mt19937 random(kSeed);
  const auto pool = make_pool(1);
  PackedMemory memory;
  const auto facts = *std::find_if(all_types().begin(), all_types().end(),
                                   [](const TypeFacts& type) { return type.type == TensorType::kMXFP4; });
  const std::int64_t columns = 64, outputs = 16, rows = 13;
  for (const auto& [exponent, factor] :
       {std::pair{0, 0x1p90f}, {1, 0x1p90f}, {2, 0x1p90f}, {252, 0x1p-40f}}) {
    Weights weights = random_weights(facts, outputs, columns, random);
    set_every_block(weights, [&](std::byte* block) { block[0] = static_cast<std::byte>(exponent); });
    std::vector<float> values = random_activations(rows, columns, random);
    for (float& value : values) value *= factor;
    for (const Activation activation : {Activation::kInt8, Activation::kInt16, Activation::kF32}) {
      const Expected expected = expect(weights, values, rows, activation);
      ASSERT_GT(std::fabs(expected.chain.front()), 1e-15f);
      for (const InstructionSet isa : usable_instruction_sets()) {
        SCOPED_TRACE(std::string(instruction_set_name(isa)) + ", exponent " + std::to_string(exponent));
        const auto matrix = std::move(*pack_matrix(weights.source(), activation, isa, *pool, memory));
        const ActivationRows activations =
            make_activations(isa, values, rows, columns, matrix->activation_form());
        expect_outputs(multiply(*matrix, activations), rows, outputs, expected, outputs);
      }
    }
  }
}

// Matrices of one operation that have orders of their own, and one that has none.
TEST(Matmul, ColumnsInAnotherOrderMeetTheirInputs) {
  std::mt19937 random(kSeed);
  const auto pool = make_pool(1);
  PackedMemory memory;
  const auto facts = *std::find_if(all_types().begin(), all_types().end(),
                                   [](const TypeFacts& type) { return type.type == TensorType::kU4_G32; });
  constexpr std::int64_t kColumns = 96, kOutputs = 20, kRows = 7;
  const Weights weights = random_weights(facts, kOutputs, kColumns, random);
  const std::vector<float> values = random_activations(kRows, kColumns, random);
  std::array<ColumnOrder, 2> orders;
  for (ColumnOrder& order : orders) {
    order.resize(kColumns);
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int32_t>(i);
    std::shuffle(order.begin(), order.end(), random);
  }
  for (const Activation activation : {Activation::kInt8, Activation::kInt16, Activation::kF32}) {
    for (const InstructionSet isa : usable_instruction_sets()) {
      SCOPED_TRACE(std::string(instruction_set_name(isa)));
      std::vector<std::unique_ptr<PackedMatrix>> matrices;
      for (const ColumnOrder* const order :
           std::initializer_list<const ColumnOrder*>{&orders[0], nullptr, &orders[1]}) {
        MatrixSource source = weights.source();
        if (order != nullptr) source.column_order = *order;
        matrices.push_back(std::move(*pack_matrix(source, activation, isa, *pool, memory, order)));
      }
      ActivationRows activations(isa);
      activations.reserve(kRows, kColumns,
                          matrices[0]->activation_forms() | matrices[1]->activation_forms() |
                              matrices[2]->activation_forms());
      for (std::int64_t r = 0; r < kRows; ++r) activations.set_row(r, values.data() + r * kColumns);
      for (const auto& matrix : matrices) {
        std::vector<float> gathered = values;
        if (const ColumnOrder* const order = matrix->column_order(); order != nullptr) {
          for (std::size_t i = 0; i < gathered.size(); ++i) {
            const std::size_t row = i / kColumns * kColumns;
            gathered[i] = values[row + static_cast<std::size_t>((*order)[i % kColumns])];
          }
        }
        const Expected expected = expect(weights, gathered, kRows, activation);
        expect_outputs(multiply(*matrix, activations), kRows, kOutputs, expected, kOutputs);
      }
    }
  }
}

TEST(Matmul, PanelsOfCommonTypesTakeNoMoreThanTheFile) {
  std::mt19937 random(kSeed);
  const auto pool = make_pool(1);
  PackedMemory memory;
  for (const TypeFacts& facts : all_types()) {
    const Weights weights = random_weights(facts, 64, 512, random);
    const auto matrix = std::move(
        *pack_matrix(weights.source(), Activation::kInt8, InstructionSet::kPortable, *pool, memory));
    const auto file_bytes = static_cast<std::int64_t>(weights.bytes.size());
    switch (facts.type) {
      case TensorType::kQ4_0:
      case TensorType::kQ4_1:
      case TensorType::kQ4_K:
      case TensorType::kQ8_0:
      case TensorType::kIQ4_NL:
      case TensorType::kMXFP4:
      case TensorType::kNVFP4:
      case TensorType::kIQ2_S:
      case TensorType::kIQ3_S:
      case TensorType::kIQ1_S:
      case TensorType::kTQ2_0:
      case TensorType::kQ1_0:
      case TensorType::kQ2_0:
      case TensorType::kU4_G32:
      case TensorType::kU4_G128:
      case TensorType::kU8_G32:
      case TensorType::kU8_G128:
      case TensorType::kF8_G32:
      case TensorType::kF8_G128:
      case TensorType::kF32:
      case TensorType::kF16:
      case TensorType::kBF16:
        EXPECT_EQ(matrix->memory_bytes(), file_bytes) << traits_of(facts.type).name;
        break;
      case TensorType::kIQ4_XS:  // its scales of 6 bits take 8
        EXPECT_EQ(matrix->memory_bytes(), file_bytes / 136 * 138);
        break;
      case TensorType::kIQ2_XXS:  // of eight signs seven are in the file
      case TensorType::kIQ2_XS:
      case TensorType::kIQ3_XXS: EXPECT_EQ(matrix->memory_bytes(), file_bytes + 64 * 512 / 64); break;
      case TensorType::kIQ1_M:  // its scales of 3 bits take 4, and the block's two bytes of their own
        EXPECT_EQ(matrix->memory_bytes(), file_bytes / 56 * 58);
        break;
      case TensorType::kTQ1_0:  // five digits in 8 bits become 2 bits each
        EXPECT_EQ(matrix->memory_bytes(), file_bytes / 54 * 66);
        break;
      default: EXPECT_LE(matrix->memory_bytes(), 64 * 512 * 5 / 4) << traits_of(facts.type).name;
    }
  }
}

}  // namespace
}  // namespace octavo::kernels::cpu
