#include "tests/scheduler/simulated_device.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace octavo::scheduler {
namespace {

constexpr std::uint64_t kPoison = 0xdeaddeaddeaddeadu;

std::uint64_t prefix_hash(std::uint64_t before, TokenId token_id) {
  return hash_combine(before, static_cast<std::uint64_t>(token_id));
}

}  // namespace

Tokens random_like_tokens(std::uint64_t seed, std::int32_t num_tokens) {
  Tokens tokens;
  for (std::int32_t i = 0; i < num_tokens; ++i) {
    tokens.push_back(static_cast<TokenId>(hash_combine(seed, static_cast<std::uint64_t>(i)) % 1000));
  }
  return tokens;
}

std::uint64_t hash_of(std::span<const TokenId> token_ids) {
  std::uint64_t prefix = 0;
  for (const TokenId token_id : token_ids) prefix = prefix_hash(prefix, token_id);
  return prefix;
}

TokenId draw(std::uint64_t prefix, std::uint64_t seed, std::uint32_t output_index, std::size_t position,
             std::int32_t period) {
  const std::uint64_t hash = hash_combine(hash_combine(prefix, seed), hash_combine(output_index, position));
  const bool repeats = period > 0 && hash / 1000 % 16 != 0;
  return repeats ? static_cast<TokenId>(position) % period : static_cast<TokenId>(hash % 1000);
}

std::vector<Continuation> continuations(std::uint64_t prefix, std::int32_t num_candidates) {
  std::vector<Continuation> all;
  for (std::int32_t i = 0; i < num_candidates; ++i) {
    const std::uint64_t hash = hash_combine(prefix, static_cast<std::uint64_t>(i));
    all.push_back({.token_id = static_cast<TokenId>((prefix + static_cast<std::uint64_t>(37 * i)) % 1000),
                   .logprob = -static_cast<double>(hash % 256) / 64.0});  // exact in a sum, and ties occur
  }
  std::ranges::stable_sort(all, std::ranges::greater(), &Continuation::logprob);
  return all;
}

SimulatedDevice::SimulatedDevice(const SchedulerOptions& options)
    : block_size_(options.block_size),
      device_(static_cast<std::size_t>(options.num_blocks * options.block_size), kPoison),
      host_(static_cast<std::size_t>(options.num_host_blocks * options.block_size), kPoison) {}

void SimulatedDevice::execute(const SchedulerOutput& step) {
  move_memory(step);
  written_slots_.clear();
  for (const ScheduledSequence& row : step.sequences) write_row(row);
  for (const ScheduledSequence& row : step.sequences) read_row(row);
}

void SimulatedDevice::fail_in(const SchedulerOutput& step) {
  move_memory(step);
  for (const BlockSwap& swap : step.swap_outs) poison(host_, swap.host_block);
  for (const BlockSwap& swap : step.swap_ins) poison(device_, swap.device_block);
  for (const BlockCopyOp& copied : step.block_copies) poison(device_, copied.target);
  for (const ScheduledSequence& row : step.sequences) {
    for (std::size_t i = 0; i < row.token_ids.size(); ++i) {
      slot(row, row.start_position + static_cast<std::int32_t>(i)) = kPoison;
    }
  }
}

std::uint64_t SimulatedDevice::slot_of(const ScheduledSequence& row, std::size_t index) {
  return slot(row, row.start_position + static_cast<std::int32_t>(index));
}

std::uint64_t& SimulatedDevice::slot(const ScheduledSequence& row, std::int32_t position) {
  const BlockId block = row.block_table[static_cast<std::size_t>(position / block_size_)];
  return device_[static_cast<std::size_t>(block.value * block_size_ + position % block_size_)];
}

void SimulatedDevice::copy(const Pool& from, BlockId source, Pool& to, BlockId target) const {
  std::copy_n(from.begin() + source.value * block_size_, block_size_,
              to.begin() + target.value * block_size_);
}

void SimulatedDevice::poison(Pool& pool, BlockId block) const {
  std::fill_n(pool.begin() + block.value * block_size_, block_size_, kPoison);
}

// Each list at once, as one kernel does it: so no target may be a source of the same list, nor stand there
// twice.
void SimulatedDevice::move_memory(const SchedulerOutput& step) {
  const Pool before = device_;
  std::set<BlockId> sources, targets;
  for (const BlockSwap& swap : step.swap_outs) {
    EXPECT_TRUE(targets.insert(swap.host_block).second) << "host block " << swap.host_block.value << " twice";
    copy(before, swap.device_block, host_, swap.host_block);
  }
  targets.clear();
  const Pool swapped_out = host_;
  for (const BlockSwap& swap : step.swap_ins) {
    EXPECT_TRUE(targets.insert(swap.device_block).second) << "block " << swap.device_block.value << " twice";
    EXPECT_TRUE(sources.insert(swap.host_block).second) << "a shared block is copied once";
    copy(swapped_out, swap.host_block, device_, swap.device_block);
  }
  targets.clear();
  const Pool swapped_in = device_;
  for (const BlockCopyOp& copied : step.block_copies) {
    EXPECT_TRUE(targets.insert(copied.target).second) << "block " << copied.target.value << " twice";
    copy(swapped_in, copied.source, device_, copied.target);
  }
  for (const BlockCopyOp& copied : step.block_copies) {
    EXPECT_FALSE(targets.contains(copied.source)) << "block " << copied.source.value << " is both";
  }
}

void SimulatedDevice::write_row(const ScheduledSequence& row) {
  std::uint64_t prefix = row.start_position == 0 ? 0 : slot(row, row.start_position - 1);
  for (std::size_t i = 0; i < row.token_ids.size(); ++i) {
    prefix = prefix_hash(prefix, row.token_ids[i]);
    std::uint64_t& place = slot(row, row.start_position + static_cast<std::int32_t>(i));
    place = prefix;
    EXPECT_TRUE(written_slots_.insert(static_cast<std::size_t>(&place - device_.data())).second)
        << "a slot has two writers";
  }
}

void SimulatedDevice::read_row(const ScheduledSequence& row) {
  std::uint64_t prefix = 0;
  Tokens tokens(row.known_token_ids.begin(), row.known_token_ids.end());
  tokens.insert(tokens.end(), row.draft().begin(), row.draft().end());
  const std::int32_t end = row.start_position + static_cast<std::int32_t>(row.token_ids.size());
  for (std::int32_t position = 0; position < end; ++position) {
    prefix = prefix_hash(prefix, tokens[static_cast<std::size_t>(position)]);
    ASSERT_EQ(slot(row, position), prefix)
        << "sequence " << row.sequence_id.value << ", position " << position;
  }
}

}  // namespace octavo::scheduler
