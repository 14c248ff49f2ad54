#include "app/window/notice_timer.h"

#include <algorithm>

namespace octavo::app {
namespace {

// Time to notice it, to read it at a thousand characters a minute, and to reach for what it offers.
constexpr std::int64_t kNoticedUs = 4'000'000, kCharacterUs = 60'000, kOfferUs = 6'000'000;

std::int64_t reading_us(const ui::Banner& banner) {
  const auto num_bytes = static_cast<std::int64_t>(banner.text.size());
  return kNoticedUs + num_bytes * kCharacterUs + (banner.offer == ui::BannerOffer::kNone ? 0 : kOfferUs);
}

}  // namespace

bool NoticeTimer::update(std::optional<ui::Banner>& banner, std::int64_t now_us) {
  if (!banner || banner->kind != ui::BannerKind::kNotice) {
    due_us_.reset();
    return false;
  }
  if (!due_us_ || text_ != banner->text) {
    text_ = banner->text;
    due_us_ = now_us + reading_us(*banner);
  }
  if (now_us < *due_us_) return false;
  banner.reset();
  due_us_.reset();
  return true;
}

}  // namespace octavo::app
