#include "ui/views/memory/timeline_view.h"

#include <implot.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "engine/base/format.h"
#include "ui/memory_actions.h"
#include "ui/views/event_lines.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

constexpr double kLeastSpan = 0.05, kMostSpan = 3'600;
constexpr double kMostSamples = 1'200;
constexpr double kIdleSeconds = 1.0;  // that nothing was computed for so long is shown
constexpr float kAxisHeight = 22;
constexpr float kLegend = 158,
                kLeastWithLegend = 620;  // what lanes say about themselves stands right of them

double seconds_of(const MemoryWorkspaceState& state, std::int64_t time_us) {
  return static_cast<double>(time_us - state.timeline->origin_us) / 1e6;
}

double duration_ms(const StepRecord& record) {
  return static_cast<double>(record.schedule_us + record.execute_us + record.commit_us) / 1000.0;
}

void push_plot_style(const Frame& frame) {
  const ImU32 clear = IM_COL32_BLACK_TRANS;
  for (const ImPlotCol colour : {ImPlotCol_FrameBg, ImPlotCol_PlotBg, ImPlotCol_PlotBorder,
                                 ImPlotCol_AxisTick, ImPlotCol_AxisBgHovered, ImPlotCol_AxisBgActive}) {
    ImPlot::PushStyleColor(colour, clear);
  }
  ImPlot::PushStyleColor(ImPlotCol_AxisText, frame.theme.faint);
  ImPlot::PushStyleColor(ImPlotCol_AxisGrid, frame.theme.line);
  ImPlot::PushStyleVar(ImPlotStyleVar_PlotPadding, ImVec2(0, frame.px(2)));
  ImPlot::PushStyleVar(ImPlotStyleVar_LabelPadding, ImVec2(frame.px(6), frame.px(3)));
}

// The axis of a lane, while it is set up.
struct SecondsAxis {
  double from, to;
  float width;  // pixels
};

// ImPlot centres a label below its tick: one that would reach over the lane's edge, and be cut there, is left
// out.
int write_seconds(double value, char* text, int size, void* data) {
  const auto& axis = *static_cast<const SecondsAxis*>(data);
  const int length = std::snprintf(text, static_cast<std::size_t>(size), "%g s", value);
  const double x = (value - axis.from) / (axis.to - axis.from) * static_cast<double>(axis.width);
  const auto half = static_cast<double>(ImGui::CalcTextSize(text).x * 0.5f);
  if (x - half >= 0 && x + half <= static_cast<double>(axis.width)) return length;
  text[0] = '\0';
  return 0;
}

void pop_plot_style() {
  ImPlot::PopStyleVar(2);
  ImPlot::PopStyleColor(8);
}

void shade(const char* id, const std::vector<double>& time, const std::vector<double>& low,
           const std::vector<double>& high, ImU32 colour) {
  if (time.empty()) return;
  ImPlotSpec spec;
  spec.FillColor = ImGui::ColorConvertU32ToFloat4(colour);
  spec.LineColor = spec.FillColor;
  spec.LineWeight = 0;
  ImPlot::PlotShaded(id, time.data(), low.data(), high.data(), static_cast<int>(time.size()), spec);
}

void trace(const Frame& frame, const char* id, const std::vector<double>& time,
           const std::vector<double>& values, ImU32 colour) {
  if (time.empty()) return;
  ImPlotSpec spec;
  spec.LineColor = ImGui::ColorConvertU32ToFloat4(colour);
  spec.LineWeight = frame.px(1.5f);
  ImPlot::PlotLine(id, time.data(), values.data(), static_cast<int>(time.size()), spec);
}

// Which of the rare events is worth a word where there is no room for all, the most important first; the
// others have no mark.
constexpr std::array kMarked = {
    BlockEventKind::kSwapOut, BlockEventKind::kSwapIn, BlockEventKind::kPreempt, BlockEventKind::kCopyOnWrite,
    BlockEventKind::kFork,    BlockEventKind::kHit,    BlockEventKind::kEvict};

struct Mark {
  BlockEventKind kind;
  float x = 0, end = 0;  // of its line, and of its word with the room beside it
};

TextStyle mark_text(const Frame& frame, BlockEventKind kind) {
  TextStyle style = tiny_text(frame);
  style.em = 11.5f;
  style.colour = event_colour(frame.theme, kind);
  return style;
}

