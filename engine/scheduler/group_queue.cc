#include "engine/scheduler/group_queue.h"

#include <algorithm>
#include <utility>

#include "engine/base/check.h"

namespace octavo::scheduler {

void GroupQueue::push_back(std::unique_ptr<SequenceGroup> group) {
  OCTAVO_CHECK(group->first_sequence_id() > newest_, "sequence ids must ascend");
  const bool is_new = first_sequence_of_.emplace(group->request_id, group->first_sequence_id()).second;
  OCTAVO_CHECK(is_new, "request %llu is known", static_cast<unsigned long long>(group->request_id.value));
  newest_ = group->sequences.back().sequence_id;
  const std::size_t place = num_running_ + place_in(waiting(), group->priority, group->first_sequence_id());
  groups_.insert(groups_.begin() + static_cast<std::ptrdiff_t>(place), std::move(group));
}

std::size_t GroupQueue::place_in(Groups groups, RequestPriority line, SequenceId first_sequence_id) {
  const auto place = std::ranges::partition_point(groups, [&](const auto& other) {
    return other->priority != line ? other->priority < line : other->first_sequence_id() < first_sequence_id;
  });
  return static_cast<std::size_t>(place - groups.begin());
}

std::array<GroupQueue::Groups, 4> GroupQueue::parts() const {
  std::array<Groups, 4> parts;
  for (std::size_t i = 0; i < 2; ++i) {
    const Groups groups = i == 0 ? running() : waiting();
    const std::size_t num_interactive = place_in(groups, RequestPriority::kBackground, SequenceId{});
    parts[2 * i] = groups.first(num_interactive);
    parts[2 * i + 1] = groups.subspan(num_interactive);
  }
  return parts;
}

bool GroupQueue::is_mixed() const {
  const auto parts = this->parts();
  return (!parts[0].empty() || !parts[2].empty()) && (!parts[1].empty() || !parts[3].empty());
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
  const std::vector<SequenceGroup*> groups = groups_of(request_id);
  for (std::size_t i = groups.size(); i-- > 0;) remove(*groups[i]);
}

SequenceGroup& GroupQueue::start_front() {
  OCTAVO_CHECK(num_running_ < groups_.size(), "no group waits");
  SequenceGroup& started = *groups_[num_running_];
  const auto border = groups_.begin() + static_cast<std::ptrdiff_t>(num_running_);
  const auto place = groups_.begin() + static_cast<std::ptrdiff_t>(place_in(running(), started.priority,
                                                                            started.first_sequence_id()));
  std::rotate(place, border, border + 1);
  ++num_running_;
  return started;
}

SequenceGroup& GroupQueue::preempt_last() {
  OCTAVO_CHECK(num_running_ > 0, "no group runs");
  SequenceGroup& preempted = *groups_[--num_running_];
  const std::size_t num_ahead =
      place_in(waiting().subspan(1), preempted.priority, preempted.first_sequence_id());
  const auto border = groups_.begin() + static_cast<std::ptrdiff_t>(num_running_);
  std::rotate(border, border + 1, border + 1 + static_cast<std::ptrdiff_t>(num_ahead));
  return preempted;
}

SequenceGroup& GroupQueue::pause_last_output(SequenceGroup& group) {
  const std::size_t place = place_of(group);
  const bool is_last = place + 1 >= num_running_ || groups_[place + 1]->priority != group.priority;
  OCTAVO_CHECK(is_last, "a newer group runs than that of request %llu",
               static_cast<unsigned long long>(group.request_id.value));
  std::unique_ptr<SequenceGroup> paused = group.split_last_output();
  const std::size_t behind =
      num_running_ + place_in(waiting(), paused->priority, paused->first_sequence_id());
  return **groups_.insert(groups_.begin() + static_cast<std::ptrdiff_t>(behind), std::move(paused));
}

std::vector<SequenceGroup*> GroupQueue::groups_of(RequestId request_id) const {
  std::vector<SequenceGroup*> found;
  const auto known = first_sequence_of_.find(request_id);
  if (known == first_sequence_of_.end()) return found;
  for (const Groups part : parts()) {
    auto group = std::ranges::partition_point(
        part, [&](const auto& other) { return other->first_sequence_id() < known->second; });
    for (; group != part.end() && (*group)->request_id == request_id; ++group) found.push_back(group->get());
  }
  return found;
}

std::vector<SequenceGroup*> GroupQueue::by_arrival() const {
  std::vector<SequenceGroup*> groups;
  for (const auto& group : groups_) groups.push_back(group.get());
  std::ranges::sort(groups, {}, &SequenceGroup::first_sequence_id);
  return groups;
}

std::optional<GroupQueue::Found> GroupQueue::find(SequenceId sequence_id) const {
  for (const Groups part : parts()) {
    const auto behind = std::ranges::partition_point(
        part, [&](const auto& group) { return group->first_sequence_id() <= sequence_id; });
    if (behind == part.begin()) continue;
    SequenceGroup& group = **std::prev(behind);
    const std::uint64_t index = sequence_id.value - group.first_sequence_id().value;
    if (index < group.sequences.size()) return Found{group, group.sequences[index]};
  }
  return std::nullopt;
}

std::optional<std::string> GroupQueue::broken_invariant() const {
  std::size_t num_found = 0;
  const auto name = [](const SequenceGroup& group) {
    return "a group of request " + std::to_string(group.request_id.value);
  };
  for (std::size_t i = 1; i < groups_.size(); ++i) {
    const bool is_next_line = i != num_running_ && groups_[i - 1]->priority > groups_[i]->priority;
    if (is_next_line) return name(*groups_[i]) + " stands behind the other line";
  }
  const auto parts = this->parts();
  for (std::size_t line = 0; line < 2; ++line) {
    const SequenceGroup* previous = nullptr;
    for (const Groups part : {parts[line], parts[line + 2]}) {
      for (const auto& group : part) {
        if (previous != nullptr && previous->sequences.back().sequence_id >= group->first_sequence_id())
          return name(*group) + " stands behind a newer one";
        if (group->num_live() == 0) return name(*group) + " has ended and is still there";
        const bool begins_request = previous == nullptr || previous->request_id != group->request_id;
        previous = group.get();
        if (!begins_request) continue;
        const std::vector<SequenceGroup*> all = groups_of(group->request_id);
        if (all.empty() || all.front() != group.get()) return name(*group) + " is not found by its request";
        ++num_found;
      }
    }
  }
  if (num_found != first_sequence_of_.size()) return "a request is known and has no group";
  return std::nullopt;
}

}  // namespace octavo::scheduler
