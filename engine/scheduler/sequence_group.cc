#include "engine/scheduler/sequence_group.h"

#include <algorithm>
#include <utility>

#include "engine/base/check.h"

namespace octavo::scheduler {

SequenceGroup::SequenceGroup(RequestId id, SequenceId first_sequence_id,
                             std::vector<TokenId> prompt_token_ids, SamplingParams params,
                             std::uint64_t request_seed, std::string salt)
    : request_id(id), sampling(std::move(params)), seed(request_seed), cache_salt(std::move(salt)) {
  const auto n = static_cast<std::uint32_t>(sampling.n);
  sequences.reserve(n);
  for (std::uint32_t i = 0; i < n; ++i) {
    sequences.emplace_back(SequenceId{first_sequence_id.value + i}, i, prompt_token_ids);
  }
}

std::int32_t SequenceGroup::num_unfinished() const {
  return static_cast<std::int32_t>(
      std::ranges::count_if(sequences, [](const Sequence& sequence) { return !sequence.is_finished(); }));
}

Sequence& SequenceGroup::lead() { return const_cast<Sequence&>(std::as_const(*this).lead()); }

const Sequence& SequenceGroup::lead() const {
  const auto lead =
      std::ranges::find_if(sequences, [](const Sequence& sequence) { return !sequence.is_finished(); });
  OCTAVO_CHECK(lead != sequences.end(), "all outputs of request %llu have ended",
               static_cast<unsigned long long>(request_id.value));
  return *lead;
}

bool SequenceGroup::is_decoding() const {
  return std::ranges::all_of(sequences,
                             [](const Sequence& s) { return s.is_finished() || s.is_caught_up(); });
}

void SequenceGroup::set_status(SequenceStatus status) {
  for (Sequence& sequence : sequences) {
    if (!sequence.is_finished()) sequence.status = status;
  }
}

std::int32_t SequenceGroup::num_distinct_computed_tokens() const {
  const std::int32_t num_shared = has_forked ? num_prompt_tokens() : 0;
  std::int32_t num_tokens = num_shared;
  for (const Sequence& sequence : sequences) {
    if (!sequence.is_finished()) num_tokens += sequence.num_computed_tokens() - num_shared;
  }
  return num_tokens;
}

std::int32_t SequenceGroup::num_blocks_required(std::int32_t block_size) const {
  const std::int32_t num_prompt = num_prompt_tokens();
  const bool writes_no_output = sampling.max_tokens == 1;  // the token that ends an output gets no KV
  if (num_unfinished() == 1 || writes_no_output) return block::blocks_for(lead().num_tokens(), block_size);
  const std::int32_t num_shared = num_prompt / block_size;
  std::int32_t num_blocks = num_shared;
  for (const Sequence& sequence : sequences) {
    if (sequence.is_finished()) continue;
    num_blocks += block::blocks_for(std::max(sequence.num_tokens(), num_prompt + 1), block_size) - num_shared;
  }
  return num_blocks;
}

}  // namespace octavo::scheduler