// Those that have room beside each other: an eviction takes none from a swap, whichever came first.
// REQUIRES: within a plot
std::vector<Mark> choose_marks(const Frame& frame, const MemoryWorkspaceState& state, double from,
                               double to) {
  const float left = ImPlot::GetPlotPos().x, right = left + ImPlot::GetPlotSize().x;
  std::array<float, kMarked.size()> widths;
  for (std::size_t i = 0; i < kMarked.size(); ++i) {
    widths[i] = text_width(frame, mark_text(frame, kMarked[i]), event_word(kMarked[i])) + frame.px(14);
  }
  std::array<std::vector<Mark>, kMarked.size()> found;  // of each kind beside each other
  const auto& log = state.timeline->log;
  const std::int64_t from_us = state.timeline->origin_us + static_cast<std::int64_t>(from * 1e6);
  auto event = std::partition_point(log.begin(), log.end(),
                                    [&](const LogLine& line) { return line.time_us < from_us; });
  for (; event != log.end(); ++event) {
    const double at = seconds_of(state, event->time_us);
    if (at > to) break;
    const auto kind = static_cast<std::size_t>(std::ranges::find(kMarked, event->kind) - kMarked.begin());
    if (kind == kMarked.size()) continue;
    const float x = std::floor(ImPlot::PlotToPixels(at, 0).x);
    const bool has_room = found[kind].empty() || x >= found[kind].back().end;
    if (has_room && x >= left && x + widths[kind] <= right)
      found[kind].push_back({event->kind, x, x + widths[kind]});
  }
  std::vector<Mark> marks;
  for (const std::vector<Mark>& of_kind : found) {
    for (const Mark& mark : of_kind) {
      const bool has_room = std::ranges::none_of(
          marks, [&](const Mark& other) { return mark.x < other.end && other.x < mark.end; });
      if (has_room) marks.push_back(mark);
    }
  }
  return marks;
}

void draw_mark_lines(const Frame& frame, ImDrawList* list, const std::vector<Mark>& marks, float top,
                     float bottom) {
  for (const Mark& mark : marks) {
    const ImU32 colour = with_alpha(event_colour(frame.theme, mark.kind), 0.7f);
    for (float y = top; y < bottom; y += frame.px(7))
      list->AddLineV(mark.x, y, std::min(y + frame.px(3), bottom), colour);
  }
}

// On a ground of their own, over everything else.
void draw_mark_words(const Frame& frame, ImDrawList* list, const std::vector<Mark>& marks, float top) {
  for (const Mark& mark : marks) {
    const TextStyle style = mark_text(frame, mark.kind);
    const ImVec2 low{mark.x + frame.px(3), top + frame.px(2)};
    list->AddRectFilled(low, {mark.end - frame.px(7), low.y + line_pixels(frame, style)}, frame.theme.panel,
                        frame.px(3));
    draw_text(frame, list, {low.x + frame.px(2), low.y}, style, event_word(mark.kind));
  }
}

// Where one engine ended and the next began, in pixels; `has_next` once it has computed something.
struct Border {
  bool is_there = false, has_next = false;
  float left = 0, right = 0;  // of the plot
  float end = 0, begin = 0;
};

// REQUIRES: within a plot
Border find_border(const MemoryWorkspaceState& state) {
  const TimelineState* before = state.timeline->before.get();
  if (before == nullptr) return {};
  Border border{.is_there = true, .has_next = !state.timeline->steps.empty()};
  border.left = ImPlot::GetPlotPos().x;
  border.right = border.left + ImPlot::GetPlotSize().x;
  border.end = border.begin = std::floor(ImPlot::PlotToPixels(seconds_of(state, before->newest_us), 0).x);
  if (border.has_next) {
    border.begin = std::floor(
        ImPlot::PlotToPixels(seconds_of(state, state.timeline->steps.front().record.begin_us), 0).x);
  }
  return border;
}

// The name of each engine beside its end of the gap, where it has room.
void draw_border(const Frame& frame, const MemoryWorkspaceState& state, ImDrawList* list,
                 const Border& border, float top, float bottom) {
  if (!border.is_there || border.begin < border.left) return;
  TextStyle style = tiny_text(frame);
  style.em = 11.5f;
  const float y = bottom - line_pixels(frame, style) - frame.px(2), space = frame.px(6);
  const auto put = [&](float x, const std::string& word, float width) {
    list->AddRectFilled({x - frame.px(2), y}, {x + width + frame.px(2), y + line_pixels(frame, style)},
                        frame.theme.panel, frame.px(3));
    draw_text(frame, list, {x, y}, style, word);
  };
  if (border.end >= border.left && border.end <= border.right) {
    list->AddLineV(border.end, top, bottom, frame.theme.muted, frame.px(1.5f));
    const std::string word = state.timeline->before->name + " ended";
    const float width = text_width(frame, style, word);
    if (border.end - space - width >= border.left) put(border.end - space - width, word, width);
  }
  if (!border.has_next || border.begin > border.right) return;
  list->AddLineV(border.begin, top, bottom, frame.theme.muted, frame.px(1.5f));
  const float width = text_width(frame, style, state.timeline->name);
  if (border.begin + space + width <= border.right) put(border.begin + space, state.timeline->name, width);
}

