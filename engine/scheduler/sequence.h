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

  void append(TokenId token_id) { token_ids_.push_back(token_id); }

  bool is_finished() const { return status == SequenceStatus::kFinished; }
  std::span<const TokenId> token_ids() const { return token_ids_; }  // prompt and output
  std::span<const TokenId> prompt_token_ids() const { return token_ids().first(num_prompt_); }
  std::span<const TokenId> output_token_ids() const { return token_ids().subspan(num_prompt_); }
  std::int32_t num_tokens() const { return static_cast<std::int32_t>(token_ids_.size()); }
  std::int32_t num_prompt_tokens() const { return static_cast<std::int32_t>(num_prompt_); }
  std::int32_t num_computed_tokens() const { return table.num_computed_tokens(); }
  std::int32_t num_uncomputed_tokens() const { return num_tokens() - num_computed_tokens(); }
  bool has_output() const { return token_ids_.size() > num_prompt_; }
  // Only its newest token, which it generated itself, has no KV yet: its next row is a decode.
  bool is_caught_up() const { return has_output() && num_uncomputed_tokens() == 1; }

 private:
  std::vector<TokenId> token_ids_;
  std::size_t num_prompt_;
};

}  // namespace octavo::scheduler
