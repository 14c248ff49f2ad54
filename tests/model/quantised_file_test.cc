#include "engine/model/quantised_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "engine/model/model_config.h"
#include "engine/model/model_tensors.h"
#include "kernels/dequantize.h"
#include "kernels/quantize.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/temporary_folder.h"

namespace octavo::model {
namespace {

std::vector<std::byte> written_bytes(QuantisedFile& file) {
  std::vector<std::byte> bytes;
  const auto written = file.write(
      [&](std::span<const std::byte> more) -> Result<void> {
        bytes.insert(bytes.end(), more.begin(), more.end());
        return {};
      },
      {});
  EXPECT_TRUE(written) << written.error().message;
  EXPECT_EQ(bytes.size(), file.num_bytes());
  return bytes;
}

std::vector<float> floats_of_tensor(const GgufFile& file, const GgufTensor& tensor) {
  std::vector<float> values(static_cast<std::size_t>(tensor.num_elements));
  kernels::dequantize(*tensor.type(), file.bytes_of(tensor).data(), tensor.num_elements, values.data());
  return values;
}

TEST(QuantisedFile, HasTheSameKeysAndTheMatricesQuantised) {
  const test::TemporaryFolder folder;
  test::make_tiny_llama(3, {.weight_type = kernels::TensorType::kF16}).write(folder / "m.gguf");
  const GgufFile file = *GgufFile::open(folder / "m.gguf");
  for (const auto type : {kernels::TensorType::kQ8_0, kernels::TensorType::kQ4_0}) {
    auto planned = QuantisedFile::plan(file, type);
    ASSERT_TRUE(planned) << planned.error().message;
    EXPECT_LT(planned->bytes_after(), planned->bytes_before());
    test::write_bytes(folder / "q.gguf", written_bytes(*planned));
    const auto opened = GgufFile::open(folder / "q.gguf");
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_TRUE(planned->verify(*opened));
    EXPECT_EQ(opened->header().first_disagreement(file.header(), "general.file_type"), std::nullopt);
    EXPECT_EQ(opened->tensors().size(), file.tensors().size());
    std::size_t num_quantised = 0;
    for (const GgufTensor& tensor : opened->tensors()) {
      const GgufTensor& source = *file.find_tensor(tensor.name);
      EXPECT_EQ(tensor.dimensions, source.dimensions);
      const bool stays = tensor.num_dimensions < 2;
      EXPECT_EQ(tensor.type_number == source.type_number, stays) << tensor.name;
      num_quantised += stays ? 0 : 1;
      const std::vector<float> before = floats_of_tensor(file, source),
                               after = floats_of_tensor(*opened, tensor);
      double error = 0, square = 0;
      for (std::size_t i = 0; i < before.size(); ++i) {
        error += std::pow(static_cast<double>(before[i]) - after[i], 2);
        square += std::pow(static_cast<double>(before[i]), 2);
      }
      EXPECT_LE(std::sqrt(error), (stays                                ? 0.0
                                   : type == kernels::TensorType::kQ8_0 ? 0.01
                                                                        : 0.12) *
                                      std::sqrt(square))
          << tensor.name;
    }
    EXPECT_EQ(num_quantised, planned->num_quantised());
  }
}

// So that a model quantised at load is the file that would be written.
TEST(QuantisedFile, LoadingQuantisesTheSameMatricesToTheSameBytes) {
  const test::TemporaryFolder folder;
  test::make_tiny_llama(3, {.weight_type = kernels::TensorType::kF32}).write(folder / "m.gguf");
  const GgufFile file = *GgufFile::open(folder / "m.gguf");
  auto planned = *QuantisedFile::plan(file, kernels::TensorType::kQ5_0);
  test::write_bytes(folder / "q.gguf", written_bytes(planned));
  const GgufFile written = *GgufFile::open(folder / "q.gguf");
  const ModelConfig config = *read_model_config(file.metadata());
  ModelTensors at_load = *find_model_tensors(file, config);
  quantise_matrices(at_load, kernels::TensorType::kQ5_0);
  const ModelTensors from_file = *find_model_tensors(written, config);
  std::vector<StoredMatrix> expected, found;
  const auto collect = [](const ModelTensors& tensors, std::vector<StoredMatrix>& all) {
    for (const LayerTensors& layer : tensors.layers) {
      for (const Projection* projection : {&layer.query, &layer.key, &layer.value, &layer.attention_output,
                                           &layer.gate, &layer.up, &layer.down})
        all.push_back(projection->weight);
    }
    all.push_back(tensors.output.weight);
    all.push_back(tensors.token_embedding);
  };
  collect(from_file, expected);
  collect(at_load, found);
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].type, expected[i].type) << i;
    ASSERT_NE(found[i].reader, nullptr) << i;
    std::vector<std::byte> rows(expected[i].bytes.size());
    ASSERT_TRUE(found[i].reader->read(found[i].first_row, found[i].rows, rows));
    EXPECT_TRUE(std::ranges::equal(rows, expected[i].bytes)) << i;
  }
}

TEST(QuantisedFile, RefusesWhatItCannotDo) {
  const test::TemporaryFolder folder;
  test::make_tiny_llama(3, {.weight_type = kernels::TensorType::kQ4_1}).write(folder / "m.gguf");
  const GgufFile file = *GgufFile::open(folder / "m.gguf");
  bool has_floats = false;
  for (const GgufTensor& tensor : file.tensors())
    has_floats |= tensor.num_dimensions > 1 && !kernels::traits_of(*tensor.type()).quantised;
  const auto planned = QuantisedFile::plan(file, kernels::TensorType::kQ8_0);
  EXPECT_EQ(planned.has_value(), has_floats);

  test::make_tiny_llama(3, {.weight_type = kernels::TensorType::kF32}).write(folder / "f.gguf");
  const GgufFile floats = *GgufFile::open(folder / "f.gguf");
  auto cancelled = *QuantisedFile::plan(floats, kernels::TensorType::kQ8_0);
  const auto ended = cancelled.write([](std::span<const std::byte>) -> Result<void> { return {}; },
                                     [](double) { return false; });
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, ErrorCode::kCancelled);
  // Another file than the one that was written.
  EXPECT_FALSE(cancelled.verify(floats));
}

}  // namespace
}  // namespace octavo::model
