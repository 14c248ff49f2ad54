// Matrices of quantised checkpoints against an independent dequantisation: tests/golden/make_quantised.py
// makes the same tensors with the same generator and writes a hash of each float32 matrix.

#include "engine/model/quantised/quantised_matrix.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "engine/base/half.h"
#include "kernels/dequantize.h"
#include "tests/support/paths.h"

namespace octavo::model {
namespace {

using kernels::TensorType;
using Type = SafetensorsType;

constexpr std::int64_t kRows = 64, kColumns = 256;

// As in make_quantised.py.
class Numbers {
 public:
  explicit Numbers(std::uint64_t seed) : state_(seed) {}
  std::uint32_t next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::uint32_t>(state_ >> 32);
  }
  std::vector<std::int32_t> permutation(std::int64_t count) {
    std::vector<std::int32_t> order(static_cast<std::size_t>(count));
    std::iota(order.begin(), order.end(), 0);
    for (std::size_t i = order.size() - 1; i > 0; --i) std::swap(order[i], order[next() % (i + 1)]);
    return order;
  }

 private:
  std::uint64_t state_;
};

struct Tensor {
  Type type;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;
};

std::int64_t product(const std::vector<std::int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

template <class Number>
void append(Tensor& tensor, Number number) {
  std::byte bytes[sizeof number];
  std::memcpy(bytes, &number, sizeof number);
  tensor.bytes.insert(tensor.bytes.end(), bytes, bytes + sizeof number);
}

// Tensors of one layer, "m".
class Checkpoint {
 public:
  void fill(const std::string& name, Type type, std::vector<std::int64_t> shape, const auto& number) {
    Tensor tensor{type, std::move(shape), {}};
    const std::int64_t count = product(tensor.shape);
    for (std::int64_t i = 0; i < count; ++i) append(tensor, number());
    tensors["m" + name] = std::move(tensor);
  }
  void words(Numbers& numbers, const std::string& name, std::vector<std::int64_t> shape,
             std::uint32_t mask = ~0u) {
    fill(name, Type::kI32, std::move(shape), [&] { return numbers.next() & mask; });
  }
  void bytes(Numbers& numbers, const std::string& name, Type type, std::vector<std::int64_t> shape) {
    fill(name, type, std::move(shape), [&] { return static_cast<std::uint8_t>(numbers.next()); });
  }
  void half_scales(Numbers& numbers, const std::string& name, std::vector<std::int64_t> shape) {
    fill(name, Type::kF16, std::move(shape),
         [&] { return static_cast<std::uint16_t>(0x2400 + numbers.next() % 0x0c00); });
  }
  void bfloat_scales(Numbers& numbers, const std::string& name, std::vector<std::int64_t> shape) {
    fill(name, Type::kBF16, std::move(shape),
         [&] { return static_cast<std::uint16_t>(0x3c00 + numbers.next() % 0x0100); });
  }
  void float_scales(Numbers& numbers, const std::string& name, std::vector<std::int64_t> shape) {
    fill(name, Type::kF32, std::move(shape), [&] { return 0x3c000000u + numbers.next() % 0x01000000u; });
  }
  void group_index(Numbers& numbers, const std::string& name, std::int64_t size) {
    const std::vector<std::int32_t> order = numbers.permutation(kColumns);
    std::size_t i = 0;
    fill(name, Type::kI32, {kColumns}, [&] { return static_cast<std::int32_t>(order[i++] / size); });
  }
  void number(const std::string& name, Type type, std::vector<std::int64_t> shape, auto value) {
    fill(name, type, std::move(shape), [&] { return value; });
  }

  Tensor& at(const std::string& name) { return tensors.at("m" + name); }

  Result<std::unique_ptr<QuantisedMatrix>> open(const QuantisationConfig& config) const {
    return open_quantised_matrix(config, "m", [this](std::string_view name) -> std::optional<StoredTensor> {
      const auto found = tensors.find(std::string(name));
      if (found == tensors.end()) return std::nullopt;
      return StoredTensor{found->first, found->second.type, found->second.shape, found->second.bytes};
    });
  }

  std::map<std::string, Tensor> tensors;
};

// ---- the variants

struct Variant {
  Checkpoint checkpoint;
  QuantisationConfig config;
  TensorType type;
};

Variant gptq(Numbers& numbers, int bits, std::int64_t group, int added, bool is_symmetric, bool is_ordered) {
  Variant variant;
  const std::int64_t size = group == -1 ? kColumns : group, groups = kColumns / size;
  Checkpoint& checkpoint = variant.checkpoint;
  checkpoint.words(numbers, ".qweight", {kColumns * bits / 32, kRows});
  if (is_symmetric) {
    // One less than the middle.
    std::uint32_t index = 0;
    checkpoint.fill(".qzeros", Type::kI32, {groups, kRows * bits / 32}, [&] {
      std::uint32_t word = 0;
      const std::uint32_t stored = (1u << (bits - 1)) - 1;
      for (std::uint32_t bit = 0; bit < 32; ++bit) {
        const std::uint32_t in_row = index % static_cast<std::uint32_t>(kRows * bits / 32) * 32 + bit;
        word |= (stored >> (in_row % static_cast<std::uint32_t>(bits)) & 1) << bit;
      }
      ++index;
      return word;
    });
  } else {
    checkpoint.words(numbers, ".qzeros", {groups, kRows * bits / 32}, bits == 8 ? 0x7f7f7f7fu : ~0u);
  }
  checkpoint.half_scales(numbers, ".scales", {groups, kRows});
  if (is_ordered) checkpoint.group_index(numbers, ".g_idx", size);
  variant.config = {.method = QuantisationMethod::kGptq,
                    .bits = bits,
                    .group_size = group,
                    .is_symmetric = is_symmetric,
                    .zero_offset = added};
  if (group == 16) {
    variant.type = TensorType::kF32;
  } else if (is_symmetric) {
    variant.type = bits == 8 ? TensorType::kQ8_0 : TensorType::kQ4_0;
  } else if (size % 128 == 0) {
    variant.type = bits == 8 ? TensorType::kU8_G128 : TensorType::kU4_G128;
  } else {
    variant.type = bits == 8 ? TensorType::kU8_G32 : TensorType::kU4_G32;
  }
  return variant;
}

Variant awq(Numbers& numbers, std::int64_t group, bool has_zeros) {
  Variant variant;
  const std::int64_t groups = kColumns / group;
  variant.checkpoint.words(numbers, ".qweight", {kColumns, kRows / 8});
  if (has_zeros) variant.checkpoint.words(numbers, ".qzeros", {groups, kRows / 8});
  variant.checkpoint.half_scales(numbers, ".scales", {groups, kRows});
  variant.config = {.method = QuantisationMethod::kAwq, .bits = 4, .group_size = group};
  variant.type = !has_zeros ? TensorType::kQ4_0 : group == 128 ? TensorType::kU4_G128 : TensorType::kU4_G32;
  return variant;
}

Variant packed(Numbers& numbers, int bits, std::int64_t groups, bool has_zeros, bool is_ordered) {
  Variant variant;
  Checkpoint& checkpoint = variant.checkpoint;
  checkpoint.words(numbers, ".weight_packed", {kRows, kColumns * bits / 32});
  checkpoint.bfloat_scales(numbers, ".weight_scale", {kRows, groups});
  if (has_zeros) checkpoint.words(numbers, ".weight_zero_point", {kRows * bits / 32, groups});
  if (is_ordered) checkpoint.group_index(numbers, ".weight_g_idx", kColumns / groups);
  std::int64_t index = 0;
  checkpoint.fill(".weight_shape", Type::kI64, {2}, [&] { return index++ == 0 ? kRows : kColumns; });
  variant.config = {.method = QuantisationMethod::kCompressedTensors};
  if (groups <= 2) {
    variant.type = bits == 8 ? TensorType::kU8_G128 : TensorType::kU4_G128;
  } else {
    variant.type = bits == 8 ? TensorType::kU8_G32 : TensorType::kU4_G32;
  }
  return variant;
}

Variant plain_integers(Numbers& numbers) {
  Variant variant;
  variant.checkpoint.bytes(numbers, ".weight", Type::kI8, {kRows, kColumns});
  variant.checkpoint.float_scales(numbers, ".weight_scale", {kRows, 1});
  variant.config = {.method = QuantisationMethod::kCompressedTensors};
  variant.type = TensorType::kU8_G128;
  return variant;
}

Variant float8(Numbers& numbers, std::int64_t rows, std::int64_t columns, std::vector<std::int64_t> scales,
               bool has_blocks, TensorType type) {
  Variant variant;
  variant.checkpoint.fill(".weight", Type::kF8_E4M3, {rows, columns}, [&] {
    const auto code = static_cast<std::uint8_t>(numbers.next());
    return static_cast<std::uint8_t>((code & 0x7f) == 0x7f ? code & 0x87 : code);
  });
  variant.checkpoint.float_scales(numbers, has_blocks ? ".weight_scale_inv" : ".weight_scale",
                                  std::move(scales));
  variant.config = {.method = QuantisationMethod::kFloat8};
  if (has_blocks) variant.config.block_rows = variant.config.block_columns = 128;
  variant.type = type;
  return variant;
}

Variant mxfp4(Numbers& numbers, std::int64_t experts) {
  Variant variant;
  const bool is_stack = experts > 1;
  const auto shape = [&](std::vector<std::int64_t> stack, std::vector<std::int64_t> alone) {
    return is_stack ? stack : alone;
  };
  Checkpoint& checkpoint = variant.checkpoint;
  checkpoint.bytes(numbers, is_stack ? "_blocks" : ".weight_packed", Type::kU8,
                   shape({experts, kRows, kColumns / 32, 16}, {kRows, kColumns / 2}));
  checkpoint.fill(is_stack ? "_scales" : ".weight_scale", Type::kU8,
                  shape({experts, kRows, kColumns / 32}, {kRows, kColumns / 32}),
                  [&] { return static_cast<std::uint8_t>(120 + numbers.next() % 12); });
  variant.config.method = is_stack ? QuantisationMethod::kMxfp4 : QuantisationMethod::kCompressedTensors;
  variant.type = TensorType::kMXFP4;
  return variant;
}

Variant nvfp4(Numbers& numbers, bool is_model_opt) {
  Variant variant;
  Checkpoint& checkpoint = variant.checkpoint;
  checkpoint.bytes(numbers, is_model_opt ? ".weight" : ".weight_packed", Type::kU8, {kRows, kColumns / 2});
  checkpoint.fill(".weight_scale", Type::kF8_E4M3, {kRows, kColumns / 16},
                  [&] { return static_cast<std::uint8_t>(numbers.next() % 0x7f); });
  checkpoint.float_scales(numbers, is_model_opt ? ".weight_scale_2" : ".weight_global_scale", {1});
  variant.config.method =
      is_model_opt ? QuantisationMethod::kModelOpt : QuantisationMethod::kCompressedTensors;
  variant.type = TensorType::kNVFP4;
  return variant;
}

Variant squeeze(Numbers& numbers, int bits, bool is_half, std::int64_t outliers, std::int64_t full_rows) {
  Variant variant;
  Checkpoint& checkpoint = variant.checkpoint;
  checkpoint.words(numbers, ".qweight", {kColumns * bits / 32, kRows});
  const std::vector<std::int64_t> table = {kRows, std::int64_t{1} << bits};
  if (is_half) {
    checkpoint.half_scales(numbers, ".lookup_table", table);
  } else {
    checkpoint.float_scales(numbers, ".lookup_table", table);
  }
  if (outliers > 0) {
    Tensor columns{Type::kI32, {kRows * outliers}, {}}, values{Type::kF32, {kRows * outliers}, {}};
    for (std::int64_t row = 0; row < kRows; ++row) {
      for (std::int64_t i = 0; i < outliers; ++i)
        append(columns, numbers.next() % static_cast<std::uint32_t>(kColumns));
      for (std::int64_t i = 0; i < outliers; ++i) append(values, 0x3c000000u + numbers.next() % 0x01000000u);
    }
    checkpoint.tensors["m.cols"] = columns;
    checkpoint.tensors["m.vals"] = values;
    std::int32_t start = 0;
    checkpoint.fill(".rows", Type::kI32, {kRows + 1},
                    [&] { return static_cast<std::int32_t>(outliers) * start++; });
  }
  if (full_rows > 0) {
    checkpoint.float_scales(numbers, ".full_rows", {kColumns, full_rows});
    std::int32_t row = 0;
    checkpoint.fill(".full_row_indices", Type::kI32, {full_rows}, [&] { return 5 * row++; });
  }
  variant.config = {.method = QuantisationMethod::kSqueezeLlm, .bits = bits, .group_size = -1};
  variant.type = is_half && outliers == 0 ? TensorType::kF16 : TensorType::kF32;
  return variant;
}

using MakeVariant = std::function<Variant(Numbers&)>;

const std::map<std::string, MakeVariant>& variants() {
  static const auto all = [] {
    std::map<std::string, MakeVariant> map;
    for (const int bits : {2, 3, 4, 8}) {
      const std::string start = "gptq-" + std::to_string(bits);
      for (const int group : {32, 128, -1}) {
        for (const int added : {0, 1}) {
          map[start + "-g" + std::to_string(group) + (added == 1 ? "-v1" : "-v2")] = [=](Numbers& numbers) {
            return gptq(numbers, bits, group, added, false, false);
          };
        }
      }
      map[start + "-g64-symmetric"] = [=](Numbers& n) { return gptq(n, bits, 64, 1, true, false); };
      map[start + "-g64-ordered"] = [=](Numbers& n) { return gptq(n, bits, 64, 1, false, true); };
    }
    map["gptq-4-g32-symmetric-ordered"] = [](Numbers& n) { return gptq(n, 4, 32, 1, true, true); };
    map["gptq-4-g16-v1"] = [](Numbers& n) { return gptq(n, 4, 16, 1, false, false); };
    map["gptq-4-g16-ordered"] = [](Numbers& n) { return gptq(n, 4, 16, 1, false, true); };
    for (const int group : {32, 64, 128})
      map["awq-g" + std::to_string(group)] = [=](Numbers& n) { return awq(n, group, true); };
    map["awq-g64-no-zeros"] = [](Numbers& n) { return awq(n, 64, false); };
    for (const int bits : {4, 8}) {
      for (const int groups : {8, 2, 1}) {
        const std::string name = "packed-" + std::to_string(bits) + "-" + std::to_string(groups);
        map[name] = [=](Numbers& n) { return packed(n, bits, groups, false, false); };
        map[name + "-zeros"] = [=](Numbers& n) { return packed(n, bits, groups, true, false); };
      }
    }
    map["packed-4-2-ordered"] = [](Numbers& n) { return packed(n, 4, 2, false, true); };
    map["int8"] = plain_integers;
    const TensorType wide = TensorType::kF8_G128;
    map["float8-tensor"] = [=](Numbers& n) { return float8(n, kRows, kColumns, {1}, false, wide); };
    map["float8-channel"] = [=](Numbers& n) { return float8(n, kRows, kColumns, {kRows, 1}, false, wide); };
    map["float8-blocks"] = [=](Numbers& n) { return float8(n, 160, 256, {2, 2}, true, wide); };
    map["float8-cut-blocks"] = [](Numbers& n) {
      return float8(n, 160, 288, {2, 3}, true, TensorType::kF8_G32);
    };
    map["float8-odd"] = [](Numbers& n) { return float8(n, kRows, 100, {kRows, 1}, false, TensorType::kF32); };
    map["mxfp4-experts"] = [](Numbers& n) { return mxfp4(n, 3); };
    map["mxfp4-packed"] = [](Numbers& n) { return mxfp4(n, 1); };
    map["nvfp4-packed"] = [](Numbers& n) { return nvfp4(n, false); };
    map["nvfp4-modelopt"] = [](Numbers& n) { return nvfp4(n, true); };
    for (const int bits : {3, 4}) {
      const std::string start = "squeeze-" + std::to_string(bits);
      map[start + "-half"] = [=](Numbers& n) { return squeeze(n, bits, true, 0, 0); };
      map[start + "-float"] = [=](Numbers& n) { return squeeze(n, bits, false, 0, 0); };
      map[start + "-outliers"] = [=](Numbers& n) { return squeeze(n, bits, false, 5, 2); };
    }
    return map;
  }();
  return all;
}

// In the file's order of columns. `step` rows are read at once.
std::vector<float> dequantised(const QuantisedMatrix& matrix, std::int64_t step) {
  std::vector<float> values(static_cast<std::size_t>(matrix.rows() * matrix.columns()));
  const auto columns = static_cast<std::size_t>(matrix.columns());
  std::vector<float> row(columns);
  for (std::int64_t first = 0; first < matrix.rows(); first += step) {
    const std::int64_t count = std::min(step, matrix.rows() - first);
    std::vector<std::byte> bytes(static_cast<std::size_t>(count * matrix.row_bytes()));
    const auto read = matrix.read(first, count, bytes);
    EXPECT_TRUE(read.has_value()) << read.error().message;
    for (std::int64_t i = 0; i < count; ++i) {
      kernels::dequantize(matrix.type(), bytes.data() + i * matrix.row_bytes(), matrix.columns(), row.data());
      float* const out = values.data() + static_cast<std::size_t>(first + i) * columns;
      for (std::size_t k = 0; k < columns; ++k) {
        const auto to =
            matrix.column_order().empty() ? k : static_cast<std::size_t>(matrix.column_order()[k]);
        out[to] = row[k] * matrix.scale() + 0.0f;  // no -0
      }
    }
  }
  return values;
}

std::string fnv1a(std::span<const std::byte> bytes) {
  std::uint64_t value = 0xcbf29ce484222325u;
  for (const std::byte byte : bytes) value = (value ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3u;
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

TEST(QuantisedMatrix, EveryVariantIsItsDequantisedMatrixBitForBit) {
  std::ifstream file(test::source_folder() / "tests/golden/quantised.json");
  const nlohmann::json golden = nlohmann::json::parse(file);
  ASSERT_EQ(golden.size(), variants().size());
  for (const nlohmann::json& entry : golden) {
    const auto name = entry.at("name").get<std::string>();
    SCOPED_TRACE(name);
    ASSERT_TRUE(variants().contains(name));
    Numbers numbers(entry.at("seed").get<std::uint64_t>());
    const Variant variant = variants().at(name)(numbers);
    const auto opened = variant.checkpoint.open(variant.config);
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    const QuantisedMatrix* const matrix = opened->get();
    ASSERT_NE(matrix, nullptr);
    EXPECT_EQ(kernels::traits_of(matrix->type()).name, kernels::traits_of(variant.type).name);
    EXPECT_EQ(matrix->rows(), entry.at("shape")[0].get<std::int64_t>());
    EXPECT_EQ(matrix->columns(), entry.at("shape")[1].get<std::int64_t>());
    for (const std::int64_t step : {std::int64_t{1}, std::int64_t{7}, matrix->rows()}) {
      const std::vector<float> values = dequantised(*matrix, step);
      for (std::size_t i = 0; i < 4; ++i) EXPECT_FLOAT_EQ(values[i], entry.at("first")[i].get<float>());
      EXPECT_EQ(fnv1a(std::as_bytes(std::span(values))), entry.at("hash").get<std::string>()) << step;
    }
  }
}

TEST(QuantisedMatrix, ALayerThatWasLeftAsItIsHasNone) {
  Checkpoint checkpoint;
  Numbers numbers(1);
  checkpoint.half_scales(numbers, ".weight", {4, 4});
  for (const auto method :
       {QuantisationMethod::kGptq, QuantisationMethod::kAwq, QuantisationMethod::kSqueezeLlm,
        QuantisationMethod::kCompressedTensors, QuantisationMethod::kFloat8, QuantisationMethod::kModelOpt,
        QuantisationMethod::kMxfp4}) {
    const auto opened = checkpoint.open({.method = method, .bits = 4, .group_size = 128});
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    EXPECT_EQ(*opened, nullptr);
  }
}

// ---- malformed ones

struct Malformed {
  std::string name, variant;
  std::function<void(Variant&)> spoil;
  std::string sentence;  // a part of it
};

void set_word(Tensor& tensor, std::size_t index, std::uint32_t word) {
  std::memcpy(tensor.bytes.data() + 4 * index, &word, sizeof word);
}
void set_half(Tensor& tensor, std::size_t index, std::uint16_t word) {
  std::memcpy(tensor.bytes.data() + 2 * index, &word, sizeof word);
}
auto without(std::string name) {
  return [name = std::move(name)](Variant& variant) { variant.checkpoint.tensors.erase("m" + name); };
}
auto shaped(std::string name, std::vector<std::int64_t> shape) {
  return [name = std::move(name), shape = std::move(shape)](Variant& variant) {
    Tensor& tensor = variant.checkpoint.at(name);
    const std::int64_t bytes = std::ssize(tensor.bytes) / std::max<std::int64_t>(1, product(tensor.shape));
    tensor.shape = shape;
    tensor.bytes.resize(static_cast<std::size_t>(product(shape) * bytes));
  };
}
auto typed(std::string name, Type type) {
  return [name = std::move(name), type](Variant& variant) { variant.checkpoint.at(name).type = type; };
}

const std::vector<Malformed>& malformed() {
  static const std::vector<Malformed> all = {
      {"no scales", "gptq-4-g128-v1", without(".scales"), "m.scales is missing"},
      {"no zeros", "gptq-4-g128-v1", without(".qzeros"), "m.qzeros is missing"},
      {"qweight no matrix", "gptq-4-g128-v1", shaped(".qweight", {2048}), "m.qweight is no matrix"},
      {"qweight of floats", "gptq-4-g128-v1", typed(".qweight", Type::kF32), "has type F32 instead of I32"},
      {"empty qweight", "gptq-4-g128-v1", shaped(".qweight", {0, 64}), "m.qweight is no matrix"},
      {"zeros of another width", "gptq-4-g128-v1", shaped(".qzeros", {2, 7}), "[2, 7] instead of [2, 8]"},
      {"zeros of other groups", "gptq-4-g128-v1", shaped(".qzeros", {3, 8}), "[3, 8] instead of [2, 8]"},
      {"zeros of 64 bits", "gptq-4-g128-v1", typed(".qzeros", Type::kI64), "has type I64"},
      {"scales turned", "gptq-4-g128-v1", shaped(".scales", {64, 2}), "[64, 2] instead of [2, 64]"},
      {"scales of integers", "gptq-4-g128-v1", typed(".scales", Type::kI16), "has type I16"},
      {"groups that do not divide", "gptq-4-g128-v1", [](Variant& v) { v.config.group_size = 96; },
       "which groups of 96 do not divide"},
      {"groups larger than a row", "gptq-4-g128-v1", [](Variant& v) { v.config.group_size = 512; },
       "which groups of 512 do not divide"},
      {"3 bits cut", "gptq-3-g128-v1", shaped(".qweight", {25, 64}), "no whole integers of 3 bits"},
      {"group index too long", "gptq-4-g64-ordered", shaped(".g_idx", {257}), "[257] instead of [256]"},
      {"group index of 64 bits", "gptq-4-g64-ordered", typed(".g_idx", Type::kI64), "has type I64"},
      {"group too large", "gptq-4-g64-ordered", [](Variant& v) { set_word(v.checkpoint.at(".g_idx"), 9, 4); },
       "puts input 9 into group 4 of 4"},
      {"negative group", "gptq-4-g64-ordered",
       [](Variant& v) { set_word(v.checkpoint.at(".g_idx"), 200, ~0u); }, "puts input 200 into group -1"},
      {"NaN scale", "gptq-4-g128-v1", [](Variant& v) { set_half(v.checkpoint.at(".scales"), 70, 0x7e00); },
       "not finite, of output 6 and group 1"},
      {"infinite scale", "gptq-8-g32-v2", [](Variant& v) { set_half(v.checkpoint.at(".scales"), 3, 0x7c00); },
       "not finite, of output 3 and group 0"},
      {"NaN scale of small groups", "gptq-4-g16-v1",
       [](Variant& v) { set_half(v.checkpoint.at(".scales"), 1, 0xfe00); }, "not finite, of output 1"},
      {"not symmetric", "gptq-4-g64-symmetric",
       [](Variant& v) { set_word(v.checkpoint.at(".qzeros"), 0, 0x77777776); },
       "has zero point 7 where sym asks for 8"},
      {"zero point 256", "gptq-8-g128-v1", [](Variant& v) { set_word(v.checkpoint.at(".qzeros"), 0, 255); },
       "has zero point 256"},
      {"AWQ without scales", "awq-g64", without(".scales"), "m.scales is missing"},
      {"AWQ scales", "awq-g64", shaped(".scales", {4, 8}), "[4, 8] instead of [4, 64]"},
      {"AWQ zeros", "awq-g64", shaped(".qzeros", {4, 64}), "[4, 64] instead of [4, 8]"},
      {"AWQ no matrix", "awq-g64", shaped(".qweight", {256, 8, 1}), "m.qweight is no matrix"},
      {"AWQ groups", "awq-g64", [](Variant& v) { v.config.group_size = 100; }, "groups of 100 do not divide"},
      {"packed without shape", "packed-4-2", without(".weight_shape"), "m.weight_shape is missing"},
      {"packed without scales", "packed-4-2", without(".weight_scale"), "m.weight_scale is missing"},
      {"packed shape of three", "packed-4-2", shaped(".weight_shape", {3}), "[3] instead of [2]"},
      {"packed shape of other rows", "packed-4-2",
       [](Variant& v) { set_word(v.checkpoint.at(".weight_shape"), 0, 65); }, "says [65, 256]"},
      {"packed shape negative", "packed-4-2",
       [](Variant& v) { set_word(v.checkpoint.at(".weight_shape"), 2, ~0u); }, "says [64, -1]"},
      {"packed 5 bits", "packed-4-2", shaped(".weight_packed", {64, 40}), "fits neither 2, 3, 4 nor 8 bits"},
      {"packed too narrow", "packed-4-2", shaped(".weight_packed", {64, 1}), "fits neither"},
      {"packed too wide", "packed-4-2", shaped(".weight_packed", {64, 100}), "not the size of"},
      {"packed groups", "packed-4-2", shaped(".weight_scale", {64, 3}), "do not divide 256 inputs"},
      {"packed zeros", "packed-4-2-zeros", shaped(".weight_zero_point", {64, 2}),
       "[64, 2] instead of [8, 2]"},
      {"packed group index", "packed-4-2-ordered",
       [](Variant& v) { set_word(v.checkpoint.at(".weight_g_idx"), 0, 2); }, "into group 2 of 2"},
      {"NaN of bfloat16", "packed-4-2",
       [](Variant& v) { set_half(v.checkpoint.at(".weight_scale"), 5, 0x7fc0); },
       "not finite, of output 2 and group 1"},
      {"int8 without scales", "int8", without(".weight_scale"), "m.weight_scale is missing"},
      {"int8 no matrix", "int8", shaped(".weight", {64}), "m.weight is no matrix"},
      {"float8 without scales", "float8-tensor", without(".weight_scale"), "m.weight_scale is missing"},
      {"float8 scales", "float8-tensor", shaped(".weight_scale", {7}), "instead of [64, 1]"},
      {"float8 blocks", "float8-blocks", shaped(".weight_scale_inv", {3, 2}), "which do not divide"},
      {"float8 NaN", "float8-channel",
       [](Variant& v) { v.checkpoint.at(".weight").bytes[300] = std::byte{0xff}; },
       "no number, of output 1 and input 44"},
      {"float8 infinite scale", "float8-channel",
       [](Variant& v) { set_word(v.checkpoint.at(".weight_scale"), 2, 0x7f800000); },
       "not finite, of output 2"},
      {"mxfp4 without scales", "mxfp4-experts", without("_scales"), "m_scales is missing"},
      {"mxfp4 scales", "mxfp4-experts", shaped("_scales", {3, 64, 7}), "instead of [3, 64, 8]"},
      {"mxfp4 blocks of 8", "mxfp4-experts", shaped("_blocks", {3, 64, 8, 8}), "instead of [3, 64, 8, 16]"},
      {"mxfp4 of three dimensions", "mxfp4-experts", shaped("_blocks", {3, 64, 128}), "no list of experts"},
      {"mxfp4 NaN", "mxfp4-experts",
       [](Variant& v) { v.checkpoint.at("_scales").bytes[20] = std::byte{255}; }, "no number, of row 2"},
      {"nvfp4 without scales", "nvfp4-packed", without(".weight_scale"), "m.weight_scale is missing"},
      {"nvfp4 without a whole scale", "nvfp4-modelopt", without(".weight_scale_2"), "scale_2 is missing"},
      {"nvfp4 whole scale of 0", "nvfp4-packed",
       [](Variant& v) { set_word(v.checkpoint.at(".weight_global_scale"), 0, 0); }, "is no scale"},
      {"nvfp4 NaN scale", "nvfp4-packed",
       [](Variant& v) { v.checkpoint.at(".weight_scale").bytes[17] = std::byte{0x7f}; },
       "no number, of output 1"},
      {"nvfp4 negative scale", "nvfp4-packed",
       [](Variant& v) { v.checkpoint.at(".weight_scale").bytes[0] = std::byte{0x81}; },
       "negative, of output 0"},
      {"nvfp4 rows of 32", "nvfp4-packed", shaped(".weight_packed", {64, 16}), "whole blocks of 64"},
      {"table missing", "squeeze-4-float", without(".lookup_table"), "m.lookup_table is missing"},
      {"table of 8", "squeeze-4-float", shaped(".lookup_table", {64, 8}), "[64, 8] instead of [64, 16]"},
      {"table NaN", "squeeze-4-float",
       [](Variant& v) { set_word(v.checkpoint.at(".lookup_table"), 9, 0x7fc00000); }, "not finite"},
      {"words cut", "squeeze-3-float", shaped(".qweight", {23, 64}), "no matrix of whole strings"},
      {"outliers without values", "squeeze-4-outliers", without(".vals"), "m.vals is missing"},
      {"outliers without columns", "squeeze-4-outliers", without(".cols"), "m.cols is missing"},
      {"outlier beyond a row", "squeeze-4-outliers",
       [](Variant& v) { set_word(v.checkpoint.at(".cols"), 3, 256); }, "at input 256 of 256"},
      {"outlier before a row", "squeeze-4-outliers",
       [](Variant& v) { set_word(v.checkpoint.at(".cols"), 3, ~0u); }, "at input -1 of 256"},
      {"outliers descend", "squeeze-4-outliers", [](Variant& v) { set_word(v.checkpoint.at(".rows"), 2, 3); },
       "outliers of output 2 at 3"},
      {"outliers end late", "squeeze-4-outliers",
       [](Variant& v) { set_word(v.checkpoint.at(".rows"), 64, 321); }, "output 64 at 321 of 320"},
      {"full row out of range", "squeeze-4-outliers",
       [](Variant& v) { set_word(v.checkpoint.at(".full_row_indices"), 1, 64); }, "names output 64 of 64"},
      {"full rows turned", "squeeze-4-outliers", shaped(".full_rows", {2, 256}), "instead of [256, 2]"},
  };
  return all;
}

TEST(QuantisedMatrix, MalformedOnesAreRefusedInOneSentence) {
  ASSERT_GE(malformed().size(), 40u);
  for (const Malformed& wrong : malformed()) {
    SCOPED_TRACE(wrong.name);
    Numbers numbers(7);
    Variant variant = variants().at(wrong.variant)(numbers);
    wrong.spoil(variant);
    auto opened = variant.checkpoint.open(variant.config);
    Error error;
    if (opened.has_value()) {
      ASSERT_NE(*opened, nullptr);
      const QuantisedMatrix& matrix = **opened;
      std::vector<std::byte> bytes(static_cast<std::size_t>(matrix.rows() * matrix.row_bytes()));
      const auto read = matrix.read(0, matrix.rows(), bytes);
      ASSERT_FALSE(read.has_value());
      error = read.error();
    } else {
      error = opened.error();
    }
    EXPECT_NE(error.message.find(wrong.sentence), std::string::npos) << error.message;
    EXPECT_EQ(error.message.find('\n'), std::string::npos);
  }
}

// ---- configurations

TEST(QuantisationConfig, SaysWhatTheToolsWrite) {
  const auto read = [](const char* text) {
    return *read_quantisation_config(nlohmann::json::parse(text), "c");
  };
  const QuantisationConfig gptq =
      read(R"({"quant_method": "gptq", "bits": 4, "group_size": 128, "sym": true})");
  EXPECT_EQ(gptq.bits, 4);
  EXPECT_EQ(gptq.group_size, 128);
  EXPECT_TRUE(gptq.is_symmetric);
  EXPECT_EQ(gptq.zero_offset, 1);
  EXPECT_EQ(read(R"({"quant_method": "gptq", "bits": 3, "group_size": -1, "checkpoint_format": "gptq_v2"})")
                .zero_offset,
            0);
  EXPECT_EQ(read(R"({"bits": 8, "group_size": 32, "desc_act": true})").method, QuantisationMethod::kGptq);
  EXPECT_EQ(read(R"({"quant_method": "awq", "bits": 4, "group_size": 64, "version": "gemm"})").group_size,
            64);
  EXPECT_EQ(read(R"({"zero_point": true, "q_group_size": 128, "w_bit": 4, "version": "GEMM"})").method,
            QuantisationMethod::kAwq);
  EXPECT_EQ(read(R"({"wbits": 3})").method, QuantisationMethod::kSqueezeLlm);
  EXPECT_EQ(read(R"({"quant_method": "fp8", "weight_block_size": [128, 64]})").block_columns, 64);
  EXPECT_EQ(read(R"({"quant_method": "mxfp4"})").method, QuantisationMethod::kMxfp4);
  EXPECT_EQ(read(R"({"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "NVFP4"}})").method,
            QuantisationMethod::kModelOpt);
  EXPECT_EQ(read(R"({"quant_method": "compressed-tensors", "format": "pack-quantized"})").method,
            QuantisationMethod::kCompressedTensors);
}

TEST(QuantisationConfig, RefusesByNameAndValue) {
  const std::vector<std::pair<const char*, const char*>> wrong = {
      {R"([])", "is no list of names"},
      {R"({})", "quant_method is missing"},
      {R"({"quant_method": 4})", "quant_method is no text"},
      {R"({"quant_method": "bitsandbytes", "load_in_4bit": true})", "is bitsandbytes, which is not read"},
      {R"({"load_in_8bit": true})", "is bitsandbytes, which is not read"},
      {R"({"quant_method": "aqlm"})", "is aqlm, which is not read"},
      {R"({"quant_method": "hqq"})", "is hqq, which is not read"},
      {R"({"quant_method": "eetq"})", "is eetq, which is not read"},
      {R"({"quant_method": "quip"})", "is quip, which is not read"},
      {R"({"quant_method": "gptq", "bits": 5, "group_size": 128})", "bits is 5; what is read is 2, 3, 4, 8"},
      {R"({"quant_method": "gptq", "bits": "4", "group_size": 128})", "bits is no whole number"},
      {R"({"quant_method": "gptq", "group_size": 128})", "bits is missing"},
      {R"({"quant_method": "gptq", "bits": 4})", "group_size is missing"},
      {R"({"quant_method": "gptq", "bits": 4, "group_size": 0})", "group_size is 0"},
      {R"({"quant_method": "gptq", "bits": 4, "group_size": -2})", "group_size is -2"},
      {R"({"quant_method": "gptq", "bits": 4, "group_size": 9999999999})", "group_size is no whole number"},
      {R"({"quant_method": "gptq", "bits": 4, "group_size": 64, "sym": 1})", "sym is neither true nor false"},
      {R"({"quant_method": "gptq", "bits": 4, "group_size": 64, "checkpoint_format": "marlin"})",
       "is marlin"},
      {R"({"quant_method": "awq", "bits": 3, "group_size": 64})", "bits is 3"},
      {R"({"quant_method": "awq", "bits": 4, "group_size": 64, "version": "gemv"})", "version is gemv"},
      {R"({"wbits": 5})", "wbits is 5"},
      {R"({"quant_method": "fp8", "fmt": "e5m2"})", "fmt is e5m2"},
      {R"({"quant_method": "fp8", "weight_block_size": [128]})", "weight_block_size is no pair"},
      {R"({"quant_method": "fp8", "weight_block_size": [128, 0]})", "weight_block_size is no pair"},
      {R"({"quant_method": "compressed-tensors", "format": "marlin-24"})", "format is marlin-24"},
      {R"({"quant_method": "modelopt", "quant_algo": "W4A8_AWQ"})", "quant_algo is W4A8_AWQ"},
  };
  for (const auto& [text, sentence] : wrong) {
    const auto read = read_quantisation_config(nlohmann::json::parse(text), "config.json");
    ASSERT_FALSE(read.has_value()) << text;
    EXPECT_NE(read.error().message.find(sentence), std::string::npos) << read.error().message;
  }
}

}  // namespace
}  // namespace octavo::model
