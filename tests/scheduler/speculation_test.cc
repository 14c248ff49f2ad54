// Guesses: who gets rows, slots and blocks for them, and what is left of those that were wrong.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "engine/scheduler/draft_gate.h"
#include "engine/scheduler/prompt_lookup.h"
#include "tests/scheduler/requests.h"

namespace octavo::scheduler {
namespace {

SchedulerOptions speculating(std::int32_t num_blocks, std::int32_t block_size = 16) {
  SchedulerOptions options = options_with(num_blocks);
  options.block_size = block_size;
  options.speculative = Speculation::kNgram;
  return options;
}

SimulatedRequest repeating(std::uint64_t content, std::int32_t max_tokens, std::int32_t n = 1) {
  SimulatedRequest request = request_of(content, 20, max_tokens, n);
  request.period = 4;
  return request;
}

// Steps until one has a draft; that step, committed. Its spans into tables and tokens are gone.
SchedulerOutput run_until_drafting(Harness& harness) {
  while (harness.scheduler.has_work() && !::testing::Test::HasFailure()) {
    SchedulerOutput step = harness.step();
    if (step.num_draft_tokens > 0) return step;
  }
  ADD_FAILURE() << "nothing is ever drafted";
  return {};
}

// A scheduler whose caller says which tokens are drawn.
class Dictated : public testing::Test {
 protected:
  explicit Dictated(SchedulerOptions options = speculating(32, 4)) : scheduler_(options) {}

  SequenceId add(Tokens prompt, std::int32_t max_tokens = 50, std::int32_t n = 1) {
    NewRequest request{
        .request_id = RequestId{++last_request_}, .prompt_token_ids = std::move(prompt), .sampling = {}};
    request.sampling.max_tokens = max_tokens;
    request.sampling.n = n;
    EXPECT_TRUE(scheduler_.add(std::move(request)));
    return scheduler_.sequences_of(RequestId{last_request_}).front().sequence_id;
  }

  // One step, in which this sequence draws these tokens.
  SchedulerOutput step(SequenceId sequence_id, const Tokens& tokens) {
    SchedulerOutput step = scheduler_.schedule();
    commit(step, sequence_id, tokens);
    return step;
  }
  void commit(const SchedulerOutput& step, SequenceId sequence_id, const Tokens& tokens) {
    std::vector<CommittedToken> committed;
    for (const TokenId token : tokens) committed.push_back({sequence_id, token});
    scheduler_.commit(step, committed);
    EXPECT_EQ(scheduler_.broken_invariant(), std::nullopt);
  }

  SequenceSnapshot sequence() const { return scheduler_.snapshot().sequences.front(); }

