// The step behind one that is being computed: whom it has rows for, when there is none, and what becomes of
// it when outputs end meanwhile.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/scheduler/requests.h"

namespace octavo::scheduler {
namespace {

// A scheduler whose caller draws token 7 for everybody.
class Ahead : public testing::Test {
 protected:
  explicit Ahead(const SchedulerOptions& options = options_with(32)) : scheduler_(options) {}

  RequestId add(std::int32_t num_prompt, std::int32_t max_tokens = 50, std::int32_t n = 1,
                const std::function<void(NewRequest&)>& change = {}) {
    NewRequest request{.request_id = RequestId{++last_request_},
                       .prompt_token_ids = random_like_tokens(last_request_, num_prompt),
                       .sampling = {}};
    request.sampling.max_tokens = max_tokens;
    request.sampling.n = n;
    if (change) change(request);
    EXPECT_TRUE(scheduler_.add(std::move(request)));
    return RequestId{last_request_};
  }

  void commit(const SchedulerOutput& step) {
    std::vector<CommittedToken> tokens;
    for (const ScheduledSequence& row : step.sequences) {
      for (const SampleTarget& target : row.samples) tokens.push_back({target.sequence_id, 7});
    }
    scheduler_.commit(step, tokens);
    check();
  }
  SchedulerOutput step() {
    SchedulerOutput step = scheduler_.schedule();
    commit(step);
    return step;
  }
  void check() const { EXPECT_EQ(scheduler_.broken_invariant(), std::nullopt); }

  SequenceId sequence_of(RequestId request, std::size_t index = 0) const {
    return scheduler_.sequences_of(request)[index].sequence_id;
  }

  // What comes behind the next step, which is committed.
  SchedulerOutput behind_next() {
    const SchedulerOutput next = scheduler_.schedule();
    SchedulerOutput ahead = scheduler_.schedule_ahead(next);
    check();
    commit(next);
    return ahead;
  }

  // The same, executed.
  SchedulerOutput behind_next_committed() {
    SchedulerOutput ahead = behind_next();
    scheduler_.take_up(ahead);
    commit(ahead);
    return ahead;
  }