const TimelineStep* step_at(const MemoryWorkspaceState& state, double at) {
  const std::int64_t time_us = state.timeline->origin_us + static_cast<std::int64_t>(at * 1e6);
  const auto& steps = state.timeline->steps;
  const auto after = std::partition_point(
      steps.begin(), steps.end(), [&](const TimelineStep& step) { return step.record.begin_us <= time_us; });
  return after == steps.begin() ? nullptr : &*std::prev(after);
}

std::string step_summary(const MemoryWorkspaceState& state, const StepRecord& record) {
  std::string text = time_text(state, record.begin_us) + " · step " + with_thousands(record.step);
  text += "\nused " + with_thousands(record.used_blocks) + " · cached " +
          with_thousands(record.cached_blocks) + " · free " + with_thousands(record.free_blocks);
  if (state.pool.num_host_blocks > 0) text += " · host " + with_thousands(record.host_used_blocks);
  if (state.pool.num_window_blocks > 0)
    text += "\nwindow parts: read " + with_thousands(record.used_window_blocks) + " · kept " +
            with_thousands(record.cached_window_blocks);
  text += "\nrunning " + std::to_string(record.num_running) + " · waiting " +
          std::to_string(record.num_waiting) + " · swapped " + std::to_string(record.num_swapped_groups);
  text += "\nprefill " + with_thousands(record.num_prefill_tokens) + " · decode " +
          with_thousands(record.num_decode_tokens) + " tokens in " + duration_text(duration_ms(record));
  return text;
}

std::string speed_word(double speed) {
  return speed >= 1 ? short_number(speed) + " ×" : "1/" + short_number(1 / speed) + " ×";
}

}  // namespace

void TimelineView::widen(double factor) { span_ = std::clamp(span_ * factor, kLeastSpan, kMostSpan); }

void TimelineView::draw(const Frame& frame, const MemoryWorkspaceState& state, ImVec2 extent) {
  begin_card(frame, "timeline", extent);
  const float width = ImGui::GetContentRegionAvail().x;
  draw_controls(frame, state, width);
  gap(frame, 4);
  if (state.timeline->steps.empty() && state.timeline->before == nullptr) {
    draw_hint(frame, "No steps yet. Each engine step adds to these curves.");
    end_card();
    return;
  }
  update(state);
  const Face face = frame.face(FontFace::kRegular, 11);
  ImGui::PushFont(face.font, face.size);
  push_plot_style(frame);
  const float room = ImGui::GetContentRegionAvail().y;
  const float axis = frame.px(kAxisHeight);
  switch (lanes_) {
    case TimelineLanes::kMemory: draw_memory(frame, state, room, true); break;
    case TimelineLanes::kRequests: draw_requests(frame, state, room, true); break;
    case TimelineLanes::kTokens: draw_tokens(frame, state, room, true); break;
    case TimelineLanes::kSpeed: draw_speed(frame, state, room, true); break;
    case TimelineLanes::kAll: {
      const float lane = std::floor((room - axis - 3 * frame.px(3)) / 10);
      ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, frame.px(3)});
      draw_memory(frame, state, 4 * lane, false);
      draw_requests(frame, state, 2 * lane, false);
      draw_tokens(frame, state, 2 * lane, false);
      draw_speed(frame, state, 2 * lane + axis, true);
      ImGui::PopStyleVar();
      break;
    }
  }
  pop_plot_style();
  ImGui::PopFont();
  end_card();
}

