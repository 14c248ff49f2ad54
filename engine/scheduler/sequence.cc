#include "engine/scheduler/sequence.h"

#include <utility>

namespace octavo::scheduler {

Sequence::Sequence(SequenceId id, std::uint32_t index, std::vector<TokenId> prompt_token_ids)
    : sequence_id(id),
      output_index(index),
      table(id),
      token_ids_(std::move(prompt_token_ids)),
      num_prompt_(token_ids_.size()) {}

void Sequence::draft(std::span<const TokenId> guesses) {
  token_ids_.insert(token_ids_.end(), guesses.begin(), guesses.end());
  num_draft_ = guesses.size();
}

void Sequence::drop_draft() {
  token_ids_.resize(token_ids_.size() - num_draft_);
  num_draft_ = 0;
}

}  // namespace octavo::scheduler
