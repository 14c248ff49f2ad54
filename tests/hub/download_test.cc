// Search and downloads against a stand-in of the hub on this machine: what comes is right or absent, whatever
// goes wrong.

#include "app/hub/download.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <thread>

#include "app/hub/hub_cache.h"
#include "app/hub/hub_client.h"
#include "app/hub/local_models.h"
#include "app/hub/model_choice.h"
#include "app/hub/model_look.h"
#include "engine/model/model_files.h"
#include "tests/hub/hub_stand_in.h"
#include "tests/support/environment.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/temporary_folder.h"

namespace octavo::hub {
namespace {

namespace fs = std::filesystem;
using testing::HubStandIn;
using testing::StandInFile;
using testing::StandInRepository;

std::string content_of(std::size_t size, unsigned int seed) {
  std::mt19937 random(seed);
  std::string content(size, '\0');
  for (char& c : content) c = static_cast<char>(random());
  return content;
}

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class HubDownload : public ::testing::Test {
 protected:
  HubDownload()
      : big_(content_of(3'000'000, 1)),
        hub_({StandInRepository{
                  .name = "org/model",
                  .files = {{.path = "m-Q4_K_M.gguf", .content = big_},
                            {.path = "two/m-Q8_0-00001-of-00002.gguf", .content = content_of(50'000, 2)},
                            {.path = "two/m-Q8_0-00002-of-00002.gguf", .content = content_of(40'000, 3)},
                            {.path = "config.json", .content = "{}", .is_large = false},
                            {.path = "empty.gguf", .content = ""}}},
              StandInRepository{.name = "org/gated",
                                .is_gated = true,
                                .files = {{.path = "m.gguf", .content = "gated content"}}},
              StandInRepository{
                  .name = "org/wrong",
                  .files = {{.path = "m.gguf", .content = "wrong", .told_sha256 = std::string(64, 'a')}}},
              StandInRepository{.name = "org/short",
                                .files = {{.path = "m.gguf", .content = "short", .told_bytes = 9}}}}) {
    place_.endpoint = hub_.address();
    place_.cache = folder_ / "hub";
    options_.parallel_bytes = 1'000'000;
    options_.range_bytes = 400'000;
  }

  HubRepository find(const std::string& name, const std::string& file) {
    HubClient client(place_, clock_);
    auto repository = client.repository(name, "main");
    EXPECT_TRUE(repository) << repository.error().message;
    if (!repository) return {};
    auto model = choose_model(*repository, file);
    EXPECT_TRUE(model) << model.error().message;
    if (model) repository->files = model->files;
    return *repository;
  }
  Result<fs::path> get(const std::string& name, const std::string& file) {
    return download(place_, find(name, file), clock_, options_);
  }
  // What another program would take for a whole file.
  std::vector<fs::path> complete_files() const {
    std::vector<fs::path> files;
    std::error_code error;
    for (fs::recursive_directory_iterator entry(place_.cache, error), end; !error && entry != end;
         entry.increment(error)) {
      const std::string name = entry->path().filename().string();
      const bool is_ours =
          name.find(".octavo.") != std::string::npos || name.ends_with(".lock") || name == "main";
      if (!entry->is_directory() && !is_ours) files.push_back(entry->path());
    }
    return files;
  }

  test::TemporaryFolder folder_;
  SteadyClock clock_;
  std::string big_;
  HubStandIn hub_;
  HubPlace place_;
  DownloadOptions options_;
};

TEST_F(HubDownload, SearchesAndListsFilesOfAllPages) {
  HubClient client(place_, clock_);
  const auto found = client.search("MOD", 10);
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->size(), 1u);
  EXPECT_EQ((*found)[0].name, "org/model");
  hub_.page_files = 2;
  const auto repository = client.repository("org/model", "main");
  ASSERT_TRUE(repository) << repository.error().message;
  EXPECT_EQ(repository->files.size(), 5u);
  EXPECT_EQ(repository->commit.size(), 40u);
  const auto missing = client.repository("org/nothing", "main");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_NE(missing.error().message.find("has no 'org/nothing'"), std::string::npos)
      << missing.error().message;
}

TEST_F(HubDownload, ComesInRangesIntoTheCacheAsOthersLayItOut) {
  const auto path = get("org/model", "Q4_K_M");
  ASSERT_TRUE(path) << path.error().message;
  EXPECT_EQ(read(*path), big_);
  ASSERT_TRUE(fs::is_symlink(*path));
  EXPECT_TRUE(fs::read_symlink(*path).is_relative());
  const fs::path repository = place_.cache / "models--org--model";
  EXPECT_EQ(fs::canonical(*path), fs::canonical(repository / "blobs" / testing::sha256_of(big_)));
  const StandInRepository named{.name = "org/model"};
  EXPECT_EQ(read(repository / "refs/main"), named.commit());
  EXPECT_EQ(path->parent_path(), repository / "snapshots" / named.commit());
  int num_ranges = 0;
  for (const auto& seen : hub_.seen()) num_ranges += seen.range.empty() ? 0 : 1;
  EXPECT_GE(num_ranges, 8);
  hub_.forget_seen();
  const auto again = get("org/model", "Q4_K_M");
  ASSERT_TRUE(again);
  for (const auto& seen : hub_.seen()) EXPECT_TRUE(seen.range.empty()) << "it is here already";
  const test::EnvironmentVariable cache("HF_HUB_CACHE", place_.cache.string());
  EXPECT_EQ(*model::find_model("org/model:Q4_K_M"), *path);
}

TEST_F(HubDownload, ASplitModelIsThereOnlyWhenAllOfItIs) {
  int num_reports = 0;
  options_.on_progress = [&](const DownloadProgress& progress) {
    EXPECT_EQ(progress.total, 90'000);
    return ++num_reports == 1 && progress.received < 90'000 ? DownloadWish::kGoOn : DownloadWish::kGoOn;
  };
  hub_.answer("/org/model/resolve/" + StandInRepository{.name = "org/model"}.commit() + "/two/m-Q8_0-00002",
              404, "");
  const auto half = get("org/model", "Q8_0");
  ASSERT_FALSE(half);
  EXPECT_FALSE(fs::exists(place_.cache / "models--org--model/snapshots"));
}

TEST_F(HubDownload, SmallAndEmptyFilesAreVerifiedToo) {
  HubClient client(place_, clock_);
  auto repository = client.repository("org/model", "main");
  ASSERT_TRUE(repository);
  std::erase_if(repository->files,
                [](const HubFile& file) { return file.path != "config.json" && file.path != "empty.gguf"; });
  ASSERT_EQ(repository->files.size(), 2u);
  const auto path = download(place_, *repository, clock_, options_);
  ASSERT_TRUE(path) << path.error().message;
  EXPECT_EQ(read(path->parent_path() / "config.json"), "{}");
  EXPECT_EQ(read(path->parent_path() / "empty.gguf"), "");
}

TEST_F(HubDownload, TheTokenGoesToTheHubAloneAndIsInNoSentence) {
  const auto refused = get("org/gated", "");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("is gated: accept its terms at "), std::string::npos)
      << refused.error().message;
  EXPECT_NE(refused.error().message.find("HF_TOKEN"), std::string::npos);
  place_.token = hub_.token;
  hub_.forget_seen();
  const auto path = get("org/gated", "");
  ASSERT_TRUE(path) << path.error().message;
  bool is_known_to_hub = false;
  for (const auto& seen : hub_.seen()) {
    if (seen.at_hub) is_known_to_hub = is_known_to_hub || seen.authorization == "Bearer " + hub_.token;
    if (seen.at_hub) continue;
    EXPECT_EQ(seen.authorization, "") << seen.target;
  }
  EXPECT_TRUE(is_known_to_hub);
  place_.token = "hf_another_secret";
  fs::remove_all(place_.cache);
  const auto wrong = get("org/gated", "");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message.find("hf_another_secret"), std::string::npos);
}

TEST_F(HubDownload, WhatIsNotWhatTheHubSaysIsRemoved) {
  const auto wrong = get("org/wrong", "");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, ErrorCode::kDamagedFile);
  EXPECT_NE(wrong.error().message.find("its checksum differs"), std::string::npos) << wrong.error().message;
  EXPECT_TRUE(complete_files().empty());
  const BlobPaths paths = blob_paths(place_.cache, "org/wrong", std::string(64, 'a'));
  EXPECT_FALSE(fs::exists(paths.incomplete));
  EXPECT_FALSE(fs::exists(paths.missing));
}

TEST_F(HubDownload, AFileOfAnotherSizeThanToldIsRefused) {
  const auto refused = get("org/short", "");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("other bytes"), std::string::npos) << refused.error().message;
  EXPECT_TRUE(complete_files().empty());
}

TEST_F(HubDownload, ConnectionsThatAreCutGoOnWhereTheyWere) {
  hub_.cut_after = 150'000;
  hub_.num_cuts = 6;
  const auto path = get("org/model", "Q4_K_M");
  ASSERT_TRUE(path) << path.error().message;
  EXPECT_EQ(read(*path), big_);
}

TEST_F(HubDownload, RateLimitsAndFailuresAreWaitedFor) {
  hub_.num_failures = 2;
  hub_.failure_status = 429;
  hub_.retry_after_s = 0;
  const HubRepository wanted = find("org/model", "Q4_K_M");
  hub_.num_failures = 4;  // each connection's first
  hub_.failure_status = 503;
  bool has_told = false;
  options_.on_progress = [&](const DownloadProgress& progress) {
    has_told = has_told || progress.stage == DownloadStage::kRetrying;
    return DownloadWish::kGoOn;
  };
  const auto path = download(place_, wanted, clock_, options_);
  ASSERT_TRUE(path) << path.error().message;
  EXPECT_EQ(read(*path), big_);
  EXPECT_TRUE(has_told);
}

TEST_F(HubDownload, ALongRateLimitIsToldInsteadOfWaitedFor) {
  hub_.num_failures = 1000;
  hub_.failure_status = 429;
  hub_.retry_after_s = 300;
  HubClient client(place_, clock_);
  const auto refused = client.repository("org/model", "main");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("takes no more requests from here for now"), std::string::npos)
      << refused.error().message;
}

TEST_F(HubDownload, AHubWithoutRangesAndWithoutRedirectsServesToo) {
  hub_.has_ranges = false;
  hub_.redirects = false;
  const auto path = get("org/model", "Q4_K_M");
  ASSERT_TRUE(path) << path.error().message;
  EXPECT_EQ(read(*path), big_);
}

TEST_F(HubDownload, ACircleOfRedirectsIsOneSentence) {
  const HubRepository wanted = find("org/model", "Q4_K_M");
  hub_.leads_in_circle = true;
  const auto refused = download(place_, wanted, clock_, options_);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("leads in a circle"), std::string::npos) << refused.error().message;
}

