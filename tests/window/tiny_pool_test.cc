// A tiny pool: what is lent and given back, and that two chats in it really are swapped, on the engine's
// core.

#include "app/window/models/tiny_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "app/window/chat/long_chats.h"
#include "app/window/controller.h"
#include "tests/window/core_engine.h"
#include "tests/window/plan_at_once.h"

namespace octavo::app {
namespace {

namespace act = ui::actions;
using testing::CoreEngine;

// Everything but `record`.
auto values_of(const EngineOptions& o) {
  return std::tuple(o.model, o.device, o.threads, o.dtype, o.activation_dtype, o.block_size, o.kv_cache_dtype,
                    o.num_kv_blocks, o.kv_cache_memory, o.gpu_memory_utilization, o.swap_space,
                    o.max_model_len, o.max_num_seqs, o.max_num_batched_tokens, o.target_step_ms,
                    o.enable_prefix_caching, o.preemption_mode, o.admit_after_preemption, o.admission_reserve,
                    o.memory_manager, o.batching_policy, o.speculative, o.deterministic, o.cuda_graphs,
                    o.tensor_parallel_size, o.prefill_first);
}

// Options that a person may have started with, each of which speaks against a tiny pool or swapping.
std::vector<EngineOptions> unusual_options() {
  std::vector<EngineOptions> all;
  all.push_back({.model = "m.gguf"});
  all.push_back({.model = "m.gguf", .block_size = 256, .num_kv_blocks = 9'000});
  all.push_back({.model = "m.gguf", .block_size = 7, .kv_cache_memory = 4'096, .max_model_len = 100'000});
  all.push_back({.model = "m.gguf", .gpu_memory_utilization = 0.9, .swap_space = 0.0});
  all.push_back({.model = "m.gguf",
                 .device = Device::kCpu,
                 .preemption_mode = PreemptionPolicy::kRecompute,
                 .memory_manager = MemoryManager::kOrcaMax,
                 .batching_policy = BatchingPolicy::kOneAtATime,
                 .record = "all.rec"});
  return all;
}

TEST(TinyPool, IsValidAndSwapsWhateverTheOptionsWere) {
  for (const EngineOptions& own : unusual_options()) {
    const EngineOptions tiny = with_tiny_pool(own, /*max_model_len=*/8'192);
    EXPECT_TRUE(validate(tiny));
    EXPECT_EQ(tiny.model, own.model);
    EXPECT_LE(tiny.block_size, own.block_size);
    EXPECT_EQ(tiny.preemption_mode, PreemptionPolicy::kSwap);
    EXPECT_EQ(tiny.memory_manager, MemoryManager::kPaged);
    EXPECT_FALSE(tiny.swap_space) << "as large as the pool";
    EXPECT_EQ(tiny.record, "");
    const std::int32_t num_tokens = *tiny.num_kv_blocks * tiny.block_size;
    EXPECT_LT(num_tokens, 700);
    EXPECT_GT(num_tokens, *tiny.max_model_len) << "one chat always fits";
    EXPECT_LT(num_tokens, 2 * *tiny.max_model_len) << "two whole ones do not";
    EXPECT_EQ(*with_tiny_pool(own, /*max_model_len=*/256).max_model_len, 256) << "the model's own limit";
  }
}

TEST(TinyPool, GivesTheOldOptionsBackExactly) {
  for (const EngineOptions& own : unusual_options()) {
    const ModelLoad before{.options = own};
    EXPECT_FALSE(own_pool_load(before)) << "nothing is lent";
    const auto lent = tiny_pool_load(before, 8'192);
    ASSERT_TRUE(lent);
    EXPECT_FALSE(tiny_pool_load(*lent, 512)) << "it has one already";
    const auto after = own_pool_load(*lent);
    ASSERT_TRUE(after);
    EXPECT_EQ(values_of(after->options), values_of(own));
    EXPECT_EQ(after->options.record, "") << "it would write over what was recorded";
    EXPECT_FALSE(after->own);
  }
}

class LongChatsInATinyPool : public ::testing::Test {
 protected:
  // With what the options give, but for the model.
  LongChatsInATinyPool() : controller_(clock_, default_settings()) {
    const EngineOptions options = with_tiny_pool({}, 8'192);
    engine_ = std::make_unique<CoreEngine>(CoreEngine::Options{.num_blocks = *options.num_kv_blocks,
                                                               .num_host_blocks = *options.num_kv_blocks,
                                                               .block_size = options.block_size,
                                                               .max_model_len = *options.max_model_len,
                                                               .preemption_mode = options.preemption_mode},
                                           clock_);
    controller_.attach_engine(*engine_, testing::plan_at_once(controller_, *engine_));
  }
  ~LongChatsInATinyPool() override { controller_.detach_engine(); }

  ManualClock clock_;
  std::unique_ptr<CoreEngine> engine_;
  Controller controller_;
};

TEST_F(LongChatsInATinyPool, OneIsSwappedOutAndComesBackAndBothEnd) {
  const auto& state = controller_.state();
  const SamplingParams settled = controller_.settings().sampling;
  controller_.apply(act::ShowWorkspace{ui::Workspace::kMemory});
  controller_.apply(act::StartTwoLongChats{});
  EXPECT_EQ(state.workspace, ui::Workspace::kMemory) << "there it is seen what becomes of them";
  std::set<ChatId> swapped;
  int num_steps = 0;
  for (; controller_.busy() && num_steps < 5'000; ++num_steps) {
    clock_.advance_us(3'000);
    engine_->step();
    controller_.poll_engine();
    for (const ui::ChatState& chat : state.chats) {
      if (chat.activity == ui::Activity::kSwapped) swapped.insert(chat.id);
    }
  }
  EXPECT_FALSE(controller_.busy()) << "after " << num_steps << " steps";
  EXPECT_EQ(swapped.size(), 1u) << "one makes room, the other goes on";
  EXPECT_GT(engine_->counts().swapped_out_blocks, 0);
  // What is still cached of it is reused and not copied back.
  EXPECT_GT(engine_->counts().swapped_in_blocks, 0);
  EXPECT_LE(engine_->counts().swapped_in_blocks, engine_->counts().swapped_out_blocks);
  ASSERT_GE(state.chats.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    const Chat& chat = *controller_.chat(state.chats[i].id);
    ASSERT_EQ(chat.active_path().size(), 2u);
    EXPECT_EQ(chat.find(chat.active_path().back())->finish_reason, FinishReason::kLength);
  }
  const auto& stories = state.memory.timeline->stories;
  const auto num_of = [&](ui::StoryKind kind) { return std::ranges::count(stories, kind, &ui::Story::kind); };
  EXPECT_EQ(num_of(ui::StoryKind::kSwappedOut), 1);
  EXPECT_EQ(num_of(ui::StoryKind::kEnded), 2) << "who is swapped out has not ended";
  const SamplingParams after = controller_.settings().sampling;
  EXPECT_EQ(after.max_tokens, settled.max_tokens) << "the chats' own, and not what new chats begin with";
  EXPECT_EQ(after.ignore_eos, settled.ignore_eos);
}

TEST_F(LongChatsInATinyPool, OneAloneIsNeverSwapped) {
  controller_.apply(act::StartTwoLongChats{});
  controller_.apply(act::StopAnswer{controller_.state().chats.front().id});
  for (int i = 0; controller_.busy() && i < 5'000; ++i) {
    clock_.advance_us(3'000);
    engine_->step();
    controller_.poll_engine();
  }
  EXPECT_EQ(engine_->counts().swapped_out_blocks, 0);
}

TEST(LongQuestions, ShareNoBeginning) {
  const auto& questions = long_questions();
  EXPECT_NE(questions[0].substr(0, 4), questions[1].substr(0, 4));
}

}  // namespace
}  // namespace octavo::app
