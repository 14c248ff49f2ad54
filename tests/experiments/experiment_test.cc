// The paper's evaluation as named experiments: each runs, repeats to the digit whatever the number of
// threads, ends when it is told to, and says of its own figures whether they are the paper's.

#include "engine/experiments/experiment.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <string>

#include "engine/experiments/experiment_parts.h"

namespace octavo::paper {
namespace {

// A hundredth of the simulated time: what they say is not yet what the paper says.
ExperimentOptions quick(std::int32_t num_threads) { return {.num_threads = num_threads, .time_share = 0.01}; }

void expect_equal(const ExperimentReport& a, const ExperimentReport& b) {
  ASSERT_EQ(a.figures.size(), b.figures.size());
  for (std::size_t i = 0; i < a.figures.size(); ++i) {
    EXPECT_EQ(a.figures[i].name, b.figures[i].name);
    EXPECT_EQ(a.figures[i].ours, b.figures[i].ours) << a.figures[i].name;
  }
  ASSERT_EQ(a.plots.size(), b.plots.size());
  for (std::size_t i = 0; i < a.plots.size(); ++i)
    EXPECT_EQ(a.plots[i].lines.size(), b.plots[i].lines.size());
}

TEST(Experiments, AreWhatThePaperEvaluated) {
  std::set<std::string> names;
  for (const ExperimentInfo& info : experiments()) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    for (const std::string& fact :
         {info.title, info.source, info.hardware, info.workload, info.systems, info.metric})
      EXPECT_FALSE(fact.empty()) << info.name;
  }
  for (const char* const name :
       {"figure-1", "figure-2", "figure-12", "figure-13", "figure-14", "figure-15", "figure-16", "figure-17",
        "figure-18", "figure-19", "transformers", "cost", "policy"})
    EXPECT_TRUE(names.contains(name)) << name;
}

TEST(Experiments, RepeatToTheDigitWithAnyNumberOfThreads) {
  for (const char* const name : {"figure-13", "figure-17"}) {
    const auto one = run_experiment(name, quick(1)), three = run_experiment(name, quick(3));
    ASSERT_TRUE(one.has_value() && three.has_value());
    EXPECT_FALSE(one->figures.empty());
    expect_equal(*one, *three);
  }
}

TEST(Experiments, EndSoonWhenTheyAreTold) {
  std::atomic<int> num_asked = 0;
  const auto report =
      run_experiment("figure-12", {.num_threads = 2}, [&](double done, const ExperimentReport&) {
        EXPECT_LT(done, 1.0);
        return ++num_asked < 20;
      });
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error().code, ErrorCode::kCancelled);
  EXPECT_LE(num_asked, 20);
}

TEST(Experiments, NobodyKnowsAreRefusedWithTheListOfThose) {
  const auto report = run_experiment("figure-3", {});
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error().code, ErrorCode::kNotFound);
  EXPECT_NE(report.error().message.find("figure-12"), std::string::npos);
}

TEST(ComparedFigures, AreJudgedByRangeAndFifteenPercent) {
  const auto verdict = [](double ours, std::optional<double> least, std::optional<double> most) {
    return compared("", "", ours, least, most, "").verdict();
  };
  EXPECT_EQ(verdict(2.0, 1.7, 2.7), Verdict::kInRange);
  EXPECT_EQ(verdict(3.1, 1.7, 2.7), Verdict::kNear);
  EXPECT_EQ(verdict(1.44, 1.7, 2.7), Verdict::kOutside);
  EXPECT_EQ(verdict(10.0, 10.0, {}), Verdict::kInRange);
  EXPECT_EQ(verdict(11.4, 10.0, {}), Verdict::kNear);
  EXPECT_EQ(verdict(11.6, 10.0, {}), Verdict::kOutside);
  EXPECT_EQ(verdict(1.0, {}, {}), Verdict::kUncompared);
}

}  // namespace
}  // namespace octavo::paper
