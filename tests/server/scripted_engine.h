// An engine for tests of the server: it answers nothing by itself. Tests say what comes, from any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "tests/support/spelling_tokenizer.h"

namespace octavo::testing {

class ScriptedEngine final : public Engine {
 public:
  ScriptedEngine() {
    description_.model.name = "Tiny";
    description_.model.vocabulary_size = 1 << 20;
    description_.model.has_chat_template = true;
    description_.block_size = 16;
    description_.num_blocks = 64;
    description_.max_model_len = 1024;
  }

  // Called for each request: may give events at once.
  std::function<void(RequestId, const GenerationRequest&)> on_submit = {};

  SpellingTokenizer& spelling() { return tokenizer_; }

  void give(EngineEvent event) {
    {
      const std::lock_guard lock(mutex_);
      events_.push_back(std::move(event));
    }
    changed_.notify_all();
    std::function<void()> wake_up;
    {
      const std::lock_guard lock(mutex_);
      wake_up = wake_up_;
    }
    if (wake_up) wake_up();
  }
  void accept(RequestId id, std::vector<TokenId> prompt) { give(RequestAccepted{id, std::move(prompt), 1}); }
  void admit(RequestId id, std::int32_t num_cached = 0) { give(RequestAdmitted{id, num_cached, 0}); }
  void say(RequestId id, const std::string& text, std::int32_t output = 0) {
    give(TokensGenerated{.request_id = id,
                         .output_index = output,
                         .token_ids = {tokenizer_.token(text)},
                         .logprobs = {-0.5f},
                         .top_logprobs = {},
                         .text = text});
  }
  void end(RequestId id, FinishReason reason = FinishReason::kStop, std::int32_t num_outputs = 1) {
    for (std::int32_t i = 0; i < num_outputs; ++i)
      give(OutputFinished{.request_id = id, .output_index = i, .finish_reason = reason});
    give(RequestFinished{id, {}, {}});
  }
  void fail(RequestId id, ErrorCode code, const std::string& message) {
    give(RequestFailed{id, {.code = code, .message = message}, {}});
  }

  std::vector<GenerationRequest> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  std::vector<std::pair<RequestId, std::int32_t>> cancelled_outputs() const {
    const std::lock_guard lock(mutex_);
    return cancelled_outputs_;
  }
  std::vector<RequestId> cancelled() const {
    const std::lock_guard lock(mutex_);
    return cancelled_;
  }

  const EngineDescription& description() const override { return description_; }
  const tokenizer::Tokenizer& tokenizer() const override { return tokenizer_; }
  RequestId submit(GenerationRequest request) override {
    RequestId id;
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back(request);
      id = RequestId{requests_.size()};
    }
    if (on_submit) on_submit(id, request);
    return id;
  }
  std::vector<RequestId> submit_all(std::vector<GenerationRequest> all) override {
    std::vector<RequestId> ids;
    for (GenerationRequest& request : all) ids.push_back(submit(std::move(request)));
    return ids;
  }
  // What is cancelled ends at once.
  void cancel(RequestId request_id) override {
    {
      const std::lock_guard lock(mutex_);
      cancelled_.push_back(request_id);
    }
    end(request_id, FinishReason::kAbort);
  }
  void cancel_output(RequestId request_id, std::int32_t output_index) override {
    const std::lock_guard lock(mutex_);
    cancelled_outputs_.emplace_back(request_id, output_index);
  }
  void reset_prefix_cache() override { ++num_resets; }
  void stop() override {}
  std::vector<EngineEvent> poll(std::chrono::microseconds timeout) override {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, timeout, [this] { return !events_.empty(); });
    return std::exchange(events_, {});
  }
  void set_wake_up(std::function<void()> wake_up) override {
    const std::lock_guard lock(mutex_);
    wake_up_ = std::move(wake_up);
  }
  std::shared_ptr<const KvSnapshot> kv_snapshot(SnapshotScope) override { return nullptr; }
  void watch_block(std::optional<BlockId>) override {}
  KvTotals kv_totals() const override { return {}; }
  std::shared_ptr<const metrics::StepRecorder> history() const override { return nullptr; }

  std::atomic<int> num_resets = 0;

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<EngineEvent> events_;          // guarded by mutex_
  std::vector<GenerationRequest> requests_;  // guarded by mutex_; request n has id n + 1
  std::vector<RequestId> cancelled_;         // guarded by mutex_
  std::vector<std::pair<RequestId, std::int32_t>> cancelled_outputs_;  // guarded by mutex_
  std::function<void()> wake_up_;                                      // guarded by mutex_
  EngineDescription description_;
  SpellingTokenizer tokenizer_;
};

}  // namespace octavo::testing
