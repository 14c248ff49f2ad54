// Looking for models and into them, on real files.

#include "app/window/models/model_scout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>

#include "app/window/models/model_picker.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/temporary_folder.h"

namespace octavo::app {
namespace {

namespace act = ui::actions;
namespace fs = std::filesystem;

class ModelScoutTest : public ::testing::Test {
 protected:
  ModelScoutTest() : picker_(state_) {
    fs::create_directories(folder_ / "models" / "somebody" / "deep");
    fs::create_directories(folder_ / "elsewhere");
    scout_ = std::make_unique<ModelScout>(
        ScoutPlaces{.models_folder = folder_ / "models",
                    .default_model = folder_ / "models" / "default.gguf",
                    .home = folder_.path(),
                    .available_bytes = [this] { return available_bytes_.load(); }},
        [] {});
    picker_.set_base({});
  }

  std::string write_model(const std::string& name, std::uint32_t context_length = 4096) {
    test::TinyLlamaOptions options;
    options.context_length = context_length;
    test::make_tiny_llama(1, options).write(folder_ / name);
    return (folder_ / name).string();
  }
  // Gives the picker's jobs to the scout and its reports to the picker, until `done`.
  bool run_until(const std::function<bool()>& done) {
    for (int i = 0; i < 2000; ++i) {
      for (ScoutJob& job : picker_.take_effects().jobs) scout_->give(std::move(job));
      for (ScoutReport& report : scout_->take_reports()) picker_.take(std::move(report));
      if (done()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }
  bool is_settled() const { return !state_.scanning && !state_.inside.reading; }
  bool settle() {
    return run_until([this] { return is_settled(); });
  }
  const ui::ModelRow& row(const std::string& file_name) const {
    for (const ui::ModelRow& each : state_.rows) {
      if (each.file_name == file_name) return each;
    }
    ADD_FAILURE() << "no row " << file_name;
    return state_.rows.front();
  }
  void choose(const std::string& path) { picker_.apply(act::ChooseModel{path}); }

  test::TemporaryFolder folder_;
  std::atomic<std::int64_t> available_bytes_ = std::int64_t{4} << 30;
  ui::ModelPickerState state_;
  ModelPicker picker_;
  std::unique_ptr<ModelScout> scout_;
};

TEST_F(ModelScoutTest, ListsRecentOnesFirstThenThoseOfTheFoldersByName) {
  write_model("models/default.gguf");
  write_model("models/somebody/deep/zebra.gguf");
  const std::string recent = write_model("elsewhere/recent.gguf");
  write_model("elsewhere/neighbour.gguf");
  std::ofstream(folder_ / "models" / "readme.txt") << "no model";
  picker_.set_recent({{recent, 2000}, {(folder_ / "gone.gguf").string(), 1000}});
  picker_.open({});
  ASSERT_TRUE(settle());
  std::vector<std::string> names;
  for (const ui::ModelRow& each : state_.rows) names.push_back(each.file_name);
  EXPECT_EQ(names, (std::vector<std::string>{"recent.gguf", "gone.gguf", "default.gguf", "neighbour.gguf",
                                             "zebra.gguf"}));
  EXPECT_TRUE(row("default.gguf").is_default);
  EXPECT_EQ(row("recent.gguf").name, "recent");
  EXPECT_NE(row("recent.gguf").summary.find("llama"), std::string::npos);
  EXPECT_EQ(row("gone.gguf").problem, "The file no longer exists.");
  picker_.apply(act::ForgetModel{(folder_ / "gone.gguf").string()});
  EXPECT_EQ(state_.rows.size(), 4u);
  EXPECT_EQ(picker_.recent().size(), 1u);
}

TEST_F(ModelScoutTest, ADamagedFileIsARowWithItsSentenceAndHarmsNoOther) {
  write_model("models/good.gguf");
  fs::resize_file(write_model("models/cut.gguf"), 3000);
  std::ofstream(folder_ / "models" / "text.gguf") << "this is no model";
  fs::create_directories(folder_ / "models" / "folder.gguf");
  picker_.open({});
  ASSERT_TRUE(settle());
  ASSERT_EQ(state_.rows.size(), 3u);
  EXPECT_TRUE(row("good.gguf").problem.empty());
  EXPECT_FALSE(row("good.gguf").summary.empty());
  for (const char* name : {"cut.gguf", "text.gguf"}) {
    EXPECT_FALSE(row(name).problem.empty()) << name;
    EXPECT_EQ(row(name).problem.find('\n'), std::string::npos);
    choose(row(name).path);
    ASSERT_TRUE(settle());
    EXPECT_EQ(row(name).problem.find(folder_.path().string()), std::string::npos)
        << "the row shows its file anyway";
    EXPECT_TRUE(state_.inside.problem.ends_with(row(name).problem)) << state_.inside.problem;
    picker_.apply(act::LoadChosenModel{});
    EXPECT_FALSE(picker_.take_effects().load) << "what cannot be loaded is not tried";
  }
}

TEST_F(ModelScoutTest, OpensNoFileThatItsCheckRefused) {
  const std::string path = write_model("models/good.gguf");
  std::vector<std::pair<std::string, ProbeDepth>>
      asked;  // by the scouting thread only, read when it is settled
  bool refuses = true;
  scout_ = std::make_unique<ModelScout>(
      ScoutPlaces{.models_folder = folder_ / "models",
                  .default_model = folder_ / "models" / "default.gguf",
                  .home = folder_.path(),
                  .available_bytes = [] { return std::int64_t{4} << 30; },
                  .probe = [&](const std::string& probed, ProbeDepth depth) -> Result<ProbeReport> {
                    asked.emplace_back(probed, depth);
                    if (refuses)
                      return Error{.code = ErrorCode::kDamagedFile,
                                   .message = probed + ": made the check crash; it was not opened"};
                    return ProbeReport{.confinement = {{"no network"}, {}}, .refusal = {}};
                  }},
      [] {});
  picker_.open({});
  ASSERT_TRUE(settle());
  EXPECT_EQ(row("good.gguf").problem, "made the check crash; it was not opened");
  choose(path);
  ASSERT_TRUE(settle());
  EXPECT_NE(state_.inside.problem.find("made the check crash"), std::string::npos);
  EXPECT_TRUE(state_.inside.facts.empty());
  refuses = false;
  picker_.open({});
  choose(path);
  ASSERT_TRUE(settle());
  EXPECT_TRUE(state_.inside.problem.empty()) << state_.inside.problem;
  ASSERT_FALSE(state_.inside.facts.empty());
  EXPECT_EQ(state_.inside.facts.back().label, "Checked");
  EXPECT_EQ(state_.inside.facts.back().value, "in a confined process");
  EXPECT_EQ(asked.front().second, ProbeDepth::kHeader);
  EXPECT_NE(std::find(asked.begin(), asked.end(), std::pair(path, ProbeDepth::kWhole)), asked.end());
}

TEST_F(ModelScoutTest, SaysWhatIsInsideAndWhetherItFits) {
  choose(write_model("models/tiny.gguf"));
  ASSERT_TRUE(settle());
  const ui::ModelMemory fitting = state_.inside.memory;
  EXPECT_EQ(state_.inside.name, "tiny");
  EXPECT_GE(state_.inside.facts.size(), 8u);
  EXPECT_EQ(fitting.fit, ui::ModelFit::kFits);
  EXPECT_EQ(fitting.num_blocks, 8 * 4096 / 16);
  EXPECT_EQ(fitting.kv_bytes, fitting.num_blocks * fitting.bytes_per_block);
  available_bytes_ = 1000;
  choose(state_.inside.path);
  ASSERT_TRUE(settle());
  EXPECT_EQ(state_.inside.memory.fit, ui::ModelFit::kNever);
  EXPECT_EQ(state_.inside.memory.sentence.find("Does not fit"), 0u) << state_.inside.memory.sentence;
  picker_.set_present({.resident_bytes = std::int64_t{1} << 30, .unwritten_bytes = 0});
  choose(state_.inside.path);
  ASSERT_TRUE(settle());
  EXPECT_EQ(state_.inside.memory.fit, ui::ModelFit::kFitsAlone);
  picker_.apply(act::LoadChosenModel{act::RunningAnswers::kFinish});
  const auto load = picker_.take_effects().load;
  ASSERT_TRUE(load);
  EXPECT_EQ(load->running, act::RunningAnswers::kStop) << "there is no room for both";
}

TEST_F(ModelScoutTest, ChoicesChangeTheMemoryAndTheLoad) {
  choose(write_model("models/tiny.gguf"));
  ASSERT_TRUE(settle());
  const ui::ModelMemory before = state_.inside.memory;
  picker_.apply(act::ChangeLoadOptions{{.max_model_len = 1024,
                                        .kv_cache_dtype = KvCacheType::kInt8,
                                        .activation_dtype = ActivationType::kInt8}});
  ASSERT_TRUE(settle());
  EXPECT_EQ(state_.inside.memory.num_blocks, before.num_blocks / 4);
  EXPECT_LT(state_.inside.memory.bytes_per_block, before.bytes_per_block);
  picker_.apply(act::LoadChosenModel{});
  auto load = picker_.take_effects().load;
  ASSERT_TRUE(load);
  EXPECT_EQ(load->load.options.model, state_.inside.path);
  EXPECT_EQ(load->load.options.max_model_len, 1024);
  EXPECT_EQ(load->load.options.kv_cache_dtype, KvCacheType::kInt8);
  EXPECT_EQ(load->load.options.activation_dtype, ActivationType::kInt8);
  EXPECT_EQ(load->load.options.num_kv_blocks, state_.inside.memory.num_blocks) << "as large as was shown";
  picker_.apply(act::ChangeLoadOptions{{.max_model_len = 1024, .kv_cache_mebibytes = 32}});
  ASSERT_TRUE(settle());
  EXPECT_LE(state_.inside.memory.kv_bytes, std::int64_t{32} << 20);
  EXPECT_GT(state_.inside.memory.kv_bytes, (std::int64_t{32} << 20) - state_.inside.memory.bytes_per_block);
  picker_.apply(act::LoadChosenModel{});
  load = picker_.take_effects().load;
  ASSERT_TRUE(load);
  EXPECT_EQ(load->load.options.kv_cache_memory, 32);
  EXPECT_FALSE(load->load.options.num_kv_blocks);
}

TEST_F(ModelScoutTest, AContextThatIsLongerThanTheNextModelsBecomesTheModels) {
  choose(write_model("models/long.gguf", 8192));
  ASSERT_TRUE(settle());
  picker_.apply(act::ChangeLoadOptions{{.max_model_len = 4096}});
  choose(write_model("models/short.gguf", 2048));
  ASSERT_TRUE(settle());
  EXPECT_EQ(state_.inside.memory.max_model_len, 2048);
  EXPECT_EQ(state_.inside.memory.fit, ui::ModelFit::kFits);
}

TEST_F(ModelScoutTest, AFileThatWasReplacedIsReadAgain) {
  const std::string path = write_model("models/tiny.gguf", 1024);
  choose(path);
  ASSERT_TRUE(settle());
  EXPECT_EQ(state_.inside.context_length, 1024);
  write_model("models/other.gguf", 2048);
  fs::rename(folder_ / "models" / "other.gguf", path);
  fs::last_write_time(path, fs::file_time_type::clock::now() + std::chrono::seconds(5));
  choose(path);
  ASSERT_TRUE(settle());
  EXPECT_EQ(state_.inside.context_length, 2048);
}

TEST_F(ModelScoutTest, OnlyTheNewestChoiceIsShown) {
  const std::string first = write_model("models/first.gguf", 1024),
                    second = write_model("models/second.gguf", 2048);
  choose(first);
  choose(second);
  ASSERT_TRUE(settle());
  EXPECT_EQ(state_.inside.path, second);
  EXPECT_EQ(state_.inside.context_length, 2048);
}

TEST_F(ModelScoutTest, APathFromTheHomeFolderIsLoadedAsTheFileItMeans) {
  const std::string path = write_model("elsewhere/one.gguf");
  choose("~/elsewhere/one.gguf");
  ASSERT_TRUE(settle());
  EXPECT_EQ(state_.inside.problem, "");
  picker_.apply(act::LoadChosenModel{});
  const auto load = picker_.take_effects().load;
  ASSERT_TRUE(load);
  EXPECT_EQ(load->load.options.model, path);
}

TEST_F(ModelScoutTest, LoadedModelsAreRememberedNewestFirst) {
  for (int i = 0; i < 30; ++i) picker_.note_loaded("/m/" + std::to_string(i) + ".gguf", i);
  picker_.note_loaded("/m/20.gguf", 99);
  ASSERT_EQ(picker_.recent().size(), kMostRecentModels);
  EXPECT_EQ(picker_.recent().front(), (RecentModel{"/m/20.gguf", 99}));
  EXPECT_EQ(picker_.recent()[1].path, "/m/29.gguf");
}

}  // namespace
}  // namespace octavo::app
