// Generated tokens and begun requests a second, followed step by step and event by event. A value type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "engine/api/block_event.h"
#include "engine/api/metrics.h"

namespace octavo::metrics {

// Of the stretch of RateMeter::kStretchUs that ended at `time_us`.
struct Rates {
  std::int64_t time_us = 0;
  double tokens_per_second = 0;
  double requests_per_second = 0;
};

class RateMeter {
 public:
  // Long enough for a rate, short enough for a curve.
  static constexpr std::int64_t kStretchUs = 500'000;
  // First come, first served: a request older than so many others has ended.
  static constexpr std::size_t kMaxKnown = 65'536;

  // A step generates num_decode_tokens + num_accepted_tokens. Returns the stretches that ended before it
  // began, of a long silence its first and last only.
  std::vector<Rates> add(const StepRecord& step);
  // A request begins when a sequence that was not forked takes its first block; where it ends, events do not
  // say. Call it in the order of events.
  void add(const BlockEvent& event);

 private:
  struct Stretch {
    std::int64_t begin_us = -1;
    std::int64_t num_tokens = 0;
    std::int64_t num_requests = 0;
  };
  bool meet(std::uint64_t sequence);  // true: for the first time

  std::set<std::uint64_t> known_;  // the newest sequences that were forked or have taken a block
  Stretch stretch_;
};

}  // namespace octavo::metrics
