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
    constexpr std::uint64_t kLow = 0xffff'ffffu;
    known_.insert((event.sequence & ~kLow) | static_cast<std::uint32_t>(event.aux));
  } else if (event.kind == BlockEventKind::kAlloc || event.kind == BlockEventKind::kHit) {
    if (known_.insert(event.sequence).second) ++stretch_.num_requests;
  }
}

}  // namespace octavo::metrics
