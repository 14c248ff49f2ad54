#include "app/window/memory/memory_tree.h"

#include <algorithm>
#include <utility>

#include "engine/metrics/eviction_order.h"

namespace octavo::app {
namespace {

constexpr std::size_t kMostTextBytes = 160;
constexpr std::size_t kMostRuns = 2'000;

bool is_root(const KvSnapshot& snapshot, std::size_t index) {
  const BlockSnapshot& block = snapshot.blocks[index];
  if (!block.findable) return false;
  const auto count = static_cast<std::int32_t>(snapshot.blocks.size());
  return block.parent < 0 || block.parent >= count ||
         !snapshot.blocks[static_cast<std::size_t>(block.parent)].findable;
}

class TreeMaker {
 public:
  TreeMaker(const KvSnapshot& snapshot, const metrics::PoolStory& story, const TextOfBlock& text_of)
      : snapshot_(snapshot),
        story_(story),
        text_of_(text_of),
        children_(metrics::prefix_children(snapshot)),
        places_(metrics::eviction_places(snapshot)) {}

  std::vector<ui::PrefixRun> make() {
    struct Start {
      std::int32_t block, parent, depth;
    };
    std::vector<Start> starts;
    for (std::size_t i = snapshot_.blocks.size(); i-- > 0;) {
      if (is_root(snapshot_, i)) starts.push_back({static_cast<std::int32_t>(i), -1, 0});
    }
    std::vector<ui::PrefixRun> runs;
    while (!starts.empty() && runs.size() < kMostRuns) {
      const Start start = starts.back();
      starts.pop_back();
      const auto index = static_cast<std::int32_t>(runs.size());
      runs.push_back(run_from(start.block, start.parent, start.depth));
      const auto& next = children_[static_cast<std::size_t>(runs.back().blocks.back().value)];
      for (auto child = next.rbegin(); child != next.rend(); ++child) {
        starts.push_back({*child, index, start.depth + 1});
      }
    }
    return runs;
  }

 private:
  ui::PrefixRun run_from(std::int32_t block, std::int32_t parent, std::int32_t depth) {
    ui::PrefixRun run{.parent = parent, .depth = depth};
    if (static_cast<std::size_t>(block) < story_.blocks.size())
      run.num_hits = story_.blocks[static_cast<std::size_t>(block)].num_hits;
    const bool is_used = reference_count(block) > 0;
    while (true) {
      add(run, block);
      const auto& next = children_[static_cast<std::size_t>(block)];
      if (next.size() != 1 || (reference_count(next.front()) > 0) != is_used) return run;
      if (run.blocks.size() >= snapshot_.blocks.size()) return run;  // parents in a circle
      block = next.front();
    }
  }

  void add(ui::PrefixRun& run, std::int32_t block) {
    const auto index = static_cast<std::size_t>(block);
    run.blocks.push_back(BlockId{block});
    run.num_references = std::max(run.num_references, snapshot_.blocks[index].ref_count);
    run.retention = std::max(run.retention, snapshot_.blocks[index].retention);
    if (index < story_.blocks.size()) run.last_us = std::max(run.last_us, story_.blocks[index].last_us);
    if (run.text.size() < kMostTextBytes) run.text += text_of_(BlockId{block});
    const std::int32_t place = places_[index];
    if (place >= 0 && (run.eviction_place < 0 || place < run.eviction_place)) run.eviction_place = place;
  }

  std::int32_t reference_count(std::int32_t block) const {
    return snapshot_.blocks[static_cast<std::size_t>(block)].ref_count;
  }

  const KvSnapshot& snapshot_;
  const metrics::PoolStory& story_;
  const TextOfBlock& text_of_;
  const std::vector<std::vector<std::int32_t>> children_;
  const std::vector<std::int32_t> places_;
};

}  // namespace

std::vector<ui::PrefixRun> make_prefix_tree(const KvSnapshot& snapshot, const metrics::PoolStory& story,
                                            const TextOfBlock& text_of) {
  return TreeMaker(snapshot, story, text_of).make();
}

}  // namespace octavo::app
