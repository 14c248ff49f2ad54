#include "ui/views/memory/timeline_view.h"

#include <implot.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>

#include "engine/base/format.h"
#include "ui/memory_actions.h"
#include "ui/views/event_lines.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

constexpr double kLeastSpan = 0.05, kMostSpan = 3'600;
constexpr double kMostSamples = 1'200;
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

bool is_marked(BlockEventKind kind) {
  return kind == BlockEventKind::kHit || kind == BlockEventKind::kCopyOnWrite ||
         kind == BlockEventKind::kEvict || kind == BlockEventKind::kPreempt ||
         kind == BlockEventKind::kSwapOut || kind == BlockEventKind::kSwapIn || kind == BlockEventKind::kFork;
}

// Dashed lines with a word for rare events, as many as have room beside each other.
void draw_marks(const Frame& frame, const MemoryWorkspaceState& state, double from, double to) {
  ImDrawList* list = ImPlot::GetPlotDrawList();
  const ImVec2 low = ImPlot::GetPlotPos();
  const float bottom = low.y + ImPlot::GetPlotSize().y, right = low.x + ImPlot::GetPlotSize().x;
  float free_from = -FLT_MAX;
  TextStyle style = tiny_text(frame);
  style.em = 11.5f;
  const auto& log = state.timeline->log;
  const std::int64_t from_us = state.timeline->origin_us + static_cast<std::int64_t>(from * 1e6);
  const auto first = std::partition_point(log.begin(), log.end(),
                                          [&](const LogLine& line) { return line.time_us < from_us; });
  for (auto event = first; event != log.end(); ++event) {
    const double at = seconds_of(state, event->time_us);
    if (at > to) break;
    if (!is_marked(event->kind)) continue;
    const float x = std::floor(ImPlot::PlotToPixels(at, 0).x);
    if (x < free_from) continue;
    const std::string_view word = event_word(event->kind);
    style.colour = event_colour(frame.theme, event->kind);
    for (float y = low.y; y < bottom; y += frame.px(7)) {
      list->AddLineV(x, y, std::min(y + frame.px(3), bottom), with_alpha(style.colour, 0.7f));
    }
    const float width = text_width(frame, style, word);
    if (x + frame.px(5) + width <= right)
      draw_text(frame, list, {x + frame.px(5), low.y + frame.px(2)}, style, word);
    free_from = x + width + frame.px(14);
  }
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
  if (state.timeline->steps.empty()) {
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
  ImGui::SetCursorScreenPos(
      {at.x + text_width(frame, heading, "Timeline") + frame.px(14), at.y - frame.px(3)});
  const std::string where = cursor.following ? std::string("following")
                            : cursor.playing ? "playing at " + time_text(state, cursor.time_us)
                                             : "paused at " + time_text(state, cursor.time_us);
  if (chip(frame, "follow", where)) {
    if (cursor.following) {
      frame.actions.push(actions::PauseMemory{});
    } else {
      frame.actions.push(actions::FollowNewest{});
    }
  }
  tooltip(frame, cursor.following ? "Pause (Space)" : "Follow the latest step (Space)");
  beside(frame, 6);
  if (chip(frame, "play", cursor.playing ? "stop" : "play"))
    frame.actions.push(actions::PlayMemory{!cursor.playing});
  tooltip(frame, "Replay from the cursor (P)");
  beside(frame, 6);
  if (chip(frame, "speed", speed_word(cursor.speed)))
    frame.actions.push(actions::ChangePlaySpeed{cursor.speed >= 16 ? 0.25 : cursor.speed * 2});
  tooltip(frame, "Replay speed ([ and ])");
  beside(frame, 12);
  if (chip(frame, "event_back", "‹")) frame.actions.push(actions::StepEvents{-1});
  tooltip(frame, "One event back (Shift+Left)");
  beside(frame, 4);
  line(frame, small_text(frame), "event");
  beside(frame, 4);
  if (chip(frame, "event_on", "›")) frame.actions.push(actions::StepEvents{+1});
  tooltip(frame, "One event forward (Shift+Right)");
  beside(frame, 12);
  if (chip(frame, "step_back", "‹")) frame.actions.push(actions::StepSteps{-1});
  tooltip(frame, "One engine step back (Left)");
  beside(frame, 4);
  line(frame, small_text(frame), "step " + with_thousands(cursor.step));
  beside(frame, 4);
  if (chip(frame, "step_on", "›")) frame.actions.push(actions::StepSteps{+1});
  tooltip(frame, "One engine step forward (Right)");
  constexpr std::array<const char*, 5> kWords = {"all", "memory", "requests", "tokens", "speed"};
  const std::string lanes = std::string("lanes: ") + kWords[static_cast<std::size_t>(lanes_)];
  const float right = text_width(frame, tiny_text(frame), lanes) + frame.px(26);
  if (!cursor.problem.empty()) {
    beside(frame, 12);
    TextStyle problem = tiny_text(frame);
    problem.colour = frame.theme.warning;
    line(frame, problem, cursor.problem, std::max(frame.px(20), ImGui::GetContentRegionAvail().x - right));
  }
  ImGui::SetCursorScreenPos({at.x + width - right, at.y - frame.px(3)});
  if (chip(frame, "lanes", lanes)) next_lanes();
  tooltip(frame, "Choose what the timeline shows (L)");
  ImGui::SetCursorScreenPos({at.x, at.y + frame.px(24)});
  ImGui::Dummy({1, 1});
}

void TimelineView::update(const MemoryWorkspaceState& state) {
  const TimelineState& timeline = *state.timeline;
  const double newest = std::max(0.001, seconds_of(state, timeline.newest_us));
  const double oldest = seconds_of(state, timeline.steps.front().record.begin_us);
  if (source_ != state.source) {
    source_ = state.source;
    span_ = source_ == MemorySource::kLive ? 60 : std::max(newest - oldest, kLeastSpan);
    end_ = newest;
  }
  const bool is_moving = state.cursor.following || state.source == MemorySource::kTour;
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
  const double least = (to_ - from_) / kMostSamples;
  const auto& steps = timeline.steps;
  const std::int64_t from_us = timeline.origin_us + static_cast<std::int64_t>(from_ * 1e6);
  auto step = std::partition_point(steps.begin(), steps.end(),
                                   [&](const TimelineStep& one) { return one.record.begin_us < from_us; });
  if (step != steps.begin()) --step;
  // Of the steps within one sample: the tokens of all, the longest time, the levels of the last.
  double prefill = 0, decode = 0, longest = 0;
  for (; step != steps.end(); ++step) {
    const StepRecord& record = step->record;
    const double at = std::max(from_, seconds_of(state, record.begin_us));
    if (at > to_) break;
    prefill += record.num_prefill_tokens;
    decode += record.num_decode_tokens + record.num_accepted_tokens;
    longest = std::max(longest, duration_ms(record));
    const bool is_last = std::next(step) == steps.end();
    if (!curves_.time.empty() && at - curves_.time.back() < least && !is_last) continue;
    const auto add = [&](double time) {
      const double used = record.used_blocks, cached = record.cached_blocks;
      curves_.time.push_back(time);
      curves_.zero.push_back(0);
      curves_.used.push_back(used);
      curves_.cached.push_back(used + cached);
      curves_.free.push_back(used + cached + record.free_blocks);
      curves_.host.push_back(used + cached + record.free_blocks + record.host_used_blocks);
      curves_.prefill.push_back(prefill);
      curves_.decode.push_back(decode);
      curves_.step_ms.push_back(longest);
    };
    if (!curves_.time.empty()) {  // the level before holds until here
      const std::size_t last = curves_.time.size() - 1;
      curves_.time.push_back(at);
      for (auto* values : {&curves_.zero, &curves_.used, &curves_.cached, &curves_.free, &curves_.host,
                           &curves_.prefill, &curves_.decode, &curves_.step_ms}) {
        values->push_back((*values)[last]);
      }
    }
    add(at);
    curves_.most_tokens = std::max(curves_.most_tokens, std::max(prefill, decode));
    curves_.most_ms = std::max(curves_.most_ms, longest);
    prefill = decode = longest = 0;
  }
  for (const RatePoint& rate : timeline.rates) {
    const double at = seconds_of(state, rate.time_us);
    if (at < from_ - 1 || at > to_) continue;
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
  if (!ImPlot::BeginPlot(id, {width - legend_width_, height}, kFlags)) return false;
  ImPlotAxisFlags axis = ImPlotAxisFlags_NoGridLines | ImPlotAxisFlags_NoTickMarks | ImPlotAxisFlags_Lock;
  if (!has_axis) axis |= ImPlotAxisFlags_NoTickLabels;
  ImPlot::SetupAxis(ImAxis_X1, nullptr, axis);
  ImPlot::SetupAxis(ImAxis_Y1, nullptr, ImPlotAxisFlags_NoDecorations | ImPlotAxisFlags_Lock);
  ImPlot::SetupAxisFormat(ImAxis_X1, "%g s");
  ImPlot::SetupAxesLimits(from_, to_, 0, top, ImPlotCond_Always);
  ImPlot::SetupFinish();
  return true;
}

void TimelineView::end_lane(const Frame& frame, const MemoryWorkspaceState& state,
                            std::initializer_list<std::string> legend) {
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
void TimelineView::draw_legend(const Frame& frame, ImVec2 at, std::initializer_list<std::string> legend) {
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
  draw_marks(frame, state, from_, to_);
  if (state.pool.num_host_blocks > 0) {
    end_lane(frame, state, {"blocks, bottom to top:", "used · cached · free", "in the host pool"});
  } else {
    end_lane(frame, state, {"blocks, bottom to top:", "used · cached · free"});
  }
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