void TimelineView::draw_controls(const Frame& frame, const MemoryWorkspaceState& state, float width) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const MemoryCursor& cursor = state.cursor;
  const TextStyle heading = heading_text(frame);
  draw_text(frame, ImGui::GetWindowDrawList(), at, heading, "Timeline");
  float x = at.x + text_width(frame, heading, "Timeline") + frame.px(14);
  // Each at its place, whatever the others say.
  const auto place = [&](float width_there, float space) {
    ImGui::SetCursorScreenPos({x, at.y - frame.px(3)});
    x += width_there + frame.px(space);
    return ChipOptions{.min_width = width_there};
  };
  const ChipOptions follow = place(widest_chip(frame, {"following", "paused", "playing"}), 6);
  const char* where = cursor.following ? "following" : cursor.playing ? "playing" : "paused";
  if (chip(frame, "follow", where, follow)) {
    if (cursor.following) {
      frame.actions.push(actions::PauseMemory{});
    } else {
      frame.actions.push(actions::FollowNewest{});
    }
  }
  tooltip(frame, cursor.following ? "Pause (Space)" : "Follow the latest step (Space)");
  const ChipOptions play = place(widest_chip(frame, {"play", "stop"}), 6);
  if (chip(frame, "play", cursor.playing ? "stop" : "play", play))
    frame.actions.push(actions::PlayMemory{!cursor.playing});
  tooltip(frame, "Replay from the cursor (P)");
  const ChipOptions speed = place(widest_chip(frame, {"1/16 ×", "16 ×", "64 ×"}), 12);
  if (chip(frame, "speed", speed_word(cursor.speed), speed))
    frame.actions.push(actions::ChangePlaySpeed{cursor.speed >= 16 ? 0.25 : cursor.speed * 2});
  tooltip(frame, "Replay speed ([ and ])");
  place(widest_chip(frame, {"‹"}), 4);
  if (chip(frame, "event_back", "‹")) frame.actions.push(actions::StepEvents{-1});
  tooltip(frame, "One event back (Shift+Left)");
  place(text_width(frame, small_text(frame), "event"), 4);
  line(frame, small_text(frame), "event");
  place(widest_chip(frame, {"›"}), 12);
  if (chip(frame, "event_on", "›")) frame.actions.push(actions::StepEvents{+1});
  tooltip(frame, "One event forward (Shift+Right)");
  place(widest_chip(frame, {"‹"}), 4);
  if (chip(frame, "step_back", "‹")) frame.actions.push(actions::StepSteps{-1});
  tooltip(frame, "One engine step back (Left)");
  place(text_width(frame, small_text(frame), "step"), 4);
  line(frame, small_text(frame), "step");
  place(widest_chip(frame, {"›"}), 12);
  if (chip(frame, "step_on", "›")) frame.actions.push(actions::StepSteps{+1});
  tooltip(frame, "One engine step forward (Right)");
  constexpr std::array<const char*, 5> kWords = {"all", "memory", "requests", "tokens", "speed"};
  const std::string lanes = std::string("lanes: ") + kWords[static_cast<std::size_t>(lanes_)];
  const float right = widest_chip(frame, {"lanes: all", "lanes: memory", "lanes: requests", "lanes: tokens"});
  TextStyle moment = tiny_text(frame);
  std::string told = "step " + with_thousands(cursor.step) + " · " + time_text(state, cursor.time_us);
  if (!cursor.problem.empty()) {
    moment.colour = frame.theme.warning;
    told = cursor.problem;
  }
  const float room = at.x + width - right - frame.px(12) - x;
  ImGui::SetCursorScreenPos({x, at.y});
  if (room > frame.px(40)) line(frame, moment, told, room);
  ImGui::SetCursorScreenPos({at.x + width - right, at.y - frame.px(3)});
  if (chip(frame, "lanes", lanes, {.min_width = right})) next_lanes();
  tooltip(frame, "Choose what the timeline shows (L)");
  ImGui::SetCursorScreenPos({at.x, at.y + frame.px(24)});
  ImGui::Dummy({1, 1});
}

// What the pools held from a step, or from a change between steps, until the next.
struct TimelineView::Level {
  std::int64_t time_us = 0;
  double used = 0, cached = 0, free = 0, host = 0, windows = 0, held_windows = 0;
  const StepRecord* step = nullptr;  // none: something happened without one
};

