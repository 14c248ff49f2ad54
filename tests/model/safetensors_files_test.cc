#include "engine/model/safetensors_files.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/safetensors_writer.h"
#include "tests/support/temporary_folder.h"

namespace octavo::model {
namespace {

namespace fs = std::filesystem;
using test::SafetensorsWriter;
using test::TemporaryFolder;
using test::write_text;

constexpr std::string_view kIndex = "model.safetensors.index.json";

SafetensorsWriter with(const std::string& name, float value) {
  SafetensorsWriter writer;
  writer.add_floats(name, {1}, std::array{value});
  return writer;
}

void write_index(const fs::path& folder, std::string_view map) {
  write_text(folder / kIndex, R"({"metadata":{"total_size":8},"weight_map":)" + std::string(map) + "}");
}

// Two shards and their index.
void write_two(const fs::path& folder) {
  with("a", 1.0f).write(folder / "model-00001-of-00002.safetensors");
  with("b", 2.0f).write(folder / "model-00002-of-00002.safetensors");
  write_index(folder, R"({"a":"model-00001-of-00002.safetensors","b":"model-00002-of-00002.safetensors"})");
}

float value_of(const SafetensorsFiles& files, std::string_view name) {
  float value = 0.0f;
  const auto bytes = files.bytes_of(*files.find(name));
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

TEST(SafetensorsFiles, OneFileShardsAndAnUnusualNameAreFound) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "one");
  with("a", 3.0f).write(folder / "one" / "model.safetensors");
  const auto one = SafetensorsFiles::open(folder / "one");
  ASSERT_TRUE(one) << one.error().message;
  EXPECT_EQ(value_of(*one, "a"), 3.0f);
  EXPECT_EQ(one->find("b"), nullptr);
  EXPECT_TRUE(one->holds("a"));
  EXPECT_FALSE(one->holds("ab"));

  fs::create_directory(folder / "two");
  write_two(folder / "two");
  const auto two = SafetensorsFiles::open(folder / "two");
  ASSERT_TRUE(two) << two.error().message;
  EXPECT_EQ(two->num_files(), 2u);
  EXPECT_EQ(value_of(*two, "a"), 1.0f);
  EXPECT_EQ(value_of(*two, "b"), 2.0f);

