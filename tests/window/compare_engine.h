// An engine for tests of comparisons: it answers nothing by itself. Tests say which events come with which
// poll, what tokens are spelled like, and what a snapshot shows.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "tests/support/spelling_tokenizer.h"

namespace octavo::testing {

class CompareEngine final : public Engine {
 public:
  CompareEngine();

  std::vector<GenerationRequest> requests;  // request n has id n + 1
  std::vector<RequestId> cancelled;
  std::vector<std::pair<RequestId, std::int32_t>> cancelled_outputs;
  std::vector<EngineEvent> events;             // come with the next poll
  std::deque<std::function<void()>> script;    // the first of them runs with each poll
  std::shared_ptr<const KvSnapshot> snapshot;  // null: none
  std::shared_ptr<metrics::StepRecorder> recorder =
      std::make_shared<metrics::StepRecorder>(metrics::PoolShape{});
  std::function<void(RequestId, const GenerationRequest&)> on_submit;
  std::function<void(RequestId)> on_cancel;
  // What its model's template reads. Before it is attached.
  void set_switches(std::vector<TemplateSwitch> switches) {
    description_.model.template_switches = std::move(switches);
  }

  SpellingTokenizer& spelling() { return tokenizer_; }
  // One event with these tokens; text as the tokens spell it.
  TokensGenerated say(RequestId request, std::int32_t output, const std::vector<std::string>& tokens,
                      float logprob = -0.5f);
  // The same with alternatives: the token itself first, then `others`.
  TokensGenerated say_one_of(RequestId request, std::int32_t output, const std::string& token,
                             const std::vector<std::string>& others);

  const EngineDescription& description() const override { return description_; }
  const tokenizer::Tokenizer& tokenizer() const override { return tokenizer_; }
  RequestId submit(GenerationRequest request) override;
  std::vector<RequestId> submit_all(std::vector<GenerationRequest> all) override;
  void cancel(RequestId request_id) override;
  void cancel_output(RequestId request_id, std::int32_t output_index) override {
    cancelled_outputs.emplace_back(request_id, output_index);
  }
  void reset_prefix_cache() override {}
  void stop() override {}
  std::vector<EngineEvent> poll(std::chrono::microseconds timeout) override;
  void set_wake_up(std::function<void()> wake_up) override { wake_up_ = std::move(wake_up); }
  std::shared_ptr<const KvSnapshot> kv_snapshot(SnapshotScope) override { return snapshot; }
  void watch_block(std::optional<BlockId>) override {}
  KvTotals kv_totals() const override { return {}; }
  std::shared_ptr<const metrics::StepRecorder> history() const override { return recorder; }

 private:
  SpellingTokenizer tokenizer_;
  EngineDescription description_;
  std::function<void()> wake_up_;
};

// A snapshot of `num_samples` samples of one prompt: full prompt blocks shared, the partly filled one copied
// for all but the first, and blocks of their own behind. Its copies stand in `copies`.
struct SampleScene {
  std::shared_ptr<const KvSnapshot> snapshot;
  std::vector<BlockEvent> copies;
};
SampleScene sample_scene(RequestId request, std::int32_t num_samples, std::int32_t num_prompt_tokens,
                         std::int32_t num_generated);

}  // namespace octavo::testing
