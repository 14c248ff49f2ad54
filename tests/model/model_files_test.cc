#include "engine/model/model_files.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>

#include "tests/support/temporary_folder.h"

namespace octavo::model {
namespace {

namespace fs = std::filesystem;

// An empty home folder, and none of the variables that point elsewhere.
class ModelFiles : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "HF_HOME", "HF_HUB_CACHE"}) {
      const char* value = std::getenv(name);
      saved_[name] = value == nullptr ? std::nullopt : std::optional<std::string>(value);
      unsetenv(name);
    }
    set("HOME", home_.path());
  }
  void TearDown() override {
    for (const auto& [name, value] : saved_) {
      if (value)
        setenv(name.c_str(), value->c_str(), 1);
      else
        unsetenv(name.c_str());
    }
  }
  static void set(const char* name, const fs::path& value) { setenv(name, value.c_str(), 1); }
  static fs::path make(const fs::path& path) {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << "model";
    return path;
  }
  // As the Hugging Face tools store it: blobs, and links to them in snapshots.
  static fs::path make_snapshot(const fs::path& cache, const std::string& repository,
                                const std::string& commit, const std::string& file) {
    const fs::path folder = cache / repository;
    make(folder / "blobs" / (commit + file));
    fs::create_directories(folder / "snapshots" / commit);
    fs::create_symlink(fs::path("../../blobs") / (commit + file), folder / "snapshots" / commit / file);
    return folder / "snapshots" / commit / file;
  }

  test::TemporaryFolder home_;
  std::map<std::string, std::optional<std::string>> saved_;
};

TEST_F(ModelFiles, TheModelsFolderFollowsTheDataHome) {
  EXPECT_EQ(models_folder(), home_ / ".local/share/octavo/models");
  EXPECT_EQ(default_model_path(), home_ / ".local/share/octavo/models/SmolLM2-135M-Instruct.Q4_1.gguf");
  set("XDG_DATA_HOME", "/data");
  EXPECT_EQ(models_folder(), "/data/octavo/models");
  set("XDG_DATA_HOME", "");
  EXPECT_EQ(models_folder(), home_ / ".local/share/octavo/models");
}

TEST_F(ModelFiles, NoNameIsTheDefaultModel) {
  const auto missing = find_model("");
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_NE(missing.error().message.find(default_model_path().string()), std::string::npos);
  make(default_model_path());
  EXPECT_EQ(*find_model(""), default_model_path());
}

TEST_F(ModelFiles, APathIsItself) {
  const fs::path path = make(home_ / "some model.gguf");
  EXPECT_EQ(*find_model(path.string()), path);
  EXPECT_EQ(*find_model(home_.path().string()), home_.path());  // opening it will say that it is a folder
}

TEST_F(ModelFiles, SearchesTheModelsFolder) {
  const fs::path nested = make(models_folder() / "org" / "name" / "weights.gguf");
  EXPECT_EQ(*find_model("org/name"), nested);
  const fs::path flat = make(models_folder() / "other-name.gguf");
  EXPECT_EQ(*find_model("whoever/other-name"), flat);
  EXPECT_EQ(*find_model("whoever/other-name.gguf"), flat);
}

TEST_F(ModelFiles, SearchesTheHuggingFaceCacheWhereverItIs) {
  const std::string repository = "models--org--name";
  const fs::path by_default = make_snapshot(home_ / ".cache/huggingface/hub", repository, "c0ffee", "m.gguf");
  EXPECT_EQ(*find_model("org/name"), by_default);
  const fs::path in_home = make_snapshot(home_ / "hf/hub", repository, "c0ffee", "m.gguf");
  set("HF_HOME", home_ / "hf");
  EXPECT_EQ(*find_model("org/name"), in_home);
  const fs::path in_cache = make_snapshot(home_ / "cache", repository, "c0ffee", "m.gguf");
  set("HF_HUB_CACHE", home_ / "cache");
  EXPECT_EQ(*find_model("org/name"), in_cache);
}

TEST_F(ModelFiles, TheSnapshotOfTheMainBranchComesFirst) {
  const fs::path cache = home_ / ".cache/huggingface/hub";
  make_snapshot(cache, "models--org--name", "aaaa", "m.gguf");
  const fs::path main = make_snapshot(cache, "models--org--name", "bbbb", "m.gguf");
  make_snapshot(cache, "models--org--name", "cccc", "m.gguf");
  fs::create_directories(cache / "models--org--name/refs");
  std::ofstream(cache / "models--org--name/refs/main") << "bbbb\n";
  EXPECT_EQ(*find_model("org/name"), main);
}

// A snapshot without a .gguf file is a model itself where it has a configuration; a .gguf file comes first.
TEST_F(ModelFiles, ASnapshotWithAConfigurationIsAModel) {
  const fs::path cache = home_ / ".cache/huggingface/hub";
  const fs::path config = make_snapshot(cache, "models--org--name", "c0ffee", "config.json");
  EXPECT_EQ(*find_model("org/name"), config.parent_path());
  EXPECT_EQ(*find_model(config.parent_path().string()), config.parent_path());
  const fs::path file = make_snapshot(cache, "models--org--name", "c0ffee", "m.gguf");
  EXPECT_EQ(*find_model("org/name"), file);
  make_snapshot(cache, "models--org--empty", "c0ffee", "readme.md");
  EXPECT_FALSE(find_model("org/empty"));
}

TEST_F(ModelFiles, ASplitModelIsFoundByItsFirstFile) {
  const fs::path folder = models_folder() / "org" / "name";
  const fs::path first = make(folder / "m-00001-of-00002.gguf");
  make(folder / "m-00002-of-00002.gguf");
  make(folder / "readme.md");
  EXPECT_EQ(*find_model("org/name"), first);
}

TEST_F(ModelFiles, SeveralModelsAreNamedInsteadOfOneChosen) {
  const fs::path folder = models_folder() / "org" / "name";
  make(folder / "m.Q4_0.gguf");
  make(folder / "m.Q8_0.gguf");
  const auto found = find_model("org/name");
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(found.error().message.find("(m.Q4_0.gguf, m.Q8_0.gguf); give the path of one"), std::string::npos)
      << found.error().message;
}

TEST_F(ModelFiles, SaysWhatWasLookedForAndWhere) {
  const auto missing = find_model("org/nothing");
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_NE(missing.error().message.find("\"org/nothing\""), std::string::npos);
  EXPECT_NE(missing.error().message.find(models_folder().string()), std::string::npos);
  EXPECT_NE(missing.error().message.find((home_ / ".cache/huggingface/hub").string()), std::string::npos);
  for (const char* name :
       {"missing.gguf", "/no/such/file.gguf", "../name", "org/..", "a/b/c", "org/na me", "/", "org/"}) {
    if (fs::exists(name)) continue;
    const auto found = find_model(name);
    ASSERT_FALSE(found.has_value()) << name;
    EXPECT_EQ(found.error().code, ErrorCode::kNotFound) << name;
  }
}

}  // namespace
}  // namespace octavo::model
