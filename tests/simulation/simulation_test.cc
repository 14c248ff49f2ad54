#include "tests/simulation/simulation.h"

#include <gtest/gtest.h>

#include <cctype>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>

#include "tests/simulation/campaign.h"
#include "tests/simulation/draw_script.h"
#include "tests/simulation/isolated.h"
#include "tests/simulation/shrink.h"
#include "tests/support/temporary_folder.h"

namespace octavo::simulation {
namespace {

constexpr std::int64_t kNumSteps = 300'000;  // tests/long/run simulation: more than 10^8
constexpr std::uint64_t kNumSeedsForMutant = 300;

std::string shortest_script_that_fails(std::uint64_t seed) {
  const auto attempt = [](const Script& script) { return live_isolated(script, Mutation::kNone, 5.0); };
  return to_text(shrink(draw_script(seed), attempt).script);
}

TEST(Simulation, ManyStepsBreakNoPromise) {
  CampaignOptions options;
  options.num_steps = kNumSteps;
  options.jobs = 2;
  const CampaignReport report = run_campaign(options);
  ASSERT_FALSE(report.failure) << "seed " << report.failure->seed << ", step " << report.failure->step << ": "
                               << report.failure->problem << "\n"
                               << shortest_script_that_fails(report.failure->seed);
  EXPECT_GE(report.num_steps, kNumSteps);
  std::printf("%lld steps of %lld lives, %.0f a minute of one core's time\n",
              static_cast<long long>(report.num_steps), static_cast<long long>(report.counts.lives),
              static_cast<double>(report.num_steps) / report.processor_seconds * 60.0);

  // A simulation in which these did not happen would have shown nothing about them.
  visit_counts(report.counts,
               [](std::string_view name, std::int64_t count) { EXPECT_GT(count, 20) << "of " << name; });
}

TEST(Simulation, ACampaignGoesOnWhereItStopped) {
  const test::TemporaryFolder folder;
  CampaignOptions options;
  options.num_seeds = 64;
  const CampaignReport at_once = run_campaign(options);
  options.state_file = folder / "state";
  options.num_steps = at_once.num_steps / 2;
  const CampaignReport first = run_campaign(options);
  options.num_steps = std::numeric_limits<std::int64_t>::max();
  options.jobs = 2;
  const CampaignReport second = run_campaign(options);
  EXPECT_GT(first.next_seed, 1u);
  EXPECT_LT(first.next_seed, 65u);
  EXPECT_EQ(second.next_seed, 65u);
  EXPECT_EQ(second.num_steps, at_once.num_steps - first.num_steps);
  EXPECT_EQ(second.counts.tokens, at_once.counts.tokens);
}

TEST(Simulation, OneScriptGivesOneLife) {
  const Script script = draw_script(7);
  const Report first = live(script), second = live(script);
  EXPECT_EQ(first.counts.steps, second.counts.steps);
  EXPECT_EQ(first.counts.tokens, second.counts.tokens);
  EXPECT_EQ(first.counts.hit_tokens, second.counts.hit_tokens);
}

TEST(Simulation, AScriptIsReadBackAsItWasPrinted) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const std::string text = to_text(draw_script(seed));
    const auto read = parse_script(text);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(to_text(*read), text);
  }
}

TEST(Simulation, AScriptThatIsNoneIsRefused) {
  for (const char* text : {"at 0 submit", "at 0 dance", "options block_size=x", "options color=3", "nonsense",
                           "at 5 cancel 1\nat 4 cancel 1", "at 0 submit 2\nat 0 submit 1"}) {
    EXPECT_FALSE(parse_script(text)) << text;
  }
}

// ---- defects at the borders of the core

class SimulationOfMutant : public testing::TestWithParam<Mutation> {};

TEST_P(SimulationOfMutant, IsCaught) {
  CampaignOptions options;
  options.num_seeds = kNumSeedsForMutant;
  options.mutation = GetParam();
  const CampaignReport report = run_campaign(options);
  ASSERT_TRUE(report.failure) << "no seed noticed this defect: " << mutation_name(GetParam());
  RecordProperty("seed", static_cast<int>(report.failure->seed));
  RecordProperty("step", static_cast<int>(report.failure->step));
}

INSTANTIATE_TEST_SUITE_P(All, SimulationOfMutant, testing::ValuesIn(all_mutations()),
                         [](const testing::TestParamInfo<Mutation>& info) {
                           std::string name(mutation_name(info.param));
                           for (char& letter : name) {
                             if (!std::isalnum(static_cast<unsigned char>(letter))) letter = '_';
                           }
                           return name;
                         });

// ---- making scripts short

class ShrinkMutant : public testing::TestWithParam<Mutation> {};

TEST_P(ShrinkMutant, ToAHandfulOfOperationsThatStillFail) {
  const auto attempt = [](const Script& script) { return live(script, GetParam()); };
  Script script;
  for (std::uint64_t seed = 1; script.operations.empty(); ++seed) {
    ASSERT_LT(seed, kNumSeedsForMutant);
    if (Script drawn = draw_script(seed); attempt(drawn).problem) script = std::move(drawn);
  }
  const Shrunk shrunk = shrink(script, attempt);
  const auto read_back = parse_script(to_text(shrunk.script));
  ASSERT_TRUE(read_back) << read_back.error().message;
  EXPECT_TRUE(attempt(*read_back).problem) << to_text(shrunk.script);
  EXPECT_LE(shrunk.script.operations.size(), 4u) << to_text(shrunk.script);
}

INSTANTIATE_TEST_SUITE_P(Some, ShrinkMutant,
                         testing::Values(Mutation::kSwapTableEntries, Mutation::kDropBlockCopy,
                                         Mutation::kLoseCancel, Mutation::kLoseToken));

TEST(Simulation, ALifeThatDiesIsAReport) {
  Script script = draw_script(1);
  script.options.max_num_batched_tokens = 0;  // the scheduler refuses to be made
  const Report report = live_isolated(script);
  ASSERT_TRUE(report.problem);
  EXPECT_NE(report.problem->find("broken invariant"), std::string::npos) << *report.problem;
}

}  // namespace
}  // namespace octavo::simulation
