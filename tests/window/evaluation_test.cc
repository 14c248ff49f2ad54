// The paper's evaluation beside the window: runs, cancelling, what is kept, files and failures.

#include "app/window/memory/evaluation.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

namespace octavo::app {
namespace {

namespace act = ui::actions;
using ui::ExperimentPhase;

class EvaluationTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("octavo-evaluation-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    evaluation_.show_list(state_);
    state_.settings.is_quick = true;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::size_t index_of(const std::string& name) const {
    const auto found = std::ranges::find(state_.experiments, name, &ui::ShownExperiment::name);
    return static_cast<std::size_t>(found - state_.experiments.begin());
  }
  const ui::ShownExperiment& shown(const std::string& name) const {
    return state_.experiments[index_of(name)];
  }

  // Ticks as the window does, until `done` or a minute is over.
  bool tick_until(const std::function<bool()>& done) {
    const auto begin = std::chrono::steady_clock::now();
    while (!done()) {
      const auto passed = std::chrono::steady_clock::now() - begin;
      if (passed > std::chrono::minutes(1)) return false;
      evaluation_.tick(std::chrono::duration_cast<std::chrono::microseconds>(passed).count(), state_);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }
  bool run_to_its_end(const std::string& name) {
    evaluation_.run(index_of(name), state_);
    return tick_until([this] { return !evaluation_.is_running(); });
  }
  std::string saved(const std::string& name) const {
    std::ostringstream bytes;
    bytes << std::ifstream(folder_ / name, std::ios::binary).rdbuf();
    return bytes.str();
  }
  std::string path_of(const std::string& name) const { return (folder_ / name).string(); }

  std::filesystem::path folder_;
  ui::EvaluationState state_;
  Evaluation evaluation_;
};

TEST_F(EvaluationTest, ListsEveryExperimentOnceSimulatedOnesFirst) {
  evaluation_.show_list(state_);
  ASSERT_EQ(state_.experiments.size(), known_experiments().size());
  EXPECT_TRUE(
      std::ranges::is_partitioned(state_.experiments, std::logical_not<>(), &ui::ShownExperiment::is_real));
  EXPECT_TRUE(std::ranges::any_of(state_.experiments, &ui::ShownExperiment::is_real));
  for (const ui::ShownExperiment& one : state_.experiments) {
    EXPECT_EQ(one.phase, ExperimentPhase::kNotRun);
    for (const std::string& fact :
         {one.title, one.source, one.hardware, one.workload, one.systems, one.metric})
      EXPECT_FALSE(fact.empty()) << one.name;
  }
}

TEST_F(EvaluationTest, ShowsTheReportOfTheCommandWithTheSameSeed) {
  state_.settings.seed = 7;
  ASSERT_TRUE(run_to_its_end("figure-13"));
  const ui::ShownExperiment& one = shown("figure-13");
  EXPECT_EQ(one.phase, ExperimentPhase::kDone);
  EXPECT_EQ(one.settings, (ui::ExperimentSettings{.seed = 7, .is_quick = true}));
  ASSERT_NE(one.findings, nullptr);
  const auto report =
      run_known(experiments_named("figure-13").front(), {.seed = 7, .time_share = 0.2, .num_threads = 1}, {});
  ASSERT_TRUE(report.has_value());
  ASSERT_EQ(one.findings->figures.size(), report->figures.size());
  ASSERT_EQ(one.findings->plots.size(), report->plots.size());
  for (std::size_t i = 0; i < report->plots.size(); ++i) {
    const paper::ExperimentPlot& plot = report->plots[i];
    const ui::ShownPlot& drawn = one.findings->plots[i];
    EXPECT_EQ(drawn.x_names, plot.x_names);
    EXPECT_EQ(drawn.x_names.size(), 4u);
    ASSERT_EQ(drawn.curves.size(), plot.lines.size());
    EXPECT_TRUE(std::ranges::any_of(drawn.curves, &ui::ShownCurve::is_papers));
    for (std::size_t c = 0; c < plot.lines.size(); ++c) {
      ASSERT_EQ(drawn.curves[c].ys.size(), plot.lines[c].points.size());
      for (std::size_t p = 0; p < plot.lines[c].points.size(); ++p)
        EXPECT_EQ(drawn.curves[c].ys[p], plot.lines[c].points[p].y);
    }
  }
  std::int32_t num_good = 0;
  for (const paper::ComparedFigure& figure : report->figures) {
    num_good += figure.verdict() == paper::Verdict::kInRange || figure.verdict() == paper::Verdict::kNear;
  }
  EXPECT_EQ(one.findings->num_compared, 8);
  EXPECT_EQ(one.findings->num_good, num_good);
}

TEST_F(EvaluationTest, OneRunsAtATimeAndTellsHowFarItIs) {
  evaluation_.run(index_of("figure-16"), state_);
  EXPECT_TRUE(state_.is_running);
  EXPECT_EQ(shown("figure-16").phase, ExperimentPhase::kRunning);
  evaluation_.run(index_of("transformers"), state_);
  EXPECT_EQ(shown("transformers").phase, ExperimentPhase::kNotRun);
  ASSERT_TRUE(tick_until([this] { return shown("figure-16").done > 0.1; }));
  EXPECT_LT(shown("figure-16").done, 1.0);
  ASSERT_NE(shown("figure-16").findings, nullptr) << "plots while it runs";
  EXPECT_GT(shown("figure-16").seconds_left, 0.0);
  evaluation_.cancel(state_);
  ASSERT_TRUE(tick_until([this] { return !evaluation_.is_running(); }));
  EXPECT_FALSE(state_.is_running);
  EXPECT_EQ(shown("figure-16").phase, ExperimentPhase::kCutShort);
  ASSERT_FALSE(shown("figure-16").findings->notes.empty());
  EXPECT_NE(shown("figure-16").findings->notes.back().find("Cut short"), std::string::npos);
}

TEST_F(EvaluationTest, CancelBeforeAnythingWasFoundLeavesWhatStoodThere) {
  ASSERT_TRUE(run_to_its_end("transformers"));
  const auto figures = shown("transformers").findings->figures.size();
  evaluation_.cancel(state_);  // nothing runs: nothing happens
  evaluation_.run(index_of("transformers"), state_);
  evaluation_.cancel(state_);
  ASSERT_TRUE(tick_until([this] { return !evaluation_.is_running(); }));
  ASSERT_NE(shown("transformers").findings, nullptr);
  EXPECT_EQ(shown("transformers").findings->figures.size(), figures);
  evaluation_.run(index_of("figure-1"), state_);
  evaluation_.cancel(state_);
  ASSERT_TRUE(tick_until([this] { return !evaluation_.is_running(); }));
  EXPECT_NE(shown("figure-1").phase, ExperimentPhase::kRunning);
}

TEST_F(EvaluationTest, AllSimulatedOnesRunOneAfterTheOtherUntilCancelled) {
  evaluation_.run(std::nullopt, state_);
  for (std::size_t i = 0; i < state_.experiments.size(); ++i) {
    const ExperimentPhase wanted = i == 0                          ? ExperimentPhase::kRunning
                                   : state_.experiments[i].is_real ? ExperimentPhase::kNotRun
                                                                   : ExperimentPhase::kWaiting;
    EXPECT_EQ(state_.experiments[i].phase, wanted) << state_.experiments[i].name;
  }
  ASSERT_TRUE(tick_until([this] { return state_.experiments[1].phase == ExperimentPhase::kDone; }));
  EXPECT_EQ(state_.experiments[0].phase, ExperimentPhase::kDone);
  evaluation_.cancel(state_);
  ASSERT_TRUE(tick_until([this] { return !evaluation_.is_running(); }));
  EXPECT_EQ(state_.experiments[1].phase, ExperimentPhase::kDone) << "what was found stays";
  for (const ui::ShownExperiment& one : state_.experiments)
    EXPECT_NE(one.phase, ExperimentPhase::kWaiting) << one.name;
}

TEST_F(EvaluationTest, RealOnesNeedAnEngineAndSayWhatWentWrong) {
  evaluation_.run(index_of("real-memory"), state_);
  EXPECT_FALSE(state_.is_running) << "there is no model";
  EngineOptions options;
  options.model = path_of("no-such-model.gguf");
  evaluation_.set_engine(options);
  ASSERT_TRUE(run_to_its_end("real-memory"));
  EXPECT_EQ(shown("real-memory").phase, ExperimentPhase::kFailed);
  EXPECT_NE(shown("real-memory").problem.find("no-such-model.gguf"), std::string::npos)
      << shown("real-memory").problem;
  evaluation_.forget_engine();
  evaluation_.run(index_of("real-memory"), state_);
  EXPECT_FALSE(state_.is_running);
}

TEST_F(EvaluationTest, FilesHoldWhatWasFound) {
  ASSERT_TRUE(run_to_its_end("figure-13"));
  const std::size_t index = index_of("figure-13");
  evaluation_.save(act::SavePlots{index, act::PictureKind::kSvg, path_of("a.svg")});
  evaluation_.save(act::SavePlots{index, act::PictureKind::kPng, path_of("a.png")});
  evaluation_.save(act::SaveFigures{index, act::TableKind::kJson, path_of("a.json")});
  evaluation_.save(act::SaveFigures{index, act::TableKind::kMarkdown, path_of("a.md")});
  evaluation_.save(act::SavePlots{index_of("cost"), act::PictureKind::kPng, path_of("nothing.png")});
  EXPECT_TRUE(evaluation_.is_busy());
  ASSERT_TRUE(tick_until([this] { return !evaluation_.is_busy(); }));
  const std::vector<WrittenFile> written = evaluation_.take_written();
  ASSERT_EQ(written.size(), 4u) << "an experiment that found nothing has no file";
  for (const WrittenFile& file : written) EXPECT_FALSE(file.problem.has_value()) << file.path;
  EXPECT_NE(saved("a.svg").find("Orca (Oracle)"), std::string::npos);
  EXPECT_EQ(saved("a.png").substr(1, 3), "PNG");
  EXPECT_EQ(nlohmann::json::parse(saved("a.json"))["plots"].size(), 2u);
  EXPECT_NE(saved("a.md").find("| ShareGPT, 2 requests/s: paged | requests |"), std::string::npos)
      << saved("a.md");
  evaluation_.save(act::SavePlots{index, act::PictureKind::kPng, path_of("no/such/folder.png")});
  ASSERT_TRUE(tick_until([this] { return !evaluation_.is_busy(); }));
  ASSERT_EQ(evaluation_.take_written().front().problem.has_value(), true);
}

}  // namespace
}  // namespace octavo::app
