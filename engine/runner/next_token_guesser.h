// Guesses of a model about its own next tokens, by the layer that it has for them (multi-token prediction:
// DeepSeek-AI 2024, arXiv:2412.19437, section 2.2): what of a step's rows that layer is given, and what is
// read from it. Engine thread.
//
// The layer follows the model row by row. It joins what the model made of a token with the token behind it,
// and has keys and values of its own, which stand where those of the first of the two do: so they share, move
// and are found again as the model's do. The token behind the last of a sequence's rows is the one that was
// drawn; where there is none yet (a beam's is chosen later), the row's own token stands for it, and where
// outputs part it is that of the first. A block that is found again may so end with a pair of another
// continuation: a worse guess, and never another answer, since a guess counts only where it is drawn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/base/ids.h"
#include "engine/base/result.h"
#include "engine/model/transformer.h"
#include "engine/runner/model_input.h"
#include "engine/scheduler/scheduler_output.h"
#include "kernels/backend.h"

namespace octavo::runner {

class NextTokenGuesser {
 public:
  // The rows of a step that count, each with the token behind it. Returned are the sequences whose next
  // tokens can be guessed in the next step. REQUIRES: these rows are those of the transformer's last
  // forward().
  std::vector<SequenceId> follow(const scheduler::SchedulerOutput& step,
                                 std::span<const scheduler::CommittedToken> tokens, std::int32_t block_size,
                                 model::Transformer& transformer, kernels::KvCache& kv);

  // The most likely token of rows of the transformer's predictions, the lower of equals.
  using BestTokens = std::function<Result<void>(std::span<const std::int32_t> rows, std::span<TokenId> best)>;
  // Fills in what the step is to guess, one token further with each pass. REQUIRES: of sequences that the
  // last follow() returned; their memory was moved.
  Result<void> guess(const scheduler::SchedulerOutput& step, std::int32_t block_size,
                     model::Transformer& transformer, kernels::KvCache& kv, const BestTokens& best_tokens);

 private:
  // Where the prediction behind a sequence's newest token is.
  struct Prediction {
    SequenceId sequence_id;
    std::int32_t row = 0;
  };
  // A sequence's rows that count, and where they stand among the step's.
  void add_rows(const scheduler::ScheduledSequence& sequence,
                std::span<const scheduler::CommittedToken> tokens, std::int32_t first_row);
  std::int32_t row_of(SequenceId sequence_id) const;

  std::vector<Prediction> predictions_;  // of the last follow()
  // Of one pass.
  scheduler::SchedulerOutput pass_;
  ModelInput input_;
  std::vector<std::int32_t> rows_;
  std::vector<TokenId> next_token_ids_, best_;
};

}  // namespace octavo::runner