TEST_F(HubDownload, PausedGoesOnAndCancelledLeavesNothing) {
  const HubRepository wanted = find("org/model", "Q4_K_M");
  hub_.bytes_per_s = 1'000'000;
  DownloadWish wish = DownloadWish::kPause;
  std::int64_t most = 0;
  options_.on_progress = [&](const DownloadProgress& progress) {
    most = std::max(most, progress.received);
    return progress.received > 300'000 ? wish : DownloadWish::kGoOn;
  };
  auto ended = download(place_, wanted, clock_, options_);
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, ErrorCode::kCancelled);
  EXPECT_TRUE(complete_files().empty());
  EXPECT_LT(most, 2'900'000);
  const std::int64_t begun = incomplete_bytes(place_.cache, "org/model");
  EXPECT_GE(begun, 250'000);
  EXPECT_LT(begun, static_cast<std::int64_t>(big_.size()) - 500'000) << "what is still a hole takes no room";
  EXPECT_EQ(cached_bytes(place_.cache, "org/model") / 4096, begun / 4096)
      << "and the list of what is missing";
  // From there on.
  auto least = static_cast<std::int64_t>(big_.size());
  options_.on_progress = [&](const DownloadProgress& progress) {
    least = std::min(least, progress.received);
    return DownloadWish::kCancel;
  };
  ended = download(place_, wanted, clock_, options_);
  ASSERT_FALSE(ended);
  EXPECT_GT(least, 250'000);
  for (fs::recursive_directory_iterator entry(place_.cache), end; entry != end; ++entry)
    EXPECT_TRUE(entry->is_directory() || entry->path().extension() == ".lock") << entry->path();
}

TEST_F(HubDownload, ADamagedBeginningOfAnInterruptedDownloadIsFound) {
  const HubRepository wanted = find("org/model", "Q4_K_M");
  hub_.bytes_per_s = 1'000'000;
  options_.on_progress = [](const DownloadProgress& progress) {
    return progress.received > 300'000 ? DownloadWish::kPause : DownloadWish::kGoOn;
  };
  ASSERT_FALSE(download(place_, wanted, clock_, options_));
  const BlobPaths paths = blob_paths(place_.cache, wanted.name, wanted.files.front().blob_name());
  {
    std::fstream begun(paths.incomplete, std::ios::binary | std::ios::in | std::ios::out);
    ASSERT_TRUE(begun.put(static_cast<char>(big_[0] ^ 1)));
  }
  hub_.bytes_per_s = 0;
  options_.on_progress = {};
  const auto damaged = download(place_, wanted, clock_, options_);
  ASSERT_FALSE(damaged);
  EXPECT_EQ(damaged.error().code, ErrorCode::kDamagedFile);
  EXPECT_NE(damaged.error().message.find("so it was removed"), std::string::npos) << damaged.error().message;
  EXPECT_TRUE(complete_files().empty());
  EXPECT_FALSE(fs::exists(paths.incomplete));
  const auto path = download(place_, wanted, clock_, options_);
  ASSERT_TRUE(path) << path.error().message;
  EXPECT_EQ(read(*path), big_);
}

TEST_F(HubDownload, WithoutRoomNothingIsBegun) {
  options_.free_bytes = [](const fs::path&) { return std::int64_t{1'000'000}; };
  const HubRepository wanted = find("org/model", "Q4_K_M");
  hub_.forget_seen();
  const auto refused = download(place_, wanted, clock_, options_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kOutOfMemory);
  EXPECT_NE(refused.error().message.find("where 977 KiB are free"), std::string::npos)
      << refused.error().message;
  EXPECT_TRUE(hub_.seen().empty());
}

TEST_F(HubDownload, TwoAtOnceDownloadItOnce) {
  const HubRepository wanted = find("org/model", "Q4_K_M");
  hub_.bytes_per_s = 3'000'000;
  std::atomic<bool> has_waited = false;
  options_.on_progress = [&](const DownloadProgress& progress) {
    if (progress.stage == DownloadStage::kWaiting) has_waited = true;
    return DownloadWish::kGoOn;
  };
  hub_.forget_seen();
  const auto succeeds = [&] {
    const auto ended = download(place_, wanted, clock_, options_);
    EXPECT_TRUE(ended) << ended.error().message;
  };
  std::thread other(succeeds);
  succeeds();
  other.join();
  EXPECT_TRUE(has_waited);
  int num_ranges = 0;
  for (const auto& seen : hub_.seen()) num_ranges += seen.at_hub && !seen.range.empty() ? 1 : 0;
  EXPECT_LE(num_ranges, 8);
}

TEST_F(HubDownload, ARemovedFileLeavesWhatOthersNeed) {
  ASSERT_TRUE(get("org/model", "Q4_K_M"));
  ASSERT_TRUE(get("org/model", "Q8_0"));
  ASSERT_TRUE(remove_cached(place_.cache, "org/model", "m-Q4_K_M.gguf"));
  EXPECT_EQ(find_local_models({{ModelOwner::kHuggingFace, place_.cache}}).size(), 1u);
  EXPECT_FALSE(remove_cached(place_.cache, "org/model", "m-Q4_K_M.gguf"));
  EXPECT_FALSE(remove_cached(place_.cache, "../..", ""));
  ASSERT_TRUE(remove_cached(place_.cache, "org/model"));
  EXPECT_TRUE(complete_files().empty());
}

TEST_F(HubDownload, OfflineContactsNothing) {
  const HubRepository wanted = find("org/model", "Q4_K_M");
  hub_.forget_seen();
  place_.is_offline = true;
  HubClient client(place_, clock_);
  EXPECT_FALSE(client.search("x", 5));
  EXPECT_FALSE(client.repository("org/model", "main"));
  EXPECT_FALSE(download(place_, wanted, clock_, options_));
  EXPECT_TRUE(hub_.seen().empty());
  place_ = {.endpoint = "ftp://nowhere", .cache = place_.cache};
  HubClient nowhere(place_, clock_);
  const auto refused = nowhere.search("x", 5);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("HF_ENDPOINT is 'ftp://nowhere'"), std::string::npos);
}

// ---- before the download

std::string tiny_model(const test::TemporaryFolder& folder) {
  test::TinyLlamaOptions options;
  options.weight_type = kernels::TensorType::kQ8_0;
  const fs::path path = folder / "tiny.gguf";
  test::make_tiny_llama(7, options).write(path);
  return read(path);
}

TEST_F(HubDownload, AModelIsLookedIntoBeforeItsWeightsCome) {
  std::string model = tiny_model(folder_);
  const std::size_t header = model.size();
  HubStandIn hub(
      {StandInRepository{.name = "org/tiny", .files = {{.path = "tiny-Q8_0.gguf", .content = model}}},
       StandInRepository{.name = "org/none",
                         .files = {{.path = "none.gguf", .content = content_of(5000, 4)}}}});
  place_.endpoint = hub.address();
  HubClient client(place_, clock_);
  const auto repository = client.repository("org/tiny", "main");
  ASSERT_TRUE(repository);
  const auto chosen = choose_model(*repository, "");
  ASSERT_TRUE(chosen);
  const auto preview = look_into(client, *repository, *chosen);
  ASSERT_TRUE(preview) << preview.error().message;
  EXPECT_EQ(preview->describe().architecture, "llama");
  const auto need = plan_need(*preview, {}, std::int64_t{8} << 30);
  ASSERT_TRUE(need) << need.error().message;
  EXPECT_EQ(need->fit, ModelFit::kFits);
  EXPECT_GT(need->needed_bytes, static_cast<std::int64_t>(header) / 2);
  const auto roomy = plan_need(*preview, {}, std::int64_t{512} << 30);
  ASSERT_TRUE(roomy);
  EXPECT_EQ(roomy->needed_bytes, need->needed_bytes) << "a need is none for memory that happens to be free";
  const auto none = plan_need(*preview, {}, 1000);
  ASSERT_TRUE(none);
  EXPECT_EQ(none->fit, ModelFit::kNever);
  const auto other = client.repository("org/none", "main");
  ASSERT_TRUE(other);
  const auto refused = look_into(client, *other, *choose_model(*other, ""));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message.find("none.gguf"), 0u) << refused.error().message;
}