void TimelineView::update(const MemoryWorkspaceState& state) {
  const TimelineState& timeline = *state.timeline;
  const TimelineState* before = timeline.before.get();
  const std::int64_t newest_us = timeline.steps.empty() ? before->newest_us : timeline.newest_us;
  const std::int64_t oldest_us = (before != nullptr ? *before : timeline).steps.front().record.begin_us;
  const double newest = std::max(0.001, seconds_of(state, newest_us));
  const double oldest = seconds_of(state, oldest_us);
  if (source_ != state.source) {
    source_ = state.source;
    span_ = source_ == MemorySource::kLive ? 60 : std::max(newest - oldest, kLeastSpan);
    end_ = newest;
  }
  const bool is_moving = state.cursor.following || state.page == MemoryPage::kTour;
  if (is_moving) end_ = newest;
  const double cursor = seconds_of(state, state.cursor.time_us);
  if (!state.cursor.following && !is_scrubbing_ && (cursor < end_ - span_ || cursor > end_))
    end_ = cursor + span_ * 0.5;
  end_ = std::clamp(end_, std::min(newest, oldest + span_ * 0.1), std::max(newest, span_ * 0.1));
  to_ = end_;
  from_ = std::max(std::min(0.0, oldest), end_ - span_);
  if (to_ - from_ < kLeastSpan) to_ = from_ + kLeastSpan;
  if (version_ == state.version && made_from_ == from_ && made_to_ == to_) return;
  version_ = state.version;
  made_from_ = from_;
  made_to_ = to_;
  curves_ = {};
  if (before != nullptr) {
    const double blocks_before =
        std::max(1, before->steps.back().record.used_blocks + before->steps.back().record.cached_blocks +
                        before->steps.back().record.free_blocks);
    add_engine(state, *before, std::max(1, state.pool.num_blocks) / blocks_before);
    end_engine(seconds_of(state, before->newest_us));
  }
  add_engine(state, timeline, 1.0);
}

// Nothing holds where an engine has ended and the next has not begun.
void TimelineView::end_engine(double at) {
  if (curves_.time.empty()) return;
  add_point(at, curves_.time.size() - 1);
  for (auto* values : curves_.lanes()) values->push_back(0);
  curves_.time.push_back(at);
}

// The point `as` again, later.
void TimelineView::add_point(double at, std::size_t as) {
  for (auto* values : curves_.lanes()) values->push_back((*values)[as]);
  curves_.time.push_back(at);
}

void TimelineView::add_engine(const MemoryWorkspaceState& state, const TimelineState& timeline,
                              double scale) {
  const std::int64_t from_us = state.timeline->origin_us + static_cast<std::int64_t>(from_ * 1e6);
  auto step = std::partition_point(timeline.steps.begin(), timeline.steps.end(),
                                   [&](const TimelineStep& one) { return one.record.begin_us < from_us; });
  if (step != timeline.steps.begin()) --step;
  const std::int64_t first_us = step == timeline.steps.end() ? from_us : step->record.begin_us;
  auto between = std::partition_point(timeline.levels.begin(), timeline.levels.end(),
                                      [&](const LevelPoint& one) { return one.time_us < first_us; });
  std::vector<Level> levels;  // in order of time
  while (step != timeline.steps.end() || between != timeline.levels.end()) {
    const bool is_step = between == timeline.levels.end() ||
                         (step != timeline.steps.end() && step->record.begin_us <= between->time_us);
    if (is_step) {
      const StepRecord& record = (step++)->record;
      levels.push_back({record.begin_us, double(record.used_blocks), double(record.cached_blocks),
                        double(record.free_blocks), double(record.host_used_blocks),
                        double(record.used_window_blocks),
                        double(record.used_window_blocks + record.cached_window_blocks), &record});
    } else {
      levels.push_back({between->time_us, double(between->used), double(between->cached),
                        double(between->free), double(between->host), double(between->used_windows),
                        double(between->used_windows + between->cached_windows), nullptr});
      ++between;
    }
    if (seconds_of(state, levels.back().time_us) > to_) break;
  }
  add_levels(state, levels, scale);
  const double end = std::min(to_, seconds_of(state, timeline.newest_us));
  if (!curves_.time.empty() && curves_.time.back() < end) add_point(end, curves_.time.size() - 1);
  add_rates(state, timeline);
}

