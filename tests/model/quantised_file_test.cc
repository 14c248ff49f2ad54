#include "engine/model/quantised_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model/hugging_face/folder_source.h"
#include "engine/model/hugging_face/model_card.h"
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

// A llama of one layer and its byte-level vocabulary, as transformers saves them.
void write_tiny_folder(const std::filesystem::path& folder, std::string_view pre_tokenizer,
                       float largest_weight = 0.1f) {
  constexpr std::int64_t kVocabulary = 256, kWidth = 64, kHidden = 96, kHeads = 4;
  std::filesystem::create_directories(folder);
  test::SafetensorsWriter weights;
  std::uint32_t state = 7;
  const auto add = [&](const std::string& name, const std::vector<std::int64_t>& shape) {
    std::int64_t count = 1;
    for (const std::int64_t size : shape) count *= size;
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& value : values) {
      state = state * 1664525u + 1013904223u;
      value = (static_cast<float>(state >> 8) / 16777216.0f - 0.5f) / 4.0f;
    }
    if (name.ends_with("down_proj.weight")) values[5] = largest_weight;
    weights.add_floats(name, shape, values);
  };
  const std::string layer = "model.layers.0.";
  add("model.embed_tokens.weight", {kVocabulary, kWidth});
  add("model.norm.weight", {kWidth});
  for (const char* const norm : {"input_layernorm", "post_attention_layernorm"})
    add(layer + norm + ".weight", {kWidth});
  for (const char* const part : {"q_proj", "k_proj", "v_proj", "o_proj"})
    add(layer + "self_attn." + part + ".weight", {kWidth, kWidth});
  add(layer + "mlp.gate_proj.weight", {kHidden, kWidth});
  add(layer + "mlp.up_proj.weight", {kHidden, kWidth});
  add(layer + "mlp.down_proj.weight", {kWidth, kHidden});
  weights.write(folder / "model.safetensors");
  test::write_text(folder / "config.json", nlohmann::json({{"model_type", "llama"},
                                                           {"hidden_size", kWidth},
                                                           {"intermediate_size", kHidden},
                                                           {"num_hidden_layers", 1},
                                                           {"num_attention_heads", kHeads},
                                                           {"max_position_embeddings", 128},
                                                           {"rms_norm_eps", 1e-5},
                                                           {"vocab_size", kVocabulary},
                                                           {"pad_token_id", 34},
                                                           {"tie_word_embeddings", true}})
                                               .dump());
  nlohmann::json vocabulary;
  for (int letter = 33; letter < 127; ++letter)
    vocabulary[std::string(1, static_cast<char>(letter))] = letter;
  vocabulary["\u0120"] = 127;
  vocabulary["he"] = 128;
  vocabulary["\u0120he"] = 129;
  test::write_text(
      folder / "tokenizer.json",
      R"({"added_tokens":[{"id":130,"content":"<|im_end|>","special":true}],"normalizer":null,"pre_tokenizer":)" +
          std::string(pre_tokenizer) +
          R"(,"decoder":{"type":"ByteLevel"},"model":{"type":"BPE","merges":[["h","e"],["\u0120","he"]],"vocab":)" +
          vocabulary.dump() + "}}");
  test::write_text(
      folder / "tokenizer_config.json",
      R"({"eos_token":"<|im_end|>","unk_token":{"content":"A"},"chat_template":"{{ messages[0]['content'] }}"})");
  test::write_text(folder / "generation_config.json", R"({"temperature":0.6,"top_k":20})");
}

constexpr std::string_view kBytesAlone = R"({"type":"ByteLevel","add_prefix_space":false,"use_regex":true})";

