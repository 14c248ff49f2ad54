// When something is due, at most once for each id. The earliest is known without looking at the others.
//
// Thread: one at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace octavo::http {

using Time = std::chrono::steady_clock::time_point;

class Deadlines {
 public:
  // nullopt: never.
  void set(std::uint64_t id, std::optional<Time> time) {
    const auto old = times_.find(id);
    if (old != times_.end()) {
      if (time == old->second) return;
      in_order_.erase({old->second, id});
      times_.erase(old);
    }
    if (!time) return;
    times_[id] = *time;
    in_order_.insert({*time, id});
  }

  std::optional<Time> first() const {
    return in_order_.empty() ? std::nullopt : std::optional(in_order_.begin()->first);
  }

  // One that is due by `now`, which is then forgotten.
  std::optional<std::uint64_t> take_due(Time now) {
    if (in_order_.empty() || in_order_.begin()->first > now) return std::nullopt;
    const std::uint64_t id = in_order_.begin()->second;
    set(id, std::nullopt);
    return id;
  }

 private:
  std::map<std::uint64_t, Time> times_;
  std::set<std::pair<Time, std::uint64_t>> in_order_;
};

}  // namespace octavo::http