// Of the steps within one sample: the tokens of all, the longest time, the levels of the last. What holds for
// longer than a sample is never left out.
void TimelineView::add_levels(const MemoryWorkspaceState& state, const std::vector<Level>& levels,
                              double scale) {
  const double least = (to_ - from_) / kMostSamples;
  double prefill = 0, decode = 0, longest = 0;
  bool is_first = true;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const Level& level = levels[i];
    const double at = std::max(from_, seconds_of(state, level.time_us));
    if (at > to_) break;
    if (level.step != nullptr) {
      prefill += level.step->num_prefill_tokens;
      decode += level.step->num_decode_tokens + level.step->num_accepted_tokens;
      longest = std::max(longest, duration_ms(*level.step));
    }
    const double next =
        i + 1 < levels.size() ? seconds_of(state, levels[i + 1].time_us) : at + 2 * least + kIdleSeconds;
    const bool is_dense = !is_first && at - curves_.time.back() < least && next - at < least;
    if (is_dense) continue;
    if (!curves_.time.empty()) add_point(at, curves_.time.size() - 1);  // what was before holds until here
    is_first = false;
    const double used = level.used * scale, cached = level.cached * scale, free = level.free * scale;
    curves_.time.push_back(at);
    curves_.zero.push_back(0);
    curves_.used.push_back(used);
    curves_.cached.push_back(used + cached);
    curves_.free.push_back(used + cached + free);
    curves_.host.push_back(used + cached + free + level.host * scale);
    curves_.windows.push_back(level.windows * scale);
    curves_.held_windows.push_back(level.held_windows * scale);
    curves_.prefill.push_back(prefill);
    curves_.decode.push_back(decode);
    curves_.step_ms.push_back(longest);
    curves_.most_tokens = std::max(curves_.most_tokens, std::max(prefill, decode));
    curves_.most_ms = std::max(curves_.most_ms, longest);
    prefill = decode = longest = 0;
    const double end = level.step != nullptr ? at + duration_ms(*level.step) / 1000.0 : at;
    if (next - end < kIdleSeconds) continue;
    // Blocks stay where they are while nothing runs; nothing is computed.
    add_point(end, curves_.time.size() - 1);
    add_point(end, curves_.time.size() - 1);
    curves_.prefill.back() = curves_.decode.back() = curves_.step_ms.back() = 0;
  }
}

// Silence is a gap: a line that has no value between two stretches.
void TimelineView::add_rates(const MemoryWorkspaceState& state, const TimelineState& timeline) {
  for (const RatePoint& rate : timeline.rates) {
    const double at = seconds_of(state, rate.time_us);
    if (at < from_ - 1 || at > to_) continue;
    if (!curves_.rate_time.empty() && at - curves_.rate_time.back() > kIdleSeconds) {
      curves_.rate_time.push_back(at);
      curves_.token_rate.push_back(std::nan(""));
      curves_.request_rate.push_back(std::nan(""));
    }
    curves_.rate_time.push_back(at);
    curves_.token_rate.push_back(rate.tokens_per_second);
    curves_.request_rate.push_back(rate.requests_per_second);
    curves_.most_rate = std::max(curves_.most_rate, rate.tokens_per_second);
    curves_.most_requests = std::max(curves_.most_requests, rate.requests_per_second);
  }
}

bool TimelineView::begin_lane(const Frame& frame, const char* id, float height, double top, bool has_axis) {
  constexpr ImPlotFlags kFlags = ImPlotFlags_NoTitle | ImPlotFlags_NoLegend | ImPlotFlags_NoMouseText |
                                 ImPlotFlags_NoMenus | ImPlotFlags_NoBoxSelect | ImPlotFlags_NoFrame;
  const float width = ImGui::GetContentRegionAvail().x;
  legend_width_ = width < frame.px(kLeastWithLegend) ? 0 : frame.px(kLegend);
  SecondsAxis seconds{.from = from_, .to = to_, .width = width - legend_width_};
  if (!ImPlot::BeginPlot(id, {seconds.width, height}, kFlags)) return false;
  ImPlotAxisFlags axis = ImPlotAxisFlags_NoGridLines | ImPlotAxisFlags_NoTickMarks | ImPlotAxisFlags_Lock;
  if (!has_axis) axis |= ImPlotAxisFlags_NoTickLabels;
  ImPlot::SetupAxis(ImAxis_X1, nullptr, axis);
  ImPlot::SetupAxis(ImAxis_Y1, nullptr, ImPlotAxisFlags_NoDecorations | ImPlotAxisFlags_Lock);
  ImPlot::SetupAxisFormat(ImAxis_X1, write_seconds, &seconds);
  ImPlot::SetupAxesLimits(from_, to_, 0, top, ImPlotCond_Always);
  ImPlot::SetupFinish();
  return true;
}

void TimelineView::end_lane(const Frame& frame, const MemoryWorkspaceState& state,
                            const std::vector<std::string>& legend) {
  ImDrawList* list = ImPlot::GetPlotDrawList();
  const ImVec2 low = ImPlot::GetPlotPos(), size = ImPlot::GetPlotSize();
  draw_legend(frame, {low.x + size.x, low.y}, legend);
  if (!state.cursor.following) {
    const float x = std::floor(ImPlot::PlotToPixels(seconds_of(state, state.cursor.time_us), 0).x);
    if (x >= low.x - 1 && x <= low.x + size.x + 1)
      list->AddLineV(std::clamp(x, low.x, low.x + size.x - 1), low.y, low.y + size.y, frame.theme.text,
                     frame.px(1.5f));
  }
  point(frame, state);
  ImPlot::EndPlot();
}

