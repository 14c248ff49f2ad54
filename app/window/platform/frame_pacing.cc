#include "app/window/platform/frame_pacing.h"

#include <algorithm>
#include <array>
#include <limits>

namespace octavo::app {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kStreamingUs = 33'000;  // 30 frames a second are as much as anyone reads
constexpr std::int64_t kBlinkUs = 400'000;
constexpr std::int64_t kBlinkEndsUs = 5'000'000;
// Dear ImGui answers some input one frame later, and shows tooltips once the pointer has rested.
constexpr int kFramesAfterInput = 3;
constexpr std::array<std::int64_t, 2> kSettlingUs = {220'000, 480'000};

}  // namespace

void FramePacing::on_input(std::int64_t now_us) {
  frames_left_ = kFramesAfterInput;
  last_input_us_ = now_us;
}

void FramePacing::on_change(std::int64_t) { changed_ = true; }

std::int64_t FramePacing::next_settling_us() const {
  for (const std::int64_t after : kSettlingUs) {
    if (last_frame_us_ < last_input_us_ + after) return last_input_us_ + after;
  }
  return kNever;
}

std::int64_t FramePacing::next_frame_us() const {
  if (frames_left_ > 0) return last_frame_us_;
  std::int64_t next = next_settling_us();
  if (changed_) next = std::min(next, last_frame_us_ + kStreamingUs);
  if (caret_ && last_frame_us_ < last_input_us_ + kBlinkEndsUs) {
    next = std::min(next, std::min(last_frame_us_ + kBlinkUs, last_input_us_ + kBlinkEndsUs));
  }
  return next;
}

bool FramePacing::frame_due(std::int64_t now_us) const { return now_us >= next_frame_us(); }

double FramePacing::seconds_to_wait(std::int64_t now_us) const {
  const std::int64_t next = next_frame_us();
  if (next == kNever) return -1;
  return static_cast<double>(std::max<std::int64_t>(0, next - now_us)) / 1e6;
}

void FramePacing::on_frame(std::int64_t now_us, bool caret) {
  last_frame_us_ = now_us;
  changed_ = false;
  caret_ = caret;
  frames_left_ = std::max(0, frames_left_ - 1);
}

bool FramePacing::caret_blinks(std::int64_t now_us) const { return now_us < last_input_us_ + kBlinkEndsUs; }

}  // namespace octavo::app
