// Models with recurrent layers: where chunks end for a checkpoint, and what requests resume from.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/scheduler/harness.h"
#include "tests/scheduler/requests.h"

namespace octavo::scheduler {
namespace {

SchedulerOptions with_states(std::int32_t num_states, std::int32_t max_num_batched_tokens = 512) {
  SchedulerOptions options = options_with(128, max_num_batched_tokens);
  options.num_states = num_states;
  return options;
}

SimulatedRequest continued(SimulatedRequest request, std::uint64_t content, std::int32_t num_more) {
  const Tokens more = random_like_tokens(content, num_more);
  request.prompt.insert(request.prompt.end(), more.begin(), more.end());
  return request;
}

// The positions at which the chunks of the request's prompt ended.
std::vector<std::int32_t> chunk_ends(Harness& harness, RequestId request_id, std::int32_t num_prompt_tokens) {
  std::vector<std::int32_t> ends;
  while (ends.empty() || ends.back() < num_prompt_tokens) {
    const SchedulerOutput step = harness.step();
    const auto row = std::ranges::find(step.sequences, request_id, &ScheduledSequence::request_id);
    if (row == step.sequences.end()) break;
    ends.push_back(row->start_position + static_cast<std::int32_t>(row->token_ids.size()));
  }
  return ends;
}

TEST(Checkpoint, ChunksEndBehindTheSystemPromptAndWhereTheNextTurnParts) {
  Harness harness(with_states(4));
  SimulatedRequest request = request_of(1, 150);
  request.num_system_tokens = 50;
  request.num_next_turn_tokens = 140;
  const RequestId request_id = harness.submit(request);
  EXPECT_EQ(chunk_ends(harness, request_id, 150), (std::vector<std::int32_t>{48, 128, 150}))
      << "behind whole blocks of 16";
}

TEST(Checkpoint, ADenseModelStopsNowhere) {
  Harness harness(options_with(128));
  SimulatedRequest request = request_of(1, 150);
  request.num_system_tokens = 50;
  request.num_next_turn_tokens = 140;
  const RequestId request_id = harness.submit(request);
  EXPECT_EQ(chunk_ends(harness, request_id, 150), (std::vector<std::int32_t>{150}));
}

TEST(Checkpoint, AnotherChatResumesBehindTheSystemPrompt) {
  Harness harness(with_states(4));
  SimulatedRequest first = continued(request_of(1, 100), 2, 30),
                   second = continued(request_of(1, 100), 3, 30);
  first.num_system_tokens = second.num_system_tokens = 100;
  harness.submit(first);
  harness.run_until_idle();
  const RequestId request_id = harness.submit(second);
  harness.run_until_idle();
  EXPECT_EQ(harness.account_of(request_id), (PromptAccount{.num_computed = 34, .num_hit_cached = 96}));
}

TEST(Checkpoint, TwoChatsThatStartTogetherComputeTheirSystemPromptOnce) {
  Harness harness(with_states(4, /*max_num_batched_tokens=*/32));
  SimulatedRequest first = continued(request_of(1, 100), 2, 30),
                   second = continued(request_of(1, 100), 3, 30);
  first.num_system_tokens = second.num_system_tokens = 100;
  harness.submit(first);
  const RequestId request_id = harness.submit(second);
  harness.run_until_idle();
  EXPECT_EQ(harness.account_of(request_id).num_computed, 34);
}

TEST(Checkpoint, AFinishedTurnIsResumedExactly) {
  Harness harness(with_states(4));
  SimulatedRequest turn = request_of(1, 40);
  turn.max_tokens = 21;
  const RequestId first = harness.submit(turn);
  harness.run_until_idle();
  SimulatedRequest next = turn;
  const Tokens& answer = harness.outputs.at({first, 0});
  next.prompt.insert(next.prompt.end(), answer.begin(), answer.end());
  const RequestId second = harness.submit(continued(next, 5, 20));
  harness.run_until_idle();
  EXPECT_EQ(harness.account_of(second),
            (PromptAccount{.num_computed = 21, .num_hit_cached = 48, .num_copied_partial = 12}))
      << "the answer's last token has no KV yet";
}

TEST(Checkpoint, ALongPromptHasSomeOnItsWay) {
  SchedulerOptions options = with_states(8, /*max_num_batched_tokens=*/512);
  options.num_blocks = 1024;
  options.max_model_len = 8192;
  Harness harness(options);
  harness.submit(request_of(1, 6000));
  harness.run_until_idle();
  const auto states = harness.scheduler.snapshot().states;
  const auto is_on_its_way = [](const StateSnapshot& state) {
    return state.is_checkpoint && state.reason == CheckpointReason::kLong;
  };
  EXPECT_EQ(std::ranges::count_if(states, is_on_its_way), 2);
  const RequestId edited = harness.submit(continued(request_of(1, 5000), 7, 100));
  harness.run_until_idle();
  EXPECT_EQ(harness.account_of(edited).num_hit_cached, 4096);
}

TEST(Checkpoint, NoMoreSequencesRunThanThereAreStates) {
  Harness harness(with_states(2));
  for (std::uint64_t i = 1; i <= 5; ++i) {
    SimulatedRequest request = request_of(i, 20);
    request.max_tokens = 10;
    harness.submit(request);
  }
  while (harness.scheduler.has_work()) {
    EXPECT_LE(harness.step().sequences.size(), 2u);
  }
  NewRequest large{.request_id = RequestId{99}, .prompt_token_ids = {1, 2, 3}, .sampling = {}};
  large.sampling.n = 3;
  const auto refused = harness.scheduler.add(std::move(large));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("1 to 2 (--num-states)"), std::string::npos)
      << refused.error().message;
}

TEST(Checkpoint, SamplesShareTheStateOfTheirPromptAndHaveTheirOwnAfterwards) {
  Harness harness(with_states(4));
  SimulatedRequest request = request_of(1, 40);
  request.n = 3;
  request.max_tokens = 12;
  const RequestId request_id = harness.submit(request);
  harness.step();
  EXPECT_EQ(harness.scheduler.figures().used_states, 1);
  harness.step();
  EXPECT_EQ(harness.scheduler.figures().used_states, 3);
  EXPECT_EQ(harness.scheduler.totals().states.num_copied, 2);
  harness.run_until_idle();
  for (std::uint32_t output = 0; output < 3; ++output) {
    EXPECT_EQ(harness.outputs.at({request_id, output}),
              Harness::expected_output(request, Harness::seed_of(request_id), output, 12));
  }
}

TEST(Checkpoint, APreemptedGroupRebuildsItsSharingFromStates) {
  SchedulerOptions options = with_states(8);
  options.num_blocks = 16;
  options.preemption_mode = PreemptionPolicy::kRecompute;
  options.admission_reserve = AdmissionReserve::kOnePercent;
  Harness harness(options);
  SimulatedRequest old = request_of(1, 64), young = request_of(2, 64);
  old.max_tokens = 120;
  young.beam_width = 3;
  young.max_tokens = 60;
  harness.submit(old);
  const RequestId request_id = harness.submit(young);
  harness.run_until_preempted(request_id);
  harness.run_until_idle();
  EXPECT_FALSE(harness.preemptions.empty());
  EXPECT_EQ(harness.num_out_of_memory, 0);
}

}  // namespace
}  // namespace octavo::scheduler
