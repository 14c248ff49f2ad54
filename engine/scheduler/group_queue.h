// Two lines of groups, the interactive one and the background one, each in order of arrival and with one
// border: those before it run, those behind it wait. The interactive line comes first in everything. That is
// the whole queueing discipline:
//
//   start      the border of the first line that has a waiting group moves behind its first one
//   preempt    the border of the last line that has a running group moves before its last one
//
// So within a line start order is arrival order, the latest arrived running group is preempted first, and a
// preempted group, being older than all that never ran, is the next to resume; and no background group keeps
// its blocks while an interactive one loses them. No other order can be expressed.
//
// A request is one group, until an output of it is paused: that is then a group of its own, directly behind
// the rest of its request, and under the same discipline. Engine thread.
#pragma once

#include <array>
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
  // The interactive ones first, within a line by arrival.
  using Groups = std::span<const std::unique_ptr<SequenceGroup>>;

  // REQUIRES: its request is not known yet, and its sequence ids are above all earlier ones.
  void push_back(std::unique_ptr<SequenceGroup> group);
  // Forgets a group in whatever state, or all of a request. Their blocks were released.
  void remove(const SequenceGroup& group);
  void remove(RequestId request_id);

  SequenceGroup& start_front();   // REQUIRES: one waits
  SequenceGroup& preempt_last();  // REQUIRES: one runs
  // The last live output of `group`, as a group of its own that waits. What it holds, it keeps.
  // REQUIRES: group.can_pause_output(), and nothing behind it in its line runs.
  SequenceGroup& pause_last_output(SequenceGroup& group);

  Groups running() const { return Groups(groups_).first(num_running_); }
  Groups waiting() const { return Groups(groups_).subspan(num_running_); }
  Groups all() const { return groups_; }

  // Whether both lines have somebody: only then do they matter.
  bool is_mixed() const;

  std::vector<SequenceGroup*> groups_of(RequestId request_id) const;  // in order of output; none: unknown
  std::vector<SequenceGroup*> by_arrival() const;
  struct Found {
    SequenceGroup& group;
    Sequence& sequence;
  };
  std::optional<Found> find(SequenceId sequence_id) const;

  // The first of these that does not hold: lines are in order, sequence ids ascend in each, every group has
  // somebody live, and the groups of a known request stand together.
  std::optional<std::string> broken_invariant() const;

 private:
  std::size_t place_of(const SequenceGroup& group) const;
  // Where a group of this line and id stands, or would, among `groups`.
  static std::size_t place_in(Groups groups, RequestPriority line, SequenceId first_sequence_id);
  // What runs and what waits, of each line: ascending by sequence id.
  std::array<Groups, 4> parts() const;

  // What runs, and behind it what waits; both by line, then by arrival, so by sequence id.
  std::vector<std::unique_ptr<SequenceGroup>> groups_;
  std::size_t num_running_ = 0;
  SequenceId newest_{};
  std::map<RequestId, SequenceId> first_sequence_of_;  // as it was at its arrival
};

}  // namespace octavo::scheduler