  Scheduler scheduler_;
  std::uint64_t last_request_ = 0;
};

TEST_F(Ahead, ARowFollowsEachThatExtendsAnOutput) {
  add(31);
  add(5, 50, 2);
  step();
  const SchedulerOutput first = scheduler_.schedule();
  SchedulerOutput second = scheduler_.schedule_ahead(first);
  EXPECT_EQ(second.step, first.step + 1);
  ASSERT_EQ(second.sequences.size(), 3u);
  EXPECT_EQ(second.num_decode_tokens, 3);
  EXPECT_FALSE(second.moves_memory());
  for (std::size_t i = 0; i < 3; ++i) {
    const ScheduledSequence &row = second.sequences[i], &before = first.sequences[i];
    EXPECT_EQ(row.sequence_id, before.sequence_id);
    EXPECT_EQ(row.start_position, before.start_position + 1);
    ASSERT_EQ(row.token_ids.size(), 1u);
    EXPECT_EQ(row.token_ids.front(), kNotDrawnYet);
    ASSERT_EQ(row.samples.size(), 1u);
    EXPECT_EQ(row.samples.front().output_index, before.samples.front().output_index);
    EXPECT_EQ(row.samples.front().position(), before.samples.front().position() + 1);
    EXPECT_GT(static_cast<std::int32_t>(row.block_table.size()) * 16, row.start_position);
  }
  EXPECT_EQ(second.sequences[0].block_table.size(), 3u);  // for position 32
  commit(first);
  EXPECT_EQ(scheduler_.snapshot().step, first.step);
  scheduler_.take_up(second);
  EXPECT_EQ(scheduler_.snapshot().step, second.step);
  commit(second);
  EXPECT_EQ(scheduler_.sequences_of(kFirst).front().num_computed_tokens, 33);
  EXPECT_EQ(scheduler_.schedule().sequences.front().start_position, 33);
}

TEST_F(Ahead, OneFollowsAnother) {
  add(20);
  step();
  SchedulerOutput current = scheduler_.schedule();
  for (int i = 0; i < 30; ++i) {
    SchedulerOutput next = scheduler_.schedule_ahead(current);
    ASSERT_EQ(next.sequences.size(), 1u) << i;
    commit(current);
    scheduler_.take_up(next);
    check();
    current = std::move(next);
  }
  commit(current);
  EXPECT_EQ(scheduler_.sequences_of(kFirst).front().token_ids.size(), 20u + 32u);
}

TEST_F(Ahead, WhoEndsByLengthHasNoRow) {
  add(20, 2);
  add(20, 9);
  step();
  const SchedulerOutput ahead = behind_next();
  ASSERT_EQ(ahead.sequences.size(), 1u);
  EXPECT_EQ(ahead.sequences.front().request_id, kSecond);
}

TEST_F(Ahead, TheLastTokenOfAllHasNothingBehindIt) {
  const RequestId one = add(20, 2);
  step();
  EXPECT_TRUE(behind_next().empty());
  scheduler_.finish(sequence_of(one));
  EXPECT_FALSE(scheduler_.has_work());
}

TEST_F(Ahead, RowsOfWhatEndedAreTakenOut) {
  const RequestId first = add(20), second = add(47, 50, 2);
  step();
  SchedulerOutput ahead = behind_next();
  ASSERT_EQ(ahead.sequences.size(), 3u);
  const SequenceId other = sequence_of(second, 1);
  scheduler_.finish(sequence_of(second, 0));
  scheduler_.abort(first);
  check();
  scheduler_.take_up(ahead);
  ASSERT_EQ(ahead.sequences.size(), 1u);
  EXPECT_EQ(ahead.sequences.front().sequence_id, other);
  EXPECT_EQ(ahead.num_decode_tokens, 1);
  commit(ahead);
  scheduler_.abort(second);
  EXPECT_EQ(scheduler_.figures().used_blocks, 0);
}

TEST_F(Ahead, AStepOfWhichNothingIsLeftEndsToo) {
  const RequestId one = add(20);
  step();
  SchedulerOutput ahead = behind_next();
  scheduler_.abort(one);
  scheduler_.take_up(ahead);
  EXPECT_TRUE(ahead.empty());
  EXPECT_TRUE(scheduler_.schedule_ahead(ahead).empty());
  commit(ahead);
  add(20);
  EXPECT_EQ(step().sequences.size(), 1u);
}

TEST_F(Ahead, ADeviceThatFailsEndsBoth) {
  add(20);
  step();
  const SchedulerOutput first = scheduler_.schedule();
  EXPECT_FALSE(scheduler_.schedule_ahead(first).empty());
  EXPECT_EQ(scheduler_.discard(first), (std::vector<RequestId>{kFirst}));
  check();
  EXPECT_EQ(scheduler_.figures().used_blocks, 0);
  add(20);
  step();
  SchedulerOutput ahead = behind_next();
  scheduler_.take_up(ahead);
  EXPECT_EQ(scheduler_.discard(ahead), (std::vector<RequestId>{kSecond}));
  check();
}

// ---- when there is none

TEST_F(Ahead, NothingFollowsAPrompt) {
  add(20);
  EXPECT_TRUE(behind_next().empty());
  EXPECT_FALSE(behind_next().empty());
}

TEST_F(Ahead, NothingFollowsWhereAPromptIsComputedBeside) {
  add(20);
  step();
  add(20);
  EXPECT_TRUE(behind_next().empty());
}

TEST_F(Ahead, NothingFollowsBeams) {
  add(20, 50, 1, [](NewRequest& request) {
    request.sampling.beam_width = 1;
    request.num_beam_candidates = 2;
  });
  step();
  scheduler_.advance_beams(kFirst, std::vector<BeamContinuation>{{sequence_of(kFirst), 7}});
  const SchedulerOutput next = scheduler_.schedule();
  EXPECT_TRUE(scheduler_.schedule_ahead(next).empty());
}

TEST_F(Ahead, NothingFollowsWhileBothLinesHaveSomebody) {
  add(20);
  add(20, 50, 1, [](NewRequest& request) { request.priority = RequestPriority::kBackground; });
  for (int i = 0; i < 4; ++i) step();
  EXPECT_TRUE(behind_next().empty());
}

class AheadWithOneSeat : public Ahead {
 protected:
  static SchedulerOptions options() {
    SchedulerOptions options = options_with(32);
    options.max_num_seqs = 1;
    return options;
  }
  AheadWithOneSeat() : Ahead(options()) {}
};

TEST_F(AheadWithOneSeat, NothingFollowsWhileSomebodyWaits) {
  add(20);
  add(20);
  step();
  EXPECT_TRUE(behind_next().empty());
}

class AheadWithDrafts : public Ahead {
 protected:
  static SchedulerOptions options() {
    SchedulerOptions options = options_with(32);
    options.speculative = Speculation::kNgram;
    return options;
  }
  AheadWithDrafts() : Ahead(options()) {}
};

TEST_F(AheadWithDrafts, NothingFollowsWhatMayBeGuessed) {
  add(20);
  step();
  EXPECT_TRUE(behind_next().empty());
}

class AheadInAFullPool : public Ahead {
 protected:
  AheadInAFullPool() : Ahead(options_with(6)) {}
};

// Both have three blocks, and want a fourth one for their 49th token.
TEST_F(AheadInAFullPool, NothingFollowsForWhichSomebodyWouldGiveWay) {
  add(30);
  add(30);
  while (scheduler_.sequences_of(kSecond).front().num_computed_tokens < 45) step();
  EXPECT_EQ(behind_next_committed().sequences.size(), 2u);
  const SchedulerOutput last = scheduler_.schedule();
  EXPECT_TRUE(last.preemptions.empty());
  EXPECT_TRUE(scheduler_.schedule_ahead(last).empty());
  EXPECT_EQ(scheduler_.figures().free_blocks, 0);
  commit(last);
  EXPECT_EQ(step().preemptions.size(), 1u);
}

}  // namespace
}  // namespace octavo::scheduler
