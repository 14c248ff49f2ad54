#include "engine/scheduler/sequence.h"

#include <utility>

namespace octavo::scheduler {

Sequence::Sequence(SequenceId id, std::uint32_t index, std::vector<TokenId> prompt_token_ids)
    : sequence_id(id),
      output_index(index),
      table(id),
      token_ids_(std::move(prompt_token_ids)),
      num_prompt_(token_ids_.size()) {}

}  // namespace octavo::scheduler
