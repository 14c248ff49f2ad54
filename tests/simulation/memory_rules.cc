#include "tests/simulation/memory_rules.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <tuple>
#include <unordered_set>
#include <variant>

namespace octavo::simulation {
namespace {

bool has_kind(const StepView& step, BlockEventKind kind) {
  return std::ranges::find(step.block_events, kind, &BlockEvent::kind) != step.block_events.end();
}

// The sequences of a request, in one state, and their physical blocks, each once, as far as they hold KV.
struct Memory {
  std::int32_t num_sequences = 0;
  std::int32_t num_blocks = 0;
  bool has_many_uncomputed = false;  // some sequence has more than its newest token to compute
  bool has_waiting = false;          // some sequence has no block yet: it waits for a sibling
};

Memory memory_of(const KvSnapshot& snapshot, RequestId request_id, SequenceState state, std::int32_t block_size) {
  Memory memory;
  std::unordered_set<std::int32_t> blocks;
  for (const SequenceSnapshot& sequence : snapshot.sequences) {
    if (sequence.request_id != request_id || sequence.state != state) continue;
    ++memory.num_sequences;
    memory.has_waiting |= sequence.block_table.empty();
    memory.has_many_uncomputed |= sequence.num_tokens - sequence.num_computed_tokens > 1;
    const std::int32_t num_blocks = (sequence.num_computed_tokens + block_size - 1) / block_size;
    for (std::int32_t index = 0; index < num_blocks; ++index)
      blocks.insert(sequence.block_table.at(static_cast<std::size_t>(index)).value);
  }
  memory.num_blocks = static_cast<std::int32_t>(blocks.size());
  return memory;
}

// Who is alone may have the place of what is pinned: then all pins are released, and none stayed.
bool released_pins_for_progress(const StepView& step) {
  const auto is_pinned = [](const BlockSnapshot& block) {
    return block.state == BlockState::kCached && block.retention == RetentionClass::kPinned;
  };
  for (std::size_t index = 0; index < step.before.blocks.size(); ++index) {
    const BlockSnapshot &before = step.before.blocks[index], &after = step.after.blocks[index];
    if (is_pinned(before) && is_pinned(after) && before.last_step == after.last_step) return false;
  }
  return std::ranges::any_of(step.before.blocks, is_pinned);
}

}  // namespace

void MemoryRules::check(const StepView& step) {
  if (has_kind(step, BlockEventKind::kEvict)) check_evictions(step);
  check_watermark(step);
  for (const EngineEvent& event : step.events) {
    if (const auto* preemption = std::get_if<RequestPreempted>(&event)) check_swap_out(step, preemption->request_id);
    if (const auto* admission = std::get_if<RequestAdmitted>(&event)) check_hit(step, *admission);
  }
  const SequenceSnapshot* previous = nullptr;
  for (const SequenceSnapshot& sequence : step.before.sequences) {
    const bool is_first = !previous || previous->request_id != sequence.request_id;
    if (is_first && sequence.state == SequenceState::kSwapped) check_swap_in(step, sequence.request_id);
    previous = &sequence;
  }
}

// ---- what is given up ----

// Free blocks are taken before any contents are given up.
void MemoryRules::check_evictions(const StepView& step) {
  std::vector<bool> has_child(step.before.blocks.size());
  for (const BlockSnapshot& block : step.before.blocks) {
    if (block.parent >= 0) has_child[static_cast<std::size_t>(block.parent)] = true;
  }
  std::int32_t num_free = step.before.figures.free_blocks;
  for (const BlockEvent& event : step.block_events) {
    if (event.kind == BlockEventKind::kAlloc) --num_free;
    if (event.kind == BlockEventKind::kFree) ++num_free;
    if (event.kind != BlockEventKind::kEvict) continue;
    if (event.sequence != 0 && num_free > 0) problem_.note("contents were given up while a block was free");
    ++num_free;
    if (!step.releases_pins && !released_pins_for_progress(step))
      check_eviction(step, static_cast<std::size_t>(event.block), has_child);
  }
}

// The lowest class first, and within it the least recently used leaf: nothing that should have gone before what
// was evicted is still there.
void MemoryRules::check_eviction(const StepView& step, std::size_t evicted, const std::vector<bool>& has_child) {
  const auto& before = step.before.blocks;
  if (before[evicted].state != BlockState::kCached) return;
  if (before[evicted].retention == RetentionClass::kPinned) return problem_.note("a pinned block was evicted");
  const auto order = [](const BlockSnapshot& block) { return std::tuple(block.retention, block.last_step); };
  for (std::size_t index = 0; index < before.size(); ++index) {
    const BlockSnapshot& after = step.after.blocks[index];
    const bool could_go = before[index].state == BlockState::kCached && !has_child[index] &&
                          before[index].retention != RetentionClass::kPinned;
    const bool stayed = after.state == BlockState::kCached && order(after) == order(before[index]);
    if (could_go && stayed && order(before[index]) < order(before[evicted])) {
      return problem_.note("block " + std::to_string(evicted) + " was evicted before block " +
                           std::to_string(index));
    }
  }
}

// ---- what is left free ----

// Whoever starts beside others leaves 1 % of the pool, and one block for each sequence that ran already.
void MemoryRules::check_watermark(const StepView& step) {
  if (script_.options.memory_manager != MemoryManager::kPaged) return;
  const bool starts = has_kind(step, BlockEventKind::kResume) ||
                      std::ranges::any_of(step.events, [](const EngineEvent& event) {
                        return std::holds_alternative<RequestAdmitted>(event);
                      });
  if (!starts) return;
  RequestId newest{};
  for (const SequenceSnapshot& sequence : step.after.sequences) {
    if (sequence.state == SequenceState::kRunning) newest = std::max(newest, sequence.request_id);
  }
  std::int32_t num_older = 0, num_left = 0;
  for (const SequenceSnapshot& sequence : step.after.sequences) {
    num_older += sequence.state == SequenceState::kRunning && sequence.request_id != newest ? 1 : 0;
  }
  for (const BlockSnapshot& block : step.after.blocks) {
    const bool can_go = block.state == BlockState::kCached && block.retention != RetentionClass::kPinned;
    num_left += block.state == BlockState::kFree || can_go ? 1 : 0;
  }
  if (num_older == 0) return;
  const std::int32_t watermark =
      (script_.options.num_blocks + 99) / 100 + (script_.options.reserve_block_per_sequence ? num_older : 0);
  if (num_left < watermark) problem_.note(newest, "its start left fewer free blocks than the watermark");
}

// ---- what is swapped ----

void MemoryRules::check_swap_out(const StepView& step, RequestId request_id) {
  const std::int32_t block_size = script_.options.block_size;
  const Memory ran = memory_of(step.before, request_id, SequenceState::kRunning, block_size);
  const Memory swapped = memory_of(step.after, request_id, SequenceState::kSwapped, block_size);
  const bool is_whole = swapped.num_sequences == ran.num_sequences && !ran.has_waiting;
  if (is_whole && swapped.num_blocks > ran.num_blocks)
    problem_.note(request_id, std::to_string(ran.num_blocks) + " blocks became " +
                                  std::to_string(swapped.num_blocks) + " on their way to the host");
}

// Each sequence takes one block more at most: its next one, or a copy of a shared one.
void MemoryRules::check_swap_in(const StepView& step, RequestId request_id) {
  const std::int32_t block_size = script_.options.block_size;
  const Memory swapped = memory_of(step.before, request_id, SequenceState::kSwapped, block_size);
  const Memory running = memory_of(step.after, request_id, SequenceState::kRunning, block_size);
  if (swapped.has_many_uncomputed || swapped.has_waiting || running.num_sequences == 0) return;
  if (running.num_blocks > swapped.num_blocks + std::max(running.num_sequences, swapped.num_sequences))
    problem_.note(request_id, "its sharing was lost on its way back from the host");
}

// ---- what is found ----

// All full blocks of the prompt that were findable before the step and that nobody evicted in it.
void MemoryRules::check_hit(const StepView& step, const RequestAdmitted& admission) {
  const ScriptedRequest& asked = runner_.asked(admission.request_id);
  const bool reads_cache = script_.options.enable_prefix_caching && !asked.prompt_logprobs &&
                           script_.options.memory_manager == MemoryManager::kPaged;
  if (!reads_cache || has_kind(step, BlockEventKind::kEvict)) return;
  const std::int32_t block_size = script_.options.block_size;
  std::vector<bool> is_new(step.before.blocks.size());
  for (const BlockEvent& event : step.block_events) {
    if (event.kind == BlockEventKind::kAlloc) is_new[static_cast<std::size_t>(event.block)] = true;
  }
  std::unordered_set<std::uint64_t> findable;
  for (std::size_t index = 0; index < step.before.blocks.size(); ++index) {
    const BlockSnapshot& block = step.before.blocks[index];
    if (block.findable && block.filled == block_size && !is_new[index])
      findable.insert(runner_.last_slot(BlockId{static_cast<std::int32_t>(index)}));
  }
  std::uint64_t prefix_hash = ToyModel::root_of(asked.salt);
  std::int32_t num_tokens = 0, num_found = 0;
  for (const TokenId token : asked.prompt) {
    prefix_hash = ToyModel::extend(prefix_hash, token);
    if (++num_tokens % block_size != 0) continue;
    const bool all_but_one = num_tokens < static_cast<std::int32_t>(asked.prompt.size());
    if (!all_but_one || !findable.contains(prefix_hash)) break;
    num_found = num_tokens;
  }
  if (admission.num_cached_tokens < num_found) {
    problem_.note(admission.request_id, "found " + std::to_string(admission.num_cached_tokens) + " of " +
                                            std::to_string(num_found) + " tokens that were there");
  }
}

}  // namespace octavo::simulation
