// One token list that is being extended, and the block table that holds what of it has KV. Engine thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/ids.h"
#include "engine/block/block_table.h"
#include "engine/scheduler/draft_gate.h"

namespace octavo::scheduler {

enum class SequenceStatus {
  kWaiting,   // holds no block
  kRunning,   // its known tokens have, or get in this step, KV
  kSwapped,   // its KV is in the host pool
  kIdle,      // the seat of a beam group that carries no beam at the moment
  kFinished,  // ended; its siblings may continue
};

class Sequence {
 public:
  Sequence(SequenceId sequence_id, std::uint32_t output_index, std::vector<TokenId> prompt_token_ids);

  SequenceId sequence_id;
  std::uint32_t output_index = 0;
  SequenceStatus status = SequenceStatus::kWaiting;
  block::BlockTable table;
  std::int32_t num_scheduled_tokens = 0;  // rows of known tokens in the step that is being made
  DraftGate draft_gate;
  bool ends_at_fork = false;  // an output that nobody wants any more, of a prompt that is not computed yet

  // How it gets its first blocks when its group starts. Until it is attached it has none and gets no rows: it
  // waits for a sibling of the group to compute what both start with.
  bool is_attached = false;
  std::size_t share_source = 0;        // index of that sibling in the group
  std::int32_t num_shared_blocks = 0;  // full blocks that it takes from there

  // REQUIRES: no draft, here and below.
  void append(TokenId token_id) { token_ids_.push_back(token_id); }
  // The tokens of `other`: a seat that carries another beam from now on.
  void carry(const Sequence& other) { token_ids_ = other.token_ids_; }

  bool is_finished() const { return status == SequenceStatus::kFinished; }
  // Neither ended nor an idle seat.
  bool is_live() const { return status != SequenceStatus::kFinished && status != SequenceStatus::kIdle; }
  // Prompt and output.
  std::span<const TokenId> token_ids() const { return with_draft().first(token_ids_.size() - num_draft_); }
  std::span<const TokenId> prompt_token_ids() const { return token_ids().first(num_prompt_); }
  std::span<const TokenId> output_token_ids() const { return token_ids().subspan(num_prompt_); }
  std::int32_t num_tokens() const { return static_cast<std::int32_t>(token_ids_.size() - num_draft_); }
  std::int32_t num_prompt_tokens() const { return static_cast<std::int32_t>(num_prompt_); }
  std::int32_t num_computed_tokens() const { return table.num_computed_tokens(); }
  std::int32_t num_uncomputed_tokens() const { return num_tokens() - num_computed_tokens(); }
  bool has_output() const { return token_ids().size() > num_prompt_; }

  // Guesses of what follows the known tokens, behind them in memory: from a step's schedule to its end.
  void draft(std::span<const TokenId> guesses);
  void drop_draft();
  std::span<const TokenId> with_draft() const { return token_ids_; }
  std::int32_t num_draft_tokens() const { return static_cast<std::int32_t>(num_draft_); }
  // Where a draft is written that is guessed later.
  std::span<TokenId> draft_places() { return std::span(token_ids_).last(num_draft_); }

  // At most its newest token, which it generated itself, has no KV yet: its next row is a decode. (A beam
  // whose continuations are known waits with none for the other beams.)
  bool is_caught_up() const { return is_attached && has_output() && num_uncomputed_tokens() <= 1; }
  // Gets rows: has a token without KV, and blocks or the right to take some.
  bool is_computing() const { return is_live() && is_attached && num_uncomputed_tokens() > 0; }

 private:
  std::vector<TokenId> token_ids_;  // prompt, output, draft
  std::size_t num_prompt_;
  std::size_t num_draft_ = 0;
};

}  // namespace octavo::scheduler
