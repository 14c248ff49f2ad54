#include "engine/metrics/kv_figures.h"

#include <algorithm>
#include <cstddef>
#include <set>

namespace octavo::metrics {
namespace {

bool has_device_blocks(const SequenceSnapshot& sequence) {
  return sequence.state != SequenceState::kSwapped && !sequence.block_table.empty();
}

std::int32_t count_logical_blocks(const KvSnapshot& snapshot) {
  std::size_t num_blocks = 0;
  for (const SequenceSnapshot& sequence : snapshot.sequences) {
    if (has_device_blocks(sequence)) num_blocks += sequence.block_table.size();
  }
  return static_cast<std::int32_t>(num_blocks);
}

// Shared host blocks once.
std::int32_t count_host_used_blocks(const KvSnapshot& snapshot) {
  std::vector<BlockId> blocks;
  for (const SequenceSnapshot& sequence : snapshot.sequences) {
    if (sequence.state != SequenceState::kSwapped) continue;
    blocks.insert(blocks.end(), sequence.block_table.begin(), sequence.block_table.end());
  }
  std::ranges::sort(blocks);
  return static_cast<std::int32_t>(std::unique(blocks.begin(), blocks.end()) - blocks.begin());
}

// Shared ones of the host pool once.
std::int32_t count_host_used_states(const KvSnapshot& snapshot) {
  std::set<BlockId> states;
  for (const SequenceSnapshot& sequence : snapshot.sequences) {
    if (sequence.state == SequenceState::kSwapped && sequence.state_slot.value >= 0)
      states.insert(sequence.state_slot);
  }
  return static_cast<std::int32_t>(states.size());
}

void recount_states(const KvSnapshot& snapshot, KvFigures& figures) {
  for (const StateSnapshot& state : snapshot.states) {
    figures.used_states += state.state == BlockState::kUsed ? 1 : 0;
    figures.cached_states += state.state == BlockState::kCached ? 1 : 0;
    figures.free_states += state.state == BlockState::kFree ? 1 : 0;
    figures.checkpoints += state.is_checkpoint ? 1 : 0;
  }
  figures.host_used_states = count_host_used_states(snapshot);
}

void recount_windows(const KvSnapshot& snapshot, KvFigures& figures) {
  for (const BlockSnapshot& block : snapshot.blocks) {
    figures.used_window_blocks += block.window == WindowPart::kUsed ? 1 : 0;
    figures.cached_window_blocks += block.window == WindowPart::kCached ? 1 : 0;
  }
  figures.free_window_blocks =
      snapshot.totals.num_window_blocks - figures.used_window_blocks - figures.cached_window_blocks;
  if (snapshot.totals.num_window_blocks == 0) return;
  std::set<BlockId> host_blocks;
  for (const SequenceSnapshot& sequence : snapshot.sequences) {
    if (sequence.state != SequenceState::kSwapped) continue;
    for (auto i = static_cast<std::size_t>(sequence.num_blocks_left_behind); i < sequence.block_table.size();
         ++i)
      host_blocks.insert(sequence.block_table[i]);
  }
  figures.host_used_window_blocks = static_cast<std::int32_t>(host_blocks.size());
}

// Slots that attention reads for some sequence: each slot of a block once.
std::int64_t count_read_slots(const KvSnapshot& snapshot) {
  const std::int32_t block_size = snapshot.totals.block_size;
  std::vector<std::int32_t> num_read(snapshot.blocks.size());
  for (const SequenceSnapshot& sequence : snapshot.sequences) {
    if (!has_device_blocks(sequence)) continue;
    std::int32_t num_left = sequence.num_computed_tokens;
    for (const BlockId block : sequence.block_table) {
      std::int32_t& slots = num_read[index_of(block)];
      slots = std::max(slots, std::clamp(num_left, 0, block_size));
      num_left -= block_size;
    }
  }
  std::int64_t num_slots = 0;
  for (const std::int32_t slots : num_read) num_slots += slots;
  return num_slots;
}

std::int32_t find_longest_free_run(const KvSnapshot& snapshot) {
  std::int32_t longest = 0, run = 0;
  for (const BlockSnapshot& block : snapshot.blocks) {
    run = block.state == BlockState::kFree ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  return longest;
}

}  // namespace

KvFigures recount_figures(const KvSnapshot& snapshot) {
  const std::int32_t block_size = snapshot.totals.block_size;
  KvFigures figures;
  for (const BlockSnapshot& block : snapshot.blocks) {
    figures.free_blocks += block.state == BlockState::kFree ? 1 : 0;
    figures.cached_blocks += block.state == BlockState::kCached ? 1 : 0;
    if (block.state != BlockState::kUsed) continue;
    ++figures.used_blocks;
    figures.filled_slots += block.filled;
    figures.reserved_ahead_slots += block.reserved;
    figures.unfilled_slots += block_size - block.filled - block.reserved;
  }
  figures.logical_blocks = count_logical_blocks(snapshot);
  figures.saved_bytes =
      (std::int64_t{figures.logical_blocks} - figures.used_blocks) * snapshot.totals.bytes_per_block;
  figures.host_used_blocks = count_host_used_blocks(snapshot);
  recount_states(snapshot, figures);
  recount_windows(snapshot, figures);
  if (figures.used_blocks == 0) return figures;
  const double num_used = figures.used_blocks;
  figures.sharing_ratio = figures.logical_blocks / num_used;
  figures.internal_fragmentation = figures.unfilled_slots / (num_used * block_size);
  return figures;
}

double internal_fragmentation(const StepRecord& step, std::int32_t block_size) {
  if (step.used_blocks == 0) return 0.0;
  return static_cast<double>(step.unfilled_slots) / (static_cast<double>(block_size) * step.used_blocks);
}

double sharing_ratio(const StepRecord& step) {
  return step.used_blocks == 0 ? 1.0 : static_cast<double>(step.logical_blocks) / step.used_blocks;
}

KvUse measure_use(const KvSnapshot& snapshot) {
  const KvFigures figures = recount_figures(snapshot);
  const auto num_read = static_cast<double>(count_read_slots(snapshot));
  const double block_size = snapshot.totals.block_size;
  KvUse use;
  if (figures.used_blocks > 0) use.effective_use = num_read / (block_size * figures.used_blocks);
  if (!snapshot.blocks.empty()) {
    use.tokens_held = num_read / (block_size * static_cast<double>(snapshot.blocks.size()));
  }
  use.longest_free_run = find_longest_free_run(snapshot);
  use.host_free_blocks = snapshot.totals.num_host_blocks - figures.host_used_blocks;
  return use;
}

std::vector<Scatter> measure_scatter(const KvSnapshot& snapshot) {
  std::vector<Scatter> scatters;
  for (const SequenceSnapshot& sequence : snapshot.sequences) {
    if (!has_device_blocks(sequence)) continue;
    Scatter& scatter = scatters.emplace_back();
    scatter.sequence_id = sequence.sequence_id;
    scatter.num_blocks = static_cast<std::int32_t>(sequence.block_table.size());
    for (std::size_t i = 0; i < sequence.block_table.size(); ++i) {
      const bool continues = i > 0 && sequence.block_table[i].value == sequence.block_table[i - 1].value + 1;
      scatter.num_runs += continues ? 0 : 1;
    }
  }
  return scatters;
}

WindowUse measure_windows(const KvSnapshot& snapshot) {
  WindowUse use;
  if (snapshot.totals.num_window_blocks == 0) return use;
  for (const SequenceSnapshot& sequence : snapshot.sequences) {
    if (has_device_blocks(sequence)) use.num_left_behind += sequence.num_blocks_left_behind;
  }
  for (const BlockSnapshot& block : snapshot.blocks) {
    const bool is_held = block.state != BlockState::kFree;
    use.num_spared += is_held && block.window == WindowPart::kNone ? 1 : 0;
  }
  use.spared_bytes = use.num_spared * snapshot.totals.bytes_per_window_block;
  return use;
}

Counterfactuals measure_counterfactuals(const KvSnapshot& snapshot, std::int32_t max_model_len) {
  const std::int64_t block_size = snapshot.totals.block_size;
  Counterfactuals other;
  other.unshared_blocks = count_logical_blocks(snapshot);
  for (const SequenceSnapshot& sequence : snapshot.sequences) {
    if (sequence.state != SequenceState::kRunning) continue;
    other.contiguous_blocks += (max_model_len + block_size - 1) / block_size;
  }
  other.contiguous_bytes = other.contiguous_blocks * snapshot.totals.bytes_per_block;
  other.unshared_bytes = other.unshared_blocks * snapshot.totals.bytes_per_block;
  return other;
}

double PrefixHits::share() const {
  const std::int64_t num_tokens = num_reused + num_computed;
  return num_tokens == 0 ? 0.0 : static_cast<double>(num_reused) / static_cast<double>(num_tokens);
}

PrefixHits measure_prefix_hits(const KvTotals& before, const KvTotals& after,
                               std::span<const StepRecord> steps) {
  PrefixHits hits;
  hits.num_reused = after.prefix_hit_tokens - before.prefix_hit_tokens;
  for (const StepRecord& step : steps) hits.num_computed += step.num_prefill_tokens;
  return hits;
}

void SwapMeter::add(const BlockEvent& event) {
  const bool is_swap = event.kind == BlockEventKind::kSwapOut || event.kind == BlockEventKind::kSwapIn ||
                       event.kind == BlockEventKind::kSwapDrop;
  if (!is_swap) return;
  const auto index = static_cast<std::size_t>(event.aux);
  if (host_blocks_.size() <= index) host_blocks_.resize(index + 1);
  HostBlock& host = host_blocks_[index];
  if (event.kind == BlockEventKind::kSwapOut) {
    ++num_out_;
    host = {.out_us = event.time_us};
  } else if (event.kind == BlockEventKind::kSwapIn) {
    ++num_in_;
    host.came_back = true;
    if (event.time_us - host.out_us <= thrash_us_) ++num_thrashed_;
  } else if (!host.came_back) {
    ++num_dropped_;
  }
}

}  // namespace octavo::metrics
