#include "engine/scheduler/group_queue.h"

#include <algorithm>
#include <utility>

#include "engine/base/check.h"

namespace octavo::scheduler {

void GroupQueue::push_back(std::unique_ptr<SequenceGroup> group) {
  OCTAVO_CHECK(groups_.empty() || groups_.back()->first_sequence_id() < group->first_sequence_id(),
               "sequence ids must ascend");
  const bool is_new = by_request_.emplace(group->request_id, group.get()).second;
  OCTAVO_CHECK(is_new, "request %llu is known", static_cast<unsigned long long>(group->request_id.value));
  groups_.push_back(std::move(group));
}

void GroupQueue::remove(const SequenceGroup& group) {
  const auto place = std::ranges::find_if(groups_, [&](const auto& other) { return other.get() == &group; });
  OCTAVO_CHECK(place != groups_.end(), "the group is not in the queue");
  if (static_cast<std::size_t>(place - groups_.begin()) < num_running_) --num_running_;
  by_request_.erase(group.request_id);
  groups_.erase(place);
}

SequenceGroup& GroupQueue::start_front() {
  OCTAVO_CHECK(num_running_ < groups_.size(), "no group waits");
  return *groups_[num_running_++];
}

SequenceGroup& GroupQueue::preempt_last() {
  OCTAVO_CHECK(num_running_ > 0, "no group runs");
  return *groups_[--num_running_];
}

SequenceGroup* GroupQueue::find(RequestId request_id) const {
  const auto found = by_request_.find(request_id);
  return found == by_request_.end() ? nullptr : found->second;
}

std::optional<GroupQueue::Found> GroupQueue::find(SequenceId sequence_id) const {
  const auto behind = std::ranges::partition_point(
      groups_, [&](const auto& group) { return group->first_sequence_id() <= sequence_id; });
  if (behind == groups_.begin()) return std::nullopt;
  SequenceGroup& group = **std::prev(behind);
  const std::uint64_t index = sequence_id.value - group.first_sequence_id().value;
  if (index >= group.sequences.size()) return std::nullopt;
  return Found{group, group.sequences[index]};
}

}  // namespace octavo::scheduler
