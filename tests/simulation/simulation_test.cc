#include "tests/simulation/simulation.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>

namespace octavo::simulation {
namespace {

constexpr std::uint64_t kNumSeeds = 2000;
constexpr std::uint64_t kNumSeedsForMutant = 400;

void add(Report& sum, const Report& report) {
  sum.num_steps += report.num_steps;
  sum.num_requests += report.num_requests;
  sum.num_tokens += report.num_tokens;
  sum.num_preemptions += report.num_preemptions;
  sum.num_block_copies += report.num_block_copies;
  sum.num_hit_tokens += report.num_hit_tokens;
  sum.num_evictions += report.num_evictions;
  sum.num_cancelled += report.num_cancelled;
  sum.num_failed_steps += report.num_failed_steps;
  sum.num_refused += report.num_refused;
  sum.num_out_of_memory += report.num_out_of_memory;
}

TEST(Simulation, EveryRequestGivesWhatItGivesAlone) {
  Report sum;
  for (std::uint64_t seed = 1; seed <= kNumSeeds; ++seed) {
    const Report report = simulate(seed);
    ASSERT_FALSE(report.problem) << "seed " << seed << ": " << *report.problem;
    add(sum, report);
  }
  std::printf("%lld steps, %lld requests, %lld tokens\n", static_cast<long long>(sum.num_steps),
              static_cast<long long>(sum.num_requests), static_cast<long long>(sum.num_tokens));

  // A simulation in which these did not happen would have shown nothing about them.
  EXPECT_GT(sum.num_preemptions, 100);
  EXPECT_GT(sum.num_block_copies, 100);
  EXPECT_GT(sum.num_hit_tokens, 1000);
  EXPECT_GT(sum.num_evictions, 100);
  EXPECT_GT(sum.num_cancelled, 100);
  EXPECT_GT(sum.num_failed_steps, 20);
  EXPECT_GT(sum.num_refused, 100);
  EXPECT_GT(sum.num_out_of_memory, 10);
}

TEST(Simulation, OneSeedGivesOneLife) {
  const Report first = simulate(7), second = simulate(7);
  EXPECT_EQ(first.num_steps, second.num_steps);
  EXPECT_EQ(first.num_tokens, second.num_tokens);
  EXPECT_EQ(first.num_hit_tokens, second.num_hit_tokens);
}

class SimulationOfMutant : public testing::TestWithParam<Mutation> {};

TEST_P(SimulationOfMutant, IsCaught) {
  for (std::uint64_t seed = 1; seed <= kNumSeedsForMutant; ++seed) {
    const Report report = simulate(seed, GetParam());
    if (!report.problem) continue;
    RecordProperty("seed", static_cast<int>(seed));
    return;
  }
  FAIL() << "no seed noticed this defect: " << mutation_name(GetParam());
}

INSTANTIATE_TEST_SUITE_P(All, SimulationOfMutant, testing::ValuesIn(all_mutations()),
                         [](const testing::TestParamInfo<Mutation>& info) {
                           std::string name(mutation_name(info.param));
                           for (char& letter : name) {
                             if (!std::isalnum(static_cast<unsigned char>(letter))) letter = '_';
                           }
                           return name;
                         });

}  // namespace
}  // namespace octavo::simulation
