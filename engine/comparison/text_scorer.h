// A model that reads one text, tokens given to it, and says of each what it expects next: the whole
// distribution. It drives the runner itself, without requests and scheduler: one sequence, in a pool of its
// own that holds exactly one context.
//
// Ownership: owns the model. Thread: one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/api/model_description.h"
#include "engine/api/sampling_params.h"
#include "engine/base/ids.h"
#include "engine/base/result.h"
#include "engine/opened_model.h"
#include "engine/runner/model_runner.h"
#include "engine/scheduler/scheduler_output.h"
#include "engine/tokenizer/tokenizer.h"

namespace octavo::comparison {

class TextScorer {
 public:
  // Tokens of one call, at most: what a cancel waits for, and whose logits are held.
  static constexpr std::int32_t kMaxTokens = 32;

  // What to open a model with: of `options` the file, the device, its threads, the number types and the block
  // size count.
  static EngineOptions options_for(const EngineOptions& options, std::int32_t context);

  // `opened` with options_for(). Errors: as ModelRunner::load.
  static Result<TextScorer> load(OpenedModel opened, const model::LoadProgress& progress);

  const EngineDescription& description() const { return description_; }
  const tokenizer::Tokenizer& tokenizer() const { return *tokenizer_; }

  // Forgets what was read.
  void begin_text();
  // The next tokens. REQUIRES: 1 to kMaxTokens of them, and with those before no more than the context.
  Result<void> read(std::span<const TokenId> token_ids);
  // The same, and the logits of what comes behind each: [tokens, vocabulary_size], valid until the next call.
  Result<std::span<const float>> score(std::span<const TokenId> token_ids);

 private:
  TextScorer(EngineDescription description, std::unique_ptr<tokenizer::Tokenizer> tokenizer,
             std::unique_ptr<runner::ModelRunner> runner);
  // A step of these tokens, which looks into this object.
  scheduler::SchedulerOutput step_of(std::span<const TokenId> token_ids);

  EngineDescription description_;
  std::unique_ptr<tokenizer::Tokenizer> tokenizer_;
  std::unique_ptr<runner::ModelRunner> runner_;
  SamplingParams sampling_;           // draws nothing
  std::vector<BlockId> block_table_;  // every block of the pool, in order
  std::vector<TokenId> token_ids_;    // read so far
};

}  // namespace octavo::comparison
