#include "engine/comparison/text_scorer.h"

#include <utility>

#include "engine/base/check.h"

namespace octavo::comparison {

EngineOptions TextScorer::options_for(const EngineOptions& options, std::int32_t context) {
  return {.model = options.model,
          .device = options.device,
          .threads = options.threads,
          .dtype = options.dtype,
          .quantisation = options.quantisation,
          .activation_dtype = options.activation_dtype,
          .block_size = options.block_size,
          .kv_cache_dtype = options.kv_cache_dtype,
          .num_kv_blocks = (context + options.block_size - 1) / options.block_size,
          .swap_space = 0.0,
          .num_states = 1,
          .num_window_blocks = 0,
          .max_model_len = context,
          .max_num_seqs = 1,
          .max_num_batched_tokens = kMaxTokens,
          .cuda_graphs = false};
}

Result<TextScorer> TextScorer::load(OpenedModel opened, const model::LoadProgress& progress) {
  static_assert(kMaxTokens <= runner::kLogitsRows);
  EngineDescription description;
  description.model = std::move(opened.description);
  description.max_num_seqs = 1;
  OCTAVO_TRY(auto runner, runner::ModelRunner::load(std::move(opened.parts), progress));
  runner->describe(description);
  return TextScorer(std::move(description), std::move(opened.tokenizer), std::move(runner));
}

TextScorer::TextScorer(EngineDescription description, std::unique_ptr<tokenizer::Tokenizer> tokenizer,
                       std::unique_ptr<runner::ModelRunner> runner)
    : description_(std::move(description)), tokenizer_(std::move(tokenizer)), runner_(std::move(runner)) {
  for (std::int32_t block = 0; block < description_.num_blocks; ++block) block_table_.push_back({block});
}

void TextScorer::begin_text() { token_ids_.clear(); }

Result<void> TextScorer::read(std::span<const TokenId> token_ids) {
  const scheduler::SchedulerOutput step = step_of(token_ids);
  runner::RunnerOutput nothing_drawn;
  return runner_->execute(step, nothing_drawn);
}

Result<std::span<const float>> TextScorer::score(std::span<const TokenId> token_ids) {
  const scheduler::SchedulerOutput step = step_of(token_ids);
  return runner_->compute_logits(step, static_cast<std::int32_t>(token_ids.size()));
}

scheduler::SchedulerOutput TextScorer::step_of(std::span<const TokenId> token_ids) {
  OCTAVO_CHECK(!token_ids.empty() && std::ssize(token_ids) <= kMaxTokens &&
                   std::ssize(token_ids_) + std::ssize(token_ids) <= description_.max_model_len,
               "%zu tokens behind %zu", token_ids.size(), token_ids_.size());
  const std::size_t begin = token_ids_.size();
  token_ids_.insert(token_ids_.end(), token_ids.begin(), token_ids.end());
  scheduler::ScheduledSequence sequence;
  sequence.sampling = &sampling_;
  sequence.prompt_token_ids = token_ids_;
  sequence.known_token_ids = token_ids_;
  sequence.start_position = static_cast<std::int32_t>(begin);
  sequence.token_ids = std::span(token_ids_).subspan(begin);
  sequence.block_table = block_table_;
  scheduler::SchedulerOutput step;
  if (description_.num_states > 0) {
    sequence.state = BlockId{0};
    if (begin == 0) step.state_moves.push_back({.kind = block::PoolMoveKind::kClear, .target = BlockId{0}});
  }
  step.sequences.push_back(std::move(sequence));
  return step;
}

}  // namespace octavo::comparison
