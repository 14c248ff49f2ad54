// The figures of the KV memory, each computed from blocks and tables alone. What the engine keeps up to date
// itself (KvFigures, the levels of a StepRecord) is held equal to these by tests; the others nobody keeps,
// and they are computed when somebody looks. Definitions: README.md.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/api/block_event.h"
#include "engine/api/kv_snapshot.h"
#include "engine/api/metrics.h"
#include "engine/base/ids.h"

namespace octavo::metrics {

// O(blocks + table entries).
KvFigures recount_figures(const KvSnapshot& snapshot);

// The same of a step's levels.
double internal_fragmentation(const StepRecord& step, std::int32_t block_size);
double sharing_ratio(const StepRecord& step);

// What is not in KvFigures.
struct KvUse {
  // Of the slots of used blocks, those that some sequence reads; 0 when nothing is used
  double effective_use = 0.0;
  double tokens_held = 0.0;             // of all slots of the pool, those that some sequence reads
  double external_fragmentation = 0.0;  // always: with one block size any free block serves any request
  std::int32_t longest_free_run = 0;    // blocks with neighbouring ids
  std::int32_t host_free_blocks = 0;
};
KvUse measure_use(const KvSnapshot& snapshot);

// How a sequence lies in the pool. Scatter is no waste: attention reads through the table.
struct Scatter {
  SequenceId sequence_id;
  std::int32_t num_runs = 0;  // of ascending neighbouring ids
  std::int32_t num_blocks = 0;
  double share() const { return num_blocks == 0 ? 0.0 : static_cast<double>(num_runs) / num_blocks; }
};
std::vector<Scatter> measure_scatter(const KvSnapshot& snapshot);  // of sequences with device blocks

// What it spares that layers with a window keep only what they read. 0 where they have no pool of their own.
struct WindowUse {
  std::int64_t num_left_behind = 0;  // table entries whose window parts their sequences read no more
  std::int64_t num_spared = 0;       // used and cached blocks without a window part
  std::int64_t spared_bytes = 0;
};
WindowUse measure_windows(const KvSnapshot& snapshot);

// What other rules would hold at this moment for the same running sequences.
struct Counterfactuals {
  // A chunk of max_model_len for each sequence, from its start to its end
  std::int64_t contiguous_blocks = 0;
  std::int64_t contiguous_bytes = 0;
  std::int64_t unshared_blocks = 0;  // pages, but each sequence with its own copy of everything
  std::int64_t unshared_bytes = 0;
};
Counterfactuals measure_counterfactuals(const KvSnapshot& snapshot, std::int32_t max_model_len);

// Of the tokens that were to have KV in a window, other than the next one of an output, those that were
// found.
struct PrefixHits {
  std::int64_t num_reused = 0;
  std::int64_t num_computed = 0;
  double share() const;
};
// `steps` are those between the two totals.
PrefixHits measure_prefix_hits(const KvTotals& before, const KvTotals& after,
                               std::span<const StepRecord> steps);

// Copies between the pools, followed event by event.
class SwapMeter {
 public:
  // A block that comes back within `thrash_us` of its swap out was not worth the way.
  explicit SwapMeter(std::int64_t thrash_us = 10'000'000) : thrash_us_(thrash_us) {}

  // REQUIRES: KvState::apply took it.
  void add(const BlockEvent& event);

  std::int64_t num_out() const { return num_out_; }
  std::int64_t num_in() const { return num_in_; }
  std::int64_t num_dropped() const {
    return num_dropped_;
  }  // given up in the host pool, or still on the device
  std::int64_t num_thrashed() const { return num_thrashed_; }  // of num_in()

 private:
  const std::int64_t thrash_us_;
  struct HostBlock {
    std::int64_t out_us = 0;  // when it was taken
    bool came_back = false;
  };
  std::vector<HostBlock> host_blocks_;
  std::int64_t num_out_ = 0, num_in_ = 0, num_dropped_ = 0, num_thrashed_ = 0;
};

}  // namespace octavo::metrics