// Nothing where the window is too narrow for it: what a lane shows is told by the pointer, too.
void TimelineView::draw_legend(const Frame& frame, ImVec2 at, const std::vector<std::string>& legend) {
  if (legend_width_ <= 0) return;
  TextStyle style = tiny_text(frame);
  style.em = 11;
  style.colour = frame.theme.muted;
  float y = at.y;
  for (const std::string& words : legend) {
    draw_text(frame, ImGui::GetWindowDrawList(), {at.x + frame.px(10), y}, style, words,
              legend_width_ - frame.px(10));
    y += frame.px(13);
  }
}

// The pointer: shows a step, drags the cursor, zooms with the wheel.
void TimelineView::point(const Frame& frame, const MemoryWorkspaceState& state) {
  if (!ImGui::IsMouseDown(ImGuiMouseButton_Left)) is_scrubbing_ = false;
  if (!ImPlot::IsPlotHovered()) return;
  const double at = std::clamp(ImPlot::GetPlotMousePos().x, from_, to_);
  const ImVec2 low = ImPlot::GetPlotPos();
  ImPlot::GetPlotDrawList()->AddLineV(std::floor(ImGui::GetMousePos().x), low.y,
                                      low.y + ImPlot::GetPlotSize().y, with_alpha(frame.theme.text, 0.35f));
  if (ImGui::IsMouseClicked(ImGuiMouseButton_Left)) is_scrubbing_ = true;
  const bool has_moved = ImGui::IsMouseClicked(ImGuiMouseButton_Left) || ImGui::GetIO().MouseDelta.x != 0;
  if (is_scrubbing_ && has_moved) {
    const std::int64_t time_us = state.timeline->origin_us + static_cast<std::int64_t>(at * 1e6);
    frame.actions.push(actions::SeekTime{time_us});
  }
  if (const float wheel = ImGui::GetIO().MouseWheel; wheel != 0) {
    const double before = span_;
    widen(std::pow(0.8, wheel));
    end_ = at + (end_ - at) * span_ / before;
  }
  if (ImGui::IsMouseDragging(ImGuiMouseButton_Right)) {
    end_ -= static_cast<double>(ImGui::GetIO().MouseDelta.x) * (to_ - from_) / ImPlot::GetPlotSize().x;
  }
  if (const TimelineStep* step = step_at(state, at); step != nullptr)
    tooltip_now(frame, step_summary(state, step->record));
}

void TimelineView::draw_memory(const Frame& frame, const MemoryWorkspaceState& state, float height,
                               bool has_axis) {
  const double top = std::max(1, state.pool.num_blocks) + state.pool.num_host_blocks;
  if (!begin_lane(frame, "timeline_plot", height, top, has_axis)) return;
  const Theme& theme = frame.theme;
  if (state.pool.num_host_blocks > 0)
    shade("host", curves_.time, curves_.free, curves_.host, mix(theme.owner(4), theme.panel, 0.6f));
  shade("free", curves_.time, curves_.cached, curves_.free, mix(theme.free, theme.panel, 0.55f));
  shade("cached", curves_.time, curves_.used, curves_.cached, theme.cached);
  shade("used", curves_.time, curves_.zero, curves_.used, mix(theme.accent, theme.panel, 0.25f));
  const bool has_windows = state.pool.num_window_blocks > 0;
  if (has_windows) {  // a part is of one block: they are as many of the blocks below
    trace(frame, "held_windows", curves_.time, curves_.held_windows, with_alpha(theme.text, 0.45f));
    trace(frame, "windows", curves_.time, curves_.windows, theme.text);
  }
  ImDrawList* list = ImPlot::GetPlotDrawList();
  const float low = ImPlot::GetPlotPos().y, high = low + ImPlot::GetPlotSize().y;
  const std::vector<Mark> marks = choose_marks(frame, state, from_, to_);
  const Border border = find_border(state);
  draw_mark_lines(frame, list, marks, low, high);
  std::vector<std::string> legend = {"blocks, bottom to top:", "used · cached · free"};
  if (state.pool.num_host_blocks > 0) legend.push_back("in the host pool");
  if (has_windows) legend.push_back("line: window parts read,");
  if (has_windows) legend.push_back("paler: read and kept");
  end_lane(frame, state, legend);
  draw_mark_words(frame, list, marks, low);
  draw_border(frame, state, list, border, low, high);
}