  Scheduler scheduler_;
  std::uint64_t last_request_ = 0;
};

// The prompt 1 to 6, 1, 2; then 3: what followed were 4 and 5.
const Tokens kPrompt = {1, 2, 3, 4, 5, 6, 1, 2};

TEST_F(Dictated, ADraftIsWhatFollowedTheSameTokensBefore) {
  const SequenceId id = add(kPrompt);
  step(id, {3});
  const SchedulerOutput step = scheduler_.schedule();
  ASSERT_EQ(step.sequences.size(), 1u);
  const ScheduledSequence& row = step.sequences.front();
  EXPECT_EQ(Tokens(row.token_ids.begin(), row.token_ids.end()), (Tokens{3, 4, 5}));
  EXPECT_EQ(row.start_position, 8);
  EXPECT_EQ(row.num_draft_tokens, 2);
  EXPECT_EQ(row.known_token_ids.size(), 9u) << "guesses are not known";
  ASSERT_EQ(row.samples.size(), 3u) << "each row draws";
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(std::ranges::equal(row.samples[i].output_token_ids, row.token_ids.first(i + 1)))
        << "each at its own position, as if the guesses before it were true";
  }
  EXPECT_EQ(step.num_decode_tokens, 1);
  EXPECT_EQ(step.num_draft_tokens, 2);
  EXPECT_EQ(scheduler_.figures().reserved_ahead_slots, 3) << "the newest token and two guesses";
  commit(step, id, {4, 5, 6});
}

TEST_F(Dictated, WhatIsAcceptedHasKvAndTheRestIsGivenBack) {
  const SequenceId id = add(kPrompt);
  step(id, {3});
  step(id, {4, 9});  // 5 was guessed, 9 drawn
  EXPECT_EQ(sequence().num_tokens, 11);
  EXPECT_EQ(sequence().num_computed_tokens, 10);
  EXPECT_EQ(sequence().block_table.size(), 3u);
  EXPECT_EQ(scheduler_.figures().reserved_ahead_slots, 0);
  const auto tokens = scheduler_.sequences_of(RequestId{1}).front().token_ids;
  EXPECT_EQ(Tokens(tokens.end() - 3, tokens.end()), (Tokens{3, 4, 9}));
}

TEST_F(Dictated, ARejectedDraftGivesItsBlockBack) {
  const SequenceId id = add({1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3}, 50);  // 11: slot 11 ends the third block
  step(id, {4});
  const SchedulerOutput step = scheduler_.schedule();
  ASSERT_EQ(step.sequences.front().num_draft_tokens, 2);
  EXPECT_EQ(scheduler_.figures().used_blocks, 4);
  commit(step, id, {9});
  EXPECT_EQ(scheduler_.figures().used_blocks, 3);
  EXPECT_EQ(scheduler_.figures().free_blocks, 32 - 3) << "it holds nothing that could be found";
  EXPECT_EQ(scheduler_.totals().peak_used_blocks, 4) << "for a step it was in use";
}

TEST_F(Dictated, NothingOfARejectedDraftIsFound) {
  const SequenceId id = add(kPrompt);
  step(id, {3});
  const SchedulerOutput step = scheduler_.schedule();
  ASSERT_EQ(step.sequences.front().num_draft_tokens, 2);
  commit(step, id, {9});
  scheduler_.finish(id);
  add({1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 7});
  const SchedulerOutput second = scheduler_.schedule();
  ASSERT_EQ(second.admissions.size(), 1u);
  EXPECT_EQ(second.admissions.front().num_cached_tokens, 9) << "to the 3, whose row was no guess";
}

TEST_F(Dictated, AcceptedTokensAreFoundAgain) {
  const SequenceId id = add(kPrompt);
  step(id, {3});
  step(id, {4, 5, 9});
  scheduler_.finish(id);
  add({1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 7});
  EXPECT_EQ(scheduler_.schedule().admissions.front().num_cached_tokens, 11);
}

TEST_F(Dictated, AnOutputMayEndWithinItsDraft) {
  const SequenceId id = add(kPrompt);
  step(id, {3});
  step(id, {4});  // drawn as guessed, and the end: what was drawn after it does not count
  EXPECT_EQ(sequence().num_tokens, 10);
  EXPECT_EQ(sequence().num_computed_tokens, 9) << "the last token has no KV, as ever";
  scheduler_.finish(id);
  EXPECT_FALSE(scheduler_.has_work());
}

TEST_F(Dictated, ADraftThatIsAcceptedWholeFillsTheOutputAtMost) {
  const SequenceId id = add(kPrompt, /*max_tokens=*/3);
  step(id, {3});
  const SchedulerOutput step = scheduler_.schedule();
  EXPECT_EQ(step.num_draft_tokens, 1) << "one guess and the token after it are the second and the third";
  commit(step, id, {4, 5});
  scheduler_.finish(id);
  const SequenceId short_one = add(kPrompt, /*max_tokens=*/2);
  this->step(short_one, {3});
  EXPECT_EQ(this->step(short_one, {4}).num_draft_tokens, 0);
}

TEST_F(Dictated, AFailedStepForgetsItsDraftWithTheRequest) {
  const SequenceId id = add(kPrompt);
  step(id, {3});
  const SchedulerOutput step = scheduler_.schedule();
  ASSERT_GT(step.num_draft_tokens, 0);
  EXPECT_EQ(scheduler_.discard(step), (std::vector<RequestId>{RequestId{1}}));
  EXPECT_EQ(scheduler_.figures().used_blocks, 0);
}

TEST_F(Dictated, StopsAtTokensBehindAWrongGuess) {
  const SequenceId id = add(kPrompt);
  step(id, {3});
  const SchedulerOutput step = scheduler_.schedule();
  const std::vector<CommittedToken> tokens = {{id, 9}, {id, 5}};
  EXPECT_DEATH(scheduler_.commit(step, tokens), "2 tokens for sequence 1, of which 0 were guessed");
  const std::vector<CommittedToken> too_many = {{id, 4}, {id, 5}, {id, 6}, {id, 7}};
  EXPECT_DEATH(scheduler_.commit(step, too_many), "4 tokens for sequence 1, of which 2 were guessed");
}

class DictatedNearTheModelsLength : public Dictated {
 protected:
  static SchedulerOptions options() {
    SchedulerOptions options = speculating(32, 4);
    options.max_model_len = 11;
    return options;
  }
  DictatedNearTheModelsLength() : Dictated(options()) {}
};

TEST_F(DictatedNearTheModelsLength, NoGuessLiesBeyondIt) {
  const SequenceId id = add(kPrompt);
  step(id, {3});
  EXPECT_EQ(step(id, {4, 5}).num_draft_tokens, 1) << "9 tokens, a guess, and the 11th after it";
}

// Without drafts, 12 tokens fill the 3 blocks; the 13th needs a fourth.
class DictatedOnASmallPool : public Dictated {
 protected:
  explicit DictatedOnASmallPool(std::int32_t num_blocks = 5) : Dictated(speculating(num_blocks, 4)) {}

