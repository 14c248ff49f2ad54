#include "engine/scheduler/group_queue.h"

#include <algorithm>
#include <utility>

#include "engine/base/check.h"

namespace octavo::scheduler {

void GroupQueue::push_back(std::unique_ptr<SequenceGroup> group) {
  OCTAVO_CHECK(groups_.empty() || groups_.back()->first_sequence_id() < group->first_sequence_id(),
               "sequence ids must ascend");
  const bool is_new = first_sequence_of_.emplace(group->request_id, group->first_sequence_id()).second;
  OCTAVO_CHECK(is_new, "request %llu is known", static_cast<unsigned long long>(group->request_id.value));
  groups_.push_back(std::move(group));
}

std::size_t GroupQueue::place_of(const SequenceGroup& group) const {
  const auto place = std::ranges::find_if(groups_, [&](const auto& other) { return other.get() == &group; });
  OCTAVO_CHECK(place != groups_.end(), "the group is not in the queue");
  return static_cast<std::size_t>(place - groups_.begin());
}

void GroupQueue::remove(const SequenceGroup& group) {
  const std::size_t place = place_of(group);
  const RequestId request_id = group.request_id;
  if (place < num_running_) --num_running_;
  groups_.erase(groups_.begin() + static_cast<std::ptrdiff_t>(place));
  if (groups_of(request_id).empty()) first_sequence_of_.erase(request_id);
}

void GroupQueue::remove(RequestId request_id) {
  for (Groups groups = groups_of(request_id); !groups.empty(); groups = groups_of(request_id)) {
    remove(*groups.back());
  }
}

SequenceGroup& GroupQueue::start_front() {
  OCTAVO_CHECK(num_running_ < groups_.size(), "no group waits");
  return *groups_[num_running_++];
}

SequenceGroup& GroupQueue::preempt_last() {
  OCTAVO_CHECK(num_running_ > 0, "no group runs");
  return *groups_[--num_running_];
}

SequenceGroup& GroupQueue::pause_last_output(SequenceGroup& group) {
  const std::size_t behind = place_of(group) + 1;
  OCTAVO_CHECK(behind >= num_running_, "a newer group runs than that of request %llu",
               static_cast<unsigned long long>(group.request_id.value));
  return **groups_.insert(groups_.begin() + static_cast<std::ptrdiff_t>(behind), group.split_last_output());
}

GroupQueue::Groups GroupQueue::groups_of(RequestId request_id) const {
  const auto found = first_sequence_of_.find(request_id);
  if (found == first_sequence_of_.end()) return {};
  const auto first = std::ranges::partition_point(
      groups_, [&](const auto& group) { return group->first_sequence_id() < found->second; });
  const auto last =
      std::find_if(first, groups_.end(), [&](const auto& group) { return group->request_id != request_id; });
  return {first, last};
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

std::optional<std::string> GroupQueue::broken_invariant() const {
  std::size_t num_found = 0;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const SequenceGroup& group = *groups_[i];
    const std::string name = "a group of request " + std::to_string(group.request_id.value);
    if (i > 0 && groups_[i - 1]->sequences.back().sequence_id >= group.first_sequence_id())
      return name + " stands behind a newer one";
    if (group.num_live() == 0) return name + " has ended and is still there";
    const bool begins_request = i == 0 || groups_[i - 1]->request_id != group.request_id;
    if (!begins_request) continue;
    const Groups all = groups_of(group.request_id);
    if (all.empty() || all.front().get() != &group) return name + " is not found by its request";
    ++num_found;
  }
  if (num_found != first_sequence_of_.size()) return "a request is known and has no group";
  return std::nullopt;
}

}  // namespace octavo::scheduler