TEST(QuantisedFile, OfAFolderSaysWhatTheFolderSays) {
  const test::TemporaryFolder folder;
  write_tiny_folder(folder / "hf", kBytesAlone);
  const auto source = FolderSource::open(folder / "hf");
  ASSERT_TRUE(source) << source.error().message;
  test::write_text(folder / "hf" / "README.md",
                   "---\ntags: [tiny]\nlicense: 'apache-2.0'\n---\n# license: none\n");
  auto planned = QuantisedFile::plan(*source, kernels::TensorType::kF32);
  ASSERT_TRUE(planned) << planned.error().message;
  test::write_bytes(folder / "m.gguf", written_bytes(*planned));
  const auto file = GgufFile::open(folder / "m.gguf");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_TRUE(planned->verify(*file));
  ASSERT_EQ(file->tensors().size(), source->tensors().size());
  for (const SourceTensor& tensor : source->tensors()) {
    const GgufTensor* const found = file->find_tensor(tensor.name);
    ASSERT_NE(found, nullptr) << tensor.name;
    const auto expected = read_tensor(*source, tensor);
    ASSERT_TRUE(expected) << tensor.name;
    EXPECT_TRUE(std::ranges::equal(file->bytes_of(*found), *expected)) << tensor.name;
  }
  EXPECT_EQ(*file->metadata().get<std::uint32_t>("llama.embedding_length"), 64u);
  EXPECT_EQ(*file->metadata().get<std::string_view>("general.type"), "model");
  EXPECT_EQ(*file->metadata().get<std::string_view>("general.size_label"), "51K");
  EXPECT_EQ(*file->metadata().get<std::string_view>("general.license"), "apache-2.0");
  EXPECT_EQ(*file->metadata().get<std::uint32_t>("tokenizer.ggml.unknown_token_id"), 65u);
  EXPECT_EQ(*file->metadata().get<std::uint32_t>("tokenizer.ggml.padding_token_id"), 34u);
  EXPECT_EQ(file->sampling_advice(), source->sampling_advice());
  const auto read = file->read_vocabulary();
  ASSERT_TRUE(read) << read.error().message;
  const auto given = source->read_vocabulary();
  ASSERT_TRUE(given) << given.error().message;
  EXPECT_EQ(read->model, "gpt2");
  EXPECT_EQ(read->eos_token_id, given->eos_token_id);
  EXPECT_EQ(read->chat_template, given->chat_template);
  EXPECT_EQ(read->kinds, given->kinds);
  const auto from_file = *tokenizer::Tokenizer::create(*read),
             from_folder = *tokenizer::Tokenizer::create(*given);
  for (const char* const text : {"he said: the <|im_end|> he", "hehe", " he"})
    EXPECT_EQ(*from_file->encode(text, true, true), *from_folder->encode(text, true, true)) << text;
  EXPECT_EQ(from_file->encode(" he", true, true)->size(), 1u);
}

TEST(ModelCard, NamesALicenceBetweenItsFences) {
  const test::TemporaryFolder folder;
  const auto licence = [&](const std::string& card) {
    test::write_text(folder / "README.md", card);
    return licence_of_card(folder.path());
  };
  EXPECT_EQ(licence("---\r\nlicense: mit\r\n---\r\n"), "mit");
  EXPECT_EQ(licence("---\nlicense: \"llama3.2\"\n"), "llama3.2");
  for (const char* const none :
       {"", "license: mit\n", "---\nx: 1\n---\nlicense: mit\n", "---\nlicense: [a, b]\n---\n",
        "---\nlicense:\n---\n", "---\n  license: mit\n---\n"})
    EXPECT_EQ(licence(none), "") << none;
  EXPECT_EQ(licence("---\nlicense: " + std::string(65, 'a') + "\n---\n"), "");
  std::filesystem::remove(folder / "README.md");
  EXPECT_EQ(licence_of_card(folder.path()), "");
}

TEST(QuantisedFile, RefusesByNameAWeightThatTheTypeCannotHold) {
  using kernels::TensorType;
  struct Case {
    float weight;
    TensorType type;
    bool fits;
  };
  for (const auto& [weight, type, fits] : {Case{65504.0f, TensorType::kF16, true},
                                           {65519.0f, TensorType::kF16, true},  // rounds to 65,504
                                           {65520.0f, TensorType::kF16, false},
                                           {-70000.0f, TensorType::kF16, false},
                                           {-70000.0f, TensorType::kBF16, true},
                                           {-70000.0f, TensorType::kQ8_0, true},
                                           {-70000.0f, TensorType::kQ4_1, false},
                                           {3e38f, TensorType::kBF16, true},
                                           {3e38f, TensorType::kQ8_0, false}}) {
    const test::TemporaryFolder folder;
    write_tiny_folder(folder / "hf", kBytesAlone, weight);
    const auto source = FolderSource::open(folder / "hf");
    ASSERT_TRUE(source) << source.error().message;
    auto planned = QuantisedFile::plan(*source, type);
    ASSERT_TRUE(planned) << planned.error().message;
    const auto written = planned->write([](std::span<const std::byte>) -> Result<void> { return {}; }, {});
    ASSERT_EQ(written.has_value(), fits) << weight;
    if (fits) continue;
    EXPECT_EQ(written.error().code, ErrorCode::kUnsupported);
    EXPECT_EQ(written.error().message, "blk.0.ffn_down.weight: a weight of this model is larger than " +
                                           std::string(kernels::traits_of(type).name) +
                                           " can hold; BF16 can hold it");
  }
}

TEST(QuantisedFile, RefusesATokenizerThatNoFileSays) {
  const test::TemporaryFolder folder;
  write_tiny_folder(folder / "hf",
                    R"({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"[aeiou]"},
      "behavior":"Isolated","invert":false},{"type":"ByteLevel","add_prefix_space":false,"use_regex":true}]})");
  const auto source = FolderSource::open(folder / "hf");
  ASSERT_TRUE(source) << source.error().message;
  const auto planned = QuantisedFile::plan(*source, kernels::TensorType::kQ8_0);
  ASSERT_FALSE(planned);
  EXPECT_EQ(planned.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(planned.error().message.find("no key of a GGUF file"), std::string::npos)
      << planned.error().message;
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
