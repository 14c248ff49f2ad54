// Sixteen chats at once on the real model and a pool too small for them, with random cancels, for
// OCTAVO_SOAK_SECONDS. Meant for builds with sanitizers: tests/long/run.

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "tests/engine/default_model.h"
#include "tests/simulation/random.h"

namespace octavo {
namespace {

using simulation::Random;

constexpr std::size_t kNumChats = 16;

std::chrono::seconds soak_time() {
  const char* seconds = std::getenv("OCTAVO_SOAK_SECONDS");
  return std::chrono::seconds(seconds ? std::atoi(seconds) : 300);
}

std::uint64_t soak_seed() {
  const char* seed = std::getenv("OCTAVO_SOAK_SEED");
  return seed ? std::strtoull(seed, nullptr, 10) : 1;
}

struct Chat {
  std::vector<ChatMessage> messages;
  RequestId request_id;
  std::string text;
  std::vector<TokenId> token_ids;
  bool running = false;
};

class Soak {
 public:
  explicit Soak(std::uint64_t seed)
      : random_(seed),
        engine_(
            open_default_model({.num_kv_blocks = 160, .max_model_len = 512, .max_num_batched_tokens = 64})),
        chats_(kNumChats) {}

  void run(std::chrono::seconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end) {
      for (Chat& chat : chats_) {
        if (!chat.running) ask(chat);
      }
      read();
      if (random_.chance(0.05)) cancel_one();
      if (random_.chance(0.002)) engine_->reset_prefix_cache();
      engine_->kv_snapshot(SnapshotScope::kPool);
    }
    for (Chat& chat : chats_) {
      if (chat.running) engine_->cancel(chat.request_id);
    }
    while (num_running() > 0) read();
  }

  // The newest snapshot of an engine at rest.
  std::shared_ptr<const KvSnapshot> last_state() {
    const std::int64_t last_step = engine_->trace_since(0, 0).steps.back().step;
    std::shared_ptr<const KvSnapshot> snapshot;
    for (int tries = 0; tries < 1000; ++tries) {
      snapshot = engine_->kv_snapshot(SnapshotScope::kPool);
      if (snapshot && snapshot->step >= last_step && snapshot->sequences.empty()) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return snapshot;
  }

  std::int64_t num_answers() const { return num_answers_; }
  std::int64_t num_cancelled() const { return num_cancelled_; }
  const Engine& engine() const { return *engine_; }

 private:
  // The next turn, or a new chat when the old one is long enough.
  void ask(Chat& chat) {
    static const std::vector<std::string> kQuestions = {"Tell me a story about a fox.",
                                                        "Why is the sky blue?",
                                                        "List five rivers.",
                                                        "Write a poem.",
                                                        "Explain recursion.",
                                                        "And then?",
                                                        "Please go on."};
    if (chat.messages.size() >= 6) chat.messages.clear();
    if (chat.messages.empty() && random_.chance(0.5)) {
      chat.messages.push_back(
          {Role::kSystem, "You are a patient teacher who answers in short, plain sentences.", {}});
    }
    const auto last = static_cast<std::int32_t>(kQuestions.size()) - 1;
    chat.messages.push_back(
        {Role::kUser, kQuestions[static_cast<std::size_t>(random_.between(0, last))], {}});
    chat.text.clear();
    chat.token_ids.clear();
    SamplingParams sampling{
        .n = 1, .temperature = random_.chance(0.5) ? 0.0 : 0.8, .max_tokens = random_.between(1, 48)};
    if (random_.chance(0.2)) sampling.stop = {".\n", "the end"};
    if (random_.chance(0.1)) sampling.n = 3;
    chat.request_id = engine_->submit({ChatPrompt{chat.messages}, sampling, {}});
    chat.running = true;
    if (random_.chance(0.05)) engine_->cancel(chat.request_id);
  }

  void read() {
    for (const EngineEvent& event : engine_->poll(std::chrono::milliseconds(20))) {
      const RequestId request_id = request_id_of(event);
      ASSERT_FALSE(ended_.contains(request_id)) << "an event after the end of request " << request_id.value;
      for (Chat& chat : chats_) {
        if (chat.running && chat.request_id == request_id) hear(chat, event);
      }
    }
  }

  void hear(Chat& chat, const EngineEvent& event) {
    if (const auto* tokens = std::get_if<TokensGenerated>(&event); tokens && tokens->output_index == 0) {
      chat.text += tokens->text;
      chat.token_ids.insert(chat.token_ids.end(), tokens->token_ids.begin(), tokens->token_ids.end());
    }
    if (const auto* failed = std::get_if<RequestFailed>(&event)) {
      ended_.insert(chat.request_id);
      chat.running = false;
      chat.messages.clear();
      ASSERT_EQ(failed->error.code, ErrorCode::kTooLong) << failed->error.message;
    }
    if (std::holds_alternative<RequestFinished>(event)) {
      ended_.insert(chat.request_id);
      chat.running = false;
      ++num_answers_;
      while (!chat.token_ids.empty() && engine_->tokenizer().is_end_of_sequence(chat.token_ids.back()))
        chat.token_ids.pop_back();
      chat.messages.push_back({Role::kAssistant, chat.text, chat.token_ids});
    }
  }

  void cancel_one() {
    const Chat& chat =
        chats_[static_cast<std::size_t>(random_.between(0, static_cast<std::int32_t>(kNumChats) - 1))];
    engine_->cancel(chat.request_id);
    ++num_cancelled_;
  }

  std::size_t num_running() const {
    std::size_t count = 0;
    for (const Chat& chat : chats_) count += chat.running ? 1 : 0;
    return count;
  }

  Random random_;
  std::unique_ptr<Engine> engine_;
  std::vector<Chat> chats_;
  std::set<RequestId> ended_;
  std::int64_t num_answers_ = 0, num_cancelled_ = 0;
};

TEST(Soak, SixteenChatsWithRandomCancelsLeaveThePoolWhole) {
  OCTAVO_NEEDS_DEFAULT_MODEL();
  SCOPED_TRACE("OCTAVO_SOAK_SEED=" + std::to_string(soak_seed()));
  Soak soak(soak_seed());
  soak.run(soak_time());
  const auto state = soak.last_state();
  ASSERT_TRUE(state);
  EXPECT_TRUE(state->sequences.empty());
  EXPECT_EQ(state->figures.used_blocks, 0);
  EXPECT_EQ(state->figures.cached_blocks + state->figures.free_blocks,
            soak.engine().description().num_blocks);
  for (const BlockSnapshot& block : state->blocks) EXPECT_EQ(block.ref_count, 0);
  EXPECT_GT(soak.num_answers(), 0);
  const KvTotals totals = soak.engine().kv_totals();
  std::printf("%lld answers, %lld cancels, %lld preemptions, %lld hit tokens\n",
              static_cast<long long>(soak.num_answers()), static_cast<long long>(soak.num_cancelled()),
              static_cast<long long>(totals.preempted_recompute),
              static_cast<long long>(totals.prefix_hit_tokens));
}

}  // namespace
}  // namespace octavo
