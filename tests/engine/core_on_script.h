// An engine core on a toy tokenizer and a scripted runner; the clock moves by a millisecond a step.
#pragma once

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "engine/core/engine_core.h"
#include "engine/core/request_intake.h"
#include "engine/output_collector.h"
#include "tests/engine/scripted_runner.h"
#include "tests/engine/toy_tokens.h"

namespace octavo {

class EngineCoreTest : public testing::Test {
 protected:
  explicit EngineCoreTest(scheduler::SchedulerOptions options = {.block_size = 4,
                                                                 .num_blocks = 64,
                                                                 .bytes_per_block = 1,
                                                                 .max_num_seqs = 8,
                                                                 .max_num_batched_tokens = 16,
                                                                 .max_model_len = 100})
      : core_(options, {.runner = &runner_, .clock = &clock_, .tokenizer = &tokenizer_}) {}

  RequestId submit(Prompt prompt, SamplingParams sampling = {}) {
    return submit(GenerationRequest{.prompt = std::move(prompt), .sampling = std::move(sampling)});
  }

  RequestId submit(GenerationRequest request) {
    const RequestId request_id{++num_submitted_};
    collector_.expect(request_id, request.embedding ? 0 : request.sampling.num_outputs());
    commands_.push_back(intake_.prepare({request_id, std::move(request), clock_.now_us()}));
    return request_id;
  }

  std::vector<EngineEvent> step() {
    clock_.advance_us(1000);
    std::vector<EngineEvent> events = core_.step(std::exchange(commands_, {}));
    for (const EngineEvent& event : events) collector_.add(event);
    return events;
  }

  std::vector<RequestOutput> run() {
    for (step(); core_.has_work(); step()) {
    }
    EXPECT_TRUE(collector_.done());
    return collector_.take();
  }

  void expect_pool_is_whole() {
    EXPECT_FALSE(core_.scheduler().broken_invariant());
    EXPECT_EQ(core_.snapshot().figures.used_blocks, 0);
    EXPECT_TRUE(core_.snapshot().sequences.empty());
  }

  const simulation::ToyTokenizer tokenizer_;
  ManualClock clock_;
  std::uint64_t num_seeds_drawn_ = 0, num_submitted_ = 0;
  ScriptedRunner::Script script_ = [](RequestId, std::size_t) { return kA; };
  ScriptedRunner runner_{[this](RequestId id, std::size_t position) { return script_(id, position); }};
  EngineCore core_;
  RequestIntake intake_{{.tokenizer = &tokenizer_,
                         .draw_seed = [this] { return ++num_seeds_drawn_ + 1000; },
                         .unix_time_s = [] { return std::int64_t{0}; }}};
  std::vector<EngineCommand> commands_;
  OutputCollector collector_;
};

}  // namespace octavo
