// An engine without a model: answers are scripted, one token a step, and a small pool of blocks is kept by
// the same rules, so that everything the window shows has something to show. Advances only when it is polled,
// on the caller's thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/clock.h"
#include "engine/engine.h"

namespace octavo::testing {

// Four bytes a token; the id is a hash of them and of the vocabulary's number. Decodes what it has encoded in
// this process.
class FakeTokenizer final : public tokenizer::Tokenizer {
 public:
  static constexpr TokenId kEnd = 2;
  static constexpr TokenId kGenerationPrompt = 3;  // ends a prompt, and is no text

  explicit FakeTokenizer(std::uint64_t vocabulary = 7) : vocabulary_(vocabulary) {}
  std::int32_t vocabulary_size() const override { return 1 << 20; }
  std::optional<TokenId> bos_token_id() const override { return 1; }
  bool is_end_of_sequence(TokenId id) const override { return id == kEnd; }
  bool has_chat_template() const override { return true; }
  Result<std::vector<TokenId>> encode(std::string_view text, bool parse_special, bool add_bos,
                                      const tokenizer::EncodeLimits& limits = {}) const override;
  Result<std::vector<TokenId>> encode_spans(std::span<const tokenizer::PromptSpan> spans) const override;
  Result<std::vector<tokenizer::PromptSpan>> apply_chat_template(std::span<const ChatMessage> messages,
                                                                 const TemplateInputs& inputs) const override;
  Result<std::vector<TokenId>> encode_chat(std::span<const ChatMessage> messages,
                                           const TemplateInputs& inputs,
                                           const tokenizer::EncodeLimits& limits = {}) const override;
  std::string_view token_bytes(TokenId id) const override;
  bool is_special(TokenId id) const override { return id == kEnd; }
  std::string decode(std::span<const TokenId> ids, bool skip_special) const override;

 private:
  std::uint64_t vocabulary_;
};

class FakeEngine final : public Engine {
 public:
  struct Options {
    std::int32_t num_blocks = 1024;
    std::int32_t max_running = 64;
    std::int32_t max_model_len = 8192;
    std::string name = "SmolLM2 135M Instruct";
    std::string path = "/models/SmolLM2-135M-Instruct.Q4_1.gguf";
    std::uint64_t first_request = 1;  // ids are never used twice in a process
    std::uint64_t vocabulary = 7;
    std::int64_t weight_bytes = 0;
    std::string device = "cpu";
    SamplingAdvice advice = {};
    std::vector<TemplateSwitch> switches = {};
  };

  FakeEngine() : FakeEngine(Options{}) {}
  explicit FakeEngine(Options options);

  // Answers for the next requests, in order; without one an answer repeats the question.
  std::deque<std::string> answers;
  // Tokens of every running answer come only while this is above zero; each step takes one. Below zero: no
  // limit.
  std::int64_t steps_allowed = -1;
  // Times are taken from here.
  const Clock* clock = &steady_clock_;

  const std::vector<GenerationRequest>& requests() const { return requests_; }
  std::size_t num_active() const { return active_.size(); }
  // Whatever runs fails, and whatever is asked from now on.
  void lose_device() { device_lost_ = true; }

  const EngineDescription& description() const override { return description_; }
  const tokenizer::Tokenizer& tokenizer() const override { return tokenizer_; }
  RequestId submit(GenerationRequest request) override;
  std::vector<RequestId> submit_all(std::vector<GenerationRequest> requests) override;
  void cancel(RequestId request_id) override;
  void cancel_output(RequestId request_id, std::int32_t) override { cancel(request_id); }  // it has one
  void reset_prefix_cache() override {}
  void stop() override {}
  std::vector<EngineEvent> poll(std::chrono::microseconds timeout) override;
  void set_wake_up(std::function<void()> wake_up) override { wake_up_ = std::move(wake_up); }
  std::shared_ptr<const KvSnapshot> kv_snapshot(SnapshotScope) override;
  void watch_block(std::optional<BlockId>) override {}
  KvTotals kv_totals() const override;
  std::shared_ptr<const metrics::StepRecorder> history() const override { return recorder_; }

 private:
  struct Active {
    RequestId id;
    SequenceId sequence_id;
    bool running = false;
    bool cancelled = false;
    std::int32_t max_tokens = 0;
    std::vector<TokenId> tokens;  // prompt and generated
    std::int32_t num_prompt = 0;
    std::int32_t num_generated = 0;
    std::string rest;  // of the answer
    std::vector<BlockId> table;
    std::int64_t submitted_us = 0, started_us = 0, first_token_us = 0;
  };
  struct Block {
    std::int32_t ref_count = 0;
    std::int32_t filled = 0;
    std::int32_t parent = -1;
    std::uint64_t content = 0;  // hash of the tokens up to its end; 0: not findable
  };

  void step();
  void fail_everything();
  void admit(Active& active);
  void generate(Active& active);
  void release(const Active& active);
  void finish(Active& active, FinishReason reason);
  void extend_table(Active& active);
  BlockId take_block();
  void record(BlockEventKind kind, std::uint64_t sequence, std::int32_t block, std::int32_t aux);
  void record_step(std::int32_t num_prefill, std::int32_t num_decode);
  KvFigures figures() const;

  SteadyClock steady_clock_;
  FakeTokenizer tokenizer_;
  Options options_;
  EngineDescription description_;
  std::function<void()> wake_up_;
  std::uint64_t next_request_, next_sequence_;
  std::vector<GenerationRequest> requests_;
  std::vector<Active> active_;  // oldest first
  std::vector<EngineEvent> events_;
  std::vector<Block> blocks_;
  std::map<std::uint64_t, std::int32_t> findable_;
  std::shared_ptr<metrics::StepRecorder> recorder_;
  std::shared_ptr<const KvSnapshot> published_;
  std::int64_t num_steps_ = 0;
  std::int32_t next_victim_ = 0;
  bool device_lost_ = false;
};

}  // namespace octavo::testing