// A bar for each sequence while it runs; hatched while swapped out, a line while it waits to be computed
// again.
void TimelineView::draw_requests(const Frame& frame, const MemoryWorkspaceState& state, float height,
                                 bool has_axis) {
  if (!begin_lane(frame, "requests_plot", height, 1, has_axis)) return;
  ImDrawList* list = ImPlot::GetPlotDrawList();
  const ImVec2 low = ImPlot::GetPlotPos(), size = ImPlot::GetPlotSize();
  const auto newest = state.timeline->newest_us;
  std::map<std::uint64_t, int> rows;
  for (const ScheduleSpan& span : state.timeline->spans) {
    const double begin = seconds_of(state, span.begin_us);
    const double end = seconds_of(state, span.end_us < 0 ? newest : span.end_us);
    if (end >= from_ && begin <= to_) rows.emplace(span.sequence, 0);
  }
  int next = 0;
  for (auto& [sequence, row] : rows) row = next++;
  const float pitch = std::min(size.y / static_cast<float>(std::max(1, next)), frame.px(12));
  const float thickness = std::max(1.0f, pitch - (pitch > 4 ? frame.px(2) : 0.5f));
  ImPlot::PushPlotClipRect();
  for (const ScheduleSpan& span : state.timeline->spans) {
    const auto row = rows.find(span.sequence);
    if (row == rows.end()) continue;
    const auto name = state.timeline->names.find(span.sequence);
    const ImU32 colour = frame.theme.owner(name != state.timeline->names.end()
                                               ? name->second.colour_index
                                               : static_cast<std::uint32_t>(span.sequence % 7));
    const float x0 = ImPlot::PlotToPixels(seconds_of(state, span.begin_us), 0).x;
    const float x1 = std::max(
        x0 + 1, ImPlot::PlotToPixels(seconds_of(state, span.end_us < 0 ? newest : span.end_us), 0).x);
    const float y = low.y + static_cast<float>(row->second) * pitch + 1;
    switch (span.state) {
      case SequenceState::kRunning:
        list->AddRectFilled({x0, y}, {x1, y + thickness}, colour, frame.px(1));
        break;
      case SequenceState::kSwapped:
        list->AddRectFilled({x0, y}, {x1, y + thickness}, with_alpha(colour, 0.22f));
        list->AddRect({x0, y}, {x1, y + thickness}, colour);
        break;
      case SequenceState::kWaiting: list->AddLineH(x0, x1, std::floor(y + thickness * 0.5f), colour); break;
    }
  }
  ImPlot::PopPlotClipRect();
  end_lane(frame, state, {"sequences: running,", "outlined while swapped"});
}

void TimelineView::draw_tokens(const Frame& frame, const MemoryWorkspaceState& state, float height,
                               bool has_axis) {
  if (!begin_lane(frame, "tokens_plot", height, curves_.most_tokens * 1.15, has_axis)) return;
  shade("prefill", curves_.time, curves_.zero, curves_.prefill, with_alpha(frame.theme.owner(1), 0.75f));
  trace(frame, "decode", curves_.time, curves_.decode, frame.theme.owner(0));
  end_lane(frame, state,
           {"tokens per step, up to " + short_number(curves_.most_tokens), "prefill filled, decode line"});
}

void TimelineView::draw_speed(const Frame& frame, const MemoryWorkspaceState& state, float height,
                              bool has_axis) {
  if (!begin_lane(frame, "speed_plot", height, 1.15, has_axis)) return;
  const auto scaled = [](const std::vector<double>& values, double most) {
    std::vector<double> shares;
    for (const double value : values) shares.push_back(value / most);
    return shares;
  };
  shade("step_ms", curves_.time, curves_.zero, scaled(curves_.step_ms, curves_.most_ms),
        with_alpha(frame.theme.muted, 0.35f));
  trace(frame, "rate", curves_.rate_time, scaled(curves_.token_rate, curves_.most_rate), frame.theme.accent);
  trace(frame, "requests", curves_.rate_time, scaled(curves_.request_rate, curves_.most_requests),
        frame.theme.owner(3));
  end_lane(
      frame, state,
      {"tok/s to " + short_number(curves_.most_rate), "requests/s to " + short_number(curves_.most_requests),
       "filled: step, up to " + duration_text(curves_.most_ms)});
}

}  // namespace octavo::ui
