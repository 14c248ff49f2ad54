// One token list that is being extended, and the block table that holds what of it has KV. Engine thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/ids.h"
#include "engine/block/block_table.h"

namespace octavo::scheduler {

enum class SequenceStatus {
  kWaiting,   // holds no block
  kRunning,   // its known tokens have, or get in this step, KV
  kSwapped,   // its KV is in the host pool
  kIdle,      // the seat of a beam group that carries no beam at the moment
  kFinished,  // ended; its siblings may go on
};

class Sequence {
 public:
  Sequence(SequenceId sequence_id, std::uint32_t output_index, std::vector<TokenId> prompt_token_ids);

  SequenceId sequence_id;
  std::uint32_t output_index = 0;
  SequenceStatus status = SequenceStatus::kWaiting;
  block::BlockTable table;
  std::int32_t num_scheduled_tokens = 0;  // rows in the step that is being made

  // How it gets its first blocks when its group starts. Until it is attached it has none and gets no rows: it
  // waits for a sibling of the group to compute what both start with.
  bool is_attached = false;
  std::size_t share_source = 0;         // index of that sibling in the group
  std::int32_t num_shared_blocks = 0;   // full blocks that it takes from there

  void append(TokenId token_id) { token_ids_.push_back(token_id); }
  // The tokens of `other`: a seat that carries another beam from now on.
  void carry(const Sequence& other) { token_ids_ = other.token_ids_; }

  bool is_finished() const { return status == SequenceStatus::kFinished; }
  // Neither ended nor an idle seat.
  bool is_live() const { return status != SequenceStatus::kFinished && status != SequenceStatus::kIdle; }
  std::span<const TokenId> token_ids() const { return token_ids_; }  // prompt and output
  std::span<const TokenId> prompt_token_ids() const { return token_ids().first(num_prompt_); }
  std::span<const TokenId> output_token_ids() const { return token_ids().subspan(num_prompt_); }
  std::int32_t num_tokens() const { return static_cast<std::int32_t>(token_ids_.size()); }
  std::int32_t num_prompt_tokens() const { return static_cast<std::int32_t>(num_prompt_); }
  std::int32_t num_computed_tokens() const { return table.num_computed_tokens(); }
  std::int32_t num_uncomputed_tokens() const { return num_tokens() - num_computed_tokens(); }
  bool has_output() const { return token_ids_.size() > num_prompt_; }
  // At most its newest token, which it generated itself, has no KV yet: its next row is a decode. (A beam whose
  // continuations are known waits with none for the other beams.)
  bool is_caught_up() const { return is_attached && has_output() && num_uncomputed_tokens() <= 1; }
  // Gets rows: has a token without KV, and blocks or the right to take some.
  bool is_computing() const { return is_live() && is_attached && num_uncomputed_tokens() > 0; }

 private:
  std::vector<TokenId> token_ids_;
  std::size_t num_prompt_;
};

}  // namespace octavo::scheduler
