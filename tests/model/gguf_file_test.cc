#include "engine/model/gguf_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <bit>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/model/gguf_type.h"
#include "engine/model/model_files.h"
#include "kernels/dequantize.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace octavo::model {
namespace {

using test::GgufWriter;
using test::TemporaryFolder;
using test::TensorType;

std::vector<std::byte> filled(std::size_t count, unsigned value) {
  return std::vector<std::byte>(count, static_cast<std::byte>(value));
}

// ---- opening

TEST(GgufFile, GivesTheBytesOfEachTensor) {
  const TemporaryFolder folder;
  GgufWriter writer;
  writer.add_string("general.name", "one").add_tensor("a", TensorType::kF32, {3}, filled(12, 1));
  writer.add_tensor("b", TensorType::kQ8_0, {32, 2}, filled(68, 2)).write(folder / "m.gguf");
  const auto file = GgufFile::open(folder / "m.gguf");
  ASSERT_TRUE(file.has_value()) << file.error().message;
  EXPECT_EQ(*file->header().get<std::string_view>("general.name"), "one");
  EXPECT_EQ(file->num_files(), 1u);
  EXPECT_EQ(file->file_bytes(), std::filesystem::file_size(folder / "m.gguf"));
  ASSERT_NE(file->find_tensor("b"), nullptr);
  const auto bytes = file->bytes_of(*file->find_tensor("b"));
  EXPECT_EQ(std::vector<std::byte>(bytes.begin(), bytes.end()), filled(68, 2));
  EXPECT_EQ(file->find_tensor("c"), nullptr);
  EXPECT_EQ(file->find_tensor(""), nullptr);
}

TEST(GgufFile, SurvivesBeingMoved) {
  const TemporaryFolder folder;
  test::make_tiny_llama(1).write(folder / "m.gguf");
  auto opened = GgufFile::open(folder / "m.gguf");
  const auto name = *opened->header().get<std::string_view>("general.name");
  const auto* tensor = opened->find_tensor("output_norm.weight");
  const auto before = opened->bytes_of(*tensor);
  const GgufFile moved = *std::move(opened);
  EXPECT_EQ(name, "tiny llama");
  EXPECT_EQ(moved.find_tensor("output_norm.weight"), tensor);
  EXPECT_EQ(moved.bytes_of(*tensor).data(), before.data());
}

std::string message_of(const std::filesystem::path& path) {
  const auto file = GgufFile::open(path);
  return file.has_value() ? "opened" : file.error().message;
}

TEST(GgufFile, RefusesWhatIsNoRegularFileWithOneSentence) {
  const TemporaryFolder folder;
  EXPECT_EQ(GgufFile::open(folder / "none.gguf").error().code, ErrorCode::kNotFound);
  EXPECT_NE(message_of(folder / "none.gguf").find("cannot be opened: No such file"), std::string::npos);
  std::filesystem::create_directory(folder / "folder.gguf");
  EXPECT_NE(message_of(folder / "folder.gguf").find("is a directory; give the path of a .gguf file"),
            std::string::npos);
  ASSERT_EQ(mkfifo((folder / "pipe.gguf").c_str(), 0600), 0);
  EXPECT_NE(message_of(folder / "pipe.gguf").find("is a pipe; give the path of a .gguf file"),
            std::string::npos);  // and does not wait
  EXPECT_NE(message_of("/dev/zero").find("is a device; give the path of a .gguf file"), std::string::npos);
  std::filesystem::create_symlink(folder / "loop.gguf", folder / "loop.gguf");
  EXPECT_EQ(GgufFile::open(folder / "loop.gguf").error().code, ErrorCode::kIo);
  std::ofstream(folder / "empty.gguf").flush();
  EXPECT_NE(message_of(folder / "empty.gguf").find("ends within its first four bytes"), std::string::npos);
  EXPECT_EQ(message_of(folder / "a\nb\x1b[2J.gguf").find('\n'), std::string::npos);
}

TEST(GgufFile, FollowsSymbolicLinks) {
  const TemporaryFolder folder;
  test::make_tiny_llama(1).write(folder / "blob");
  std::filesystem::create_symlink("blob", folder / "m.gguf");
  EXPECT_TRUE(GgufFile::open(folder / "m.gguf").has_value());
}

TEST(GgufFile, LeavesNoDescriptorOpen) {
  const TemporaryFolder folder;
  test::make_tiny_llama(1).write(folder / "m.gguf");
  std::ofstream(folder / "bad.gguf") << "GGUF and nothing more";
  const auto num_descriptors = [] {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
      count += entry.exists() ? 1 : 0;
    return count;
  };
  const std::size_t before = num_descriptors();
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(GgufFile::open(folder / "m.gguf").has_value());
    EXPECT_FALSE(GgufFile::open(folder / "bad.gguf").has_value());
    EXPECT_FALSE(GgufFile::open(folder.path()).has_value());
  }
  EXPECT_EQ(num_descriptors(), before);
}

