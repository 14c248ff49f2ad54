#include "ui/views/event_lines.h"

#include <algorithm>
#include <string>

#include "engine/base/format.h"
#include "ui/memory_state.h"
#include "ui/widgets/text.h"

namespace octavo::ui {

ImU32 event_colour(const Theme& theme, BlockEventKind kind) {
  switch (kind) {
    case BlockEventKind::kHit:
    case BlockEventKind::kShare:
    case BlockEventKind::kFork: return theme.owner(2);
    case BlockEventKind::kCopyOnWrite:
    case BlockEventKind::kCopyPartial: return theme.warning;
    case BlockEventKind::kPreempt:
    case BlockEventKind::kSwapOut:
    case BlockEventKind::kSwapIn: return theme.owner(4);
    default: return theme.muted;
  }
}

std::string_view event_word(BlockEventKind kind) {
  switch (kind) {
    case BlockEventKind::kAlloc: return "alloc";
    case BlockEventKind::kSeal: return "seal";
    case BlockEventKind::kHit: return "reuse";
    case BlockEventKind::kShare: return "share";
    case BlockEventKind::kUnref: return "release";
    case BlockEventKind::kCopyOnWrite:
    case BlockEventKind::kCopyPartial: return "copy";
    case BlockEventKind::kEvict: return "evict";
    case BlockEventKind::kSwapOut: return "swap out";
    case BlockEventKind::kSwapIn: return "swap in";
    case BlockEventKind::kSwapDrop: return "drop swapped";
    case BlockEventKind::kPin: return "pin";
    case BlockEventKind::kPreempt: return "preempt";
    case BlockEventKind::kResume: return "resume";
    case BlockEventKind::kFork: return "fork";
    case BlockEventKind::kPrune: return "prune";
    case BlockEventKind::kFree: return "free";
    case BlockEventKind::kFill: return "fill";
    case BlockEventKind::kStepBegin: return "step";
    case BlockEventKind::kStepEnd: return "step end";
  }
  return "event";
}

std::string event_text(const LogLine& line, const TimelineState& timeline) {
  std::string text;
  if (line.kind == BlockEventKind::kCopyOnWrite || line.kind == BlockEventKind::kCopyPartial) {
    text = std::to_string(line.first_block) + " → " + std::to_string(line.aux);
  } else if (line.count > 1) {
    text = count_text(line.count, "block");
  } else if (line.first_block >= 0) {
    text = "block " + std::to_string(line.first_block);
  }
  if (line.sequence != 0) text += (text.empty() ? "" : ", ") + sequence_name(timeline, line.sequence);
  return text;
}

void draw_event_lines(const Frame& frame, const TimelineState& timeline, std::size_t limit, float width) {
  const std::size_t shown = std::min(limit, timeline.log.size());
  TextStyle mono = mono_text(frame);
  mono.em = 12;
  if (shown == 0) {
    line(frame, tiny_text(frame), "No events yet.", width);
    return;
  }
  ImDrawList* list = ImGui::GetWindowDrawList();
  for (std::size_t i = timeline.log.size() - shown; i < timeline.log.size(); ++i) {
    const LogLine& log_line = timeline.log[i];
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const std::string time =
        seconds_text(std::max<std::int64_t>(log_line.time_us - timeline.origin_us, 0)) + " ";
    float x = at.x;
    draw_text(frame, list, {x, at.y}, mono, time);
    x += text_width(frame, mono, time);
    TextStyle word = mono;
    word.colour = event_colour(frame.theme, log_line.kind);
    const std::string kind = std::string(event_word(log_line.kind)) + " ";
    draw_text(frame, list, {x, at.y}, word, kind);
    x += text_width(frame, mono, kind);
    draw_text(frame, list, {x, at.y}, mono, event_text(log_line, timeline), std::max(1.0f, at.x + width - x));
    ImGui::Dummy({width, frame.px(21)});
  }
}

}  // namespace octavo::ui
