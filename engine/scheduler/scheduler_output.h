// The decision of one step as data: which sequences run how many tokens, whose next tokens are
// drawn, and which blocks are copied first. Made by Scheduler::schedule(), executed by a Runner,
// committed by the scheduler again.
//
// Spans look into the scheduler's sequences and tables: valid until the step is committed, never stored. Of a
// step that was scheduled ahead (Scheduler::schedule_ahead) they are valid until the one before it is
// committed; then only their lengths are.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/api/request.h"
#include "engine/api/sampling_params.h"
#include "engine/base/ids.h"
#include "engine/block/block.h"
#include "engine/block/state_manager.h"

namespace octavo::scheduler {

// The token of a row that was scheduled ahead: what the step before draws for its sequence.
inline constexpr TokenId kNotDrawnYet = -1;

// One token to be drawn from the logits of a scheduled sequence's last row. A prompt that n outputs share is
// computed once, in the sequence of output 0, and has n targets in the step that ends it. A draft has a
// target for each of its rows: see ScheduledSequence.
//
// A beam draws nothing: its target asks for the best `num_candidates` continuations,
// from which the search chooses.
struct SampleTarget {
  SequenceId sequence_id;
  std::uint32_t output_index = 0;
  std::uint64_t seed = 0;
  // Generated before it, drafted tokens among them.
  std::span<const TokenId> output_token_ids = {};
  std::int32_t num_candidates = 0;  // above 0: a beam
  bool follows_unknown = false;     // one more was, in a step whose draws are not known yet

  // Of the token in its output.
  std::size_t position() const { return output_token_ids.size() + (follows_unknown ? 1 : 0); }
};

struct ScheduledSequence {
  SequenceId sequence_id;
  RequestId request_id;
  const SamplingParams* sampling = nullptr;  // owned by the group
  std::span<const TokenId> prompt_token_ids;
  std::span<const TokenId> known_token_ids;  // prompt and output; the rows, but for a draft, are a part of it
  // Rows of this step: tokens at positions [start_position, start_position +
  // token_ids.size()), at least one known.
  std::int32_t start_position = 0;
  std::span<const TokenId> token_ids;
  std::span<const BlockId> block_table;  // covers start_position + token_ids.size() tokens
  // Where layers with a window of their own keep what block_table names, by the same index; kNoBlock: of
  // tokens that are left behind. Empty: there are no such layers.
  std::span<const BlockId> window_places = {};
  // Of recurrent layers: the state of the tokens before start_position, which becomes that of the last row;
  // of a draft, that of the last row that counts (Runner::settle). kNoBlock: the model has none.
  BlockId state = block::kNoBlock;
  // Nothing is drawn: of these rows the hidden states are wanted, of kLast that of the prompt's last token.
  std::optional<Pooling> pooling = {};
  std::vector<SampleTarget> samples;  // empty while the chunk does not reach the end of the known tokens
  // So many rows at the end are a draft: guesses of what the rows before them will draw. Then there is one
  // row before them, and samples[i] belongs to row i. It counts only if the draws before it were guessed
  // right; what was guessed wrong, and all after it, is as if it had never been there.
  std::int32_t num_draft_tokens = 0;
  std::span<const TokenId> draft() const {
    return token_ids.last(static_cast<std::size_t>(num_draft_tokens));
  }
  // The draft as a place in which the model writes what it guesses, once memory was moved and before the rows
  // run; until then they name no tokens. Empty: they are guessed.
  std::span<TokenId> to_guess = {};
};

// A token that was drawn for a sequence in a step, and counts. A draft may have several, in order: all but
// the last as guessed. There may be fewer than were drawn, when an output ended before them.
struct CommittedToken {
  SequenceId sequence_id;
  TokenId token_id = -1;
};

using BlockCopyOp = block::BlockCopy;  // source, target

using BlockSwap = block::BlockSwap;  // between the pools

// First blocks ever for this request.
struct Admission {
  RequestId request_id;
  std::int32_t num_cached_tokens = 0;
};

struct Preemption {
  RequestId request_id;
  std::uint32_t first_output_index = 0;  // this output of the request and all behind it wait now
  bool is_swap = false;
  // Whose KV must be computed again, each shared token once; 0 when swapped
  std::int32_t num_tokens_dropped = 0;
};

// A sequence that cannot have the memory for its next token.
struct OutOfMemory {
  RequestId request_id;
  SequenceId sequence_id;
  std::uint32_t output_index = 0;
};

struct SchedulerOutput {
  std::int64_t step = 0;
  std::vector<Admission> admissions;
  std::vector<Preemption> preemptions;
  // An output that fills the whole pool alone and still needs more, or all beams of a search that does: they
  // end with "length", now.
  std::vector<OutOfMemory> out_of_memory;
  // Memory moves before anything is written, in this order: device to host, host to device, within the
  // device. Within a list, targets are distinct and no source is a target; a device block that was swapped
  // out may be written later in the same step.
  std::vector<BlockSwap> swap_outs, swap_ins;
  std::vector<BlockCopyOp> block_copies;
  std::vector<block::PoolMove> state_moves;   // made in this order; apart from the blocks'
  std::vector<block::PoolMove> window_moves;  // the same for window parts
  std::vector<ScheduledSequence> sequences;   // by line, then ascending by arrival, then output index
  std::int32_t num_prefill_tokens = 0;        // rows of chunks that compute known tokens
  std::int32_t num_decode_tokens = 0;         // rows that extend an output by one
  std::int32_t num_draft_tokens = 0;          // rows of drafts
  bool empty() const { return sequences.empty(); }
  bool moves_memory() const {
    return !swap_outs.empty() || !swap_ins.empty() || !block_copies.empty() || !state_moves.empty() ||
           !window_moves.empty();
  }
};

}  // namespace octavo::scheduler