// ---- files that change

TEST(GgufFile, SaysWhenItsFileWasChanged) {
  const TemporaryFolder folder;
  test::make_tiny_llama(1).write(folder / "m.gguf");
  const auto file = GgufFile::open(folder / "m.gguf");
  EXPECT_TRUE(file->verify_unchanged().has_value());
  std::ofstream(folder / "m.gguf", std::ios::app) << "more";
  const auto verdict = file->verify_unchanged();
  ASSERT_FALSE(verdict.has_value());
  EXPECT_NE(verdict.error().message.find("changed while it was in use"), std::string::npos);
}

TEST(GgufFile, ReadingAFileThatWasCutGivesZerosAndIsNoticed) {
  const TemporaryFolder folder;
  GgufWriter writer;
  writer.add_tensor("a", TensorType::kF32, {1 << 16}, filled(4 << 16, 7)).write(folder / "m.gguf");
  test::make_tiny_llama(1).write(folder / "other.gguf");
  const auto file = GgufFile::open(folder / "m.gguf");
  const auto other = GgufFile::open(folder / "other.gguf");
  const auto bytes = file->bytes_of(*file->find_tensor("a"));
  EXPECT_EQ(bytes.back(), std::byte{7});
  EXPECT_TRUE(file->verify_unchanged().has_value());
  std::filesystem::resize_file(folder / "m.gguf", 4096);
  unsigned sum = 0;
  for (const std::byte byte : bytes.last(200'000)) sum += std::to_integer<unsigned>(byte);
  EXPECT_EQ(sum, 0u);
  EXPECT_FALSE(file->verify_unchanged().has_value());
  EXPECT_TRUE(other->verify_unchanged().has_value());
}

TEST(GgufFileDeathTest, ABusErrorElsewhereStillEndsTheProgram) {
  const TemporaryFolder folder;
  test::make_tiny_llama(1).write(folder / "m.gguf");
  const auto file = GgufFile::open(folder / "m.gguf");  // the handler is in place
  const std::string other = (folder / "other").string();
  std::ofstream(other) << std::string(4096, 'x');
  const int descriptor = ::open(other.c_str(), O_RDWR);
  ASSERT_GE(descriptor, 0);
  const auto* page =
      static_cast<volatile const char*>(mmap(nullptr, 4096, PROT_READ, MAP_SHARED, descriptor, 0));
  ASSERT_EQ(page[0], 'x');
  ASSERT_EQ(ftruncate(descriptor, 0), 0);
  EXPECT_DEATH(
      {
        [[maybe_unused]] const char touched = page[0];
        std::exit(0);  // reached only when the handler swallowed the fault; then nothing died
      },
      "");
  close(descriptor);
}

// ---- split files

struct SplitModel {
  std::uint32_t count = 3;
  std::vector<std::filesystem::path> paths;
  std::vector<GgufWriter> writers;
};

// Three files with two tensors each; the first holds the model's keys.
SplitModel make_split(const TemporaryFolder& folder, std::uint32_t count = 3) {
  SplitModel model{count, {}, {}};
  for (std::uint32_t i = 0; i < count; ++i) {
    GgufWriter writer;
    if (i == 0) writer.add_string("general.architecture", "llama");
    writer.add_number<std::uint16_t>("split.no", static_cast<std::uint16_t>(i));
    writer.add_number<std::uint16_t>("split.count", static_cast<std::uint16_t>(count));
    writer.add_i32("split.tensors.count", static_cast<std::int32_t>(2 * count));
    for (const char* name : {"x", "y"}) {
      writer.add_tensor(name + std::to_string(i), TensorType::kF32, {8}, filled(32, i + 1));
    }
    char ending[64];
    std::snprintf(ending, sizeof ending, "m-%05u-of-%05u.gguf", i + 1, count);
    model.paths.push_back(folder / ending);
    model.writers.push_back(writer);
    writer.write(model.paths.back());
  }
  return model;
}

TEST(SplitGgufFile, ReadsAllFilesWhicheverIsNamed) {
  const TemporaryFolder folder;
  const SplitModel model = make_split(folder);
  for (const auto& path : model.paths) {
    const auto file = GgufFile::open(path);
    ASSERT_TRUE(file.has_value()) << file.error().message;
    EXPECT_EQ(file->num_files(), 3u);
    EXPECT_EQ(file->tensors().size(), 6u);
    EXPECT_TRUE(file->header().contains("general.architecture"));
    for (std::uint32_t i = 0; i < 3; ++i) {
      const GgufTensor* tensor = file->find_tensor("y" + std::to_string(i));
      ASSERT_NE(tensor, nullptr);
      EXPECT_EQ(tensor->shard, i);
      EXPECT_EQ(file->bytes_of(*tensor)[5], static_cast<std::byte>(i + 1));
    }
  }
}

TEST(SplitGgufFile, NamesFollowFromTheOpenedOneAlone) {
  const auto files = files_of_model("/some/where/a-00002-of-00003.gguf");
  ASSERT_TRUE(files.has_value());
  EXPECT_EQ(*files, (std::vector<std::filesystem::path>{"/some/where/a-00001-of-00003.gguf",
                                                        "/some/where/a-00002-of-00003.gguf",
                                                        "/some/where/a-00003-of-00003.gguf"}));
  for (const char* name : {"a.gguf", "a-0001-of-0003.gguf", "a-00001-of-00003.bin", "a-0000x-of-00003.gguf",
                           "00001-of-00003.gguf"}) {
    EXPECT_EQ(files_of_model(name)->size(), 1u) << name;
  }
  EXPECT_EQ(files_of_model("a-00001-of-01000.gguf")->size(), 1000u);
  for (const char* name : {"a-00000-of-00003.gguf", "a-00004-of-00003.gguf", "a-00001-of-00000.gguf",
                           "a-00001-of-01001.gguf", "a-00001-of-99999.gguf"}) {
    EXPECT_FALSE(files_of_model(name).has_value()) << name;
  }
}

TEST(SplitGgufFile, ALieAboutTheSplitIsNamed) {
  const auto refused = [](const char* key, auto value) {
    const TemporaryFolder folder;
    const SplitModel model = make_split(folder);
    GgufWriter lying;  // the second file, one key changed
    lying.add_number<std::uint16_t>(
        "split.no", std::string_view(key) == "split.no" ? static_cast<std::uint16_t>(value) : 1);
    lying.add_number<std::uint16_t>(
        "split.count", std::string_view(key) == "split.count" ? static_cast<std::uint16_t>(value) : 3);
    lying.add_i32("split.tensors.count",
                  std::string_view(key) == "split.tensors.count" ? static_cast<std::int32_t>(value) : 6);
    lying.add_tensor("x1", TensorType::kF32, {8}, filled(32, 2))
        .add_tensor("y1", TensorType::kF32, {8}, filled(32, 2));
    lying.write(model.paths[1]);
    const auto file = GgufFile::open(model.paths[0]);
    return file.has_value() ? Error{} : file.error();
  };
  EXPECT_EQ(refused("split.no", 0).subject, "split.no");
  EXPECT_EQ(refused("split.no", 2).subject, "split.no");
  EXPECT_EQ(refused("split.count", 4).subject, "split.count");
  EXPECT_EQ(refused("split.count", 0).subject, "split.count");
  EXPECT_EQ(refused("split.tensors.count", 7).subject, "split.tensors.count");
  EXPECT_EQ(refused("split.tensors.count", -6).subject, "split.tensors.count");
  EXPECT_NE(refused("split.count", 4).message.find("m-00002-of-00003.gguf: split.count is 4 where"),
            std::string::npos)
      << refused("split.count", 4).message;
}

TEST(SplitGgufFile, AMissingFileIsNamed) {
  const TemporaryFolder folder;
  const SplitModel model = make_split(folder);
  std::filesystem::remove(model.paths[1]);
  const auto file = GgufFile::open(model.paths[2]);
  ASSERT_FALSE(file.has_value());
  EXPECT_EQ(file.error().code, ErrorCode::kNotFound);
  EXPECT_NE(file.error().message.find("m-00002-of-00003.gguf"), std::string::npos);
}

TEST(SplitGgufFile, APartUnderAnotherNameIsRefused) {
  const TemporaryFolder folder;
  const SplitModel model = make_split(folder);
  std::filesystem::copy_file(model.paths[0], folder / "renamed.gguf");
  const auto file = GgufFile::open(folder / "renamed.gguf");
  ASSERT_FALSE(file.has_value());
  EXPECT_EQ(file.error().subject, "split.count");
  EXPECT_NE(file.error().message.find("give the files their original names"), std::string::npos);
}

TEST(SplitGgufFile, FilesOfDifferentModelsAreRefused) {
  const TemporaryFolder folder;
  SplitModel model = make_split(folder);
  model.writers[2].add_string("general.architecture", "qwen2").write(model.paths[2]);
  EXPECT_EQ(GgufFile::open(model.paths[0]).error().subject, "general.architecture");
  model.writers[1].add_tensor("x0", TensorType::kF32, {8}, filled(32, 9));
  GgufWriter repeated;
  repeated.add_number<std::uint16_t>("split.no", 2)
      .add_number<std::uint16_t>("split.count", 3)
      .add_i32("split.tensors.count", 6);
  repeated.add_tensor("x0", TensorType::kF32, {8}, filled(32, 9))
      .add_tensor("y2", TensorType::kF32, {8}, filled(32, 9));
  repeated.write(model.paths[2]);
  const auto file = GgufFile::open(model.paths[0]);
  ASSERT_FALSE(file.has_value());
  EXPECT_NE(file.error().message.find("the tensor \"x0\" is also in another file of the model"),
            std::string::npos);
}

TEST(SplitGgufFile, ASplitOfOneIsAnOrdinaryFile) {
  const TemporaryFolder folder;
  const SplitModel model = make_split(folder, 1);
  EXPECT_TRUE(GgufFile::open(model.paths[0]).has_value());
}

// ---- the default model, as the package gguf reads it

class DefaultModel : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(default_model_path())) GTEST_SKIP() << "the default model is not here";
    std::ifstream golden(test::source_folder() / "tests/golden/gguf.json");
    golden_ = nlohmann::json::parse(golden);
    auto opened = GgufFile::open(default_model_path());
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    file_.emplace(*std::move(opened));
  }
  nlohmann::json golden_;
  std::optional<GgufFile> file_;
};

