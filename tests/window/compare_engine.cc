#include "tests/window/compare_engine.h"

#include <algorithm>

namespace octavo::testing {
namespace {

constexpr std::int32_t kTokensPerBlock = 16;

}  // namespace

CompareEngine::CompareEngine() {
  description_.model.path = "/models/SmolLM2-135M-Instruct.Q4_1.gguf";
  description_.model.name = "SmolLM2 135M Instruct";
  description_.model.quantisation = "Q4_1";
  description_.block_size = kTokensPerBlock;
  description_.num_blocks = 1024;
  description_.bytes_per_block = 360 << 10;
  description_.max_model_len = 8192;
}

TokensGenerated CompareEngine::say(RequestId request, std::int32_t output,
                                   const std::vector<std::string>& tokens, float logprob) {
  TokensGenerated event{.request_id = request,
                        .output_index = output,
                        .token_ids = {},
                        .logprobs = {},
                        .top_logprobs = {},
                        .text = {}};
  for (const std::string& token : tokens) {
    event.token_ids.push_back(token.empty() ? SpellingTokenizer::kEnd : tokenizer_.token(token));
    event.logprobs.push_back(logprob);
    event.text += token;
  }
  return event;
}

TokensGenerated CompareEngine::say_one_of(RequestId request, std::int32_t output, const std::string& token,
                                          const std::vector<std::string>& others) {
  TokensGenerated event = say(request, output, {token});
  std::vector<TokenLogprob> top = {{event.token_ids[0], -0.5f}};
  float logprob = -1.5f;
  for (const std::string& other : others) {
    top.push_back({other.empty() ? SpellingTokenizer::kEnd : tokenizer_.token(other), logprob});
    logprob -= 0.8f;
  }
  event.top_logprobs.push_back(top);
  return event;
}

RequestId CompareEngine::submit(GenerationRequest request) {
  requests.push_back(request);
  const RequestId id{requests.size()};
  if (on_submit) on_submit(id, request);
  if (wake_up_) wake_up_();
  return id;
}

std::vector<RequestId> CompareEngine::submit_all(std::vector<GenerationRequest> all) {
  std::vector<RequestId> ids;
  for (GenerationRequest& request : all) ids.push_back(submit(std::move(request)));
  return ids;
}

void CompareEngine::cancel(RequestId request_id) {
  cancelled.push_back(request_id);
  if (on_cancel) on_cancel(request_id);
  if (wake_up_) wake_up_();
}

std::vector<EngineEvent> CompareEngine::poll(std::chrono::microseconds) {
  if (!script.empty()) {
    const auto next = std::move(script.front());
    script.pop_front();
    next();
  }
  if (!script.empty() && wake_up_) wake_up_();
  return std::exchange(events, {});
}

SampleScene sample_scene(RequestId request, std::int32_t num_samples, std::int32_t num_prompt_tokens,
                         std::int32_t num_generated) {
  auto snapshot = std::make_shared<KvSnapshot>();
  SampleScene scene;
  snapshot->step = 7;
  snapshot->totals.block_size = kTokensPerBlock;
  snapshot->totals.num_blocks = 1024;
  snapshot->totals.bytes_per_block = 360 << 10;
  snapshot->blocks.resize(1024);
  const std::int32_t num_full = num_prompt_tokens / kTokensPerBlock;
  const std::int32_t num_tokens = num_prompt_tokens + num_generated;
  const std::int32_t num_blocks = (num_tokens + kTokensPerBlock - 1) / kTokensPerBlock;
  std::int32_t next = num_full;
  for (std::int32_t sample = 0; sample < num_samples; ++sample) {
    SequenceSnapshot sequence{.sequence_id = SequenceId{100 + static_cast<std::uint64_t>(sample)},
                              .request_id = request,
                              .output_index = sample,
                              .state = SequenceState::kRunning,
                              .num_prompt_tokens = num_prompt_tokens,
                              .num_tokens = num_tokens,
                              .num_computed_tokens = num_tokens - 1,
                              .block_table = {}};
    for (std::int32_t i = 0; i < num_blocks; ++i) {
      const std::int32_t id = i < num_full ? i : next++;
      BlockSnapshot& block = snapshot->blocks[static_cast<std::size_t>(id)];
      block.state = BlockState::kUsed;
      block.filled = std::min(kTokensPerBlock, num_tokens - i * kTokensPerBlock);
      ++block.ref_count;
      sequence.block_table.push_back(BlockId{id});
      const bool was_shared = i == num_full && num_prompt_tokens % kTokensPerBlock != 0;
      if (was_shared && sample > 0) {
        scene.copies.push_back({.step = 3,
                                .sequence = sequence.sequence_id.value,
                                .block = num_full,
                                .aux = id,
                                .kind = BlockEventKind::kCopyOnWrite});
      }
    }
    snapshot->sequences.push_back(std::move(sequence));
  }
  scene.snapshot = std::move(snapshot);
  return scene;
}

}  // namespace octavo::testing
