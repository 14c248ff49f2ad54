#include "engine/scheduler/sequence_group.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <utility>

#include "engine/base/check.h"
#include "engine/scheduler/scheduler.h"

namespace octavo::scheduler {
namespace {

// A full block of tokens behind those that lead to `parent`: a node of the tree of what siblings start with.
struct StartKey {
  std::size_t parent = 0;
  std::span<const TokenId> token_ids;
  bool operator<(const StartKey& other) const {
    if (parent != other.parent) return parent < other.parent;
    return std::ranges::lexicographical_compare(token_ids, other.token_ids);
  }
};
struct Start {
  std::size_t node = 0;
  std::size_t first_owner = 0;  // index in the group
};

}  // namespace

SequenceGroup::SequenceGroup(NewRequest request, SequenceId first_sequence_id, bool shares,
                             LayerMemory layer_memory)
    : request_id(request.request_id),
      sampling(std::move(request.sampling)),
      seed(request.seed),
      cache_salt(std::move(request.cache_salt)),
      retention(request.retention),
      num_system_tokens(request.num_system_tokens),
      num_beam_candidates(request.num_beam_candidates),
      num_next_turn_tokens(request.num_next_turn_tokens),
      priority(request.priority),
      embedding(request.embedding),
      shares_blocks(shares),
      memory(layer_memory) {
  const auto num_sequences = static_cast<std::uint32_t>(sampling.num_sequences());
  sequences.reserve(num_sequences);
  for (std::uint32_t i = 0; i < num_sequences; ++i) {
    sequences.emplace_back(SequenceId{first_sequence_id.value + i}, i, request.prompt_token_ids);
    if (is_beam_search() && i > 0) sequences.back().status = SequenceStatus::kIdle;
  }
  lead().is_attached = true;
}

SequenceGroup::SequenceGroup(const SequenceGroup& whole, std::vector<Sequence> part)
    : request_id(whole.request_id),
      sampling(whole.sampling),
      seed(whole.seed),
      cache_salt(whole.cache_salt),
      retention(whole.retention),
      num_system_tokens(whole.num_system_tokens),
      num_beam_candidates(whole.num_beam_candidates),
      num_next_turn_tokens(whole.num_next_turn_tokens),
      priority(whole.priority),
      embedding(whole.embedding),
      shares_blocks(whole.shares_blocks),
      memory(whole.memory),
      sequences(std::move(part)),
      was_admitted(whole.was_admitted),
      was_preempted(whole.was_preempted),
      account(whole.account),
      miss(whole.miss) {}

bool SequenceGroup::can_pause_output() const {
  return !is_beam_search() && num_live() > 1 && lead().has_output();
}

std::unique_ptr<SequenceGroup> SequenceGroup::split_last_output() {
  OCTAVO_CHECK(can_pause_output(), "request %llu has no output that could be paused",
               static_cast<unsigned long long>(request_id.value));
  const auto behind_last =
      std::find_if(sequences.rbegin(), sequences.rend(), std::mem_fn(&Sequence::is_live));
  const auto last = std::prev(behind_last.base());
  std::vector<Sequence> part(std::make_move_iterator(last), std::make_move_iterator(sequences.end()));
  sequences.erase(last, sequences.end());
  // Whose blocks it waited for, if it did, is no longer its concern.
  Sequence& lead = part.front();
  lead.is_attached = true;
  lead.num_shared_blocks = 0;
  if (lead.table.empty()) lead.status = SequenceStatus::kWaiting;
  return std::unique_ptr<SequenceGroup>(new SequenceGroup(*this, std::move(part)));
}

std::int32_t SequenceGroup::num_live() const {
  return static_cast<std::int32_t>(std::ranges::count_if(sequences, &Sequence::is_live));
}

std::int32_t SequenceGroup::num_seats() const {
  return is_beam_search() ? static_cast<std::int32_t>(sequences.size()) : num_live();
}

Sequence& SequenceGroup::lead() { return const_cast<Sequence&>(std::as_const(*this).lead()); }

const Sequence& SequenceGroup::lead() const {
  const auto lead = std::ranges::find_if(sequences, &Sequence::is_live);
  OCTAVO_CHECK(lead != sequences.end(), "all outputs of request %llu have ended",
               static_cast<unsigned long long>(request_id.value));
  return *lead;
}

bool SequenceGroup::is_decoding() const {
  return std::ranges::all_of(sequences, [](const Sequence& s) { return !s.is_live() || s.is_caught_up(); });
}

std::int32_t SequenceGroup::num_tokens_left(const Sequence& sequence, std::int32_t max_model_len) const {
  const std::int32_t num_output = sequence.num_tokens() - sequence.num_prompt_tokens();
  return std::min(sampling.max_tokens - num_output, max_model_len - sequence.num_tokens());
}

std::vector<block::MovingTable> SequenceGroup::tables() {
  std::vector<block::MovingTable> tables;
  for (Sequence& sequence : live()) {
    if (!sequence.table.empty()) tables.push_back({&sequence.table, content(sequence)});
  }
  return tables;
}

void SequenceGroup::set_status(SequenceStatus status) {
  for (Sequence& sequence : live()) sequence.status = status;
}

void SequenceGroup::plan_sharing(std::int32_t block_size) {
  std::map<StartKey, Start> starts;
  const std::int32_t num_of_prompt = (num_prompt_tokens() - 1) / block_size;  // all start with these
  const auto lead_index = static_cast<std::size_t>(&lead() - sequences.data());
  for (Sequence& sequence : live()) {
    sequence.is_attached = false;
    sequence.num_shared_blocks = 0;
    if (!shares_blocks) continue;
    const auto index = static_cast<std::size_t>(&sequence - sequences.data());
    // The last token's row must be computed, for its logits: nobody can share it, and nobody waits for it.
    const std::int32_t most = (sequence.num_tokens() - 1) / block_size;
    Start start{.node = 0, .first_owner = lead_index};
    for (std::int32_t block = num_of_prompt; block <= most; ++block) {
      if (start.first_owner != index) {
        sequence.num_shared_blocks = block;
        sequence.share_source = start.first_owner;
      }
      if (block == most) break;
      const auto begin = static_cast<std::size_t>(block * block_size);
      const StartKey key{start.node,
                         sequence.token_ids().subspan(begin, static_cast<std::size_t>(block_size))};
      start = starts.try_emplace(key, Start{starts.size() + 1, index}).first->second;
    }
  }
  lead().is_attached = true;
}

std::int32_t SequenceGroup::most_reused_tokens(const Sequence& sequence, std::int32_t block_size) const {
  return std::min(sequence.num_tokens() - 1, next_takeover(sequence, block_size));
}

// Where the first sibling waits that takes over what `sequence` has computed so far.
std::int32_t SequenceGroup::next_takeover(const Sequence& sequence, std::int32_t block_size) const {
  std::int32_t first = sequence.num_tokens();
  if (!memory.ends_exactly() || awaits_fork()) return first;
  for (const Sequence& sibling : live()) {
    const bool waits = !sibling.is_attached && sibling.num_shared_blocks > 0 &&
                       &sequences[sibling.share_source] == &sequence;
    if (waits) first = std::min(first, sibling.num_shared_blocks * block_size);
  }
  return first;
}

std::int32_t SequenceGroup::next_stop(const Sequence& sequence, std::int32_t block_size) const {
  std::int32_t stop = next_takeover(sequence, block_size);
  if (!memory.has_states || !reads_prefix_cache()) return stop;
  const std::int32_t last_checkpoint =
      sequence.num_computed_tokens() - block::BlockManager::num_tokens_since_checkpoint(sequence.table);
  for (const std::int32_t wanted : {num_system_tokens, num_next_turn_tokens}) {
    const bool is_worth_it = wanted - last_checkpoint >= block::kLeastSavedTokens;
    if (is_worth_it && wanted > sequence.num_computed_tokens()) stop = std::min(stop, wanted);
  }
  return stop;
}

std::int32_t SequenceGroup::num_distinct_computed_tokens(std::int32_t block_size) const {
  std::vector<BlockId> blocks;
  std::int32_t num_partial = 0;
  for (const Sequence& sequence : live()) {
    const std::int32_t num_full = sequence.num_computed_tokens() / block_size;
    const auto table = sequence.table.blocks().first(static_cast<std::size_t>(num_full));
    blocks.insert(blocks.end(), table.begin(), table.end());
    num_partial += sequence.num_computed_tokens() % block_size;
  }
  std::ranges::sort(blocks);
  const auto num_blocks = std::unique(blocks.begin(), blocks.end()) - blocks.begin();
  return static_cast<std::int32_t>(num_blocks) * block_size + num_partial;
}

bool SequenceGroup::starts_many_outputs() const {
  return shares_blocks && sequences.size() > 1 && num_seats() > 1 && !lead().has_output();
}

std::int32_t SequenceGroup::num_blocks_required(std::int32_t block_size) const {
  if (starts_many_outputs()) {
    const std::int32_t num_prompt = num_prompt_tokens();
    // The token that ends an output gets no KV.
    if (sampling.max_tokens == 1) return block::blocks_for(num_prompt, block_size);
    const std::int32_t num_shared = num_prompt / block_size;
    return num_shared + num_seats() * (block::blocks_for(num_prompt + 1, block_size) - num_shared);
  }
  std::int32_t num_blocks = 0;
  for (const Sequence& sequence : live()) {
    num_blocks += block::blocks_for(sequence.num_tokens(), block_size);
    if (!sequence.is_attached) num_blocks -= sequence.num_shared_blocks;
  }
  return num_blocks;
}

std::int32_t SequenceGroup::num_blocks_promised(std::int32_t block_size) const {
  if (starts_many_outputs()) {
    return std::max(0, num_blocks_required(block_size) - lead().table.num_blocks());
  }
  std::int32_t num_blocks = 0;
  for (const Sequence& sequence : live()) {
    if (sequence.is_attached) continue;
    num_blocks += block::blocks_for(sequence.num_tokens(), block_size) - sequence.num_shared_blocks;
  }
  return num_blocks;
}

}  // namespace octavo::scheduler
