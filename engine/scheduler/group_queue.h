// All groups in order of arrival, with one border: those before it run, those behind it wait. That is the
// whole queueing discipline:
//
//   start      the border moves behind the first waiting group
//   preempt    the border moves before the last running group
//
// So start order is arrival order, the latest arrived running group is preempted first, and a preempted
// group, being older than all that never ran, is the next to resume: no other order can be expressed.
//
// A request is one group, until an output of it is paused: that is then a group of its own, directly behind
// the rest of its request, and under the same discipline. Engine thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/base/ids.h"
#include "engine/scheduler/sequence_group.h"

namespace octavo::scheduler {

class GroupQueue {
 public:
  using Groups = std::span<const std::unique_ptr<SequenceGroup>>;

  // REQUIRES: its request is not known yet, and its sequence ids are above all earlier ones.
  void push_back(std::unique_ptr<SequenceGroup> group);
  // Forgets a group in whatever state, or all of a request. Their blocks were released.
  void remove(const SequenceGroup& group);
  void remove(RequestId request_id);

  SequenceGroup& start_front();   // REQUIRES: one waits
  SequenceGroup& preempt_last();  // REQUIRES: one runs
  // The last live output of `group`, as a group of its own that waits. What it holds, it keeps.
  // REQUIRES: group.can_pause_output(), and nothing behind it runs.
  SequenceGroup& pause_last_output(SequenceGroup& group);

  Groups running() const { return Groups(groups_).first(num_running_); }
  Groups waiting() const { return Groups(groups_).subspan(num_running_); }
  Groups all() const { return groups_; }

  Groups groups_of(RequestId request_id) const;  // in order of output; none: unknown
  struct Found {
    SequenceGroup& group;
    Sequence& sequence;
  };
  std::optional<Found> find(SequenceId sequence_id) const;

  // The first of these that does not hold: sequence ids ascend, every group has somebody live, and the groups
  // of a known request stand together.
  std::optional<std::string> broken_invariant() const;

 private:
  std::size_t place_of(const SequenceGroup& group) const;

  std::vector<std::unique_ptr<SequenceGroup>> groups_;  // ascending by arrival, so by sequence id
  std::size_t num_running_ = 0;
  std::map<RequestId, SequenceId> first_sequence_of_;  // as it was at its arrival
};

}  // namespace octavo::scheduler
