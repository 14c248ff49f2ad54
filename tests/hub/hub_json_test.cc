// Answers of a hub, good and hostile.

#include "app/hub/hub_json.h"

#include <gtest/gtest.h>

#include <string>

#include "app/hub/model_choice.h"

namespace octavo::hub {
namespace {

const std::string kOid(40, 'a'), kSha(64, 'b');

std::string entry(const std::string& path, const std::string& more = {}) {
  return R"({"type":"file","path":")" + path + R"(","size":5,"oid":")" + kOid + "\"" + more + "}";
}

TEST(HubJson, ReadsASearchARepositoryAndItsFiles) {
  const auto models = read_search(
      R"([{"id":"org/name","downloads":7,"likes":2,"gated":"auto","tags":["gguf","license:mit"]},{"id":"../x"},{"no":1},3])",
      "hub");
  ASSERT_TRUE(models);
  ASSERT_EQ(models->size(), 1u);
  EXPECT_EQ((*models)[0].name, "org/name");
  EXPECT_EQ((*models)[0].licence, "mit");
  EXPECT_EQ((*models)[0].gate, Gate::kAsks);
  EXPECT_EQ((*models)[0].downloads, 7);
  const auto repository = read_repository(
      R"({"id":"org/name","sha":")" + kOid + R"(","gated":false,"cardData":{"license":"apache-2.0"}})",
      "hub");
  ASSERT_TRUE(repository);
  EXPECT_EQ(repository->commit, kOid);
  EXPECT_EQ(repository->licence, "apache-2.0");
  const auto files = read_files("[" + entry("a.gguf", R"(,"lfs":{"oid":")" + kSha + R"(","size":9})") + "," +
                                    entry("sub/b.json") + R"(,{"type":"directory","path":"sub"}])",
                                "hub");
  ASSERT_TRUE(files) << files.error().message;
  ASSERT_EQ(files->size(), 2u);
  EXPECT_EQ((*files)[0].bytes, 9);
  EXPECT_EQ((*files)[0].blob_name(), kSha);
  EXPECT_EQ((*files)[1].blob_name(), kOid);
}

TEST(HubJson, WhatMakesNoSenseIsOneSentenceThatNamesTheHub) {
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("null"), std::string("{}"), deep,
        std::string("[{\"path\":5}]"), "[" + entry("../up") + "]", "[" + entry("/etc/passwd") + "]",
        "[" + entry("a/../../b") + "]", "[" + entry("a//b") + "]", "[" + entry("a\\\\b") + "]",
        "[" + entry("a\\u0000b") + "]", "[" + entry("a\\nb") + "]", "[" + entry(std::string(600, 'x')) + "]",
        "[" + entry("a", R"(,"lfs":{"oid":"123","size":9})") + "]",
        "[" + entry("a", R"(,"lfs":{"size":9})") + "]",
        std::string(R"([{"type":"file","path":"a","size":5,"oid":"../../x"}])"),
        "[" + entry("a", R"(,"lfs":{"oid":")" + kSha + R"(","size":9223372036854775807})") + "]"}) {
    const auto files = read_files(text, "hub.example");
    ASSERT_FALSE(files) << text.substr(0, 100);
    EXPECT_EQ(files.error().message.find("hub.example sent an answer that makes no sense: "), 0u)
        << files.error().message;
    EXPECT_EQ(files.error().message.find('\n'), std::string::npos);
    EXPECT_LT(files.error().message.size(), 500u);
  }
  EXPECT_FALSE(read_search("{}", "hub"));
  EXPECT_FALSE(read_repository(R"({"id":"org/name","sha":"../../x"})", "hub"));
  EXPECT_FALSE(read_repository(R"({"id":"a/b/c"})", "hub"));
}

TEST(HubJson, NamesAndPathsThatLeaveTheirFolderAreNone) {
  for (const char* const good : {"gpt2", "org/name", "Qwen/Qwen3-4B-GGUF", "a.b/c_d"})
    EXPECT_TRUE(is_repository_name(good)) << good;
  for (const char* const bad :
       {"", "/", "org/", "/name", "a/b/c", "..", "org/..", ".a/b", "a b/c", "a/b\n", "a--b/c", "a/b:c"})
    EXPECT_FALSE(is_repository_name(bad)) << bad;
  EXPECT_TRUE(is_safe_path("Q4_K_M/model 1.gguf"));
  for (const char* const bad : {"", "/a", "a/", "a//b", "..", "a/..", "./a", "a\\b", "a\x01"})
    EXPECT_FALSE(is_safe_path(bad)) << bad;
}

TEST(ModelChoice, FindsTypesSplitFilesAndWhatIsMeant) {
  EXPECT_EQ(type_in_name("Qwen3-4B-Q4_K_M.gguf"), "Q4_K_M");
  EXPECT_EQ(type_in_name("smollm2-360m-instruct-q8_0.gguf"), "Q8_0");
  EXPECT_EQ(type_in_name("SmolLM2-135M-Instruct.Q4_1.gguf"), "Q4_1");
  EXPECT_EQ(type_in_name("gpt-oss-20b-mxfp4.gguf"), "MXFP4");
  EXPECT_EQ(type_in_name("x/model-IQ3_XXS-00001-of-00002.gguf"), "IQ3_XXS");
  EXPECT_EQ(type_in_name("Qwen.gguf"), "");
  const auto file = [](const char* path, std::int64_t bytes) {
    return HubFile{.path = path, .bytes = bytes, .sha256 = kSha};
  };
  const HubRepository repository{
      .name = "org/name",
      .revision = "main",
      .commit = kOid,
      .files = {file("big/m-Q8_0-00001-of-00002.gguf", 80), file("big/m-Q8_0-00002-of-00002.gguf", 70),
                file("cut/m-F16-00001-of-00002.gguf", 200), file("m-Q2_K.gguf", 20),
                file("m-Q4_K_M.gguf", 50), file("m-Q4_K_S.gguf", 45), file("mmproj-F16.gguf", 5),
                file("README.md", 1)}};
  const auto models = gguf_models(repository.files);
  ASSERT_EQ(models.size(), 5u);
  EXPECT_EQ(models[0].path, "m-Q2_K.gguf");
  EXPECT_EQ(models[3].bytes, 150);
  EXPECT_EQ(models[3].files.size(), 2u);
  EXPECT_FALSE(models[4].is_whole);
  EXPECT_EQ(choose_model(repository, "")->path, "m-Q4_K_M.gguf");
  EXPECT_EQ(choose_model(repository, "q8_0")->path, "big/m-Q8_0-00001-of-00002.gguf");
  EXPECT_EQ(choose_model(repository, "m-Q2_K.gguf")->path, "m-Q2_K.gguf");
  EXPECT_FALSE(choose_model(repository, "Q4_K")) << "two files";
  EXPECT_FALSE(choose_model(repository, "F16")) << "half a model";
  EXPECT_FALSE(choose_model(repository, "nothing"));
  EXPECT_FALSE(choose_model({.name = "org/name", .revision = "main", .commit = kOid}, ""));
}

}  // namespace
}  // namespace octavo::hub
