// All groups in order of arrival, with one border: those before it run, those behind it wait. That is the
// whole queueing discipline:
//
//   start      the border moves behind the first waiting group
//   preempt    the border moves before the last running group
//
// So start order is arrival order, the latest arrived running group is preempted first, and a preempted
// group, being older than all that never ran, is the next to resume: no other order can be expressed. Engine
// thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/base/ids.h"
#include "engine/scheduler/sequence_group.h"

namespace octavo::scheduler {

class GroupQueue {
 public:
  using Groups = std::span<const std::unique_ptr<SequenceGroup>>;

  // REQUIRES: its request is not known yet, and its sequence ids are above all earlier ones.
  void push_back(std::unique_ptr<SequenceGroup> group);
  // Forgets a group in whatever state. Its blocks were released.
  void remove(const SequenceGroup& group);

  SequenceGroup& start_front();   // REQUIRES: one waits
  SequenceGroup& preempt_last();  // REQUIRES: one runs

  Groups running() const { return Groups(groups_).first(num_running_); }
  Groups waiting() const { return Groups(groups_).subspan(num_running_); }
  Groups all() const { return groups_; }

  SequenceGroup* find(RequestId request_id) const;  // null: unknown
  struct Found {
    SequenceGroup& group;
    Sequence& sequence;
  };
  std::optional<Found> find(SequenceId sequence_id) const;

 private:
  std::vector<std::unique_ptr<SequenceGroup>> groups_;  // ascending by arrival, so by sequence id
  std::size_t num_running_ = 0;
  std::map<RequestId, SequenceGroup*> by_request_;
};

}  // namespace octavo::scheduler
