// What a step tells of the times of its swaps and of its end, on the emulated device: the device's own time,
// not that of the calls that started the work.
#include <gtest/gtest.h>

#include "tests/cuda/device_problem.h"
#include "tests/cuda/tiny_engines.h"
#include "tests/runner/direct_steps.h"

namespace octavo {
namespace {

// A microsecond passes whenever somebody looks.
class TickingClock final : public Clock {
 public:
  std::int64_t now_us() const override { return now_us_++; }

 private:
  mutable std::int64_t now_us_ = 0;
};

class CudaSwapTimes : public ::testing::Test {
 protected:
  void SetUp() override {
    emulation::settings().finds_races = false;
    EngineOptions options = small_options(kernels::TensorType::kQ4_1);
    options.swap_space = 1.0;
    runner::RunnerParts parts = runner::make_parts(options.model, options, runner::BackendChoice::kReference);
    parts.backend = kernels::cuda::create_cuda_backend({.activation = parts.plan.activation},
                                                       kernels::testing::reference_backend())
                        .value();
    parts.clock = std::make_unique<TickingClock>();
    block_bytes_ = parts.plan.kv_layout.block_bytes();
    runner_ = runner::ModelRunner::load(std::move(parts)).value();
    emulation::settings().copied_bytes_per_us = static_cast<double>(block_bytes_) / kUsPerBlock;
  }
  runner::RunnerOutput run(const scheduler::SchedulerOutput& step) {
    runner::RunnerOutput output;
    output.swap_out_us = output.swap_in_us = 99;  // of a step before
    EXPECT_TRUE(runner_->execute(step, output));
    return output;
  }

  static constexpr std::int64_t kUsPerBlock = 250;
  std::int64_t block_bytes_ = 0;
  std::unique_ptr<runner::ModelRunner> runner_;
};

scheduler::BlockSwap swap_of(std::int32_t block) { return {.device_block = {block}, .host_block = {block}}; }

TEST_F(CudaSwapTimes, AreTheDevicesOfMovesAlone) {
  scheduler::SchedulerOutput step;
  step.swap_outs = {swap_of(1), swap_of(2), swap_of(5)};
  runner::RunnerOutput output = run(step);
  EXPECT_EQ(output.swap_out_us, 3 * kUsPerBlock);
  EXPECT_EQ(output.swap_in_us, 0);
  step.swap_ins = {swap_of(4), swap_of(9)};
  output = run(step);
  EXPECT_EQ(output.swap_out_us, 3 * kUsPerBlock);
  EXPECT_EQ(output.swap_in_us, 2 * kUsPerBlock);
  output = run({});
  EXPECT_EQ(output.swap_out_us, 0);
  EXPECT_EQ(output.swap_in_us, 0);
}

// Its inputs are copied too, which is nobody's swap; and it ends when it draws.
TEST_F(CudaSwapTimes, AreNotThoseOfTheStepThatMovesThem) {
  runner::DirectSequence sequence{.sequence_id = {1}, .token_ids = std::vector<TokenId>(12, 7)};
  sequence.num_prompt_tokens = 12;
  for (std::int32_t i = 0; i < 4; ++i) sequence.block_table.push_back({i});
  scheduler::SchedulerOutput step;
  step.swap_ins = {swap_of(20)};
  step.sequences = {runner::scheduled(sequence, 8)};
  runner::RunnerOutput output = run(step);
  EXPECT_EQ(output.swap_in_us, kUsPerBlock);
  EXPECT_TRUE(output.tokens.empty());
  EXPECT_FALSE(output.has_ended) << "nobody has waited for the rows";
  sequence.num_computed_tokens = 8;
  step.swap_ins.clear();
  step.sequences = {runner::scheduled(sequence, 4)};
  output = run(step);
  EXPECT_EQ(output.tokens.size(), 1u);
  EXPECT_TRUE(output.has_ended);
  EXPECT_EQ(output.swap_in_us, 0);
}

}  // namespace
}  // namespace octavo
