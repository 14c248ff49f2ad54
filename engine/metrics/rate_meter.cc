#include "engine/metrics/rate_meter.h"

namespace octavo::metrics {

std::vector<Rates> RateMeter::add(const StepRecord& step) {
  std::vector<Rates> ended;
  if (stretch_.begin_us < 0) stretch_.begin_us = step.begin_us;
  while (step.begin_us >= stretch_.begin_us + kStretchUs) {
    constexpr double kSeconds = static_cast<double>(kStretchUs) / 1e6;
    ended.push_back({stretch_.begin_us + kStretchUs, static_cast<double>(stretch_.num_tokens) / kSeconds,
                     static_cast<double>(stretch_.num_requests) / kSeconds});
    const std::int64_t silent = (step.begin_us - stretch_.begin_us) / kStretchUs - 1;
    stretch_ = {.begin_us = stretch_.begin_us + kStretchUs};
    if (silent > 2) stretch_.begin_us += (silent - 1) * kStretchUs;
  }
  stretch_.num_tokens += step.num_decode_tokens + step.num_accepted_tokens;
  return ended;
}

void RateMeter::add(const BlockEvent& event) {
  if (event.sequence == 0) return;
  if (event.kind == BlockEventKind::kFork) {
    meet(forked_child(event));
  } else if (event.kind == BlockEventKind::kAlloc || event.kind == BlockEventKind::kHit) {
    if (meet(event.sequence)) ++stretch_.num_requests;
  }
}

bool RateMeter::meet(std::uint64_t sequence) {
  const bool is_new = known_.insert(sequence).second;
  if (known_.size() > kMaxKnown) known_.erase(known_.begin());
  return is_new;
}

}  // namespace octavo::metrics
