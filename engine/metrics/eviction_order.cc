#include "engine/metrics/eviction_order.h"

#include <functional>
#include <queue>
#include <tuple>

namespace octavo::metrics {

std::vector<std::vector<std::int32_t>> prefix_children(const KvSnapshot& snapshot) {
  const auto count = static_cast<std::int32_t>(snapshot.blocks.size());
  std::vector<std::vector<std::int32_t>> children(snapshot.blocks.size());
  for (std::int32_t i = 0; i < count; ++i) {
    const BlockSnapshot& block = snapshot.blocks[static_cast<std::size_t>(i)];
    const bool is_linked = block.findable && block.parent >= 0 && block.parent < count && block.parent != i;
    if (is_linked && snapshot.blocks[static_cast<std::size_t>(block.parent)].findable)
      children[static_cast<std::size_t>(block.parent)].push_back(i);
  }
  return children;
}

std::vector<std::int32_t> eviction_places(const KvSnapshot& snapshot) {
  const auto children = prefix_children(snapshot);
  const auto count = static_cast<std::int32_t>(children.size());
  std::vector<std::int32_t> num_left(children.size()), places(children.size(), -1);
  // Without a hash first, then by class and last use.
  using Candidate = std::tuple<bool, RetentionClass, std::int64_t, std::int32_t>;
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> leaves;
  const auto offer = [&](std::int32_t index) {
    const BlockSnapshot& block = snapshot.blocks[static_cast<std::size_t>(index)];
    if (block.state == BlockState::kCached && num_left[static_cast<std::size_t>(index)] == 0)
      leaves.push({block.findable, block.retention, block.last_step, index});
  };
  for (std::int32_t i = 0; i < count; ++i) {
    num_left[static_cast<std::size_t>(i)] =
        static_cast<std::int32_t>(children[static_cast<std::size_t>(i)].size());
    offer(i);
  }
  for (std::int32_t place = 0; !leaves.empty(); ++place) {
    const std::int32_t index = std::get<3>(leaves.top());
    leaves.pop();
    places[static_cast<std::size_t>(index)] = place;
    const BlockSnapshot& block = snapshot.blocks[static_cast<std::size_t>(index)];
    const bool has_parent =
        block.findable && block.parent >= 0 && block.parent < count && block.parent != index;
    if (has_parent && --num_left[static_cast<std::size_t>(block.parent)] == 0) offer(block.parent);
  }
  return places;
}

}  // namespace octavo::metrics
