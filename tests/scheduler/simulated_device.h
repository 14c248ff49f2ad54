// A KV cache whose slots hold the hash of the token prefix that they stand for, and a model whose next token
// is a hash of what it reads through the block table: a wrong block changes tokens at once.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "engine/base/hash.h"
#include "engine/scheduler/scheduler.h"
#include "engine/scheduler/scheduler_output.h"

namespace octavo::scheduler {

using Tokens = std::vector<TokenId>;

// Tokens from 0 to 999 that look random; the same seed gives the same ones, shorter or longer.
Tokens random_like_tokens(std::uint64_t seed, std::int32_t num_tokens);

// The model: what comes after a prefix, given its hash.
std::uint64_t hash_of(std::span<const TokenId> token_ids);
TokenId draw(std::uint64_t prefix, std::uint64_t seed, std::uint32_t output_index, std::size_t position,
             std::int32_t period = 0);
struct Continuation {
  TokenId token_id = -1;
  double logprob = 0.0;
};
std::vector<Continuation> continuations(std::uint64_t prefix, std::int32_t num_candidates);  // best first

class SimulatedDevice {
 public:
  explicit SimulatedDevice(const SchedulerOptions& options);

  // Moves memory, writes the rows, and reads every slot that attention reads: each must have been written for
  // exactly that prefix.
  void execute(const SchedulerOutput& step);
  // What a device wrote before it failed is anyone's guess, within the blocks that it was given.
  void fail_in(const SchedulerOutput& step);

  // The hash of all that a row of a sequence reads, and that its last row reads.
  std::uint64_t slot_of(const ScheduledSequence& row, std::size_t index);
  std::uint64_t last_slot(const ScheduledSequence& row) { return slot_of(row, row.token_ids.size() - 1); }

 private:
  using Pool = std::vector<std::uint64_t>;

  void move_memory(const SchedulerOutput& step);
  void copy(const Pool& from, BlockId source, Pool& to, BlockId target) const;
  void poison(Pool& pool, BlockId block) const;
  std::uint64_t& slot(const ScheduledSequence& row, std::int32_t position);
  void write_row(const ScheduledSequence& row);
  void read_row(const ScheduledSequence& row);

  const std::int32_t block_size_;
  Pool device_, host_;
  std::set<std::size_t> written_slots_;  // of this step
};

}  // namespace octavo::scheduler
