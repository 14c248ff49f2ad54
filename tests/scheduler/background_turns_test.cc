#include "engine/scheduler/background_turns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

namespace octavo::scheduler {
namespace {

StepWork rows(std::int32_t count) { return {.num_rows = count, .num_context_tokens = 100 * count}; }

// A person's output and programs' outputs: what a step of each takes, in us.
struct Load {
  double interactive_us = 1000.0;
  double background_us = 5000.0;  // beside it
};

struct Shares {
  int num_turns = 0, longest_wait = 0;
  double interactive_us = 0.0, background_us = 0.0;
};

Shares run(BackgroundTurns& turns, const Load& load, int num_steps) {
  const StepCosts costs;
  Shares shares;
  for (int step = 0, wait = 0; step < num_steps; ++step) {
    const bool is_turn = turns.begin_step(/*is_mixed=*/true);
    wait = is_turn ? 0 : wait + 1;
    shares.longest_wait = std::max(shares.longest_wait, wait);
    shares.num_turns += is_turn ? 1 : 0;
    shares.interactive_us += load.interactive_us;
    shares.background_us += is_turn ? load.background_us : 0.0;
    turns.learn({.interactive = rows(1), .background = rows(is_turn ? 16 : 0)},
                load.interactive_us + (is_turn ? load.background_us : 0.0), costs);
  }
  return shares;
}

TEST(BackgroundTurns, WithoutTheOtherLineEachStepIsATurn) {
  BackgroundTurns turns;
  for (int step = 0; step < 100; ++step) {
    EXPECT_TRUE(turns.begin_step(/*is_mixed=*/false));
    turns.learn({.interactive = {}, .background = rows(16)}, 6000.0, {});
  }
}

TEST(BackgroundTurns, BackgroundWorkTakesAQuarterOfTheTimeOfInteractiveWork) {
  for (const double background_us : {300.0, 1000.0, 5000.0, 12000.0}) {
    BackgroundTurns turns;
    const Shares shares = run(turns, {.background_us = background_us}, 5000);
    const double share = shares.background_us / shares.interactive_us;
    EXPECT_LT(share, 1.05 * kBackgroundShare) << background_us;
    EXPECT_GT(share, 0.9 * kBackgroundShare) << background_us;
  }
}

TEST(BackgroundTurns, WhereRowsAreNearlyFreeEachStepIsATurn) {
  BackgroundTurns turns;
  EXPECT_GT(run(turns, {.background_us = 200.0}, 1000).num_turns, 990);
}

// However dear: nobody starves.
TEST(BackgroundTurns, ATurnComesAfterSoManyOtherSteps) {
  BackgroundTurns turns;
  const Shares shares = run(turns, {.background_us = 1e6}, 2000);
  EXPECT_EQ(shares.longest_wait, kMostStepsBetweenTurns);
  EXPECT_GE(shares.num_turns, 2000 / (kMostStepsBetweenTurns + 1));
}

TEST(BackgroundTurns, DearTurnsDoNotPileUpADebt) {
  BackgroundTurns turns;
  run(turns, {.background_us = 1e6}, 2000);
  run(turns, {.background_us = 100.0}, kMostStepsBetweenTurns + 200);  // what comes next is cheap
  EXPECT_GT(run(turns, {.background_us = 100.0}, 1000).num_turns, 500);
}

// What programs' steps took alone is known, so a person's first token does not wait for one of them.
TEST(BackgroundTurns, WhoComesToABusyEngineHasTheNextSteps) {
  BackgroundTurns turns;
  for (int step = 0; step < 20; ++step) {
    turns.begin_step(/*is_mixed=*/false);
    turns.learn({.interactive = {}, .background = rows(16)}, 6000.0, {});
  }
  for (int step = 0; step < 20; ++step) {  // 20 * 1000 * 0.25 pays 5000 of 6000
    EXPECT_FALSE(turns.begin_step(/*is_mixed=*/true)) << step;
    turns.learn({.interactive = rows(1), .background = {}}, 1000.0, {});
  }
}

// A step of a prompt takes as long as its rows do: so much is not what background work took.
TEST(BackgroundTurns, AnInteractivePromptBesideThemIsNotTheirs) {
  StepCosts costs;
  costs.learn(rows(100), 10'000.0);
  BackgroundTurns turns;
  int num_turns = 0;
  for (int step = 0; step < 1000; ++step) {
    const bool is_turn = turns.begin_step(/*is_mixed=*/true);
    num_turns += is_turn ? 1 : 0;
    turns.learn(
        {.interactive = rows(100), .background = rows(is_turn ? 10 : 0), .has_interactive_prompt = true},
        is_turn ? 11'000.0 : 10'000.0, costs);
  }
  EXPECT_GT(num_turns, 900) << "a tenth beside it is less than a quarter";
}

}  // namespace
}  // namespace octavo::scheduler