// ---- what is here already

TEST(LocalModels, EachContentOfEveryProgramIsListedOnce) {
  const test::TemporaryFolder folder;
  const auto write = [](const fs::path& path, const std::string& content) {
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << content;
  };
  const std::string a = content_of(9000, 1), b = content_of(9000, 2), c = content_of(5000, 3);
  write(folder / "own/m.gguf", a);
  write(folder / "lm/org/name/copy-of-m.gguf", a);
  write(folder / "lm/org/name/other-Q4_0.gguf", b);
  write(folder / "lm/org/name/mmproj.gguf", c);
  write(folder / "jan/mine/model.gguf", c);
  const std::string sha = testing::sha256_of(c + "x");
  write(folder / ("ollama/blobs/sha256-" + sha), c + "x");
  write(folder / "ollama/manifests/registry.ollama.ai/library/llama3.2/3b",
        R"({"layers":[{"mediaType":"application/vnd.ollama.image.template","digest":"sha256:0"},)"
        R"({"mediaType":"application/vnd.ollama.image.model","digest":"sha256:)" +
            sha + R"(","size":5001}]})");
  write(folder / "ollama/manifests/registry.ollama.ai/library/bad/1", "{\"layers\":[{\"mediaType\":5}");
  write(
      folder / "ollama/manifests/registry.ollama.ai/library/bad/2",
      R"({"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:../../../../own/m.gguf"}]})");
  fs::create_directory_symlink(folder.path(), folder / "lm/circle");
  const std::vector<LocalModel> models = find_local_models({{ModelOwner::kOctavo, folder / "own"},
                                                            {ModelOwner::kLmStudio, folder / "lm"},
                                                            {ModelOwner::kOllama, folder / "ollama"},
                                                            {ModelOwner::kJan, folder / "jan"},
                                                            {ModelOwner::kLlamaCpp, folder / "nowhere"}});
  ASSERT_EQ(models.size(), 4u);
  EXPECT_EQ(models[0].name, "m.gguf");
  EXPECT_EQ(models[1].name, "org/name/other-Q4_0.gguf");
  EXPECT_EQ(models[2].name, "llama3.2:3b");
  EXPECT_EQ(models[2].bytes, 5001);
  EXPECT_EQ(models[3].name, "mine");
}

}  // namespace
}  // namespace octavo::hub