  fs::create_directory(folder / "other");
  with("a", 4.0f).write(folder / "other" / "gptq_model-4bit-128g.safetensors");
  const auto other = SafetensorsFiles::open(folder / "other");
  ASSERT_TRUE(other) << other.error().message;
  EXPECT_EQ(value_of(*other, "a"), 4.0f);
}

// As the hub's cache lies: models--org--name/snapshots/commit with links to ../../blobs.
TEST(SafetensorsFiles, LinksOfTheHubsCacheAreFollowed) {
  const TemporaryFolder folder;
  const fs::path repository = folder / "models--org--name", snapshot = repository / "snapshots" / "0123abcd";
  fs::create_directories(repository / "blobs");
  fs::create_directories(snapshot);
  with("a", 5.0f).write(repository / "blobs" / "feed");
  fs::create_symlink("../../blobs/feed", snapshot / "model.safetensors");
  const auto files = SafetensorsFiles::open(snapshot);
  ASSERT_TRUE(files) << files.error().message;
  EXPECT_EQ(value_of(*files, "a"), 5.0f);
}

struct WrongFolder {
  const char* name;
  std::function<void(const fs::path&)> make;
  ErrorCode code;
  std::string_view sentence;
};

TEST(SafetensorsFiles, WhatIsWrongWithAFolderIsOneSentence) {
  const std::string long_map = "{\"a\":\"" + std::string(300, 'x') + ".safetensors\"}";
  const auto index = [](std::string map) {
    return [map](const fs::path& folder) {
      write_two(folder);
      write_index(folder, map);
    };
  };
  const auto file = [](std::string name) {
    return [name](const fs::path& folder) { write_text(folder / name, "anything"); };
  };
  const WrongFolder kCases[] = {
      {"nothing", [](const fs::path&) {}, ErrorCode::kNotFound, "model.safetensors is missing"},
      {"a pickle", file("pytorch_model.bin"), ErrorCode::kUnsupported,
       "is a Python pickle, which can run code"},
      {"a pickled shard", file("pytorch_model-00001-of-00002.bin"), ErrorCode::kUnsupported, "run code"},
      {"pth", file("consolidated.00.pth"), ErrorCode::kUnsupported, "is a Python pickle"},
      {"pt", file("model.pt"), ErrorCode::kUnsupported, "is a Python pickle"},
      {"h5", file("tf_model.h5"), ErrorCode::kUnsupported, "TensorFlow"},
      {"msgpack", file("flax_model.msgpack"), ErrorCode::kUnsupported, "Flax"},
      {"onnx", file("model.onnx"), ErrorCode::kUnsupported, "ONNX"},
      {"text", file("model.safetensors"), ErrorCode::kDamagedFile, "download it again"},
      {"empty", [](const fs::path& f) { write_text(f / "model.safetensors", ""); }, ErrorCode::kDamagedFile,
       "is cut"},
      {"a folder", [](const fs::path& f) { fs::create_directory(f / "model.safetensors"); }, ErrorCode::kIo,
       "is a directory"},
      {"two without an index",
       [](const fs::path& f) {
         with("a", 1.0f).write(f / "x.safetensors");
         with("b", 1.0f).write(f / "y.safetensors");
       },
       ErrorCode::kDamagedFile, "holds 2 safetensors files and no model.safetensors.index.json"},
      {"no JSON", [](const fs::path& f) { write_text(f / kIndex, "{"); }, ErrorCode::kDamagedFile,
       "is no valid JSON"},
      {"deep JSON", [](const fs::path& f) { write_text(f / kIndex, std::string(100'000, '[')); },
       ErrorCode::kDamagedFile, "is nested more than 64 deep"},
      {"index is a list", [](const fs::path& f) { write_text(f / kIndex, "[]"); }, ErrorCode::kDamagedFile,
       "weight_map is missing"},
      {"no map", [](const fs::path& f) { write_text(f / kIndex, "{}"); }, ErrorCode::kDamagedFile,
       "weight_map is missing"},
      {"map is a list", index("[]"), ErrorCode::kDamagedFile, "weight_map is missing or no object"},
      {"map is empty", index("{}"), ErrorCode::kDamagedFile, "weight_map is empty"},
      {"number", index(R"({"a":1})"), ErrorCode::kDamagedFile, "has no file name for \"a\""},
      {"null", index(R"({"a":null})"), ErrorCode::kDamagedFile, "has no file name for \"a\""},
      {"upwards", index(R"({"a":"../model.safetensors"})"), ErrorCode::kDamagedFile,
       "is not the name of a safetensors file in the folder"},
      {"absolute", index(R"({"a":"/etc/x.safetensors"})"), ErrorCode::kDamagedFile, "is not the name"},
      {"below", index(R"({"a":"sub/x.safetensors"})"), ErrorCode::kDamagedFile, "is not the name"},
      {"dots", index(R"({"a":".."})"), ErrorCode::kDamagedFile, "is not the name"},
      {"zero byte", index("{\"a\":\"x\\u0000.safetensors\"}"), ErrorCode::kDamagedFile, "is not the name"},
      {"empty name", index(R"({"a":""})"), ErrorCode::kDamagedFile, "is not the name"},
      {"long name", index(long_map), ErrorCode::kDamagedFile, "is not the name"},
      {"another ending", index(R"({"a":"pytorch_model.bin"})"), ErrorCode::kDamagedFile, "is not the name"},
      {"missing shard", index(R"({"a":"model-00003-of-00003.safetensors"})"), ErrorCode::kNotFound,
       "model-00003-of-00003.safetensors is missing"},
      {"wrong shard",
       index(R"({"a":"model-00002-of-00002.safetensors","b":"model-00001-of-00002.safetensors"})"),
       ErrorCode::kDamagedFile, "but the index says it is here"},
      {"missing tensor",
       index(R"({"a":"model-00001-of-00002.safetensors","c":"model-00001-of-00002.safetensors"})"),
       ErrorCode::kDamagedFile, "tensor \"c\" is missing, but the index says it is here"},
      {"twice",
       [](const fs::path& f) {
         write_two(f);
         with("a", 1.0f).write(f / "model-00002-of-00002.safetensors");
         write_index(f, R"({"a":"model-00001-of-00002.safetensors","x":"model-00002-of-00002.safetensors"})");
       },
       ErrorCode::kDamagedFile, "but the index says it is here"},
      {"a cut shard",
       [](const fs::path& f) {
         write_two(f);
         fs::resize_file(f / "model-00002-of-00002.safetensors", 20);
       },
       ErrorCode::kDamagedFile, "download it again"},
      {"a link to nothing", [](const fs::path& f) { fs::create_symlink("gone", f / "model.safetensors"); },
       ErrorCode::kDamagedFile, "is a link to something that is missing"},
      {"a link to itself",
       [](const fs::path& f) { fs::create_symlink("model.safetensors", f / "model.safetensors"); },
       ErrorCode::kDamagedFile, "is a link that leads to itself"},
      {"a cycle of links",
       [](const fs::path& f) {
         fs::create_symlink("b", f / "model.safetensors");
         fs::create_symlink("model.safetensors", f / "b");
       },
       ErrorCode::kDamagedFile, "is a link that leads to itself"},
      {"a cycle of folders",
       [](const fs::path& f) {
         fs::create_symlink("loop", f / "loop");
         fs::create_symlink("loop/model.safetensors", f / "model.safetensors");
       },
       ErrorCode::kDamagedFile, "is a link that leads to itself"},
      {"a link that leaves",
       [](const fs::path& f) {
         with("a", 1.0f).write(f.parent_path() / "outside.safetensors");
         fs::create_symlink("../outside.safetensors", f / "model.safetensors");
       },
       ErrorCode::kDamagedFile, "is a link that leaves the model's folder"},
      {"an absolute link that leaves",
       [](const fs::path& f) {
         with("a", 1.0f).write(f.parent_path() / "outside.safetensors");
         fs::create_symlink(f.parent_path() / "outside.safetensors", f / "model.safetensors");
       },
       ErrorCode::kDamagedFile, "is a link that leaves the model's folder"},
      {"an index that leaves",
       [](const fs::path& f) {
         write_two(f);
         fs::rename(f / kIndex, f.parent_path() / "index");
         fs::create_symlink("../index", f / kIndex);
       },
       ErrorCode::kDamagedFile, "is a link that leaves the model's folder"},
  };
  for (const WrongFolder& each : kCases) {
    SCOPED_TRACE(each.name);
    const TemporaryFolder outer;
    fs::create_directory(outer / "model");
    each.make(outer / "model");
    const auto files = SafetensorsFiles::open(outer / "model");
    ASSERT_FALSE(files);
    EXPECT_EQ(files.error().code, each.code);
    EXPECT_NE(files.error().message.find(each.sentence), std::string::npos) << files.error().message;
    EXPECT_EQ(files.error().message.find('\n'), std::string::npos);
  }
}

TEST(SafetensorsFiles, AFileThatChangesIsNoticed) {
  const TemporaryFolder folder;
  with("a", 1.0f).write(folder / "model.safetensors");
  const auto files = SafetensorsFiles::open(folder.path());
  ASSERT_TRUE(files);
  EXPECT_TRUE(files->verify_unchanged());
  fs::resize_file(folder / "model.safetensors", 12);
  EXPECT_FALSE(files->verify_unchanged());
}

}  // namespace
}  // namespace octavo::model
