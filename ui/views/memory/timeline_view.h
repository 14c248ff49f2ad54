// How the pools came to be as they are: levels, who ran, tokens a step, speed. One cursor for all of it,
// which the whole workspace follows.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ui/memory_state.h"
#include "ui/views/memory/memory_parts.h"

namespace octavo::ui {

enum class TimelineLanes { kAll, kMemory, kRequests, kTokens, kSpeed };

class TimelineView {
 public:
  void draw(const Frame& frame, const MemoryWorkspaceState& state, ImVec2 extent);
  void next_lanes() { lanes_ = static_cast<TimelineLanes>((static_cast<int>(lanes_) + 1) % 5); }
  void widen(double factor);
  TimelineLanes lanes() const { return lanes_; }
  double span_s() const { return span_; }

 private:
  // Levels as stairs: they hold until the next step. Thinned to what a screen can show.
  struct Curves {
    std::vector<double> time, zero, used, cached, free, host;
    std::vector<double> windows, held_windows;  // window parts that are read; and those that are kept
    std::vector<double> prefill, decode, step_ms;
    std::vector<double> rate_time, token_rate, request_rate;
    double most_tokens = 1, most_ms = 1, most_rate = 1, most_requests = 1;

    // What has a value for each `time`.
    std::array<std::vector<double>*, 10> lanes() {
      return {&zero, &used, &cached, &free, &host, &windows, &held_windows, &prefill, &decode, &step_ms};
    }
  };
  struct Level;

  void update(const MemoryWorkspaceState& state);
  void add_engine(const MemoryWorkspaceState& state, const TimelineState& timeline, double scale);
  void end_engine(double at);
  void add_levels(const MemoryWorkspaceState& state, const std::vector<Level>& levels, double scale);
  void add_rates(const MemoryWorkspaceState& state, const TimelineState& timeline);
  void add_point(double at, std::size_t as);
  void draw_controls(const Frame& frame, const MemoryWorkspaceState& state, float width);
  bool begin_lane(const Frame& frame, const char* id, float height, double top, bool has_axis);
  void end_lane(const Frame& frame, const MemoryWorkspaceState& state,
                const std::vector<std::string>& legend);
  void draw_legend(const Frame& frame, ImVec2 at, const std::vector<std::string>& legend);
  void draw_memory(const Frame& frame, const MemoryWorkspaceState& state, float height, bool has_axis);
  void draw_requests(const Frame& frame, const MemoryWorkspaceState& state, float height, bool has_axis);
  void draw_tokens(const Frame& frame, const MemoryWorkspaceState& state, float height, bool has_axis);
  void draw_speed(const Frame& frame, const MemoryWorkspaceState& state, float height, bool has_axis);
  void point(const Frame& frame, const MemoryWorkspaceState& state);

  float legend_width_ = 0;  // of the lanes; 0: there is no room for one
  TimelineLanes lanes_ = TimelineLanes::kAll;
  double span_ = 60, end_ = 60;
  double from_ = 0, to_ = 60;  // seconds that are shown
  Curves curves_;
  std::uint64_t version_ = ~std::uint64_t{0};
  double made_from_ = -1, made_to_ = -1;
  MemorySource source_ = MemorySource::kLive;
  bool is_scrubbing_ = false;
};

}  // namespace octavo::ui
