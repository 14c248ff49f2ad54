// The experiments on a real engine, with a tiny model and a few requests: what they report is what ran.

#include "engine/experiments/real/real_experiment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "tests/support/gguf_writer.h"
#include "tests/support/temporary_folder.h"

namespace octavo::paper {
namespace {

class RealExperiment : public ::testing::Test {
 protected:
  RealExperiment() {
    test::TinyLlamaOptions llama;
    llama.context_length = 512;
    test::make_tiny_llama(/*seed=*/7, llama).draft().write((folder_ / "model.gguf").string());
  }

  RealExperimentOptions options() const {
    EngineOptions engine;
    engine.model = (folder_ / "model.gguf").string();
    engine.device = Device::kCpu;
    engine.threads = 1;
    return {.engine = engine, .num_rounds = 1, .time_share = 0.05};
  }

  const test::TemporaryFolder folder_;
};

const ComparedFigure* find_figure(const ExperimentReport& report, const std::string& name) {
  const auto found = std::ranges::find(report.figures, name, &ComparedFigure::name);
  return found == report.figures.end() ? nullptr : &*found;
}

TEST_F(RealExperiment, SwapsAndComputesAgainInTheSmallPool) {
  const Result<ExperimentReport> report = run_real_experiment("real-swap", options());
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_NE(report->machine.find("1 thread;"), std::string::npos) << report->machine;
  for (const int size : {1, 16, 128}) {
    const std::string blocks = "blocks of " + std::to_string(size);
    const ComparedFigure* const swap = find_figure(*report, blocks + ": swap there and back");
    ASSERT_NE(swap, nullptr) << blocks << ": nothing was swapped";
    EXPECT_GT(swap->ours, 0.0);
    for (const char* const how : {", always swap", ", always recompute"}) {
      const ComparedFigure* const preempted = find_figure(*report, blocks + how + ": preemptions a request");
      ASSERT_NE(preempted, nullptr);
      EXPECT_GT(preempted->ours, 0.0) << blocks << how << ": the pool is too large to show anything";
    }
  }
}

TEST_F(RealExperiment, TellsEachManagerBesideThePaper) {
  double last = -1.0;
  const Result<ExperimentReport> report =
      run_real_experiment("real-memory", options(), [&](double done, const ExperimentReport& so_far) {
        EXPECT_GE(done, last);
        EXPECT_TRUE(done <= 0.0 || !so_far.figures.empty()) << done;
        last = done;
        return true;
      });
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_DOUBLE_EQ(last, 1.0);
  for (const char* const manager : {"paged", "Orca (Oracle)", "Orca (Pow2)", "Orca (Max)"}) {
    const ComparedFigure* const held = find_figure(*report, std::string(manager) + ": tokens held");
    ASSERT_NE(held, nullptr) << manager;
    EXPECT_GT(held->ours, 0.0);
    EXPECT_LE(held->ours, 100.0);
    EXPECT_TRUE(held->paper_least.has_value());
  }
}

// All the others: what they plan is what the engine takes, and every figure is a number.
TEST_F(RealExperiment, EachReportsFiguresAndPlots) {
  RealExperimentOptions some = options();
  some.time_share = 0.02;
  for (const char* const name : {"real-serving", "real-loop", "real-sharing", "real-block-sizes"}) {
    const Result<ExperimentReport> report = run_real_experiment(name, some);
    ASSERT_TRUE(report.has_value()) << name << ": " << report.error().message;
    EXPECT_EQ(report->name, name);
    EXPECT_GE(report->figures.size(), 6u) << name;
    for (const ComparedFigure& figure : report->figures) {
      EXPECT_TRUE(std::isfinite(figure.ours)) << name << ": " << figure.name;
      EXPECT_TRUE(figure.unit != "requests/s" || figure.ours > 0.0) << name << ": " << figure.name;
    }
    for (const ExperimentPlot& plot : report->plots) {
      for (const PlotLine& line : plot.lines)
        EXPECT_FALSE(line.points.empty()) << plot.title << ": " << line.name;
    }
  }
}

TEST_F(RealExperiment, EndsWhenItIsTold) {
  int num_asked = 0;
  const Result<ExperimentReport> report = run_real_experiment(
      "real-serving", options(), [&](double, const ExperimentReport&) { return ++num_asked < 5; });
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error().code, ErrorCode::kCancelled);
  EXPECT_LE(num_asked, 6);
}

TEST_F(RealExperiment, RefusesInOneSentence) {
  const Result<ExperimentReport> unknown = run_real_experiment("real-\nnothing", options());
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(unknown.error().message.find('\n'), std::string::npos);
  EXPECT_NE(unknown.error().message.find("real-serving"), std::string::npos);
  RealExperimentOptions missing = options();
  missing.engine.model += ".missing";
  EXPECT_FALSE(run_real_experiment("real-memory", missing).has_value());
  RealExperimentOptions no_rounds = options();
  no_rounds.num_rounds = 0;
  EXPECT_EQ(run_real_experiment("real-memory", no_rounds).error().subject, "--rounds");
}

TEST(RealExperiments, HaveNamesOfTheirOwn) {
  std::set<std::string> names;
  for (const auto infos : {experiments(), real_experiments()}) {
    for (const ExperimentInfo& info : infos) EXPECT_TRUE(names.insert(info.name).second) << info.name;
  }
  for (const ExperimentInfo& info : real_experiments())
    EXPECT_TRUE(info.name.starts_with("real-")) << info.name;
}

}  // namespace
}  // namespace octavo::paper