  // 11 known tokens of which the newest is a decode, and 2 guesses that would need slots 11 and 12.
  std::int32_t num_drafted_at_the_border() {
    const SequenceId id = add({1, 2, 3, 4, 5, 6, 7, 1, 2, 3});
    step(id, {4});
    const SchedulerOutput step = scheduler_.schedule();
    commit(step, id, {9});
    return step.num_draft_tokens;
  }
};

TEST_F(DictatedOnASmallPool, DraftsLeaveTheWatermark) {
  // 3 blocks for 11 tokens, of 5; 1 % of the pool and one for the sequence stay free.
  EXPECT_EQ(num_drafted_at_the_border(), 1) << "the slot that is left of its last block";
}

class DictatedOnALargerPool : public DictatedOnASmallPool {
 protected:
  DictatedOnALargerPool() : DictatedOnASmallPool(6) {}
};

TEST_F(DictatedOnALargerPool, DraftsTakeABlockThatNobodyNeeds) { EXPECT_EQ(num_drafted_at_the_border(), 2); }

TEST_F(DictatedOnALargerPool, DraftsTakeNoBlockWhileAnybodyWaits) {
  const SequenceId id = add({1, 2, 3, 4, 5, 6, 7, 1, 2, 3});
  step(id, {4});
  add(Tokens(14, 7));  // 4 blocks, beside the 3 of the first
  const SchedulerOutput step = scheduler_.schedule();
  EXPECT_EQ(scheduler_.num_waiting(), 1);
  EXPECT_EQ(step.num_draft_tokens, 1);
}

TEST_F(DictatedOnALargerPool, DraftsGiveUpNothingThatIsCached) {
  const SequenceId cached = add({50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61});
  step(cached, {62});
  scheduler_.finish(cached);
  ASSERT_EQ(scheduler_.figures().cached_blocks, 3);
  EXPECT_EQ(num_drafted_at_the_border(), 1) << "the other 3 blocks are cached, not free";
  EXPECT_EQ(scheduler_.totals().evicted_cached_blocks, 0);
}

// One group of three computes the end of its prompt beside a sequence whose last block is full.
class DictatedBesideAGroup : public Dictated, public testing::WithParamInterface<std::int32_t> {
 protected:
  static SchedulerOptions options() {
    SchedulerOptions options = speculating(GetParam(), 4);
    options.max_num_batched_tokens = 8;
    options.admission_reserve = AdmissionReserve::kOnePercent;
    return options;
  }
  DictatedBesideAGroup() : Dictated(options()) {}
};

TEST_P(DictatedBesideAGroup, DraftsLeaveWhatItNeedsToFork) {
  const SequenceId id = add({1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3});
  step(id, {});  // 8 tokens of the prompt
  step(id, {4});
  step(id, {5, 6, 7});
  step(id, {8, 1, 2, 3});
  add(Tokens(9, 50), 50, /*n=*/3);
  EXPECT_EQ(step(id, {4}).num_prefill_tokens, 7);
  const SchedulerOutput last = scheduler_.schedule();
  EXPECT_EQ(last.num_prefill_tokens, 2);
  // 5 blocks and 3 are in use, 2 more promised, and 1 % of the pool is left.
  EXPECT_EQ(last.num_draft_tokens, GetParam() == 11 ? 0 : 2);
}

INSTANTIATE_TEST_SUITE_P(Pools, DictatedBesideAGroup, testing::Values(11, 12));

// A model with states: each belongs to all computed tokens and to no fewer.
class DictatedWithStates : public Dictated {
 protected:
  static SchedulerOptions options() {
    SchedulerOptions options = speculating(1200, 4);
    options.num_states = 3;
    options.bytes_per_state = 1000;
    return options;
  }
  DictatedWithStates() : Dictated(options()) {}

  std::int32_t num_found(Tokens prompt) {
    add(std::move(prompt));
    return scheduler_.schedule().admissions.front().num_cached_tokens;
  }
};

// 20 tokens, of which the last two stand earlier, before 3, 4 and 5.
const Tokens kLongPrompt = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 1, 2};

