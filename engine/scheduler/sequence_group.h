// The sequences of one request: n outputs of one prompt, or the seats of a beam search. They start, are
// preempted, swapped, resumed and decode together.
//
// Samples that outgrow the pool together part: the last one is split off, as a group of its own that is
// resumed for itself, when there is room. It finds what it still has in common with the others as everybody
// does, by content. Beams advance together and are never split.
//
// The prompt is computed once, in the lead: the first live sequence. Samples fork from it when its end is
// reached; beams fork when the search chooses them. After a recompute preemption the sharing is rebuilt: each
// sequence waits, unattached, until an earlier one has computed the blocks with which both start.
//
// A contiguous memory manager shares nothing: then every output computes the prompt itself. Engine thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/api/metrics.h"
#include "engine/api/request.h"
#include "engine/api/sampling_params.h"
#include "engine/base/ids.h"
#include "engine/block/block_manager.h"
#include "engine/scheduler/live_sequences.h"
#include "engine/scheduler/sequence.h"

namespace octavo::scheduler {

struct NewRequest;

// What layers of the model keep beside or instead of the keys and values of all tokens.
struct LayerMemory {
  bool has_states = false;   // of recurrent layers
  bool has_windows = false;  // in a pool of their own
  // What has been computed can be taken over only where it ends: nothing tells what was known before.
  bool ends_exactly() const { return has_states || has_windows; }
};

class SequenceGroup {
 public:
  // Sequences get the ids from `first_sequence_id` on, in order of output. REQUIRES: no beams unless
  // shares_blocks.
  SequenceGroup(NewRequest request, SequenceId first_sequence_id, bool shares_blocks,
                LayerMemory memory = {});

  const RequestId request_id;
  const SamplingParams sampling;
  const std::uint64_t seed;
  const std::string cache_salt;
  const RetentionClass retention;
  const std::int32_t num_system_tokens;
  const std::int32_t num_beam_candidates;
  const std::int32_t num_next_turn_tokens;
  const RequestPriority priority;
  const std::optional<EmbeddingParams> embedding;
  const bool shares_blocks;
  const LayerMemory memory;
  // Ascending by output and by id, without gaps: they are found by position. Only a split shortens it.
  std::vector<Sequence> sequences;
  bool was_admitted = false;   // once, at any time
  bool was_preempted = false;  // once, at any time
  // Runs, but not in the step that is being made: it waits for blocks that somebody will soon let go.
  bool is_paused = false;
  PromptAccount account;  // of the newest start; num_computed stays 0 until it is asked for
  PrefixMiss miss;        // of the first start

  LiveSequences<Sequence> live() { return LiveSequences<Sequence>(sequences); }
  LiveSequences<const Sequence> live() const { return LiveSequences<const Sequence>(sequences); }

  SequenceId first_sequence_id() const { return sequences.front().sequence_id; }
  bool is_beam_search() const { return sampling.beam_width.has_value(); }
  std::int32_t num_live() const;
  // Sequences that may run at a time: of a beam search all seats, for the next step may fill them.
  std::int32_t num_seats() const;
  std::int32_t num_prompt_tokens() const { return sequences.front().num_prompt_tokens(); }
  Sequence& lead();  // REQUIRES: one is live
  const Sequence& lead() const;
  bool is_swapped_out() const { return lead().status == SequenceStatus::kSwapped; }

  // Whether an output of it can go on without the others: not before the prompt that they share is computed.
  bool can_pause_output() const;
  // The last live output, with its blocks, and what ended behind it. REQUIRES: can_pause_output().
  std::unique_ptr<SequenceGroup> split_last_output();

  // The lead computes the prompt for several samples.
  bool awaits_fork() const {
    return shares_blocks && !is_beam_search() && num_live() > 1 && !lead().has_output();
  }
  // Every live sequence only extends itself by one token a step.
  bool is_decoding() const;
  // Tokens that a sequence of the group still gets, at most.
  std::int32_t num_tokens_left(const Sequence& sequence, std::int32_t max_model_len) const;

  // Prompt log-probabilities need each row's logits, and a mean its hidden state.
  bool reads_prefix_cache() const {
    const bool needs_all_rows =
        sampling.prompt_logprobs || (embedding && embedding->pooling == Pooling::kMean);
    return shares_blocks && !needs_all_rows;
  }
  block::SequenceContent content(const Sequence& sequence) const {
    return {sequence.token_ids(), cache_salt, retention, num_system_tokens, num_next_turn_tokens};
  }
  // The tables of live sequences that have any block.
  std::vector<block::MovingTable> tables();

  void set_status(SequenceStatus status);  // of those that are live

  // Who waits for whose blocks, from the tokens alone. The lead is attached, all others are not.
  void plan_sharing(std::int32_t block_size);

  // How many tokens of `sequence` may come from the cache: not the last one, which is computed for its
  // logits, and where memory ends exactly none behind the place where a sibling will take it over. REQUIRES:
  // plan_sharing() since the blocks were lost; so for the next.
  std::int32_t most_reused_tokens(const Sequence& sequence, std::int32_t block_size) const;
  // Where a chunk of `sequence` that starts at its computed tokens has to end, because its memory is wanted
  // there: by a sibling that waits for it, or as a checkpoint. Behind its last token: nowhere.
  std::int32_t next_stop(const Sequence& sequence, std::int32_t block_size) const;

  // Tokens with KV, those of shared full blocks once.
  std::int32_t num_distinct_computed_tokens(std::int32_t block_size) const;
  // Blocks that the group needs to continue: for all known tokens, and where several outputs go on past the
  // prompt, a last block for each. Before anything was generated: the least the request can do with.
  // REQUIRES: plan_sharing() since the blocks were lost.
  std::int32_t num_blocks_required(std::int32_t block_size) const;
  // Of these, what sequences that run but are not attached yet, or will fork, still have to get. Where one
  // prompt starts many outputs, the blocks of the rest of the prompt too.
  std::int32_t num_blocks_promised(std::int32_t block_size) const;
  bool starts_many_outputs() const;  // from one prompt, nothing generated yet

 private:
  std::int32_t next_takeover(const Sequence& sequence, std::int32_t block_size) const;

  // All that `whole` knows of the request, and these of its sequences.
  SequenceGroup(const SequenceGroup& whole, std::vector<Sequence> part);
};

}  // namespace octavo::scheduler
