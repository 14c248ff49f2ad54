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
  switch (event.kind) {
    case BlockEventKind::kAlloc:
    case BlockEventKind::kHit:
    case BlockEventKind::kShare: {
      Sequence& sequence = sequences_[event.sequence];
      ++sequence.num_blocks;
      sequence.is_preempted = false;
      break;
    }
    case BlockEventKind::kUnref: let_go(event.sequence); break;
    case BlockEventKind::kPreempt: {
      Sequence& sequence = sequences_[event.sequence];
      // By swap its blocks went before, and it looked as if it had ended.
      if (sequence.num_blocks == 0 && !sequence.is_forked) --stretch_.num_requests;
      sequence.is_preempted = true;
      break;
    }
    case BlockEventKind::kFork: {
      constexpr std::uint64_t kLow = 0xffff'ffffu;
      sequences_[(event.sequence & ~kLow) | static_cast<std::uint32_t>(event.aux)].is_forked = true;
      break;
    }
    default: break;
  }
}

void RateMeter::let_go(std::uint64_t sequence) {
  Sequence& known = sequences_[sequence];
  if (--known.num_blocks > 0 || known.is_preempted) return;
  if (!known.is_forked) ++stretch_.num_requests;
}

}  // namespace octavo::metrics