TEST_F(DictatedWithStates, ADraftMovesNoState) {
  const SequenceId id = add(kLongPrompt);
  step(id, {3});
  const SchedulerOutput step = scheduler_.schedule();
  ASSERT_EQ(step.num_draft_tokens, 2);
  EXPECT_NE(step.sequences.front().state, block::kNoBlock);
  EXPECT_TRUE(step.state_moves.empty());
  commit(step, id, {4, 9});
  EXPECT_EQ(scheduler_.figures().used_states, 1);
}

TEST_F(DictatedWithStates, WhatIsGoneOnFromEndsWithTheLastTokenThatCounts) {
  const SequenceId id = add(kLongPrompt);
  step(id, {3});
  step(id, {4, 9});  // 5 was guessed, 9 drawn
  scheduler_.finish(id);
  Tokens next = kLongPrompt;
  next.insert(next.end(), {3, 4, 9, 50, 51});
  EXPECT_EQ(num_found(next), 22) << "the prompt, 3 and 4: 9 was never computed";
}

TEST_F(DictatedWithStates, OfATurnThatEndsWithinItsDraftOnlyWhatCountsIsFound) {
  const SequenceId id = add(kLongPrompt);
  step(id, {3});
  step(id, {4});  // the end, though more was guessed right
  scheduler_.finish(id);
  Tokens next = kLongPrompt;
  next.insert(next.end(), {3, 4, 5, 6});
  EXPECT_EQ(num_found(next), 21);
}