TEST_F(DefaultModel, KeysAreThoseOfThePackageGguf) {
  const GgufHeader& header = file_->header();
  EXPECT_EQ(header.version(), golden_["version"].get<std::uint32_t>());
  EXPECT_EQ(header.num_keys(), golden_["num_keys"].get<std::size_t>());
  EXPECT_EQ(header.alignment(), golden_["alignment"].get<std::uint32_t>());
  for (const auto& [key, value] : golden_["scalars"].items()) {
    SCOPED_TRACE(key);
    if (value.is_string()) {
      EXPECT_EQ(*header.get<std::string_view>(key), value.get<std::string>());
    } else if (value.is_boolean()) {
      EXPECT_EQ(*header.get<bool>(key), value.get<bool>());
    } else if (value.is_number_float()) {
      EXPECT_EQ(*header.get<float>(key), value.get<float>());
    } else {
      EXPECT_EQ(*header.get<std::uint64_t>(key), value.get<std::uint64_t>());
    }
  }
}

TEST_F(DefaultModel, TensorsAndTheirNumbersAreThoseOfThePackageGguf) {
  ASSERT_EQ(file_->tensors().size(), golden_["tensors"].size());
  EXPECT_EQ(file_->header().data_offset(), golden_["data_offset"].get<std::uint64_t>());
  for (std::size_t i = 0; i < file_->tensors().size(); ++i) {
    const GgufTensor& tensor = file_->tensors()[i];
    const auto& golden = golden_["tensors"][i];
    SCOPED_TRACE(tensor.name);
    EXPECT_EQ(tensor.name, golden["name"].get<std::string>());
    EXPECT_EQ(tensor.type_name, golden["type"].get<std::string>());
    EXPECT_EQ(tensor.byte_offset, golden["offset"].get<std::uint64_t>());
    EXPECT_EQ(tensor.num_bytes, golden["bytes"].get<std::uint64_t>());
    const auto shape = golden["shape"].get<std::vector<std::int64_t>>();
    ASSERT_EQ(tensor.num_dimensions, shape.size());
    for (std::size_t k = 0; k < shape.size(); ++k) EXPECT_EQ(tensor.dimensions[k], shape[k]);
    std::vector<float> values(static_cast<std::size_t>(tensor.num_elements));
    kernels::dequantize(*tensor.type(), file_->bytes_of(tensor).data(), tensor.num_elements, values.data());
    const float* last_row = values.data() + (tensor.num_elements - tensor.dimensions[0]);
    for (std::size_t k = 0; k < golden["last_row_bits"].size(); ++k) {
      EXPECT_EQ(std::bit_cast<std::uint32_t>(last_row[k]), golden["last_row_bits"][k].get<std::uint32_t>());
    }
  }
}

TEST(StoredTensorType, KnowsTheSizesOfEveryTypeOfThePackageGguf) {
  std::ifstream golden(test::source_folder() / "tests/golden/gguf.json");
  const nlohmann::json types = nlohmann::json::parse(golden)["type_sizes"];
  ASSERT_GT(types.size(), 30u);
  for (const auto& entry : types) {
    const auto stored = stored_tensor_type(entry[0].get<std::uint32_t>());
    ASSERT_TRUE(stored.has_value()) << entry[1];
    EXPECT_EQ(stored->name, entry[1].get<std::string>());
    EXPECT_EQ(stored->block_elements, entry[2].get<std::uint32_t>()) << entry[1];
    EXPECT_EQ(stored->block_bytes, entry[3].get<std::uint32_t>()) << entry[1];
  }
}

}  // namespace
}  // namespace octavo::model
