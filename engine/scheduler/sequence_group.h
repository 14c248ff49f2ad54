// The sequences of one request: n outputs of one prompt. They start, are preempted, resume and decode
// together.
//
// The prompt is computed once, in the lead: the first output that has not finished. When its end is reached,
// the others fork from the lead. A preemption takes the blocks and with them the fork; the group then starts
// over in the same way, and each output's own tokens follow the fork as a chunk. A group of one output never
// needs a fork. Engine thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/api/sampling_params.h"
#include "engine/base/ids.h"
#include "engine/block/block_manager.h"
#include "engine/scheduler/sequence.h"

namespace octavo::scheduler {

class SequenceGroup {
 public:
  // Sequences get the ids from `first_sequence_id` on, in order of output.
  SequenceGroup(RequestId request_id, SequenceId first_sequence_id, std::vector<TokenId> prompt_token_ids,
                SamplingParams sampling, std::uint64_t seed, std::string cache_salt);

  const RequestId request_id;
  const SamplingParams sampling;
  const std::uint64_t seed;
  const std::string cache_salt;
  std::vector<Sequence> sequences;  // index = output index; never resized: ids are found by position
  bool has_forked = false;          // since the blocks were given
  bool was_admitted = false;        // once, at any time

  SequenceId first_sequence_id() const { return sequences.front().sequence_id; }
  std::int32_t num_unfinished() const;
  std::int32_t num_prompt_tokens() const { return sequences.front().num_prompt_tokens(); }
  Sequence& lead();  // REQUIRES: one has not finished
  const Sequence& lead() const;

  // The lead computes the prompt for several outputs, and only the prompt.
  bool awaits_fork() const { return !has_forked && num_unfinished() > 1; }
  // Known tokens that `sequence` is to have KV for next: the lead of a group that awaits its fork stops at
  // the prompt's end.
  std::int32_t num_target_tokens(const Sequence& sequence) const {
    return awaits_fork() ? num_prompt_tokens() : sequence.num_tokens();
  }
  // Every output only extends itself by one token a step.
  bool is_decoding() const;

  bool reads_prefix_cache() const { return !sampling.prompt_logprobs; }  // each row's logits are needed
  block::SequenceContent content(const Sequence& sequence) const {
    return {sequence.token_ids(), cache_salt};
  }

  void set_status(SequenceStatus status);  // of those that have not finished

  // Tokens with KV, those that forked sequences share once.
  std::int32_t num_distinct_computed_tokens() const;
  // Blocks that the group needs to go on: for all known tokens, and where several outputs go on past the
  // prompt, a last block for each. Before anything was generated: the least the request can do with.
  std::int32_t num_blocks_required(std::int32_t block_size) const;
};

}  // namespace octavo::scheduler