TEST_F(DictatedWithStates, ALongTextHasACheckpointWhereADraftEnds) {
  Tokens prompt(kTokensBetweenCheckpoints - 2, 0);
  for (std::size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<TokenId>(1000 + i);
  std::copy(kPrompt.begin(), kPrompt.end(), prompt.end() - std::ssize(kPrompt));
  const SequenceId id = add(std::move(prompt), 1000);
  for (int chunk = 0; chunk < 3; ++chunk) step(id, {});
  step(id, {3});
  EXPECT_EQ(scheduler_.totals().states.num_taken, 0);
  ASSERT_EQ(step(id, {4, 5, 6}).num_draft_tokens, 2);
  EXPECT_EQ(scheduler_.totals().states.num_taken, 1) << "one token more than without the draft";
}

// Guesses of the model itself.
class DictatedByTheModel : public Dictated {
 protected:
  static SchedulerOptions options() {
    SchedulerOptions options = speculating(32, 4);
    options.speculative = Speculation::kMtp;
    options.num_speculative_tokens = 3;
    return options;
  }
  DictatedByTheModel() : Dictated(options()) {}

  // As commit(), of a step after which the model can guess these.
  void commit_guessable(const SchedulerOutput& step, SequenceId sequence_id, const Tokens& tokens,
                        const std::vector<SequenceId>& guessable) {
    std::vector<CommittedToken> committed;
    for (const TokenId token : tokens) committed.push_back({sequence_id, token});
    scheduler_.commit(step, committed, guessable);
    EXPECT_EQ(scheduler_.broken_invariant(), std::nullopt);
  }
};

TEST_F(DictatedByTheModel, ItsGuessesAreWrittenIntoTheStep) {
  const SequenceId id = add({7, 8, 9});
  const SchedulerOutput first = scheduler_.schedule();
  EXPECT_TRUE(first.sequences.front().to_guess.empty());
  commit_guessable(first, id, {3}, {id});
  const SchedulerOutput step = scheduler_.schedule();
  const ScheduledSequence& row = step.sequences.front();
  ASSERT_EQ(row.to_guess.size(), 2u) << "as many as a new sequence may";
  EXPECT_EQ(row.num_draft_tokens, 2);
  row.to_guess[0] = 41;
  row.to_guess[1] = 42;
  EXPECT_EQ(Tokens(row.token_ids.begin(), row.token_ids.end()), (Tokens{3, 41, 42}));
  EXPECT_EQ(Tokens(row.samples[2].output_token_ids.begin(), row.samples[2].output_token_ids.end()),
            (Tokens{3, 41, 42}))
      << "what the last row draws follows them";
  commit_guessable(step, id, {41, 42, 43}, {id});
  EXPECT_EQ(sequence().num_tokens, 7);
}

TEST_F(DictatedByTheModel, NothingIsGuessedThatItHasNotJustSeen) {
  const SequenceId id = add(kPrompt);
  commit_guessable(scheduler_.schedule(), id, {3}, {});
  commit_guessable(scheduler_.schedule(), id, {4}, {id});
  const SchedulerOutput step = scheduler_.schedule();
  EXPECT_GT(step.num_draft_tokens, 0);
  commit_guessable(step, id, {0, 0}, {SequenceId{77}});
  EXPECT_EQ(scheduler_.schedule().num_draft_tokens, 0) << "what it could guess was of a step before";
}

TEST_F(DictatedByTheModel, NoMoreIsGuessedThanWasAskedFor) {
  const SequenceId id = add({7, 8, 9});
  std::int32_t most = 0;
  commit_guessable(scheduler_.schedule(), id, {3}, {id});
  for (int i = 0; i < 10; ++i) {
    const SchedulerOutput step = scheduler_.schedule();
    most = std::max(most, step.num_draft_tokens);
    commit_guessable(step, id, Tokens(static_cast<std::size_t>(step.num_draft_tokens + 1), 0), {id});
  }
  EXPECT_EQ(most, 3) << "of seven that would be cheap when all come true";
}

TEST(Speculation, GivesTheSameTokensInFewerSteps) {
  const SimulatedRequest request = repeating(1, 120);
  std::map<Speculation, int> num_steps;
  for (const Speculation speculative : {Speculation::kOff, Speculation::kNgram}) {
    SchedulerOptions options = speculating(64);
    options.speculative = speculative;
    Harness harness(options);
    harness.submit(request);
    while (harness.scheduler.has_work()) harness.step(), ++num_steps[speculative];
    EXPECT_EQ(harness.outputs.size(), 1u);
    EXPECT_EQ(harness.num_draft_tokens > 0, speculative == Speculation::kNgram);
  }
  EXPECT_LT(num_steps[Speculation::kNgram], 0.75 * num_steps[Speculation::kOff]);
}

TEST(Speculation, SamplesDraftEachForItself) {
  Harness harness(speculating(64));
  harness.submit(repeating(1, 40, /*n=*/2));
  const SchedulerOutput step = run_until_drafting(harness);
  EXPECT_EQ(step.sequences.size(), 2u);
  harness.run_until_idle();
  EXPECT_EQ(harness.outputs.size(), 2u);
  EXPECT_GT(harness.num_accepted_tokens, 10);
}

TEST(Speculation, BeamsDoNotDraft) {
  Harness harness(speculating(64));
  SimulatedRequest beams = beams_of(1, 20, 30, 1);
  beams.prompt = Tokens(20, 5);
  harness.submit(beams);
  harness.run_until_idle();
  EXPECT_EQ(harness.num_draft_tokens, 0);
}

TEST(Speculation, AStepWithDraftsHasFewRows) {
  Harness harness(speculating(512));
  for (std::uint64_t i = 1; i <= 10; ++i) harness.submit(repeating(i, static_cast<std::int32_t>(20 * i)));
  std::int32_t most_drafting = 0;
  while (harness.scheduler.has_work() && !HasFailure()) {
    const SchedulerOutput step = harness.step();
    const std::int32_t num_rows = step.num_prefill_tokens + step.num_decode_tokens + step.num_draft_tokens;
    if (step.num_draft_tokens == 0) continue;
    EXPECT_LE(num_rows, kMostRowsWithDrafts);
    most_drafting = std::max(most_drafting, step.num_decode_tokens);
  }
  EXPECT_GE(most_drafting, 2) << "a small batch drafts";
  EXPECT_LT(most_drafting, kMostRowsWithDrafts);
}

TEST(Speculation, DraftsStayWithinTheStepsBudget) {
  SchedulerOptions options = speculating(64);
  options.max_num_batched_tokens = 2;
  Harness harness(options);
  harness.submit(repeating(1, 60));
  harness.run_until_idle();
  EXPECT_GT(harness.num_draft_tokens, 0);
}

TEST(Speculation, ContiguousReservationsHoldDraftsToo) {
  SchedulerOptions options = speculating(64);
  options.memory_manager = MemoryManager::kOrcaOracle;
  Harness harness(options);
  harness.submit(repeating(1, 60));
  harness.run_until_idle();
  EXPECT_GT(harness.num_accepted_tokens, 10);
  EXPECT_EQ(harness.outputs.size(), 1u);
}

TEST(Speculation, ATextThatNeverRepeatsDraftsNothing) {
  Harness harness(speculating(64));
  harness.submit(request_of(1, 100, 100));
  harness.run_until_idle();
  EXPECT_EQ(harness.num_draft_tokens, 0) << "nothing without evidence";
}

}  // namespace
}  // namespace octavo::scheduler
