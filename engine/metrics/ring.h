// The newest `capacity` records, each with a mark: the number of records appended before it. A reader keeps
// the mark where it stopped and learns how many it missed. Memory grows with use up to the capacity. Not
// thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/check.h"

namespace octavo::metrics {

template <class Record>
class Ring {
 public:
  explicit Ring(std::size_t capacity) : capacity_(capacity) {
    OCTAVO_CHECK(capacity > 0, "a ring holds at least one record");
  }

  void append(const Record& record) {
    if (records_.size() < capacity_) {
      records_.push_back(record);
    } else {
      records_[position(next_mark_)] = record;
    }
    ++next_mark_;
  }

  // The mark of the next record to be appended.
  std::uint64_t next_mark() const { return next_mark_; }

  // Appends to `out` every record from `mark` on that is still here; returns how many were overwritten before
  // they could be read. A mark from the future reads nothing.
  std::uint64_t copy_since(std::uint64_t mark, std::vector<Record>& out) const {
    const std::uint64_t oldest = next_mark_ - records_.size();
    const std::uint64_t first = std::max(mark, oldest);
    for (std::uint64_t next = first; next < next_mark_; ++next) out.push_back(records_[position(next)]);
    return first > mark ? first - mark : 0;
  }

 private:
  std::size_t position(std::uint64_t mark) const { return static_cast<std::size_t>(mark % capacity_); }

  const std::size_t capacity_;
  std::uint64_t next_mark_ = 0;
  std::vector<Record> records_;  // the record of mark m stands at m % capacity
};

}  // namespace octavo::metrics
