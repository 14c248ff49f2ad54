#include "app/hub/download_plan.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "engine/base/check.h"

namespace octavo::hub {
namespace {

constexpr std::string_view kHeading = "octavo download 1\n";
constexpr std::size_t kMostRanges = 1000;  // ever missing at once: workers, and what they left
constexpr std::int64_t kSpeedTimeUs = 5'000'000;
constexpr std::int64_t kSampleTimeUs = 100'000;

// "12 34\n" off the front of `text`.
std::optional<ByteRange> take_range(std::string_view& text) {
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  const char* const last = text.data() + end;
  ByteRange range;
  const auto first = std::from_chars(text.data(), last, range.begin);
  if (first.ec != std::errc{} || first.ptr == last || *first.ptr != ' ') return std::nullopt;
  const auto second = std::from_chars(first.ptr + 1, last, range.end);
  if (second.ec != std::errc{} || second.ptr != last) return std::nullopt;
  text.remove_prefix(end + 1);
  return range;
}

std::string line_of(std::int64_t begin, std::int64_t end) {
  return std::to_string(begin) + " " + std::to_string(end) + "\n";
}

}  // namespace

DownloadPlan::DownloadPlan(std::int64_t size) : size_(size) {
  if (size > 0) missing_[0] = size;
}

std::optional<DownloadPlan> DownloadPlan::parse(std::string_view text, std::int64_t size) {
  if (!text.starts_with(kHeading)) return std::nullopt;
  text.remove_prefix(kHeading.size());
  const auto whole = take_range(text);
  if (whole != ByteRange{0, size}) return std::nullopt;
  DownloadPlan plan(0);
  plan.size_ = size;
  std::int64_t last = 0;
  while (!text.empty()) {
    const auto range = take_range(text);
    if (!range || range->begin < last || range->end <= range->begin || range->end > size ||
        plan.missing_.size() == kMostRanges) {
      return std::nullopt;
    }
    last = range->end;
    plan.add_missing(*range);
  }
  return plan;
}

std::string DownloadPlan::text() const {
  std::string text = std::string(kHeading) + line_of(0, size_);
  for (const auto& [begin, end] : all_missing()) text += line_of(begin, end);
  return text;
}

std::map<std::int64_t, std::int64_t> DownloadPlan::all_missing() const {
  DownloadPlan all(0);
  all.missing_ = missing_;
  for (const auto& [worker, range] : in_work_) all.add_missing(range);
  return all.missing_;
}

// Joined with its neighbours.
void DownloadPlan::add_missing(ByteRange range) {
  if (range.size() <= 0) return;
  auto next = missing_.lower_bound(range.begin);
  if (next != missing_.end() && next->first == range.end) {
    range.end = next->second;
    next = missing_.erase(next);
  }
  if (next != missing_.begin()) {
    const auto before = std::prev(next);
    if (before->second == range.begin) {
      before->second = range.end;
      return;
    }
  }
  missing_[range.begin] = range.end;
}

std::optional<ByteRange> DownloadPlan::take(int worker, std::int64_t most_bytes) {
  OCTAVO_CHECK(in_work(worker).size() == 0, "worker %d has something in work", worker);
  if (missing_.empty()) return std::nullopt;
  const auto [begin, end] = *missing_.begin();
  const ByteRange range{begin, std::min(end, begin + most_bytes)};
  missing_.erase(missing_.begin());
  if (range.end < end) missing_[range.end] = end;
  in_work_[worker] = range;
  return range;
}

ByteRange DownloadPlan::in_work(int worker) const {
  const auto found = in_work_.find(worker);
  return found == in_work_.end() ? ByteRange{} : found->second;
}

void DownloadPlan::receive(int worker, std::int64_t bytes) {
  ByteRange& range = in_work_[worker];
  OCTAVO_CHECK(bytes <= range.size(), "%lld bytes were received of a range of %lld",
               static_cast<long long>(bytes), static_cast<long long>(range.size()));
  range.begin += bytes;
}

void DownloadPlan::give_back(int worker) {
  add_missing(in_work(worker));
  in_work_.erase(worker);
}

std::int64_t DownloadPlan::received() const {
  std::int64_t left = 0;
  for (const auto& [begin, end] : all_missing()) left += end - begin;
  return size_ - left;
}

std::optional<std::chrono::milliseconds> Retries::after_failure(
    std::optional<std::chrono::milliseconds> asked) {
  using std::chrono::milliseconds;
  if (++num_failures_ > kMostFailures) return std::nullopt;
  const milliseconds pause = std::min(milliseconds(500) * (1 << (num_failures_ - 1)), milliseconds(30'000));
  return std::max(pause, asked.value_or(milliseconds(0)));
}

void SpeedMeter::note(std::int64_t now_us, std::int64_t total_bytes) {
  if (!samples_.empty() && now_us - samples_.back().at_us < kSampleTimeUs) return;
  samples_.push_back({now_us, total_bytes});
  while (samples_.size() > 2 && now_us - samples_[1].at_us >= kSpeedTimeUs) samples_.pop_front();
}

double SpeedMeter::bytes_per_s(std::int64_t now_us) const {
  if (samples_.size() < 2) return 0;
  const std::int64_t time_us = std::max(now_us, samples_.back().at_us) - samples_.front().at_us;
  if (time_us < kSampleTimeUs) return 0;
  return static_cast<double>(samples_.back().bytes - samples_.front().bytes) * 1e6 /
         static_cast<double>(time_us);
}

}  // namespace octavo::hub
